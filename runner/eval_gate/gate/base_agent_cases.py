"""Which cases the base branch's agent runs next: only while its results can turn a red gate.

A few cases of each cause come first. Once one of them stays red for certain, the gate is red whatever the others are,
and no further case is run. If all of them are cleared, the others are run too: no case is cleared by another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Final

from eval_gate.gate.comparison_refinement import build_rerun_criteria
from eval_gate.gate.evidence.agent_errors import count_base_agent_executions
from eval_gate.gate.evidence.base_agent_clearance import (
    DECISIVE_COUNT,
    MAX_CASE_EXECUTIONS,
    CaseClearance,
    count_base_agent_results,
    decide_clearance,
)
from eval_gate.gate.evidence.prior import DEFAULT_PRIOR
from eval_gate.gate.failure_causes import find_cause, get_group_key
from eval_gate.gate.must_pass import is_must_pass
from eval_gate.gate.verdict_decision import GateInputs, decide_provisional_verdict
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseChange, CaseClass, Comparison, Outcome
from eval_gate.model.evidence import NO_HISTORY, GroundKind
from eval_gate.model.execution import ErrorKind, Status, Trial
from eval_gate.model.result import BaseAgentSummary, CaseResult, RunResult
from eval_gate.model.selection import BaseAgentCases
from eval_gate.struct import replace
from eval_gate.text.escape import to_one_line

_BATCH_SIZE: Final = 10
"""Cases of one batch; after each batch, the gate decides again whether it can still pass."""
MAX_ERROR_EXECUTIONS: Final = 30
"""Maximum executions of the base agent that tell an outage from a change."""
MAX_WITNESSES: Final = 3
"""Cases that pass in this run and in the history: the base agent must pass them to show that it works."""
NO_WITNESSES: Final = (
    "no case passes both in this run and in the history, so nothing can show that the base agent works"
)
_PASSED_TRIAL: Final = Trial(status=Status.PASSED, score=1.0, duration_ms=0.0)
_FAILED_TRIAL: Final = Trial(status=Status.FAILED, score=0.0, duration_ms=0.0)


def select_base_agent_cases(decided: RunResult, inputs: GateInputs, askable: Set[CaseKey]) -> BaseAgentCases:
    """Select the cases that the base agent runs next, given its results so far: none unless the gate fails.

    `decided` is the run with the verdict that it would have now, and with the target that would run the cases as its
    `base_agent`. `askable` are the cases that this agent can run.
    """
    comparison, verdict = decided.comparison, decided.verdict
    if comparison is None or not decided.reruns or verdict is None or verdict.outcome is not Outcome.FAILED:
        return BaseAgentCases()
    # list the regressions that the base agent may clear; a must-pass case has to pass even if it fails there too
    cases = decided.index_cases()
    red = [
        one
        for one in comparison.select_changes(CaseClass.REGRESSION)
        if one.key in askable
        and one.key not in decided.waived_keys
        and not is_must_pass(cases[one.key], inputs.policy.must_pass)
    ]
    if not red and not _select_suite_cases(decided, comparison, askable):
        return BaseAgentCases()
    witnesses = _select_witnesses(decided, comparison, askable)
    if not witnesses:
        return BaseAgentCases(trouble=NO_WITNESSES)
    if not _can_turn_verdict(decided, inputs, comparison, askable):
        return BaseAgentCases()
    return _select_next(decided, comparison, red, witnesses, inputs, askable)


def select_error_cases(decided: RunResult, max_errors: int | None, askable: Set[CaseKey]) -> BaseAgentCases:
    """Select the cases with which the base agent tells an outage from a change that makes the agent err.

    Select nothing unless the run has more agent errors than usual, without a limit, and enough cases can tell.
    """
    finding = decided.comparison.error_finding if decided.comparison is not None else None
    cases = {key: case for key, case in decided.iter_cases() if key in askable}
    is_decided = not decided.reruns or max_errors is not None or any(case.base_agent_trials for case in cases.values())
    if finding is None or not finding.is_unusual or is_decided:
        return BaseAgentCases()
    number = count_base_agent_executions(finding)
    with_errors_first = sorted(cases, key=lambda key: not _has_agent_error(cases[key]))
    return BaseAgentCases(with_errors_first[:number] if number <= min(len(cases), MAX_ERROR_EXECUTIONS) else ())


def _has_agent_error(case: CaseResult) -> bool:
    return any(trial.error_kind is ErrorKind.AGENT_ERROR for trial in case.list_executions())


def find_clearable_cases(decided: RunResult, inputs: GateInputs) -> tuple[CaseKey, ...]:
    """Find regressions that the base agent could clear; all cases if only scores dropped together."""
    askable = frozenset(key for key, case in decided.without_reused.iter_cases() if not case.dependent)
    if decided.comparison is None or not select_base_agent_cases(decided, inputs, askable).keys:
        return ()
    return tuple(one.key for one in decided.comparison.select_changes(CaseClass.REGRESSION)) or tuple(askable)


def find_cleared_cases(comparison: Comparison | None) -> frozenset[CaseKey]:
    """Find the cases that are no longer regressions because of the base agent's results."""
    changes = comparison.changes if comparison else ()
    return frozenset(
        one.key for one in changes if one.grounds is not None and one.grounds.kind is GroundKind.BASE_AGENT
    )


