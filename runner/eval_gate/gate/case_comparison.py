"""Compare a run with its baseline case by case; the plain class of each case. Pure.

Each case is compared with the newest run, at or before the baseline, that scored it with the same case fingerprint and
evaluation setup (`EarlierResult`). The first line that holds is the class of a case:

1. not in the baseline, and without a score in any run before it: `added`; not in this run: `removed`
2. agent error in this run, and an earlier score: as a case that fails, unless the baseline has no score either
3. no score in this run: for an execution error `still_errored` if the baseline has no score either, else `errored`;
without an execution error `not_run` (which holds skipped cases too)
4. no earlier score with the same prompt and expectation: `incomparable`
5. passes in this run, but with failed executions among them: `flaky`
6. passed earlier and fails now: `regression`; the reverse: `new_pass`; else `still_passing`, `still_failing`

The result of a reused suite is the baseline's own, so that a case of it has the class of a case that did not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from eval_gate.gate.case_matching import GateCases, match_moved_files
from eval_gate.gate.evidence.case_history import NO_CASE_EVIDENCE, CaseEvidence, EarlierResult
from eval_gate.gate.evidence.suite.score_noise import estimate_difference_spread
from eval_gate.gate.failure_causes import find_first_line
from eval_gate.gate.score_changes import build_score_fields
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import (
    DEFAULT_SCORE_TOLERANCE,
    BaselineFacts,
    CaseChange,
    CaseClass,
    Comparison,
    PassCount,
)
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.model.result import CaseResult, RunResult, SuiteResult
from eval_gate.results.baseline import Baseline
from eval_gate.struct import replace
from eval_gate.text.escape import truncate_middle

MAX_REASON = 300
MAX_NAMED_TARGETS = 5
_CONTRACT_STATUSES = frozenset({Status.PASSED, Status.FAILED, Status.ERROR})
"""Statuses that are a yes or no in the contract's own rule; a case that did not run is neither."""
_ERROR_CLASSES = frozenset({CaseClass.ERRORED, CaseClass.STILL_ERRORED})


def compare_cases(
    cases: GateCases,
    baseline: Baseline,
    evidence: Mapping[CaseKey, CaseEvidence],
    *,
    score_tolerance: float = DEFAULT_SCORE_TOLERANCE,
    has_other_parts: bool = False,
) -> Comparison:
    """Compare every case of both runs, exactly once; those of the baseline that are gone come last.

    Cases of the baseline that this run did not select are left out. A graded case whose score fell by more than
    `score_tolerance` is a score drop, whatever its class. With `has_other_parts`, the agent may have responded in other
    parts of the run, so that a part without a response says nothing.
    """
    stale = {suite.eval_file: suite.stale for suite in cases.run.suites}
    silent, reused = not has_other_parts and has_no_response(cases.without_reused.run), cases.run.baseline_suites
    changes = []
    for key, case in cases.current_cases.items():
        case_evidence, earlier = evidence.get(key, NO_CASE_EVIDENCE), cases.get_earlier(key)
        unreachable = silent and case.status is Status.ERROR
        counted = replace(case, error_kind=ErrorKind.AGENT_UNREACHABLE) if unreachable else case
        change = _compare_case(key, case_evidence, earlier, counted, score_tolerance)
        change = _classify_as_baseline(change, case) if key.suite in reused else change
        changes.append(replace(change, stale=True) if stale[key.suite] else change)
    changes += [
        _build_removed_case(key, cases.baseline_cases[key], evidence.get(key, NO_CASE_EVIDENCE).newest_result)
        for key in cases.absent.removed
    ]
    return Comparison(
        baseline=_build_baseline_facts(baseline, cases),
        changes=tuple(_add_assumed_spread(changes)),
        notes=(*baseline.notes, *_iter_notes(cases)),
        score_tolerance=score_tolerance,
    )


def _add_assumed_spread(changes: Sequence[CaseChange]) -> Iterator[CaseChange]:
    """Where no history says how scores vary, what the differences of all scores say."""
    unknown = [
        one
        for one in changes
        if one.score_change is not None and one.score_history and not one.score_history.degrees_of_freedom
    ]
    spread, free = estimate_difference_spread([one.score_change for one in unknown if one.score_change is not None])
    open_cases = {one.key for one in unknown} if free else set()
    for one in changes:
        if one.key in open_cases and one.score_history is not None:
            yield replace(
                one, score_history=replace(one.score_history, spread=spread, degrees_of_freedom=free, from_one_run=True)
            )
        else:
            yield one


