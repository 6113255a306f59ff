"""A run as numbers and words, made once. Every report only places what is here, so that no two can disagree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from runner.gate.acceptable import judged_as
from runner.gate.scores import limit_words
from runner.model.comparison import BaselineFacts, CaseChange, CaseClass, Comparison, Outcome, Verdict
from runner.model.result import RunResult, Status, SuiteResult, Summary
from runner.reports.causes import Cause, group_causes
from runner.reports.context import ReportContext
from runner.reports.grades import Grade, grades_of
from runner.reports.rows import CaseRow, rows_of
from runner.reports.scores import MeanScore, mean_score
from runner.reports.sentences import headline, lead, nothing_comparable, opening
from runner.reports.staleness import StaleSuites, stale_suites
from runner.reports.wording import spending

__all__ = ["CaseRow", "ReportContext", "RuleRow", "SuiteRow", "View", "view_of"]

MAX_TARGETS: Final = 10


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """One suite in numbers. `change` is against the baseline's passes; None without one."""

    name: str
    file: str
    passed: int
    failed: int
    other: int
    baseline_passed: int | None
    stale: bool
    score: MeanScore | None = None
    """The mean of graded cases; None where there are none."""

    @property
    def change(self) -> int | None:
        """How many more pass than in the baseline."""
        return None if self.baseline_passed is None else self.passed - self.baseline_passed


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule: `result` is `ok`, `fail`, `warning` for what is only pointed out, `–` for what others rest on."""

    name: str
    value: str
    limit: str
    result: str


@dataclass(frozen=True, slots=True)
class View:
    """Everything a report shows, in the words it is shown in. `run` is as its verdict counts it."""

    context: ReportContext
    run: RunResult
    verdict: Verdict
    symbol: str
    heading: str
    lead: str | None
    opening: str
    comparison: Comparison | None
    cases: tuple[CaseRow, ...]
    """All cases of the run, in its order; the other rows are among them."""
    regressions: tuple[CaseRow, ...]
    new_passes: tuple[CaseRow, ...]
    still_failing: tuple[CaseRow, ...]
    known_failing: tuple[CaseRow, ...]
    """Those of the still failing ones that are not worse than before."""
    score_drops: tuple[CaseRow, ...]
    """Scores that fell by more than the tolerance, regressions apart, the largest drop first."""
    failing: tuple[CaseRow, ...]
    """All failing cases that no comparison explains: without a baseline, added, or incomparable."""
    errors: tuple[CaseRow, ...]
    unsettled: tuple[CaseRow, ...]
    flaky: tuple[CaseRow, ...]
    skipped: tuple[CaseRow, ...]
    incomparable: tuple[CaseRow, ...]
    added: tuple[CaseRow, ...]
    removed: tuple[CaseRow, ...]
    grades: tuple[Grade, ...]
    """What judges gave for the dimensions of rubrics."""
    causes: tuple[Cause, ...]
    suites: tuple[SuiteRow, ...]
    stale: tuple[StaleSuites, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    rules: tuple[RuleRow, ...]
    spending: str
    baseline_is_stale: bool
    nothing_comparable: bool

    @property
    def asked(self) -> tuple[str, ...]:
        """What was evaluated: one target, or several."""
        targets = self.run.targets or (self.run.target,)
        shown = tuple(target.identity for target in targets[:MAX_TARGETS])
        return shown if len(targets) <= MAX_TARGETS else (*shown, f"{len(targets) - MAX_TARGETS} more")

    @property
    def score_tolerance(self) -> str:
        """The drop beyond which it is shown as one."""
        return limit_words(self.comparison.score_tolerance) if self.comparison else ""

    @property
    def summary(self) -> Summary:
        """The counts."""
        return self.run.summary

    @property
    def undecided(self) -> bool:
        """Whether the run says nothing about the change."""
        return self.verdict.outcome is Outcome.ERROR

    @property
    def stale_count(self) -> int:
        """How many suites are stale."""
        return sum(suite.stale for suite in self.suites)


def view_of(run: RunResult, context: ReportContext) -> View:
    """The view of a judged run. A run without a verdict was interrupted before it could be judged."""
    verdict = run.verdict or Verdict(outcome=Outcome.ERROR, exit_code=3)
    run = judged_as(run)
    rows = _Rows(run, context)
    regressions = tuple(sorted(rows.of(CaseClass.REGRESSION), key=lambda row: -row.drop))
    failing = rows.unexplained_failures()
    baseline = run.comparison.baseline if run.comparison else None
    is_stale = baseline is not None and _is_stale(baseline, context)
    symbol, heading = headline(run, verdict, context.no_baseline_words, baseline_is_stale=is_stale)
    return View(
        context=context,
        run=run,
        verdict=verdict,
        symbol=symbol,
        heading=heading,
        lead=lead(verdict.outcome),
        opening=opening(run, verdict),
        comparison=run.comparison,
        cases=rows.here,
        regressions=regressions,
        new_passes=rows.of(CaseClass.NEW_PASS),
        still_failing=rows.of(CaseClass.STILL_FAILING),
        known_failing=tuple(row for row in rows.of(CaseClass.STILL_FAILING) if not row.score_drop),
        score_drops=tuple(sorted((row for row in rows.here if row.score_drop), key=lambda row: -row.drop)),
        failing=failing,
        errors=rows.with_status(Status.ERROR),
        unsettled=rows.of(CaseClass.UNSETTLED),
        flaky=rows.flaky(),
        skipped=rows.with_status(Status.SKIPPED),
        incomparable=rows.of(CaseClass.INCOMPARABLE),
        added=rows.of(CaseClass.ADDED),
        removed=rows.of(CaseClass.REMOVED),
        grades=grades_of(run.suites),
        causes=group_causes((row.label, row.cause) for row in (regressions or failing)),
        suites=_suite_rows(run, baseline),
        stale=stale_suites(run.suites),
        warnings=_warnings(run),
        notes=run.comparison.notes if run.comparison else (),
        rules=(*_rules(verdict, baseline, context, is_stale=is_stale), *_pass_score(run, verdict)),
        spending=spending(run.summary, baseline),
        baseline_is_stale=is_stale,
        nothing_comparable=nothing_comparable(run),
    )


class _Rows:
    """Rows by what became of the case. A failing case is in exactly one of the lists of failures."""

    _EXPLAINED = frozenset({CaseClass.REGRESSION, CaseClass.STILL_FAILING, CaseClass.UNSETTLED})

    def __init__(self, run: RunResult, context: ReportContext) -> None:
        self._all = rows_of(run, context)
        self.here = tuple(row for row in self._all if row.status is not None)

    def of(self, wanted: CaseClass) -> tuple[CaseRow, ...]:
        """Rows of one class."""
        return tuple(row for row in self._all if row.change is wanted)

    def with_status(self, status: Status) -> tuple[CaseRow, ...]:
        """Rows of one status."""
        return tuple(row for row in self.here if row.status is status)

    def flaky(self) -> tuple[CaseRow, ...]:
        """Rows with both passes and failures among their trials, where that is the most to say about them."""
        return tuple(row for row in self.here if row.flaky and row.change not in self._EXPLAINED)

    def unexplained_failures(self) -> tuple[CaseRow, ...]:
        """Failing cases that the comparison calls neither regression nor still failing."""
        return tuple(row for row in self.with_status(Status.FAILED) if row.change not in self._EXPLAINED)


def _suite_rows(run: RunResult, baseline: BaselineFacts | None) -> tuple[SuiteRow, ...]:
    changes: dict[str, list[CaseChange]] = defaultdict(list)
    for change in run.comparison.changes if run.comparison else ():
        changes[change.suite].append(change)
    return tuple(_suite_row(suite, baseline, changes[suite.eval_file]) for suite in run.suites)


def _suite_row(suite: SuiteResult, baseline: BaselineFacts | None, changes: Iterable[CaseChange]) -> SuiteRow:
    summary = suite.summary
    return SuiteRow(
        name=f"{suite.tool_name} {suite.tier.value}" if suite.tier else suite.tool_name,
        file=suite.eval_file,
        passed=summary.passed,
        failed=summary.failed,
        other=summary.total_cases - summary.passed - summary.failed,
        baseline_passed=baseline.suite_passes.get(suite.eval_file) if baseline else None,
        stale=suite.stale,
        score=mean_score(suite.cases, changes),
    )


def _is_stale(baseline: BaselineFacts, context: ReportContext) -> bool:
    too_old = (baseline.age_days or 0) > context.max_baseline_age_days
    return too_old or (baseline.commits_behind or 0) > context.max_baseline_commits


def _rules(
    verdict: Verdict, baseline: BaselineFacts | None, context: ReportContext, *, is_stale: bool
) -> tuple[RuleRow, ...]:
    """The policy's rules, and the age of the baseline where it is known, which only warns."""
    rows = [RuleRow(rule.name, rule.value, rule.limit, "ok" if rule.ok else "fail") for rule in verdict.rules]
    value, limit = [], []
    if baseline is not None and baseline.age_days is not None:
        value.append(f"{baseline.age_days:.0f} d")
        limit.append(f"{context.max_baseline_age_days:g} d")
    if baseline is not None and baseline.commits_behind is not None:
        value.append(f"{baseline.commits_behind} commits")
        limit.append(f"{context.max_baseline_commits} commits")
    if value:
        rows.append(RuleRow("Baseline age", " / ".join(value), " / ".join(limit), "warning" if is_stale else "ok"))
    return tuple(rows)


def _pass_score(run: RunResult, verdict: Verdict) -> tuple[RuleRow, ...]:
    """What the other rules take for a pass, where it is not the specification's 1."""
    graded = [case for suite in run.suites for case in suite.cases if case.graded and case.status.judged]
    if verdict.pass_score >= 1.0 or not graded:
        return ()
    value = f"{sum(case.passed for case in graded)} of {len(graded)} graded cases"
    return (RuleRow("Pass score", value, limit_words(verdict.pass_score), "–"),)


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
