"""What people have accepted or set aside: from the repository's file, and from comments of those who may write.

On a pull request from a fork the file is the author's own: what it adds to the base branch's is shown and does not
count. With `policy-from: base` that holds for every change, a merge group too. A relay has no files of the pull request
and takes the base branch's. Comments are read only when something failed that they could be about.
"""

from __future__ import annotations

from datetime import UTC, date, datetime

from eval_gate.action.inputs import ReportedSide
from eval_gate.action.log import Log
from eval_gate.action.plan import Mode
from eval_gate.action.step import Step
from eval_gate.action.trust.base import path_in_repository, trusted_branch
from eval_gate.config.settings import RunConfig
from eval_gate.errors import GateError
from eval_gate.gate.waivers.file import DEFAULT_PATH, KnownWaivers, known_waivers, marked_new, parse_waivers
from eval_gate.github.client import Client
from eval_gate.github.commits import file_at
from eval_gate.github.failure import GitHubError
from eval_gate.github.waiver_comments import Discussion, read_comment_waivers
from eval_gate.reports.words.numbers import count
from eval_gate.struct import replace


def waivers_from_file(step: Step, config: RunConfig, log: Log) -> KnownWaivers:
    """What the file says that counts for this step. Raises GateError for one of ours that is wrong."""
    plan, path, today = step.plan, config.policy.accepted or DEFAULT_PATH, datetime.now(UTC).date()
    known = KnownWaivers(today, trusted=False)
    if plan.mode is not Mode.RELAY:
        known = known_waivers(config, step.environment.workspace, today)
        if plan.rules_branch is None or not known.waivers:
            return known
        by_base = step.settings.policy_from is ReportedSide.BASE
        known = replace(known, trusted=not (plan.from_fork or by_base))
    path = path_in_repository(step, path)
    try:
        branch = trusted_branch(step) or plan.rules_branch
    except GitHubError as error:
        said = f"what the branch says in {path} could not be told: {error}"
        return replace(known, troubles=(*known.troubles, said))
    if branch is not None and plan.mode is Mode.RELAY:
        known = known.with_more(read_base(step.client, path, branch, today))
    elif branch is not None:
        known = compare_with_base(step.client, known, path, branch)
    if known.waivers:
        log.did(f"read {count(len(known.waivers), 'entry', 'entries')} of accepted failures and quarantine")
    return known


def with_comments(step: Step, waivers: KnownWaivers, log: Log) -> KnownWaivers:
    """The same with what was accepted in comments of the pull request. GitHub not answering accepts nothing."""
    plan = step.plan
    if plan.pull_number is None:
        return waivers
    asked = Discussion(plan.pull_number, plan.head_sha, waivers.today, step.settings.accept_label)
    found = read_comment_waivers(step.client, asked)
    if found.waivers or found.refusals:
        log.did(f"read {count(len(found.waivers), 'acceptance')} in comments, {len(found.refusals)} not followed")
    return waivers.with_more(found)


def compare_with_base(client: Client, own: KnownWaivers, path: str, branch: str) -> KnownWaivers:
    """The waivers of the file at `path`, marked by what it says on `branch`. Asks nothing for none.

    Where GitHub does not answer, none is marked, and on a fork's pull request none counts. A file that is not valid on
    the base branch has no entries.
    """
    if not own.waivers:
        return own
    try:
        data = file_at(client, path, branch)
    except GitHubError as error:
        return replace(own, troubles=(f"which entries of {path} are new could not be told: {error}",))
    try:
        return replace(own, waivers=marked_new(own.waivers, parse_waivers(data or b"", own.today, shown_as=path)))
    except GateError as error:
        said = f"every entry of {path} counts as new, because on the base branch {error.message}"
        return replace(own, waivers=marked_new(own.waivers, ()), troubles=(said,))


def read_base(client: Client, path: str, branch: str, today: date) -> KnownWaivers:
    """The waivers of the file at `path` as it is on `branch`, for whoever has no files of the pull request at hand.

    Where it cannot be had or is not valid, nothing in it counts.
    """
    try:
        data = file_at(client, path, branch)
        waivers = parse_waivers(data or b"", today, shown_as=path)
    except (GitHubError, GateError) as error:
        return KnownWaivers(today, troubles=(f"nothing in {path} counts: {error}",))
    return KnownWaivers(today, marked_new(waivers, waivers))
