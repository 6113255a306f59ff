"""A run as numbers and words, made once. Every report only places what is here, so that no two can disagree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from runner.model.comparison import CaseChange, CaseClass, Comparison, Outcome, Rule, Verdict
from runner.model.result import CaseResult, RunResult, Status, SuiteResult, Summary
from runner.reports.causes import Cause, group_causes
from runner.reports.staleness import StaleSuites, stale_suites
from runner.reports.wording import headline, opening, tally_words


@dataclass(frozen=True, slots=True)
class ReportContext:
    """What a report may say beside the run: names and addresses, each only where it is known."""

    name: str | None = None
    comment_key: str = "default"
    server_url: str = "https://github.com"
    repository: str | None = None
    head_sha: str | None = None
    base_branch: str | None = None
    run_url: str | None = None
    report_url: str | None = None
    baseline_run_url: str | None = None
    workflow_url: str | None = None
    docs_url: str | None = None
    no_baseline_reason: str | None = None
    previous_red_sha: str | None = None
    rerun_command: str | None = None
    result_path: str | None = None
    max_baseline_age_days: float = 14
    max_baseline_commits: int = 50


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One case to look at. `then` and `here` are `3/3`, or `pass` and `fail` where there was one trial."""

    id: str
    suite: str
    then: str | None
    here: str | None
    what: str | None
    url: str | None
    stale: bool
    drop: float


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """One suite in numbers. `change` is against the baseline's passes; None without one."""

    name: str
    passed: int
    failed: int
    other: int
    baseline_passed: int | None
    stale: bool

    @property
    def change(self) -> int | None:
        """How many more pass than in the baseline."""
        return None if self.baseline_passed is None else self.passed - self.baseline_passed


