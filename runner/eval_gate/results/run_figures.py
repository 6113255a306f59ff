"""Figures of one run that only the trend of its branch shows: gate outcome, cost and time. No verdict reads them.

Cost and time are of one execution of every case, of reused ones as they were executed: neither re-runs nor reuse moves
them.
"""

from __future__ import annotations

from statistics import median
from typing import Annotated, Final

from msgspec import Meta

from eval_gate.model.base import Record
from eval_gate.model.comparison import Outcome
from eval_gate.model.execution_usage import measure_execution
from eval_gate.model.result import RunResult
from eval_gate.model.usage import add_up

_MOST: Final = 1e12
_Amount = Annotated[float, Meta(ge=0, le=_MOST)]


class RunFigures(Record, kw_only=True, omit_defaults=True):
    """Figures of one run; None if unknown."""

    outcome: Outcome | None = None
    """Gate verdict; None without one."""
    cost_usd: _Amount | None = None
    """Known cost of all cases with judges, in US dollars."""
    latency_ms: _Amount | None = None
    """Median time of a case with a score, in milliseconds, without recorded responses."""


def measure_run(run: RunResult) -> RunFigures:
    """Measure the cases of a run."""
    measured = [(case, measure_execution(case)) for _, case in run.iter_cases() if not case.details.replayed]
    times = [one.duration_ms for case, one in measured if case.status.is_scored and one.duration_ms > 0]
    cost = add_up(usd for _, one in measured for usd in (one.cost_usd, one.judge_cost_usd))
    return RunFigures(
        outcome=run.verdict.outcome if run.verdict else None,
        cost_usd=None if cost is None else min(max(cost, 0.0), _MOST),
        latency_ms=min(median(times), _MOST) if times else None,
    )
