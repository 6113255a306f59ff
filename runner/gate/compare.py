"""Two runs side by side, case by case. Pure: the same two runs always give the same comparison.

A case is looked at in this order, and the first line that holds is its class:

1. not in the baseline: `added`; not here: `removed`
2. not judged here: `errored` for an execution error, else `not_run` (which holds skipped cases too)
3. another fingerprint, or never judged in the baseline: `incomparable`
4. passes here, but with failed trials among them: `flaky`
5. passed then and fails now: `regression`; the reverse: `new_pass`; else `still_passing`, `still_failing`
"""

from __future__ import annotations

from collections.abc import Mapping

from runner.gate.baseline import Baseline
from runner.gate.scores import scores_of
from runner.model.comparison import (
    DEFAULT_SCORE_TOLERANCE,
    BaselineFacts,
    CaseChange,
    CaseClass,
    Comparison,
    Tally,
)
from runner.model.result import CaseResult, RunResult, Status, SuiteResult

MAX_REASON = 300
MAX_TARGETS = 5
_COUNTED = frozenset({Status.PASSED, Status.FAILED, Status.ERROR})
"""Statuses that are a yes or no in the contract's own rule; a case that did not run is neither."""


def compare(
    baseline: Baseline,
    current: RunResult,
    *,
    everything_selected: bool = True,
    score_tolerance: float = DEFAULT_SCORE_TOLERANCE,
) -> Comparison:
    """Every case of both runs, exactly once; those of the baseline that are gone come last.

    When only some cases were selected, the others are not `removed` and are left out. A graded case whose score fell
    by more than `score_tolerance` is a score drop, whatever its class; the tolerance changes nothing else.
    """
    pairs = _pairs(baseline.result, current)
    records = _records(baseline.history)
    changes: list[CaseChange] = []
    for suite in current.suites:
        earlier = pairs.get(suite.eval_file)
        then = {case.id: case for case in earlier.cases} if earlier else {}
        for case in suite.cases:
            record = records.get((suite.eval_file, case.id, case.fingerprint))
            changes.append(_change(suite, then.get(case.id), case, record, score_tolerance))
    if everything_selected:
        changes += _removed(baseline.result, current, pairs)
    return Comparison(
        baseline=_facts(baseline),
        changes=tuple(changes),
        notes=tuple(_notes(baseline, current, pairs)),
        score_tolerance=score_tolerance,
    )


def with_contract_fields(current: RunResult, baseline: RunResult) -> tuple[SuiteResult, ...]:
    """The suites with `baselineRunId`, `regressions` and `newPasses` to the letter of the contract.

    Passed then and `passed: false` now, whatever the cause, is a regression; the reverse a new pass. Cases that are
    only in one run are neither, and so are those that did not run or were skipped: they say nothing.
    """
    pairs = _pairs(baseline, current)
    return tuple(_with_fields(suite, pairs.get(suite.eval_file), baseline.run_id) for suite in current.suites)


def _with_fields(suite: SuiteResult, earlier: SuiteResult | None, run_id: str) -> SuiteResult:
    then = {case.id: case.passed for case in earlier.cases if case.status in _COUNTED} if earlier else {}
    both = [case for case in suite.cases if case.id in then and case.status in _COUNTED]
    return suite.model_copy(
        update={
            "baseline_run_id": run_id,
            "regressions": tuple(case.id for case in both if then[case.id] and not case.passed),
            "new_passes": tuple(case.id for case in both if case.passed and not then[case.id]),
        }
    )


def _pairs(baseline: RunResult, current: RunResult) -> Mapping[str, SuiteResult]:
    """The baseline's suite for each eval file here: of the same file, else the only one left of the same kind."""
    by_file = {suite.eval_file: suite for suite in baseline.suites}
    pairs = {suite.eval_file: by_file[suite.eval_file] for suite in current.suites if suite.eval_file in by_file}
    left_there = [suite for suite in baseline.suites if suite.eval_file not in pairs]
    left_here = [suite for suite in current.suites if suite.eval_file not in pairs]
    for suite in left_here:
        same_there = [other for other in left_there if _kind(other) == _kind(suite)]
        same_here = [other for other in left_here if _kind(other) == _kind(suite)]
        if len(same_there) == len(same_here) == 1:
            pairs[suite.eval_file] = same_there[0]
    return pairs


def _kind(suite: SuiteResult) -> tuple[str, str | None, str]:
    return suite.tool_name, suite.tier, suite.format


def _records(history: tuple[RunResult, ...]) -> Mapping[tuple[str, str, str | None], Tally]:
    """Passes of judged runs by eval file, case and fingerprint, over all of the history."""
    found: dict[tuple[str, str, str | None], Tally] = {}
    for suite in (suite for run in history for suite in run.suites):
        for case in suite.cases:
            if case.status.judged:
                key = suite.eval_file, case.id, case.fingerprint
                before = found.get(key, Tally(k=0, n=0, score=0.0))
                score = (before.score * before.n + case.score) / (before.n + 1)
                found[key] = Tally(k=before.k + case.passed, n=before.n + 1, score=score)
    return found


