"""Waivers that count for a step: from the repository's file and from comments of maintainers.

On a pull request from a fork the file is the author's own: what it adds to the base branch's is shown and does not
count. With `policy-from: base` that holds for every change, a merge group too. A relay has no files of the pull request
and takes the base branch's. Comments are read only when something failed that they could be about.
"""

from __future__ import annotations

from datetime import UTC, date, datetime

from eval_gate.action.inputs import TrustedSide
from eval_gate.action.step import Step
from eval_gate.action.step_log import StepLog
from eval_gate.action.step_plan import StepMode
from eval_gate.action.trust.base_branch import find_trusted_branch, resolve_repository_path
from eval_gate.config.settings import RunConfig
from eval_gate.errors import GateError
from eval_gate.gate.waivers.waiver_file import (
    DEFAULT_PATH,
    KnownWaivers,
    load_waivers,
    mark_added_waivers,
    parse_waivers,
)
from eval_gate.github.client import GitHubClient
from eval_gate.github.commits import fetch_file
from eval_gate.github.failure import GitHubError
from eval_gate.github.waiver_comments import Discussion, read_comment_waivers
from eval_gate.struct import replace
from eval_gate.text.escape import format_count


def load_file_waivers(step: Step, config: RunConfig, log: StepLog) -> KnownWaivers:
    """Load the waivers of the file that count. Raises GateError if the file in the workspace is invalid."""
    plan, path, today = step.plan, config.policy.waivers or DEFAULT_PATH, datetime.now(UTC).date()
    file_waivers = KnownWaivers(today, trusted=False)
    if plan.mode is not StepMode.RELAY:
        file_waivers = load_waivers(config, step.environment.workspace, today)
        if plan.rules_branch is None or not file_waivers.waivers:
            return file_waivers
        by_base = step.settings.policy_from is TrustedSide.BASE
        file_waivers = replace(file_waivers, trusted=not (plan.from_fork or by_base))
    path = resolve_repository_path(step, path)
    try:
        branch = find_trusted_branch(step) or plan.rules_branch
    except GitHubError as error:
        trouble = f"cannot read {path} on the base branch: {error}"
        return replace(file_waivers, troubles=(*file_waivers.troubles, trouble))
    if branch is not None and plan.mode is StepMode.RELAY:
        file_waivers = file_waivers.merge(read_base_waivers(step.client, path, branch, today))
    elif branch is not None:
        file_waivers = mark_new_waivers(step.client, file_waivers, path, branch)
    if file_waivers.waivers:
        log.record(f"read {format_count(len(file_waivers.waivers), 'entry', 'entries')} of waivers and quarantine")
    return file_waivers


def add_comment_waivers(step: Step, waivers: KnownWaivers, log: StepLog) -> KnownWaivers:
    """Return the waivers with those from comments of the pull request; none of these if GitHub does not answer."""
    plan = step.plan
    if plan.pull_number is None:
        return waivers
    discussion = Discussion(plan.pull_number, plan.head_sha, waivers.today, step.settings.waive_label)
    entries = read_comment_waivers(step.client, discussion)
    if entries.waivers or entries.refusals:
        log.record(f"read {format_count(len(entries.waivers), 'waiver')} in comments, refused {len(entries.refusals)}")
    return waivers.merge(entries)


def mark_new_waivers(client: GitHubClient, own: KnownWaivers, path: str, branch: str) -> KnownWaivers:
    """Mark the waivers of the file at `path` that are new compared with `branch`.

    Without waivers, GitHub is not read. If GitHub does not answer, no waiver is marked, and on a fork's pull
    request none counts. A file that is invalid on the base branch has no entries.
    """
    if not own.waivers:
        return own
    try:
        data = fetch_file(client, path, branch)
    except GitHubError as error:
        return replace(own, troubles=(f"cannot check which entries of {path} are new: {error}",))
    try:
        return replace(
            own, waivers=mark_added_waivers(own.waivers, parse_waivers(data or b"", own.today, shown_as=path))
        )
    except GateError as error:
        trouble = f"every entry of {path} counts as new, because on the base branch {error.message}"
        return replace(own, waivers=mark_added_waivers(own.waivers, ()), troubles=(trouble,))


def read_base_waivers(client: GitHubClient, path: str, branch: str, today: date) -> KnownWaivers:
    """Read the waivers of `path` on `branch` alone; a file that is unavailable or invalid gives a sentence instead."""
    try:
        data = fetch_file(client, path, branch)
        waivers = parse_waivers(data or b"", today, shown_as=path)
    except (GitHubError, GateError) as error:
        return KnownWaivers(today, troubles=(f"{path} is ignored: {error}",))
    return KnownWaivers(today, mark_added_waivers(waivers, waivers))
