"""Checks that a run result does not contradict itself.

A verdict uses counts from one part and cases from another, so that a contradiction could bypass the gate. Counts are
recalculated where possible, and a contradiction that cannot be resolved is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import structs

from eval_gate.model.case import CaseKey
from eval_gate.model.execution import Status
from eval_gate.model.result import CaseResult, RunResult, SuiteResult, Summary
from eval_gate.struct import replace

CASE_COUNTS: Final = ("total_cases", "passed", "failed", "errored", "skipped", "not_run", "flaky", "pass_rate")
"""Counts of a summary that follow from the cases alone."""


class Contradiction(NamedTuple):
    """Place of a contradiction in the result, and its description."""

    place: tuple[str | int, ...]
    what: str


def iter_contradictions(run: RunResult) -> Iterator[Contradiction]:
    """Yield the facts of a run result that contradict each other, if nothing shows which of them is true."""
    seen: dict[CaseKey, tuple[str | int, ...]] = {}
    for number, suite in enumerate(run.suites):
        for at, case in enumerate(suite.cases):
            key, place = CaseKey(suite.eval_file, case.id), ("suites", number, "cases", at)
            if key in seen:
                yield Contradiction(place, f'the case "{case.id[:100]}" appears twice, and only one can be compared')
            seen[key] = place
            if wrong := _find_case_error(case):
                yield Contradiction(place, f'the case "{case.id[:100]}" {wrong}')
    if run.complete and run.summary.total_cases != (there := sum(len(suite.cases) for suite in run.suites)):
        yield Contradiction(("summary",), f"counts {run.summary.total_cases:,} cases, but the result has {there:,}")


def _find_case_error(case: CaseResult) -> str | None:
    trials = case.trials
    if len(trials) == 1 and trials[0].status is case.status and not (case.reruns or case.new_case_executions):
        return None  # as most cases are
    if not (0 <= case.reruns <= max(len(trials), 1) and 0 <= case.new_case_executions <= max(len(trials), 1)):
        return f"has {max(len(trials), 1)} executions, fewer than its number of re-runs"
    if not trials or not case.status.is_scored:
        return None
    judged = [trial.status is Status.PASSED for trial in trials if trial.status.is_scored]
    if (sum(judged) * 2 > len(judged)) is not (case.status is Status.PASSED) or not judged:
        return f"is {case.status.value}, but {sum(judged)} of its {len(judged)} executions with a score passed"
    return None


def recount_run(run: RunResult) -> RunResult:
    """Recompute the counts of a run from its cases, and add a warning if they differ.

    A case has passed only if `passed` and `status` both say so. The summary of an incomplete run stays as it is,
    because it may have been written before any of its cases: it counts the planned cases, and no gate passes on it.
    Its suites are recomputed without a warning.
    """
    suites = tuple(map(_recount_suite, run.suites)) if any(map(_is_miscounted, run.suites)) else run.suites
    if not run.complete:
        return run if suites is run.suites else replace(run, suites=suites)
    summary = _recount_summary(run.summary, [case for suite in suites for case in suite.cases])
    if suites is run.suites and summary is run.summary:
        return run
    said = "the counts of the run result did not match its cases, so they were corrected"
    return replace(
        run,
        suites=suites,
        summary=summary,
        warnings=(*run.warnings, said),
    )


def _is_miscounted(suite: SuiteResult) -> bool:
    return any(case.passed is not (case.status is Status.PASSED) for case in suite.cases) or (
        _recount_summary(suite.summary, suite.cases) is not suite.summary
    )


def _recount_suite(suite: SuiteResult) -> SuiteResult:
    cases = tuple(map(_align_passed, suite.cases))
    return replace(suite, cases=cases, summary=_recount_summary(suite.summary, cases))


def _align_passed(case: CaseResult) -> CaseResult:
    if case.passed is (case.status is Status.PASSED):
        return case
    return replace(case, passed=False, status=Status.FAILED if case.status is Status.PASSED else case.status)


def _recount_summary(summary: Summary, cases: Sequence[CaseResult]) -> Summary:
    """Recompute the counts of a summary; return the summary itself if they are already correct."""
    found = Counter([case.status for case in cases])
    passed, failed = found[Status.PASSED], found[Status.FAILED]
    counts = (
        len(cases),
        passed,
        failed,
        found[Status.ERROR],
        found[Status.SKIPPED],
        found[Status.NOT_RUN],
        sum([case.flaky for case in cases]),
        passed / (passed + failed) if passed + failed else None,
    )
    said = tuple(getattr(summary, name) for name in CASE_COUNTS)
    return summary if said == counts else structs.replace(summary, **dict(zip(CASE_COUNTS, counts, strict=True)))
