"""Drift of the default branch over its runs: summary section and issue."""

from __future__ import annotations

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
from eval_gate.github.failure import GitHubError
from eval_gate.github.issues import Issue, IssueState, close_issue, find_issue, open_issue, update_issue
from eval_gate.reports.context import ReportContext
from eval_gate.results.history import EMPTY_HISTORY
from eval_gate.results.run_history import find_history
from eval_gate.struct import FrozenStruct

_MAX_NAMES = 40
"""Findings that an issue remembers, so that its text does not become too long for GitHub."""
_MAX_NAME_LENGTH = 120


class DriftReport(FrozenStruct):
    """Drift as summary and outputs report it; empty for runs outside the branch."""

    part: str = ""
    names: tuple[str, ...] = ()
    issue_url: str = ""


class _IssueText(FrozenStruct):
    """Title and text of the issue."""

    title: str
    body: str
    closing_comment: str
    """The comment with which it is closed."""


def compute_branch_drift(step: Step, record: Path, pass_score: float) -> Drift | None:
    """Compute how the branch degraded over its runs, from the history stored next to the run result.

    Returns None if the run is not one of the baseline branch, or if there is no history.
    """
    ledger = find_history(record) if step.plan.is_on_baseline_branch and step.plan.can_store else EMPTY_HISTORY
    return find_drift(ledger, pass_score) if ledger.runs else None


def publish_drift(step: Step, drift: Drift | None, context: ReportContext, log: StepLog) -> DriftReport:
    """Say it in the log, and where it is wanted keep the issue. What GitHub refuses is said, and changes nothing."""
    if drift is None:
        return DriftReport()
    branch = step.plan.baseline.branch
    names = list_degraded_names(drift)
    if names:
        log.warn(f"the branch {branch} got worse over several runs: {', '.join(names)}", "see the job summary")
    url = ""
    if step.settings.drift_issue:
        try:
            url = _publish_issue(step, drift, branch, context, log) or ""
        except GitHubError as error:
            log.record_loss("The drift issue was not updated", error)
    return DriftReport(render_summary_part(drift, branch, context, url or None), names, url)


def _publish_issue(step: Step, drift: Drift, branch: str, context: ReportContext, log: StepLog) -> str | None:
    """Create, update or close the drift issue of the branch, and return its address if it is open."""
    client, key, run_id = step.client, step.publication.maker.gate, step.environment.run_id
    there = find_issue(client, key)
    known = there.state if there else None
    if known is not None and known.run_id > run_id:
        log.record("the drift issue already shows a newer run")
        return there.url if there and there.is_open else None
    text = _IssueText(
        format_issue_title(branch, step.name),
        render_issue(drift, branch, context),
        render_recovery_comment(drift, branch, context),
    )
    names = _list_names(drift)
    if there is not None and there.is_open:
        return _update_open_issue(step, drift, text, IssueState(run_id=run_id, names=names), there, log)
    if not drift.has_degraded:
        return None
    if there is not None and known is not None and set(names) <= set(known.names):
        log.record(f"no issue: #{there.number} is about the same, and was closed by hand")
        return None
    made = open_issue(client, key, text.title, text.body, IssueState(run_id=run_id, names=names), there)
    log.record(f"opened issue #{made.number}")
    return made.url


def _update_open_issue(
    step: Step, drift: Drift, text: _IssueText, state: IssueState, issue: Issue, log: StepLog
) -> str | None:
    """Update the open issue, and close it where it is over; its address where it stays open."""
    known = issue.state.names if issue.state else ()
    # what was found before stays accepted by whoever closes the issue
    kept = IssueState(run_id=state.run_id, names=tuple(dict.fromkeys((*state.names, *known)))[:_MAX_NAMES])
    if drift.has_degraded:
        update_issue(step.client, step.publication.maker.gate, text.title, text.body, kept, issue)
        log.record(f"updated issue #{issue.number}")
        return issue.url
    if not drift.can_detect or _is_out_of_history(drift, known):
        body = f"{render_lost_notice(step.plan.baseline.branch)}\n\n{text.body}"
        update_issue(step.client, step.publication.maker.gate, text.title, body, kept, issue)
        log.record(f"issue #{issue.number} stays open: the history no longer has the runs before it")
        return issue.url
    update_issue(step.client, step.publication.maker.gate, text.title, text.body, state, issue)
    close_issue(step.client, text.closing_comment, issue)
    log.record(f"closed issue #{issue.number}: {step.plan.baseline.branch} has recovered")
    return None


def _list_names(drift: Drift) -> tuple[str, ...]:
    found = (*(one.name for one in drift.degradations), *(one.name for one in drift.broken_cases))
    return tuple(name for name in found if len(name) <= _MAX_NAME_LENGTH)[:_MAX_NAMES]


def _is_out_of_history(drift: Drift, names: tuple[str, ...]) -> bool:
    """Whether something that the issue is about began with a run that is on record no more."""
    return any(name.rpartition("@")[2] not in drift.run_ids for name in names)
