"""Tables of a report: one row per suite, and one row per rule of the policy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Final

from eval_gate.gate.score_changes import format_limit
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import BaselineFacts, CaseChange, CaseClass, Rule, RuleCode, Verdict
from eval_gate.model.result import RunResult, StaleKind, SuiteResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.run_statistics import exclude_waived, is_possible_regression
from eval_gate.reports.view.scores import MeanScore, compute_mean_score
from eval_gate.reports.wording.reuse import describe_origins
from eval_gate.struct import FrozenStruct

_STALE_PARTS: Final = {
    StaleKind.DESCRIPTION: "tool description",
    StaleKind.REGISTRY_SIZE: "tool registry",
    StaleKind.VERSION: "tool version",
    StaleKind.MISSING: "tool missing",
    StaleKind.STATUS: "tool status",
}


class SuiteRow(FrozenStruct):
    """Counts of one suite; `change` compares its passes with the baseline's, None without a baseline.

    `regressions` include suspected ones, and leave out waived ones.
    """

    name: str
    file: str
    passed: int
    failed: int
    other: int
    baseline_passed: int | None
    stale: str
    """Stale parts, in a few words; empty if nothing is stale."""
    regressions: int
    new_passes: int
    score: MeanScore | None = None
    """Mean score of graded cases; None without any."""
    origin: str = ""
    """Where a reused result comes from, or why the suite was executed; empty if nothing was decided about reuse."""

    @property
    def change(self) -> int | None:
        """Change of the number of passing cases since the baseline."""
        return None if self.baseline_passed is None else self.passed - self.baseline_passed


class RuleRow(FrozenStruct):
    """Rule of the policy with its value, limit and result: `ok`, `fail`, `warning` or `–`."""

    name: str
    value: str
    limit: str
    result: str


def build_suite_rows(run: RunResult, baseline: BaselineFacts | None) -> tuple[SuiteRow, ...]:
    """Build a row for each suite, in the order of the run."""
    changes: dict[str, list[CaseChange]] = defaultdict(list)
    for change in run.comparison.changes if run.comparison else ():
        changes[change.suite].append(change)
    waived, origins = run.waived_keys, describe_origins(run)
    return tuple(
        _build_suite_row(suite, baseline, changes[suite.eval_file], waived, origins.get(suite.eval_file, ""))
        for suite in run.suites
    )


def _build_suite_row(
    suite: SuiteResult,
    baseline: BaselineFacts | None,
    changes: Sequence[CaseChange],
    waived: Collection[CaseKey],
    origin: str,
) -> SuiteRow:
    summary = suite.summary
    return SuiteRow(
        name=f"{suite.tool_name} {suite.tier.value}" if suite.tier else suite.tool_name,
        file=suite.eval_file,
        passed=summary.passed,
        failed=summary.failed,
        other=summary.total_cases - summary.passed - summary.failed,
        baseline_passed=baseline.suite_passes.get(suite.eval_file) if baseline else None,
        stale=describe_stale_suite(suite),
        regressions=sum(is_possible_regression(one) and one.key not in waived for one in changes),
        new_passes=sum(one.change is CaseClass.NEW_PASS for one in changes),
        score=compute_mean_score(suite.cases, changes),
        origin=origin,
    )


def is_baseline_stale(baseline: BaselineFacts, context: ReportContext) -> bool:
    """Whether the baseline is older than the limits of the context."""
    too_old = (baseline.age_days or 0) > context.max_baseline_age_days
    return too_old or (baseline.commits_behind or 0) > context.max_baseline_commits


def build_rule_rows(run: RunResult, verdict: Verdict, context: ReportContext, *, stale: bool) -> tuple[RuleRow, ...]:
    """Build the rows of the policy's rules, the age of the baseline, which only warns, and the pass score."""
    holds = "ok" if run.summary.ran else "–"  # a rule about cases has no result if none ran
    rows = [
        RuleRow(rule.name, _format_rule_value(rule, run), rule.limit, holds if rule.ok else "fail")
        for rule in verdict.rules
    ]
    baseline = run.comparison.baseline if run.comparison else None
    return (*rows, *_build_age_row(baseline, context, stale=stale), *_build_pass_score_row(run, verdict))


def _build_age_row(baseline: BaselineFacts | None, context: ReportContext, *, stale: bool) -> tuple[RuleRow, ...]:
    value, limit = [], []
    if baseline is not None and baseline.age_days is not None:
        value.append(f"{baseline.age_days:.0f} d")
        limit.append(f"{context.max_baseline_age_days:g} d")
    if baseline is not None and baseline.commits_behind is not None:
        value.append(f"{baseline.commits_behind} commits")
        limit.append(f"{context.max_baseline_commits} commits")
    result = "warning" if stale else "ok"
    return (RuleRow("Baseline age", " / ".join(value), " / ".join(limit), result),) if value else ()


def _build_pass_score_row(run: RunResult, verdict: Verdict) -> tuple[RuleRow, ...]:
    """Build the row of the pass score; none for the specification's 1, or if no graded case has a score."""
    graded = [case for _, case in run.iter_cases() if case.graded and case.status.is_scored]
    if verdict.pass_score >= 1.0 or not graded:
        return ()
    value = f"{sum(case.passed for case in graded)} of {len(graded)} graded cases"
    return (RuleRow("Pass score", value, format_limit(verdict.pass_score), "–"),)


def _format_rule_value(rule: Rule, run: RunResult) -> str:
    """Return the value of a rule, and for regressions the number of suspected ones."""
    changes = run.comparison.changes if run.comparison else ()
    suspected = sum(one.counts_as_suspected for one in exclude_waived(run, changes))
    return (
        f"{rule.value}, {suspected} more suspected" if rule.code == RuleCode.REGRESSIONS and suspected else rule.value
    )


def describe_stale_suite(suite: SuiteResult) -> str:
    """Describe the stale parts of a suite: `stale: tool description, tool registry`; empty if nothing is stale."""
    parts = dict.fromkeys(_STALE_PARTS[fact.kind] for fact in suite.stale_facts)
    return f"stale: {', '.join(parts)}" if suite.stale else ""
