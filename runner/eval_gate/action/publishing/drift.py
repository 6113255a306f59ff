"""A run of the default branch: whether the branch got worse over its runs, in the summary, and as one issue."""

from __future__ import annotations

from pathlib import Path

from eval_gate.action.log import Log
from eval_gate.action.step import Step
from eval_gate.analysis.drift.drift import Drift, drift_of
from eval_gate.analysis.drift.report import lost_words, mended_words, names_of, render_issue, render_part, title_of
from eval_gate.github.failure import GitHubError
from eval_gate.github.issues import Issue, IssueState, close_issue, find_issue, open_issue, update_issue
from eval_gate.reports.context import ReportContext
from eval_gate.results.ledger import EMPTY
from eval_gate.results.ledger_of_run import ledger_beside
from eval_gate.struct import FrozenStruct

_MOST_NAMES = 40
"""Findings that an issue remembers, so that its text does not become too long for GitHub."""
_LONGEST_NAME = 120


class DriftReport(FrozenStruct):
    """What the summary and the outputs say. Nothing, where this is no run of the branch."""

    part: str = ""
    names: tuple[str, ...] = ()
    issue_url: str = ""


class _Text(FrozenStruct):
    """The issue as people read it."""

    title: str
    body: str
    mended: str
    """The comment with which it is closed."""


def drift_in(step: Step, record: Path, pass_score: float) -> Drift | None:
    """What is worse over the runs of the branch, by the ledger beside this record; None where it is none of them."""
    ledger = ledger_beside(record) if step.plan.on_branch and step.plan.stores else EMPTY
    return drift_of(ledger, pass_score) if ledger.runs else None


def tell(step: Step, drift: Drift | None, context: ReportContext, log: Log) -> DriftReport:
    """Say it in the log, and where it is wanted keep the issue. What GitHub refuses is said, and changes nothing."""
    if drift is None:
        return DriftReport()
    branch = step.plan.baseline.branch
    names = names_of(drift)
    if names:
        log.missed(f"{branch} got worse over its runs: {', '.join(names)}", "see the job summary")
    url = ""
    if step.settings.drift_issue:
        try:
            url = _issue(step, drift, branch, context, log) or ""
        except GitHubError as error:
            log.lost("The issue about the default branch is not up to date", error)
    return DriftReport(render_part(drift, branch, context, url or None), names, url)


def _issue(step: Step, drift: Drift, branch: str, context: ReportContext, log: Log) -> str | None:
    """The address of the open issue; None where there is none."""
    client, key, run_id = step.client, step.publication.maker.gate, step.environment.run_id
    there = find_issue(client, key)
    known = there.state if there else None
    if known is not None and known.run_id > run_id:
        log.did("the issue about the default branch is of a newer run already")
        return there.url if there and there.is_open else None
    text = _Text(
        title_of(branch, step.name), render_issue(drift, branch, context), mended_words(drift, branch, context)
    )
    names = _names(drift)
    if there is not None and there.is_open:
        return _keep(step, drift, text, IssueState(run_id=run_id, names=names), there, log)
    if not drift.anything_worse:
        return None
    if there is not None and known is not None and set(names) <= set(known.names):
        log.did(f"no issue: somebody closed #{there.number}, which is about the same")
        return None
    made = open_issue(client, key, text.title, text.body, IssueState(run_id=run_id, names=names), there)
    log.did(f"opened issue #{made.number}")
    return made.url


def _keep(step: Step, drift: Drift, text: _Text, state: IssueState, issue: Issue, log: Log) -> str | None:
    """Update the open issue, and close it where it is over; its address where it stays open."""
    known = issue.state.names if issue.state else ()
    # what was found before stays accepted by whoever closes the issue
    kept = IssueState(run_id=state.run_id, names=tuple(dict.fromkeys((*state.names, *known)))[:_MOST_NAMES])
    if drift.anything_worse:
        update_issue(step.client, step.publication.maker.gate, text.title, text.body, kept, issue)
        log.did(f"updated issue #{issue.number}")
        return issue.url
    if not drift.could_find or _out_of_sight(drift, known):
        body = f"{lost_words(step.plan.baseline.branch)}\n\n{text.body}"
        update_issue(step.client, step.publication.maker.gate, text.title, body, kept, issue)
        log.did(f"issue #{issue.number} stays open: the runs before it are on record no more")
        return issue.url
    update_issue(step.client, step.publication.maker.gate, text.title, text.body, state, issue)
    close_issue(step.client, text.mended, issue)
    log.did(f"closed issue #{issue.number}: {step.plan.baseline.branch} is as it was")
    return None


def _names(drift: Drift) -> tuple[str, ...]:
    found = (*(one.name for one in drift.worse), *(one.name for one in drift.broken))
    return tuple(name for name in found if len(name) <= _LONGEST_NAME)[:_MOST_NAMES]


def _out_of_sight(drift: Drift, names: tuple[str, ...]) -> bool:
    """Whether something that the issue is about began with a run that is on record no more."""
    return any(name.rpartition("@")[2] not in drift.run_ids for name in names)
