"""Statistics of a run without waived cases: counts, pass rates, their intervals, and blame for errors.

Words and rows are both made of these, and nothing here is a word.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from eval_gate.gate.case_comparison import has_no_response
from eval_gate.model.comparison import BaselineFacts, CaseChange, CaseClass, Tally
from eval_gate.model.execution import Blame, Status
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.struct import FrozenStruct

_Z: Final = 1.959964
"""Standard deviations that hold 95 % of a normal distribution."""


def has_no_comparable_case(run: RunResult) -> bool:
    """Whether there is a baseline, but not one case that could be held against it."""
    return run.comparison is not None and not any(one.change.compared for one in run.comparison.changes)


def select_counted_changes(run: RunResult, *classes: CaseClass) -> list[CaseChange]:
    """The cases of these classes, those apart that somebody accepted or set aside."""
    return exclude_waived(run, run.comparison.of(*classes) if run.comparison else ())


def exclude_waived(run: RunResult, changes: Iterable[CaseChange]) -> list[CaseChange]:
    """Those of the changes whose failure counts."""
    waived = run.waived
    return [one for one in changes if one.key not in waived]


def has_only_agent_errors(run: RunResult) -> bool:
    """Whether every case that was asked crashed: the change, or an outage of something the agent needs."""
    asked = [case for _, case in run.cases() if case.status.judged or case.status is Status.ERROR]
    return bool(asked) and all(case.blame is Blame.CRASHED for case in asked)


def find_blames(run: RunResult) -> tuple[Blame | None, ...]:
    """Whose fault it is, of every case that could not be judged; None where nobody was blamed."""
    errored = [case for _, case in run.cases() if case.status is Status.ERROR]
    silent = bool(errored) and has_no_response(run)
    return tuple(find_blame(case, silent=silent) for case in errored)


def find_blame(case: CaseResult, *, silent: bool) -> Blame | None:
    """Whose fault it is; a target that hangs on everything (`silent`) is as good as unreachable."""
    if case.status is not Status.ERROR:
        return None
    return Blame.UNREACHABLE if silent and case.blame is Blame.CRASHED else case.blame


class PassRates(FrozenStruct):
    """Pass rate of the current run and of the baseline, without quarantined cases."""

    passed: int
    judged: int
    baseline: float | None = None
    quarantined: int = 0
    """Judged cases that are in quarantine."""

    @property
    def current(self) -> float | None:
        """The pass rate; None when nothing was judged."""
        return self.passed / self.judged if self.judged else None


def compute_pass_rates(run: RunResult) -> PassRates:
    """The pass rates of a run as its verdict counts them."""
    quarantined = run.quarantined
    facts = run.comparison.baseline if run.comparison else None
    summary = run.summary
    if not quarantined:
        return PassRates(summary.passed, summary.passed + summary.failed, facts.pass_rate if facts else None)
    aside = [case.passed for key, case in run.cases() if case.status.judged and key in quarantined]
    judged = summary.passed + summary.failed - len(aside)
    changes = run.comparison.changes if run.comparison else ()
    then = [one.baseline for one in changes if one.key in quarantined and one.baseline is not None]
    return PassRates(summary.passed - sum(aside), judged, _compute_baseline_rate(facts, then), len(aside))


def _compute_baseline_rate(facts: BaselineFacts | None, aside: list[Tally]) -> float | None:
    """The baseline's rate without these cases."""
    if facts is None or not facts.pass_rate:
        return facts.pass_rate if facts else None
    judged = round(facts.passed / facts.pass_rate) - len(aside)
    passed = facts.passed - sum(tally.passed for tally in aside)
    return passed / judged if 0 <= passed <= judged and judged else None


def pair_outcomes(run: RunResult) -> list[tuple[bool, bool]]:
    """Whether a case passed then, and here, of each that both runs judged by the same question."""
    passed = {key: case.passed for key, case in run.cases()}
    quarantined = run.quarantined
    return [
        (one.baseline.passed, passed[one.key])
        for one in (run.comparison.changes if run.comparison else ())
        if one.change.compared and one.key in passed and one.key not in quarantined and one.baseline is not None
    ]


def compute_wilson_interval(passed: int, judged: int) -> tuple[float, float]:
    """The 95 % interval of a share, 0 to 1 (Wilson 1927, Journal of the American Statistical Association 22, 209-212).

    Nothing judged leaves everything possible.
    """
    if not judged:
        return 0.0, 1.0
    share, z2 = passed / judged, _Z**2
    middle = (share + z2 / (2 * judged)) / (1 + z2 / judged)
    half = _Z / (1 + z2 / judged) * math.sqrt(share * (1 - share) / judged + z2 / (4 * judged**2))
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))  # rounding leaves the ends out


def compute_paired_interval(worse: int, better: int, cases: int) -> tuple[float, float]:
    """The 95 % interval of the change of a pass rate, -1 to 1, where both runs asked the same cases.

    Half a case more in each cell of the table, which keeps it honest where few cases changed (Agresti and Min 2005,
    Statistics in Medicine 24, 729-740).
    """
    size = cases + 2
    change = (better - worse) / size
    spread = _Z * math.sqrt((worse + better + 1) / size - change**2) / math.sqrt(size)
    return max(-1.0, change - spread), min(1.0, change + spread)