@dataclass(frozen=True, slots=True)
class View:
    """Everything a report shows, in the words it is shown in."""

    context: ReportContext
    run: RunResult
    verdict: Verdict
    symbol: str
    heading: str
    opening: str
    comparison: Comparison | None
    regressions: tuple[CaseRow, ...]
    new_passes: tuple[CaseRow, ...]
    still_failing: tuple[CaseRow, ...]
    failing: tuple[CaseRow, ...]
    """All failing cases that no comparison explains: without a baseline, added, or incomparable."""
    errors: tuple[CaseRow, ...]
    flaky: tuple[CaseRow, ...]
    skipped: tuple[CaseRow, ...]
    incomparable: tuple[CaseRow, ...]
    removed: tuple[CaseRow, ...]
    causes: tuple[Cause, ...]
    suites: tuple[SuiteRow, ...]
    stale: tuple[StaleSuites, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    rules: tuple[Rule, ...] = field(default=())

    @property
    def summary(self) -> Summary:
        """The counts."""
        return self.run.summary

    @property
    def stale_count(self) -> int:
        """How many suites are stale."""
        return sum(suite.stale for suite in self.suites)

    @property
    def baseline_is_stale(self) -> bool:
        """Whether the baseline is older than the limits."""
        if self.comparison is None:
            return False
        facts, context = self.comparison.baseline, self.context
        return (facts.age_days or 0) > context.max_baseline_age_days or (
            facts.commits_behind or 0
        ) > context.max_baseline_commits


def view_of(run: RunResult, context: ReportContext) -> View:
    """The view of a judged run. A run without a verdict was interrupted before it could be judged."""
    verdict = run.verdict or Verdict(outcome=Outcome.ERROR, exit_code=3)
    rows = _Rows(run, context)
    regressions = tuple(sorted(rows.of(CaseClass.REGRESSION), key=lambda row: -row.drop))
    symbol, heading = headline(run, verdict, context.max_baseline_age_days, context.max_baseline_commits)
    return View(
        context=context,
        run=run,
        verdict=verdict,
        symbol=symbol,
        heading=heading,
        opening=opening(run, verdict),
        comparison=run.comparison,
        regressions=regressions,
        new_passes=rows.of(CaseClass.NEW_PASS),
        still_failing=rows.of(CaseClass.STILL_FAILING),
        failing=rows.unexplained_failures(),
        errors=rows.with_status(Status.ERROR),
        flaky=rows.flaky(),
        skipped=rows.with_status(Status.SKIPPED),
        incomparable=rows.of(CaseClass.INCOMPARABLE),
        removed=rows.of(CaseClass.REMOVED),
        causes=group_causes((row.id, row.what) for row in (regressions or rows.unexplained_failures())),
        suites=tuple(_suite_row(suite, run.comparison) for suite in run.suites),
        stale=stale_suites(run.suites),
        warnings=_warnings(run),
        notes=run.comparison.notes if run.comparison else (),
        rules=verdict.rules,
    )


class _Rows:
    """Rows by what became of the case."""

    def __init__(self, run: RunResult, context: ReportContext) -> None:
        self._run = run
        self._context = context
        self._changes = run.comparison.changes if run.comparison else ()
        self._explained = {
            (change.suite, change.case_id)
            for change in self._changes
            if change.change in {CaseClass.REGRESSION, CaseClass.STILL_FAILING}
        }

    def of(self, wanted: CaseClass) -> tuple[CaseRow, ...]:
        """Rows of one class."""
        return tuple(self._from_change(change) for change in self._changes if change.change is wanted)

    def with_status(self, status: Status) -> tuple[CaseRow, ...]:
        """Rows of one status."""
        return tuple(self._from_case(suite, case) for suite, case in self._cases() if case.status is status)

    def flaky(self) -> tuple[CaseRow, ...]:
        """Rows with both passes and failures among their trials, where that is the most to say about them."""
        return tuple(
            self._from_case(suite, case)
            for suite, case in self._cases()
            if case.flaky and (suite.eval_file, case.id) not in self._explained
        )

    def unexplained_failures(self) -> tuple[CaseRow, ...]:
        """Failing cases that the comparison calls neither regression nor still failing."""
        return tuple(
            self._from_case(suite, case)
            for suite, case in self._cases()
            if case.status is Status.FAILED and (suite.eval_file, case.id) not in self._explained
        )

    def _cases(self) -> Iterable[tuple[SuiteResult, CaseResult]]:
        return ((suite, case) for suite in self._run.suites for case in suite.cases)

    def _from_change(self, change: CaseChange) -> CaseRow:
        then, here = change.baseline, change.here
        rate = [side.k / side.n if side else 0.0 for side in (then, here)]
        return CaseRow(
            id=change.case_id,
            suite=change.suite,
            then=tally_words(then),
            here=tally_words(here),
            what=change.reason,
            url=self._url(change.location.file, change.location.line) if change.location else None,
            stale=change.stale,
            drop=rate[0] - rate[1],
        )

    def _from_case(self, suite: SuiteResult, case: CaseResult) -> CaseRow:
        passed = sum(trial.status is Status.PASSED for trial in case.trials)
        here = f"{passed}/{len(case.trials)}" if len(case.trials) > 1 else case.status.value.replace("_", " ")
        return CaseRow(
            id=case.id,
            suite=suite.eval_file,
            then=None,
            here="fail" if here == "failed" else here,
            what=case.error.splitlines()[0] if case.error else None,
            url=self._url(case.location.file, case.location.line) if case.location else None,
            stale=suite.stale,
            drop=0.0,
        )

    def _url(self, file: str, line: int) -> str | None:
        """The case's place at the commit that was evaluated; none where that is not known."""
        context = self._context
        if context.repository is None or context.head_sha is None or file.startswith("/"):
            return None
        from urllib.parse import quote

        return f"{context.server_url}/{context.repository}/blob/{context.head_sha}/{quote(file)}#L{line}"


def _suite_row(suite: SuiteResult, comparison: Comparison | None) -> SuiteRow:
    summary = suite.summary
    earlier = comparison.baseline.suite_passes.get(suite.eval_file) if comparison else None
    return SuiteRow(
        name=f"{suite.tool_name} {suite.tier.value}" if suite.tier else suite.tool_name,
        passed=summary.passed,
        failed=summary.failed,
        other=summary.total_cases - summary.passed - summary.failed,
        baseline_passed=earlier,
        stale=suite.stale,
    )


def _warnings(run: RunResult) -> tuple[str, ...]:
    """What silently weakens the run: warnings of files first, then of what happened while running, each once."""
    of_files = [f"{suite.eval_file}: {warning}" for suite in run.suites for warning in suite.warnings]
    said = {warning for suite in run.suites for warning in suite.warnings}
    of_cases = [
        f"{case.id}: {warning}"
        for suite in run.suites
        for case in suite.cases
        for warning in case.warnings
        if f"{case.id}: {warning}" not in said
    ]
    return tuple(dict.fromkeys((*run.warnings, *of_files, *of_cases)))
