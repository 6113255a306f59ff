"""Builds the run result: the initial one, and the one of all trials so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Final, TypeVar

from eval_gate import __version__
from eval_gate.engine.case_result import (
    ListingTargets,
    add_preparatory_cost,
    build_base_agent_trials,
    build_unrun_result,
    count_reruns_as_new,
    find_listing_targets,
    join_trials,
    mark_unlisted_calls,
)
from eval_gate.engine.journal import FinishedTrials, TrialRecord
from eval_gate.engine.retention import prepare_for_result
from eval_gate.engine.run_plan import RunPlan, iter_suite_agents
from eval_gate.model.case import CaseKey, EvalCase, EvalSuite
from eval_gate.model.execution import ErrorCause, Status
from eval_gate.model.policy import EvaluationSetup
from eval_gate.model.result import (
    WAITS_FOR_GATE,
    BaseAgentSummary,
    CaseResult,
    RerunStopReason,
    RunResult,
    SuiteResult,
    ToolFacts,
    ToolIdentity,
)
from eval_gate.model.run_totals import summarize_cases, summarize_suites
from eval_gate.results.trace_links import link_case_traces
from eval_gate.struct import FrozenStruct, replace

_Item = TypeVar("_Item")
NO_BASE_AGENT_TRIALS: Final[Mapping[CaseKey, Sequence[TrialRecord]]] = MappingProxyType({})
"""Trials of the base agent, for a run without one."""


class RunProgress(FrozenStruct):
    """Progress of a run. `held_back`: rubric cases were not started because other cases failed."""

    trials: FinishedTrials
    stop_reason: str | None
    stop_cause: tuple[ErrorCause | None, str | None]
    """Cause and hint of the error of the target that ended the run."""
    notices: tuple[str, ...]
    held_back: bool
    rerun_ends: Mapping[CaseKey, RerunStopReason]
    """Reasons why the re-runs of suspected cases ended."""
    base_agent_trials: Mapping[CaseKey, Sequence[TrialRecord]]
    base_agent: BaseAgentSummary | None = None
    new_cases: Set[CaseKey] = frozenset()
    """Cases that were run more often because no earlier run knows them."""
    is_final: bool = False
    """Whether this is the last result, so that the trials need not be kept."""
    requested_trials: Mapping[CaseKey, int] = MappingProxyType({})
    """Requested executions of the cases for which the resumed run requested more than this one."""
    rerun_wait: int = 0
    """Seconds that re-runs kept from the execution before them."""


def build_initial_result(plan: RunPlan) -> RunResult:
    """Build the run result of a run that has just begun: its setup, and no case yet but reused ones."""
    waiting, suites = sum(len(suite.cases) for suite in plan.suites), _place_reused(plan, ())
    counts = summarize_suites(suites)
    targets = plan.list_targets()
    return RunResult(
        run_id=plan.run_id,
        timestamp=plan.timestamp,
        complete=False,
        tool=ToolIdentity(version=__version__),
        target=plan.target.identity,
        targets=tuple(target.identity for target in targets) if len(targets) > 1 else (),
        suite_agents=(*iter_suite_agents(plan.suites), *plan.reused_agents),
        git=plan.git,
        shard=plan.shard,
        shard_plan=plan.shard_cut,
        partial=bool(plan.selections),
        selections=plan.selections,
        planned_cases=plan.planned_cases,
        reruns=plan.max_reruns,
        setup=plan.evaluation_setup,
        evaluated_state=plan.evaluated_state,
        model_recording=plan.model_proxy.recording if plan.model_proxy else None,
        reuse=plan.reuse,
        suites=suites,
        summary=replace(counts, total_cases=counts.total_cases + waiting, not_run=waiting),
        warnings=plan.warnings,
    )


def build_run_result(plan: RunPlan, progress: RunProgress, wall_ms: float) -> RunResult:
    """Build the run result from all trials so far, in the order of the files.

    A case without a trial has status `not_run`, and the run is then not complete. If this is the last call
    (`progress.is_final`), each case and its trials are released as soon as its result is built, unless something else
    holds the plan: the peak memory of a large run would otherwise include all of them.
    """
    lists = find_listing_targets(plan, progress.trials)
    initial, suite_iterator = build_initial_result(plan), _drain_items(plan.suites)
    plan = plan.without_cases()
    executed = [_build_suite_result(plan, progress, suite, lists) for suite in suite_iterator]
    suites = _place_reused(plan, executed)
    cases = [case for suite in suites for case in suite.cases]
    state = initial.evaluated_state
    if state and plan.measured_files and progress.is_final:
        state = replace(state, suites=plan.measured_files.check_again(state.suites))
    notices = (notice for one in (*plan.list_targets(), *plan.judges) for notice in one.notices)
    return replace(
        initial,
        setup=_build_setup(plan, cases),
        evaluated_state=state,
        rerun_wait=progress.rerun_wait if any(case.reruns for suite in executed for case in suite.cases) else 0,
        complete=all(case.status is not Status.NOT_RUN for case in cases),
        suites=suites,
        summary=summarize_suites(suites, wall_ms),
        stop_reason=progress.stop_reason,
        stop_cause=progress.stop_cause[0],
        stop_hint=progress.stop_cause[1],
        base_agent=progress.base_agent,
        warnings=(*plan.warnings, *progress.notices, *notices),
    )


def _drain_items(things: Iterable[_Item]) -> Iterator[_Item]:
    """Yield the items one by one, and release each."""
    remaining = list(things)[::-1]
    return (remaining.pop() for _ in range(len(remaining)))


def _build_setup(plan: RunPlan, cases: Iterable[CaseResult]) -> EvaluationSetup | None:
    """Build the setup of the evaluation; a recording counts only if a case used it, in a resumed run too."""
    how = plan.evaluation_setup
    if how is None or how.recording is None:
        return how
    resumed = plan.resumed_setup is not None and any(case.details.replayed for case in cases)
    uses_recording = resumed or (plan.recording is not None and plan.recording.used)
    return how if uses_recording else replace(how, recording=None)


def _place_reused(plan: RunPlan, executed: Sequence[SuiteResult]) -> tuple[SuiteResult, ...]:
    """Place the reused suites among the executed ones, in file order."""
    reused = [_adopt_suite(plan, suite) for suite in plan.reused.values()]
    places = {one.suite: place for place, one in enumerate(plan.reuse.suites)} if plan.reuse else {}
    return tuple(sorted([*executed, *reused], key=lambda suite: places.get(suite.eval_file, len(places))))


def _adopt_suite(plan: RunPlan, suite: SuiteResult) -> SuiteResult:
    """Make the result of an earlier run one of this run: its cases stay as they were, without the base agent's."""
    return replace(
        _add_run_facts(plan, suite),
        cases=tuple(replace(case, base_agent_trials=()) if case.base_agent_trials else case for case in suite.cases),
        baseline_run_id=None,
        regressions=(),
        new_passes=(),
    )


