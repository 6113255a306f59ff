"""Drift of the default branch over its runs: summary section and issue."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from eval_gate.action.step import Step
from eval_gate.action.step_log import StepLog
from eval_gate.analysis.drift.branch_drift import Drift, find_drift
from eval_gate.analysis.drift.drift_report import (
    format_issue_title,
    list_degraded_names,
    render_issue,
    render_lost_notice,
    render_recovery_comment,
    render_summary_part,
)
from eval_gate.github.artifacts.artifact_search import has_newer_run
from eval_gate.github.failure import GitHubError
from eval_gate.github.issues import Issue, close_issue, find_issue, open_issue, update_issue
from eval_gate.reports.context import ReportContext
from eval_gate.results.history import EMPTY_HISTORY, History
from eval_gate.results.run_history import find_history
from eval_gate.struct import FrozenStruct


class BranchDrift(FrozenStruct):
    """Drift of the branch, and the history that it was found in."""

    drift: Drift
    history: History
    pass_score: float

    def list_names_at(self, moment: datetime) -> frozenset[str]:
        """List what had degraded at that moment, as far as the history still shows it."""
        until = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        newer = sum(run.timestamp > until for run in self.history.runs)
        return _list_names(find_drift(self.history.drop_newest(newer), self.pass_score))


class DriftReport(FrozenStruct):
    """Drift as summary and outputs report it; empty for runs outside the branch."""

    part: str = ""
    names: tuple[str, ...] = ()
    issue_url: str = ""


def compute_branch_drift(step: Step, record: Path, pass_score: float) -> BranchDrift | None:
    """Compute how the branch degraded, from the stored history; None without one, or for a run of no such branch."""
    history = find_history(record) if step.plan.is_on_baseline_branch and step.plan.can_store else EMPTY_HISTORY
    return BranchDrift(find_drift(history, pass_score), history, pass_score) if history.runs else None


def publish_drift(step: Step, finding: BranchDrift | None, context: ReportContext, log: StepLog) -> DriftReport:
    """Log the drift, and keep its issue if the settings ask for one. GitHub failures are logged, not raised."""
    if finding is None:
        return DriftReport()
    drift, branch = finding.drift, step.plan.baseline.branch
    names = list_degraded_names(drift)
    if names:
        log.warn(f"the branch {branch} got worse over several runs: {', '.join(names)}", "see the job summary")
    url = ""
    if step.settings.drift_issue:
        try:
            url = _publish_issue(step, finding, branch, context, log) or ""
        except GitHubError as error:
            log.record_loss("The drift issue was not updated", error)
    return DriftReport(render_summary_part(drift, branch, context, url or None), names, url)


def _publish_issue(step: Step, finding: BranchDrift, branch: str, context: ReportContext, log: StepLog) -> str | None:
    client, key, drift = step.client, step.publication.maker.gate, finding.drift
    issue = find_issue(client, key)
    if has_newer_run(client, step.environment.workflow_path, branch, step.environment.run_id):
        log.record("the drift issue is left to a newer run")
        return issue.url if issue and issue.is_open else None
    if issue is not None and issue.is_open:
        return _update_open_issue(step, finding, context, issue, log)
    if not drift.has_degraded:
        return None
    # closing the issue by hand accepts what had degraded by then
    if issue is not None and issue.closed_at and _list_names(drift) <= finding.list_names_at(issue.closed_at):
        log.record(f"no issue: #{issue.number} is about the same, and was closed by hand")
        return None
    title, body = format_issue_title(branch, step.name), render_issue(drift, branch, context)
    new_issue = open_issue(client, key, title, body, issue)
    log.record(f"opened issue #{new_issue.number}")
    return new_issue.url


def _update_open_issue(
    step: Step, finding: BranchDrift, context: ReportContext, issue: Issue, log: StepLog
) -> str | None:
    """Update the open issue, and close it if the branch has recovered. Return its address if it stays open."""
    drift, branch, key = finding.drift, step.plan.baseline.branch, step.publication.maker.gate
    # without the runs before the issue, the history cannot show a recovery
    is_lost = not drift.can_detect or not finding.list_names_at(issue.created_at)
    body = render_issue(drift, branch, context)
    body = f"{render_lost_notice(branch)}\n\n{body}" if is_lost and not drift.has_degraded else body
    update_issue(step.client, key, format_issue_title(branch, step.name), body, issue)
    if drift.has_degraded:
        log.record(f"updated issue #{issue.number}")
        return issue.url
    if is_lost:
        log.record(f"issue #{issue.number} stays open: the history no longer has the runs before it")
        return issue.url
    close_issue(step.client, render_recovery_comment(drift, branch, context), issue)
    log.record(f"closed issue #{issue.number}: {branch} has recovered")
    return None


def _list_names(drift: Drift) -> frozenset[str]:
    return frozenset([one.name for one in drift.degradations] + [one.name for one in drift.broken_cases])
