"""Mark cases as evaluation errors where the baseline lists tool calls and this run lists none.

AgentV scores a response without trace and messages 0, with a miss of fixed words (agentv evaluation spec, Tool
Trajectory Evaluator), and that stays so in the history of the evaluator. It is no news about the agent where the same
case had its calls listed in the baseline and no response of this run to any case of the same target has them: the list
is looked for in the wrong place, or the agent's log is another one. Such a case has no score, and the fault is not the
agent's. A case that fails by its other evaluators, whatever was called, stays failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.pass_score import is_passing_case, recount_cases
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import CALLS_UNKNOWN, NO_TRACE, ErrorCause, ErrorKind, EvaluatorResult, Status
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.struct import replace

_READS_CALLS: Final = frozenset({"tool_trajectory", "skill-trigger"})
"""Types of evaluators that say `NO_TRACE` where calls are unknown."""
_ERROR: Final = (
    f"{CALLS_UNKNOWN}: the baseline has a trace of this case, but no response of this run to any case has one"
)

_MARK: Final[dict[str, Any]] = {
    "status": Status.ERROR,
    "error_kind": ErrorKind.EVALUATION_ERROR,
    "error_cause": ErrorCause.CALLS_UNKNOWN,
    "error": _ERROR,
    "score": 0.0,
    "failed_turn": None,
}
"""What a case and its executions get in place of a score."""


def mark_unknown_calls(cases: GateCases, pass_score: float) -> RunResult:
    """Mark each case that could not be scored because its tool calls are unknown as an evaluation error."""
    lost = {key: _mark_case(cases.current_cases[key]) for key in _find_cases_without_calls(cases, pass_score)}
    return recount_cases(cases.run, cases.run.replace_cases(lost)) if lost else cases.run


def _find_cases_without_calls(cases: GateCases, pass_score: float) -> Iterator[CaseKey]:
    cases = cases.without_reused
    lacking = {key: case for key, case in cases.run.iter_cases() if _can_pass_with_calls(case, pass_score)}
    listing = {case.target for case in cases.current_cases.values() if _has_calls(case)} if lacking else ()
    for key, case in lacking.items():
        earlier = cases.get_earlier(key)
        passed = earlier is not None and _has_calls(earlier) and is_passing_case(earlier, pass_score)
        if passed and case.target not in listing:
            yield key


def _can_pass_with_calls(case: CaseResult, pass_score: float) -> bool:
    """Whether it fails, and might pass if its calls were known."""
    if case.status is not Status.FAILED or is_passing_case(case, pass_score):
        return False
    results = [(one, any(map(_lacks_calls, _iter_results([one])))) for one in case.evaluator_results if one.weight > 0]
    if not any(lacks for _, lacks in results) or any(one.vetoed for one, lacks in results if not lacks):
        return False
    best = sum(one.weight * (1.0 if lacks else one.score) for one, lacks in results)
    return best >= pass_score * sum(one.weight for one, _ in results)


def _has_calls(case: CaseResult) -> bool:
    """Whether what the agent called is known of it. Of a result without details its evaluators know."""
    if case.trace_summary is not None or case.details.tools_called:
        return True
    runs = [case.evaluator_results, *(trial.evaluator_results for trial in case.trials)]
    return any(one.type in _READS_CALLS and not _lacks_calls(one) for results in runs for one in _iter_results(results))


def _lacks_calls(result: EvaluatorResult) -> bool:
    return result.type in _READS_CALLS and any(miss.endswith(NO_TRACE) for miss in result.misses)


def _iter_results(results: Iterable[EvaluatorResult]) -> Iterator[EvaluatorResult]:
    for one in results:
        yield one
        yield from _iter_results(one.evaluator_results)


def _mark_case(case: CaseResult) -> CaseResult:
    trials = [replace(one, **_MARK, vetoed=False) if one.status.is_scored else one for one in case.trials]
    return replace(case, **_MARK, passed=False, flaky=False, trials=tuple(trials))