def _change(
    suite: SuiteResult, then: CaseResult | None, now: CaseResult, record: Tally | None, tolerance: float
) -> CaseChange:
    change, reason = _classify(then, now)
    return CaseChange(
        suite=suite.eval_file,
        case_id=now.id,
        change=change,
        baseline=tally(then) if then else None,
        here=tally(now),
        record=record,
        reason=reason,
        location=now.location,
        stale=suite.stale,
        **scores_of(change, then, now, tolerance),
    )


def _classify(then: CaseResult | None, now: CaseResult) -> tuple[CaseClass, str | None]:
    failure = _first_line(now.error)
    if then is None:
        return CaseClass.ADDED, failure
    if now.status is Status.ERROR:
        return CaseClass.ERRORED, failure
    if not now.status.judged:
        skipped = f"skipped: {failure}" if failure else "skipped"
        return CaseClass.NOT_RUN, skipped if now.status is Status.SKIPPED else "the run ended before"
    if then.fingerprint and now.fingerprint and then.fingerprint != now.fingerprint:
        return CaseClass.INCOMPARABLE, "the question or the expectation has changed"
    if not then.status.judged:
        return CaseClass.INCOMPARABLE, f"the baseline could not judge it ({then.status.value.replace('_', ' ')})"
    if now.passed and now.flaky:
        return CaseClass.FLAKY, "passes and failures were seen for the same code"
    if now.passed:
        return CaseClass.STILL_PASSING if then.passed else CaseClass.NEW_PASS, None
    return CaseClass.REGRESSION if then.passed else CaseClass.STILL_FAILING, failure


def tally(case: CaseResult) -> Tally | None:
    """Passed trials of judged ones; None when the case was never judged."""
    judged = [trial.status for trial in case.trials if trial.status.judged]
    if not judged and case.status.judged:
        judged = [case.status]
    if not judged:
        return None
    return Tally(k=sum(status is Status.PASSED for status in judged), n=len(judged), score=case.score)


def _removed(baseline: RunResult, current: RunResult, pairs: Mapping[str, SuiteResult]) -> list[CaseChange]:
    here = {
        (pairs[suite.eval_file].eval_file, case.id)
        for suite in current.suites
        if suite.eval_file in pairs
        for case in suite.cases
    }
    return [
        CaseChange(
            suite=suite.eval_file,
            case_id=case.id,
            change=CaseClass.REMOVED,
            baseline=tally(case),
            location=case.location,
            graded=case.graded,
        )
        for suite in baseline.suites
        for case in suite.cases
        if (suite.eval_file, case.id) not in here
    ]


def _facts(baseline: Baseline) -> BaselineFacts:
    result = baseline.result
    return BaselineFacts(
        run_id=result.run_id,
        timestamp=result.timestamp,
        source=baseline.source,
        sha=result.git.sha if result.git else None,
        age_days=baseline.age_days,
        commits_behind=baseline.commits_behind,
        pass_rate=result.summary.pass_rate,
        passed=result.summary.passed,
        total_cases=result.summary.total_cases,
        suite_passes={suite.eval_file: sum(case.passed for case in suite.cases) for suite in result.suites},
        total_duration_ms=result.summary.total_duration_ms,
        estimated_cost_usd=result.summary.estimated_cost_usd,
    )


def _notes(baseline: Baseline, current: RunResult, pairs: Mapping[str, SuiteResult]) -> list[str]:
    notes = []
    earlier = baseline.result
    if not earlier.complete:
        notes.append("the baseline run was not complete")
    if _asked(earlier) != _asked(current):
        others = ", ".join(f"{name} ({provider})" for name, provider in _asked(earlier)[:MAX_TARGETS])
        notes.append(f"the baseline evaluated another target: {others}")
    elif moved := _moved(current, pairs):
        notes.append(f"{moved} case{'s were' if moved != 1 else ' was'} asked of another target in the baseline")
    if earlier.shard != current.shard:
        notes.append("the baseline holds another part of the cases: the shards differ")
    for suite in current.suites:
        other = pairs.get(suite.eval_file)
        if other is not None and _hash(other) and _hash(suite) and _hash(other) != _hash(suite):
            notes.append(f"{suite.eval_file} has changed since the baseline")
    return notes


def _asked(run: RunResult) -> list[tuple[str, str]]:
    """Names and providers of everything that was asked."""
    return sorted({(target.name, target.provider) for target in run.targets or (run.target,)})


def _moved(current: RunResult, pairs: Mapping[str, SuiteResult]) -> int:
    """Cases that name another target of their own than they did."""
    count = 0
    for suite in current.suites:
        earlier = pairs.get(suite.eval_file)
        then = {case.id: case.target for case in earlier.cases} if earlier else {}
        count += sum(case.id in then and then[case.id] != case.target for case in suite.cases)
    return count


def _hash(suite: SuiteResult) -> str | None:
    return suite.metadata.eval_file_hash


def _first_line(text: str | None) -> str | None:
    return text.strip().splitlines()[0][:MAX_REASON] if text and text.strip() else None
