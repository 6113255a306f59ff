"""Decides which suites of a run need not be executed, because an earlier run has the result of the same state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from eval_gate.model.execution import Status
from eval_gate.model.result import WAITS_FOR_GATE, RunResult, SuiteResult
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


class EarlierRun(FrozenStruct):
    """Run whose results may be reused."""

    run: RunResult
    source: ReuseSource

    @property
    def is_whole_pass(self) -> bool:
        """Whether it has the results of all suites, and passed its gate."""
        run = self.run
        is_part = run.partial or run.shard is not None or run.stop_reason is not None
        return run.complete and run.has_passed and not (is_part or run.is_external)

    def find_result(self, name: str) -> SuiteResult | None:
        """Find the result of a suite, with the run that executed it through all that reused it since.

        What a run of the pull request took from its baseline is no execution of the change: it has none of these.
        """
        run, suite = self.run, next((one for one in self.run.suites if one.eval_file == name), None)
        origin = suite.reused if suite else None
        if suite is None or (origin and (origin.source, self.source) == (ReuseSource.BASELINE, ReuseSource.OWN_RUN)):
            return None
        first = origin or ReusedResult(source=self.source, run_id=run.run_id, timestamp=run.timestamp, sha=run.sha)
        return replace(suite, reused=replace(first, source=self.source))


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
    oldest = decided_at - RECHECK_AFTER if is_run_of_branch else None
    decisions = []
    for suite in state.suites:
        options = [_decide_source(suite, state, one, decided_at, oldest) for one in sources if suite.digest]
        reason = RunReason.UNREADABLE if suite.patterns else RunReason.NO_MEASURES
        options = options or [SuiteDecision(suite=suite.suite, reason=reason)]
        decisions.append(next((one for one in options if one.reused), options[0]))
    summary = ReuseSummary(suites=tuple(decisions))
    cases = [case for suite in collect_reused(summary, sources).values() for case in suite.cases]
    executed = [case for case in cases if case.status is not Status.SKIPPED]
    return replace(
        summary,
        saved_executions=sum(len(case.list_executions()) + case.preparatory_executions for case in executed),
        saved_usd=add_up(usd for case in cases for usd in (case.cost_usd, case.judge_cost_usd)),
    )


def collect_reused(summary: ReuseSummary, sources: Sequence[EarlierRun]) -> Mapping[str, SuiteResult]:
    """Collect the reused results by eval file, each with its origin, out of the `sources` that were decided about."""
    results = {}
    for decision in summary.reused_suites:
        candidates = (one.find_result(decision.suite) for one in sources)
        results[decision.suite] = next(one for one in candidates if one is not None and one.reused == decision.reused)
    return results


def _decide_source(
    suite: MeasuredSuite, state: EvaluatedState, source: EarlierRun, decided_at: datetime, oldest: datetime | None
) -> SuiteDecision:
    """Decide whether a suite with a digest is reused from an earlier run; executions before `oldest` are repeated."""
    earlier, result, reason = source.run.evaluated_state, source.find_result(suite.suite), RunReason.NO_EARLIER_RESULT
    parts = tuple(one for one in StatePart if not earlier or state.parts.get(one, "") != earlier.parts.get(one))
    measured = (
        next((one for one in earlier.suites if one.suite == suite.suite and one.digest), None) if earlier else None
    )
    if not source.is_whole_pass:
        reason = RunReason.NOT_PASSED
    elif earlier and parts:
        return SuiteDecision(suite=suite.suite, reason=RunReason.SETUP_CHANGED, parts=parts)
    elif measured and (measured.digest, measured.patterns) != (suite.digest, suite.patterns):
        reason = RunReason.FILES_CHANGED
    elif measured and result and result.reused:
        if (flaw := _find_flaw(result, source.source, decided_at, oldest)) is None:
            return SuiteDecision(suite=suite.suite, reused=result.reused)
        last_executed = result.reused if flaw is RunReason.RECHECK else None
        return SuiteDecision(suite=suite.suite, reason=flaw, last_executed=last_executed)
    return SuiteDecision(suite=suite.suite, reason=reason)


def _find_flaw(
    suite: SuiteResult, source: ReuseSource, decided_at: datetime, oldest: datetime | None
) -> RunReason | None:
    executed_at = parse_timestamp(suite.reused.timestamp) if suite.reused else None
    if executed_at is None or executed_at > decided_at + CLOCK_TOLERANCE:
        return RunReason.NO_EARLIER_RESULT
    settled, passing = {Status.PASSED, Status.FAILED, Status.SKIPPED}, {Status.PASSED, Status.SKIPPED}
    if not suite.cases or any(case.status not in settled or case.error == WAITS_FOR_GATE for case in suite.cases):
        return RunReason.NOT_SCORED
    has_failures = any(one.status not in passing for case in suite.cases for one in case.list_executions())
    if has_failures and source is ReuseSource.OWN_RUN:
        return RunReason.NOT_PASSED  # neither a lucky pass of the change is kept, nor a failure
    return RunReason.RECHECK if oldest and executed_at < oldest else None
