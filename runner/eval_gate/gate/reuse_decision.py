"""Decides which suites of a run need not be executed, because an earlier run has the result of the same state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from eval_gate.model.execution import Status
from eval_gate.model.result import WAITS_FOR_GATE, CaseResult, RunResult, SuiteResult
from eval_gate.model.reuse import (
    EvaluatedState,
    MeasuredSuite,
    ReusedResult,
    ReuseOff,
    ReuseSource,
    ReuseSummary,
    RunReason,
    StatePart,
    SuiteDecision,
)
from eval_gate.model.usage import add_up
from eval_gate.results.run_times import CLOCK_TOLERANCE, parse_timestamp
from eval_gate.struct import FrozenStruct, replace

RECHECK_AFTER: Final = timedelta(days=7)
"""Age of a suite's last execution from which a run of the branch executes it again, whatever it measures."""
_SETTLED: Final = {Status.PASSED, Status.FAILED, Status.SKIPPED}


class EarlierRun(FrozenStruct):
    """Run whose results may be reused."""

    run: RunResult
    source: ReuseSource


def decide_reuse(
    state: EvaluatedState,
    sources: Sequence[EarlierRun],
    *,
    off: ReuseOff | None,
    is_run_of_branch: bool,
    decided_at: datetime,
) -> ReuseSummary:
    """Decide for each suite of `state` whether its result is reused, and from which run.

    The first of `sources` that fits counts: give the baseline first. If none fits, the reason is that of the first.
    `decided_at` has a time zone. In doubt, a suite is executed.
    """
    if not sources and any(suite.digest for suite in state.suites):
        off = off or ReuseOff.NO_BASELINE
    if off is not None:
        return ReuseSummary(off=off)
    decisions = [_decide_suite(suite, state, sources, decided_at) for suite in state.suites]
    if is_run_of_branch:
        decisions = [_recheck(one, decided_at) for one in decisions]
    summary = ReuseSummary(suites=tuple(decisions))
    cases = [case for suite in collect_reused(summary, sources).values() for case in suite.cases]
    return replace(
        summary,
        saved_executions=sum(map(_count_executions, cases)),
        saved_usd=add_up(usd for case in cases for usd in (case.cost_usd, case.judge_cost_usd)),
    )


def collect_reused(summary: ReuseSummary, sources: Sequence[EarlierRun]) -> Mapping[str, SuiteResult]:
    """Collect the reused results by eval file, each with its origin, out of the `sources` that were decided about."""
    results: dict[str, SuiteResult] = {}
    for decision in summary.reused_suites:
        for one in sources:
            suite = _find_suite(one.run, decision.suite)
            if suite is not None and _build_origin(one, suite) == decision.reused:
                results.setdefault(decision.suite, replace(suite, reused=decision.reused))
    return results


def _decide_suite(
    suite: MeasuredSuite, state: EvaluatedState, sources: Sequence[EarlierRun], decided_at: datetime
) -> SuiteDecision:
    if suite.digest is None:
        reason = RunReason.UNREADABLE if suite.patterns else RunReason.NO_MEASURES
        return SuiteDecision(suite=suite.suite, reason=reason)
    decisions = [_decide_source(suite, state, one, decided_at) for one in sources]
    return next((one for one in decisions if one.reused is not None), decisions[0])


def _decide_source(
    suite: MeasuredSuite, state: EvaluatedState, source: EarlierRun, decided_at: datetime
) -> SuiteDecision:
    """Decide about one suite and one earlier run."""
    run, parts = source.run, tuple[StatePart, ...]()
    earlier = run.evaluated_state
    measured = next((one for one in earlier.suites if one.suite == suite.suite), None) if earlier else None
    result = _find_suite(run, suite.suite)
    if not _is_whole_pass(run):
        reason: RunReason | None = RunReason.NOT_PASSED
    elif earlier is None:
        reason = RunReason.NO_EARLIER_RESULT
    elif parts := tuple(part for part in StatePart if not _is_equal_part(part, state, earlier)):
        reason = RunReason.SETUP_CHANGED
    elif measured is None or result is None:
        reason = RunReason.NO_EARLIER_RESULT
    elif (measured.digest, measured.patterns) != (suite.digest, suite.patterns):
        reason = RunReason.FILES_CHANGED
    else:
        reason = _find_flaw(source, result, decided_at)
    if reason is None and result is not None:
        return SuiteDecision(suite=suite.suite, reused=_build_origin(source, result))
    return SuiteDecision(suite=suite.suite, reason=reason, parts=parts)


def _is_whole_pass(run: RunResult) -> bool:
    """Whether a run executed or reused all cases of all suites to the end, itself, and passed its gate."""
    is_part = run.partial or run.shard is not None or run.stop_reason is not None
    return run.complete and run.has_passed and not is_part and not run.is_external


def _is_equal_part(part: StatePart, state: EvaluatedState, earlier: EvaluatedState) -> bool:
    digest = state.parts.get(part)
    return digest is not None and digest == earlier.parts.get(part)


def _find_flaw(source: EarlierRun, suite: SuiteResult, decided_at: datetime) -> RunReason | None:
    """Find out why a suite of the same state is executed; None if nothing speaks against its result."""
    is_own = source.source is ReuseSource.OWN_RUN
    origin = _build_origin(source, suite)
    executed_at = parse_timestamp(origin.timestamp)
    if executed_at is None or executed_at > decided_at + CLOCK_TOLERANCE:
        return RunReason.NO_EARLIER_RESULT
    if is_own and suite.reused is not None and suite.reused.source is ReuseSource.BASELINE:
        return RunReason.NO_EARLIER_RESULT  # an execution of the branch is no execution of this change
    if not suite.cases or not all(map(_is_settled, suite.cases)):
        return RunReason.NOT_SCORED
    # a lucky pass of the change is not kept, and neither is a failure that was passed over
    return RunReason.NOT_PASSED if is_own and not all(map(_has_only_passes, suite.cases)) else None


def _is_settled(case: CaseResult) -> bool:
    """Whether a case has a score, or would be skipped in every run of the same state."""
    return case.status in _SETTLED and case.error != WAITS_FOR_GATE


def _has_only_passes(case: CaseResult) -> bool:
    return all(one.status in {Status.PASSED, Status.SKIPPED} for one in case.list_executions())


def _recheck(decision: SuiteDecision, decided_at: datetime) -> SuiteDecision:
    """Execute a suite again if its last execution is too long ago."""
    origin = decision.reused
    executed_at = parse_timestamp(origin.timestamp) if origin else None
    if executed_at is None or decided_at - executed_at <= RECHECK_AFTER:
        return decision
    return SuiteDecision(suite=decision.suite, reason=RunReason.RECHECK, last_executed=origin)


def _find_suite(run: RunResult, name: str) -> SuiteResult | None:
    return next((suite for suite in run.suites if suite.eval_file == name), None)


def _build_origin(source: EarlierRun, suite: SuiteResult) -> ReusedResult:
    """Build the origin of a result: the run that executed the suite, through all runs that reused it since."""
    run, first = source.run, suite.reused
    if first is not None:
        return replace(first, source=source.source)
    return ReusedResult(source=source.source, run_id=run.run_id, timestamp=run.timestamp, sha=run.sha)


def _count_executions(case: CaseResult) -> int:
    if case.status is Status.SKIPPED:
        return 0
    return len(case.list_executions()) + case.preparatory_executions