def add_contract_fields(cases: GateCases) -> tuple[SuiteResult, ...]:
    """Add `baselineRunId`, `regressions` and `newPasses` to the suites exactly as the contract says.

    A case that passed in the baseline and has `passed: false` now is a regression, whatever the cause; the reverse is a
    new pass. Cases of only one run, and cases that did not run or were skipped, are neither.
    """
    return tuple(_add_suite_fields(suite, cases) for suite in cases.run.suites)


def _add_suite_fields(suite: SuiteResult, cases: GateCases) -> SuiteResult:
    both = [
        (case, earlier.passed)
        for case in suite.cases
        if case.status in _CONTRACT_STATUSES
        and (earlier := cases.get_earlier(CaseKey(suite.eval_file, case.id))) is not None
        and earlier.status in _CONTRACT_STATUSES
    ]
    return replace(
        suite,
        baseline_run_id=cases.baseline.run_id,
        regressions=tuple(case.id for case, passed in both if passed and not case.passed),
        new_passes=tuple(case.id for case, passed in both if case.passed and not passed),
    )


def _compare_case(
    key: CaseKey, evidence: CaseEvidence, baseline: CaseResult | None, current: CaseResult, tolerance: float
) -> CaseChange:
    change, reason = _classify_against_baseline(evidence, current)
    newest = evidence.newest_result
    earlier = newest.tally if newest else None
    if baseline is not None and (newest is None or newest.run is None) and change not in _ERROR_CLASSES:
        earlier = count_passes(baseline)
        if newest and earlier:
            earlier = replace(earlier, meets_rule=newest.tally.meets_rule)
    return CaseChange(
        suite=key.suite,
        case_id=key.case_id,
        change=change,
        baseline=earlier,
        current=count_passes(current),
        compared_with=newest.run if newest else None,
        score_history=evidence.score_history,
        reason=reason,
        location=current.location,
        **build_score_fields(change, earlier.score if newest and earlier else None, baseline, current, tolerance),
    )


def _classify_as_baseline(change: CaseChange, case: CaseResult) -> CaseChange:
    """Return the change of a case whose executions are the baseline's own: none, in class and score."""
    if not change.change.is_compared:
        return change
    passing = CaseClass.FLAKY if case.flaky else CaseClass.STILL_PASSING
    return replace(
        change,
        change=passing if case.passed else CaseClass.STILL_FAILING,
        score_change=None,
        score_drop=False,
        score_history=None,
        baseline_evaluator_scores={},
    )


def _classify_against_baseline(evidence: CaseEvidence, current: CaseResult) -> tuple[CaseClass, str | None]:
    first = find_first_line(current.error)
    failure = first and truncate_middle(first, MAX_REASON)
    if not evidence.in_baseline and evidence.newest_result is None:
        return CaseClass.ADDED, failure
    if current.status is Status.ERROR:
        return _classify_error(evidence, current), failure
    if not current.status.is_scored:
        skipped = f"skipped: {failure}" if failure else "skipped"
        return CaseClass.NOT_RUN, skipped if current.status is Status.SKIPPED else "the run ended before this case"
    if evidence.newest_result is None:
        why = (
            "no earlier run has a score for it"
            if evidence.unscored_in_baseline
            else "the prompt or the expectation changed"
        )
        return CaseClass.INCOMPARABLE, why
    if current.passed and current.flaky:
        return CaseClass.FLAKY, "it passed and failed with the same code"
    if current.passed:
        return CaseClass.STILL_PASSING if evidence.newest_result.passed else CaseClass.NEW_PASS, None
    return CaseClass.REGRESSION if evidence.newest_result.passed else CaseClass.STILL_FAILING, failure


def has_no_response(run: RunResult) -> bool:
    """Whether the agent gave neither a response nor an error of its own: its time-outs then say as little."""
    trials = (
        trial for _, case in run.iter_cases() for trial in case.list_executions()
    )  # usually the first case has a response, which ends the search
    return not any(
        trial.status.is_scored or (trial.error_kind is ErrorKind.AGENT_ERROR and not trial.timed_out)
        for trial in trials
    )


