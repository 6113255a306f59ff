"""What a run amounts to: the record of its beginning, and the result of all of its trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Final, TypeVar

from eval_gate import __version__
from eval_gate.engine.journal import FinishedTrials, TrialRecord
from eval_gate.engine.plan import RunPlan
from eval_gate.engine.retention import for_record
from eval_gate.engine.settling import (
    CaseQuestion,
    known_anew,
    settle,
    trials_of_control,
    unrun,
    with_preparatory,
)
from eval_gate.engine.unreported_tools import Listing, mark_unreported, targets_that_list
from eval_gate.model.case import CaseKey, EvalCase, EvalSuite
from eval_gate.model.execution import Status
from eval_gate.model.policy import Measuring
from eval_gate.model.result import (
    HELD_BACK,
    CaseResult,
    Control,
    RerunEnd,
    RunResult,
    SuiteResult,
    Summary,
    ToolFacts,
    ToolIdentity,
)
from eval_gate.model.setup import TargetIdentity
from eval_gate.model.totals import summarise
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.setup import setup_of_agent

_Thing = TypeVar("_Thing")
NOTHING_ASKED: Final[Mapping[CaseKey, Sequence[TrialRecord]]] = MappingProxyType({})
"""Of the base branch's agent."""


class RunProgress(FrozenStruct):
    """How far a run has come. `held_back`: rubric cases were not begun, because others had not passed."""

    trials: FinishedTrials
    stopped: str | None
    notices: tuple[str, ...]
    held_back: bool
    ends: Mapping[CaseKey, RerunEnd]
    """Why cases in doubt were not run again any more."""
    by_control: Mapping[CaseKey, Sequence[TrialRecord]]
    """What the base branch's agent did, by case."""
    control: Control | None = None
    fresh: Set[CaseKey] = frozenset()
    """Cases that were run more often because no earlier run knows them."""
    over: bool = False
    """Nobody asks for the trials again."""
    asked_for: Mapping[CaseKey, int] = MappingProxyType({})
    """How many executions were asked for of a case, where a run that was resumed had asked for more than this one."""


def initial_record(plan: RunPlan) -> RunResult:
    """The record of a run that has only begun: what it is about, and no case yet."""
    total = sum(len(suite.cases) for suite in plan.suites)
    targets = plan.every_target()
    return RunResult(
        run_id=plan.run_id,
        timestamp=plan.timestamp,
        complete=False,
        tool=ToolIdentity(version=__version__),
        target=plan.target.identity,
        targets=tuple(target.identity for target in targets) if len(targets) > 1 else (),
        agents=tuple(_agents(plan.suites)),
        git=plan.git,
        shard=plan.shard,
        cut=plan.cut,
        partial=bool(plan.selections),
        selections=plan.selections,
        planned=plan.planned,
        confirm=plan.confirm,
        measuring=plan.measuring,
        summary=Summary(total_cases=total, not_run=total),
        warnings=plan.warnings,
    )


def _agents(suites: Iterable[EvalSuite]) -> Iterator[TargetIdentity]:
    """The agents that these suites bring along."""
    for suite in suites:
        agent = suite.cases[0].agent if suite.cases else None
        if agent is not None:
            bare = TargetIdentity(name=suite.file, provider=suite.format, identity=agent.name[:200])
            yield setup_of_agent(agent).of(bare)


def outcome(plan: RunPlan, progress: RunProgress, wall_ms: float) -> RunResult:
    """The result of all trials so far, in file order. A case without any was not run, and the run is not complete.

    Where it is the last time that anybody asks (`progress.over`), each case and its trials are let go as its result is
    made, as far as nobody else holds the plan: all of them at once would be in memory at the peak of a large run.
    """
    lists = targets_that_list(plan, progress.trials)
    record, left = initial_record(plan), _let_go(plan.suites)
    plan = plan.of_no_case()
    suites = tuple([_suite(plan, progress, suite, lists) for suite in left])
    cases = [case for suite in suites for case in suite.cases]
    told = (notice for target in plan.every_target() for notice in target.notices)
    return replace(
        record,
        measuring=_measuring(plan, cases),
        complete=all(case.status is not Status.NOT_RUN for case in cases),
        suites=suites,
        summary=_whole(suites, cases, wall_ms),
        stopped=progress.stopped,
        control=progress.control,
        warnings=(*plan.warnings, *progress.notices, *told, *plan.judge_notices()),
    )


def _let_go(things: Iterable[_Thing]) -> Iterator[_Thing]:
    """One after the other, held here no longer than until it is given."""
    left = list(things)[::-1]
    return (left.pop() for _ in range(len(left)))


def _whole(suites: Sequence[SuiteResult], cases: Sequence[CaseResult], wall_ms: float) -> Summary:
    """Of all suites; of a single one all is counted already."""
    if len(suites) == 1:
        return replace(suites[0].summary, wall_ms=wall_ms)
    return summarise(cases, wall_ms)


def _measuring(plan: RunPlan, cases: Iterable[CaseResult]) -> Measuring | None:
    """How it was measured: recorded answers that nobody took say nothing. Of a resumed run its cases know."""
    how = plan.measuring
    if how is None or how.recorded is None:
        return how
    resumed = plan.resumed is not None and any(case.details.replayed for case in cases)
    taken = resumed or (plan.recording is not None and plan.recording.used)
    return how if taken else replace(how, recorded=None)


def _suite(plan: RunPlan, progress: RunProgress, suite: EvalSuite, lists: Listing) -> SuiteResult:
    staleness = plan.staleness.get(suite.file)
    endpoint, left = plan.target_of(suite.cases[0]).identity.identity, _let_go(suite.cases)
    suite = replace(suite, cases=())
    cases = tuple([_case(plan, progress, case, lists) for case in left])
    return SuiteResult(
        run_id=plan.run_id,
        timestamp=plan.timestamp,
        tier=suite.tier,
        tool_name=suite.tool_name,
        agent_endpoint=endpoint,
        metadata=staleness.facts if staleness else ToolFacts(eval_file_hash=suite.file_hash),
        staleness_warnings=staleness.warnings if staleness else (),
        stale=staleness.stale if staleness else False,
        stale_facts=staleness.stale_facts if staleness else (),
        notices=staleness.notices if staleness else (),
        cases=cases,
        summary=summarise(cases),
        eval_file=suite.file,
        format=suite.format,
        warnings=suite.warnings,
    )


def _case(plan: RunPlan, progress: RunProgress, case: EvalCase, lists: Listing) -> CaseResult:
    key = case.key
    records, preparatory = progress.trials.of(key), progress.trials.preparatory_of(key)
    if progress.over:
        progress.trials.let_go(key)
    if not records and progress.held_back and plan.waits(case):
        case = replace(case, skip_reason=HELD_BACK)
    target = plan.target_of(case)
    other = None if target is plan.target else target.identity.name
    end = progress.ends.get(key)
    counted = mark_unreported(records, lists=id(target) in lists)
    measure = CaseQuestion(plan.asked_words.get(key), plan.yardsticks.get(key))
    if not counted:
        return replace(unrun(case, other), asked=measure.asked, yardstick=measure.yardstick)
    first = progress.asked_for.get(key, plan.limits.trials)
    result = with_preparatory(settle(case, counted, other, first=first, end=end, measure=measure), preparatory)
    if asked := progress.by_control.get(key):
        result = replace(result, control=trials_of_control(asked, result))
    return for_record(known_anew(result) if key in progress.fresh else result, plan.limits.store)