def _add_run_facts(plan: RunPlan, suite: SuiteResult) -> SuiteResult:
    """Add the run, and how the suite compares with this run's tools."""
    suite, staleness = replace(suite, run_id=plan.run_id, timestamp=plan.timestamp), plan.staleness.get(suite.eval_file)
    if staleness is None:
        return suite
    return replace(
        suite,
        metadata=staleness.facts,
        staleness_warnings=staleness.warnings,
        stale=staleness.is_stale,
        stale_facts=staleness.stale_facts,
        notices=staleness.notices,
    )


def _build_suite_result(plan: RunPlan, progress: RunProgress, suite: EvalSuite, lists: ListingTargets) -> SuiteResult:
    endpoint, case_iterator = plan.get_target(suite.cases[0]).identity.identity, _drain_items(suite.cases)
    suite = replace(suite, cases=())
    cases = tuple([_build_case_result(plan, progress, case, lists) for case in case_iterator])
    result = SuiteResult(
        run_id=plan.run_id,
        timestamp=plan.timestamp,
        tier=suite.tier,
        tool_name=suite.tool_name,
        agent_endpoint=endpoint,
        metadata=ToolFacts(eval_file_hash=suite.file_hash),
        cases=cases,
        summary=summarize_cases(cases),
        eval_file=suite.file,
        format=suite.format,
        warnings=suite.warnings,
    )
    return _add_run_facts(plan, result)


def _build_case_result(plan: RunPlan, progress: RunProgress, case: EvalCase, lists: ListingTargets) -> CaseResult:
    key = case.key
    records, preparatory = progress.trials.load_trials(key), progress.trials.load_preparatory_trials(key)
    if progress.is_final:
        progress.trials.forget_case(key)
    if not records and progress.held_back and plan.is_deferred(case):
        case = replace(case, skip_reason=WAITS_FOR_GATE)
    target = plan.get_target(case)
    other = None if target is plan.target else target.identity.name
    end = progress.rerun_ends.get(key)
    counted = mark_unlisted_calls(records, lists=id(target) in lists)
    unrun = build_unrun_result(case, other, plan.case_texts.get(key), plan.setup_fingerprints.get(key))
    unrun = replace(unrun, pass_rule=plan.get_pass_rule(case))
    if not counted:
        return unrun
    first = progress.requested_trials.get(key, plan.count_trials(case))
    result = add_preparatory_cost(join_trials(unrun, counted, first=first, end=end), preparatory)
    if base_records := progress.base_agent_trials.get(key):
        result = replace(result, base_agent_trials=build_base_agent_trials(base_records, result))
    result = count_reruns_as_new(result) if key in progress.new_cases else result
    return prepare_for_result(link_case_traces(result, plan.trace_url), plan.limits.keep_responses)
