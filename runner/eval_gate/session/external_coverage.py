"""Whether external results hold enough of the baseline's cases: of all together, and of each leg of a matrix.

Most formats do not say how many cases there were to be. A tool that dies leaves what it had done, and a job that dies
leaves nothing: all that is there may well pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from eval_gate.errors import ExitCode, GateError
from eval_gate.gate.case_matching import find_earlier_keys
from eval_gate.gate.setup_comparison import DEFAULT_EXTERNAL_COVERAGE
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import Status
from eval_gate.model.result import RunResult
from eval_gate.reports.wording.numbers import format_percent
from eval_gate.results.baseline import Baseline
from eval_gate.session.session import Session
from eval_gate.struct import replace
from eval_gate.text.escape import format_count

_MAX_NAMED: Final = 3


def check_coverage(run: RunResult, session: Session) -> None:
    """Raise GateError `results-incomplete` for too few of as many cases as the baseline holds of this tool."""
    before, least = find_same_tool(run, session), _get_least_share(session)
    if before is None:
        return
    then, now = before.summary.total_cases, run.summary.total_cases
    if now < then * least:
        raise GateError(
            "results-incomplete",
            f"these results have {format_count(now, 'case')}, less than {format_percent(least)} of the {then} in the "
            "baseline",
            "check whether the tool finished; if you intend so few cases, set `minCoverage: 0`",
            exit_code=ExitCode.INCOMPLETE,
        )


def mark_missing_cases(run: RunResult, session: Session) -> RunResult:
    """Mark a run as incomplete if too few of the baseline's cases ran, and were not skipped, in a leg or in all."""
    before = find_same_tool(run, session)
    missing = [] if before is None else list(_iter_missing_parts(run, before, _get_least_share(session)))
    if not missing:
        return run
    more = [f"{len(missing) - _MAX_NAMED:,} more legs lack cases"] if len(missing) > _MAX_NAMED else []
    return replace(run, complete=False, stop_reason="; ".join([*missing[:_MAX_NAMED], *more]))


def find_same_tool(run: RunResult, session: Session) -> RunResult | None:
    """Return the baseline's run; None where there is none of the same tool."""
    baseline = session.gate_inputs.baseline
    if not isinstance(baseline, Baseline):
        return None
    before = baseline.result
    return before if before.is_external and before.target.provider == run.target.provider else None


def _get_least_share(session: Session) -> float:
    given = session.config.policy.min_coverage
    return DEFAULT_EXTERNAL_COVERAGE if given is None else given


def _iter_missing_parts(run: RunResult, baseline: RunResult, least: float) -> Iterator[str]:
    """Yield a clause for each leg of which too few cases ran, or else one for all cases."""
    then, here, earlier = _index_legs(baseline), _index_legs(run), find_earlier_keys(baseline, run)
    now = Counter(leg for key, own in here.items() for leg in {own, then.get(earlier.get(key, key))})
    share, is_short = f"less than {format_percent(least)}", False
    for leg, many in Counter(then.values()).items():
        if leg is not None and now[leg] < many * least:
            is_short = True
            yield f"the leg {leg[:100]} has {now[leg]:,} of {format_count(many, 'case')} of the baseline, {share}"
    if not is_short and len(here) < len(then) * least:
        ran = f"{len(here):,} of {format_count(len(then), 'case')} of the baseline ran, {share}"
        yield f"{ran}: the others were skipped"


def _index_legs(run: RunResult) -> Mapping[CaseKey, str | None]:
    """Map the cases that ran to the leg of a matrix that each is of."""
    return {
        CaseKey(suite.eval_file, case.id): suite.matrix_leg
        for suite in run.suites
        for case in suite.cases
        if case.status is not Status.SKIPPED
    }