def _select_next(
    current: RunResult,
    comparison: Comparison,
    red: Sequence[CaseChange],
    witnesses: Sequence[CaseKey],
    inputs: GateInputs,
    askable: Set[CaseKey],
) -> BaseAgentCases:
    cases, pass_score = current.index_cases(), inputs.policy.pass_score
    probes = [one.key for one in comparison.select_changes(CaseClass.STILL_PASSING) if cases[one.key].base_agent_trials]
    if probes:
        counts = [count_base_agent_results(cases[key], pass_score) for key in probes]
        passes, runs = sum(one.passes for one in counts), sum(one.executions for one in counts)
        if not runs:
            errors = (trial.error for key in probes for trial in cases[key].base_agent_trials if trial.error)
            why = "".join(f": {to_one_line(error, 300)}" for error in [*errors][:1])
            return BaseAgentCases(trouble=f"none of its responses has a score{why}")
        if passes * 2 <= runs:
            what = f"it fails {runs - passes} of {runs} cases that pass in this run and in the history"
            return BaseAgentCases(trouble=f"{what}, so it does not seem to work")
    evidence = comparison.evidence
    prior = build_rerun_criteria(evidence).prior if evidence else DEFAULT_PRIOR
    alone = [one for one in red if one.grounds is not None and one.grounds.kind is not GroundKind.SUITE_DROP]
    clearances = {
        one.key: decide_clearance(
            count_base_agent_results(cases[one.key], pass_score), (one.case_history or NO_HISTORY).counts, prior
        )
        for one in alone
    }
    if sum(one is CaseClearance.RED for one in clearances.values()) > inputs.policy.allowed_regressions:
        return BaseAgentCases()
    open_ = [
        one.key
        for one in alone
        if clearances[one.key] is CaseClearance.OPEN and len(cases[one.key].base_agent_trials) < MAX_CASE_EXECUTIONS
    ]
    first = [] if probes else list(witnesses)
    if turn := _select_batch([one.key for one in alone], open_, cases):
        return BaseAgentCases((*first, *turn))
    if CaseClearance.OPEN in clearances.values():
        return BaseAgentCases()
    whole = _select_suite_cases(current, comparison, askable)
    due = [key for key in whole if len(cases[key].base_agent_trials) < DECISIVE_COUNT]
    return BaseAgentCases(due, max((DECISIVE_COUNT - len(cases[key].base_agent_trials) for key in due), default=1))


def _select_batch(
    every: Sequence[CaseKey], open_: Collection[CaseKey], cases: Mapping[CaseKey, CaseResult]
) -> list[CaseKey]:
    """Select the open cases of the next batch: the first case of each cause, then the second ones."""
    cause_counts, places = Counter[str](), dict[CaseKey, int]()
    for key in every:
        cause = get_group_key(find_cause(cases[key]) or "")
        places[key] = cause_counts[cause]
        cause_counts[cause] += 1
    by_turns = sorted(every, key=lambda key: places[key])
    open_keys = set(open_)
    for begin in range(0, len(by_turns), _BATCH_SIZE):
        if turn := [key for key in by_turns[begin : begin + _BATCH_SIZE] if key in open_keys]:
            return turn
    return []


def _select_witnesses(current: RunResult, comparison: Comparison, askable: Set[CaseKey]) -> list[CaseKey]:
    """Select the steadiest passing cases, whatever the base agent has run: the next round selects the same ones."""
    cases = current.index_cases()
    steady = [
        one
        for one in comparison.select_changes(CaseClass.STILL_PASSING)
        if one.key in askable and not cases[one.key].flaky and not cases[one.key].details.replayed
    ]
    histories = {one.key: (one.case_history or NO_HISTORY).counts for one in steady}
    best = sorted(steady, key=lambda one: (histories[one.key].failures, -histories[one.key].passes))
    return [one.key for one in best[:MAX_WITNESSES]]


def _select_suite_cases(current: RunResult, comparison: Comparison, askable: Set[CaseKey]) -> list[CaseKey]:
    """Return all compared cases if passes or scores dropped in the whole suite; else nothing."""
    passes, scores = comparison.suite_finding, comparison.score_finding
    if not ((passes is not None and passes.is_drop) or (scores is not None and scores.is_drop)):
        return []
    cases = current.index_cases()
    return [
        one.key
        for one in comparison.changes
        if one.key in askable and one.change.is_compared and cases[one.key].status.is_scored
    ]


def _can_turn_verdict(run: RunResult, inputs: GateInputs, comparison: Comparison, askable: Set[CaseKey]) -> bool:
    """Whether the gate would pass if the base agent did as badly as this run in every case that it may run."""
    regressions = {one.key for one in comparison.select_changes(CaseClass.REGRESSION)}
    in_drop = {one.key for one in comparison.changes if one.grounds and one.grounds.kind is GroundKind.SUITE_DROP}

    def as_here(key: CaseKey, case: CaseResult) -> CaseResult:
        if key not in askable or (not case.status.is_scored and key not in regressions):
            return case
        if key in regressions:
            return replace(case, base_agent_trials=(_FAILED_TRIAL,) * MAX_CASE_EXECUTIONS)
        first = case.list_executions()[0]
        passes = case.passed and key not in in_drop
        worse = first if first.status.is_scored and case.graded else _PASSED_TRIAL if passes else _FAILED_TRIAL
        return replace(case, base_agent_trials=(worse,) * DECISIVE_COUNT)

    imagined = run.replace_cases({key: as_here(key, case) for key, case in run.iter_cases()})
    # what is known of its cases is not taken from a comparison in which a permission may have ended
    imagined = replace(imagined, base_agent=BaseAgentSummary(target=run.target), comparison=None)
    verdict = decide_provisional_verdict(imagined, replace(inputs, waiver_lookup=None)).verdict
    return verdict is None or verdict.outcome is not Outcome.FAILED