def _classify_error(evidence: CaseEvidence, current: CaseResult) -> CaseClass:
    """Classify a case that ended in an error: only an agent error is about the agent, as a failure is."""
    if evidence.unscored_in_baseline:
        return CaseClass.STILL_ERRORED
    if current.error_kind is not ErrorKind.AGENT_ERROR or evidence.newest_result is None:
        return CaseClass.ERRORED
    return CaseClass.REGRESSION if evidence.newest_result.passed else CaseClass.STILL_FAILING


def count_passes(case: CaseResult) -> PassCount | None:
    """Count the passed trials among the scored ones; None if the case was never scored."""
    if not case.status.is_scored:
        return None
    scored = [trial.status for trial in case.trials if trial.status.is_scored] or [case.status]
    passes = sum([status is Status.PASSED for status in scored])
    return _build_tally(passes, len(scored), case.score, case.passed if case.pass_rule else None)


@lru_cache(1_000)
def _build_tally(k: int, n: int, score: float, meets_rule: bool | None) -> PassCount:  # noqa: FBT001 (a key of the cache)
    """Build the count; cases with equal numbers share one object."""
    return PassCount(passes=k, executions=n, score=score, meets_rule=meets_rule)


def _build_removed_case(key: CaseKey, case: CaseResult, earlier: EarlierResult | None) -> CaseChange:
    tally = count_passes(case)
    newest = earlier if tally is None else None
    return CaseChange(
        suite=key.suite,
        case_id=key.case_id,
        change=CaseClass.REMOVED,
        baseline=newest.tally if newest else tally,
        compared_with=newest.run if newest else None,
        location=case.location,
        graded=case.graded,
    )


def _build_baseline_facts(baseline: Baseline, cases: GateCases) -> BaselineFacts:
    result = cases.baseline
    # a total with re-runs would make this run look cheaper, and so would one that this run's reused suites are not in
    once = not any(case.reruns or case.new_case_executions for _, case in result.iter_cases())
    once = once and not (result.reused_suites or cases.run.reused_suites)
    return BaselineFacts(
        run_id=result.run_id,
        timestamp=result.timestamp,
        source=baseline.source,
        sha=result.sha,
        age_days=baseline.age_days,
        commits_behind=baseline.commits_behind,
        base_sha=baseline.base_sha,
        commits_since=baseline.commits_since,
        pass_rate=result.summary.pass_rate,
        passed=result.summary.passed,
        total_cases=result.summary.total_cases,
        ran_cases=result.summary.ran,
        suite_passes={suite.eval_file: sum(case.passed for case in suite.cases) for suite in result.suites},
        total_duration_ms=result.summary.total_duration_ms if once else None,
        estimated_cost_usd=result.summary.estimated_cost_usd if once else None,
        unscored_runs=baseline.unscored_runs,
    )


def _iter_notes(cases: GateCases) -> Iterator[str]:
    earlier, current = cases.baseline, cases.run
    if not earlier.complete:
        yield "the baseline run is incomplete"
    if _list_targets(earlier) != _list_targets(current):
        names = ", ".join(f"{name} ({provider})" for name, provider in _list_targets(earlier)[:MAX_NAMED_TARGETS])
        yield f"the baseline evaluated another target: {names}"
    if current.partial and (number := len(cases.absent.not_selected)):
        were = "were" if number != 1 else "was"
        yield f"{number} of the baseline's {earlier.summary.total_cases} cases {were} not selected for this run"
    new = sum(cases.get_earlier(key) is None for key in cases.current_cases)
    if new and earlier.partial and earlier.selections != current.selections:
        yield f"the baseline has selected cases only: {new} of {current.summary.total_cases} cases are not in it"
    if earlier.shard != current.shard:
        yield "the baseline is another shard of the cases"
    hashes = {suite.eval_file: suite.metadata.eval_file_hash for suite in earlier.suites}
    files = match_moved_files(earlier, current)
    for suite in current.suites:
        old, new_hash = hashes.get(files.get(suite.eval_file, suite.eval_file)), suite.metadata.eval_file_hash
        if old and new_hash and old != new_hash:
            yield format_changed_file_note(suite.eval_file)


def format_changed_file_note(eval_file: str) -> str:
    """Format the note that an eval file has changed since the baseline."""
    return f"{eval_file} changed since the baseline"


def _list_targets(run: RunResult) -> list[tuple[str, str]]:
    return sorted({(target.name, target.provider) for target in run.targets or (run.target,)})
