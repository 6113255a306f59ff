"""What people have accepted or set aside: from the repository's file, and from comments of those who may write.

On a pull request from a fork the file is the author's own: what it adds to the base branch's is shown and does not
count. A relay has no files of the pull request and takes the base branch's. Comments are read only when something
failed that they could be about.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from eval_gate.action.log import Log
from eval_gate.action.plan import Mode
from eval_gate.action.step import Step
from eval_gate.config.settings import RunConfig
from eval_gate.gate.waivers.file import DEFAULT_PATH
from eval_gate.gate.waivers.known import Pardons, pardons_of
from eval_gate.github.waivers.base import compare_with_base, read_base
from eval_gate.github.waivers.found import Question, read_acceptances
from eval_gate.model.waiver import Waiver
from eval_gate.reports.words.numbers import count


def pardons_from_file(step: Step, config: RunConfig, log: Log) -> Pardons:
    """What the file says that counts for this step. Raises GateError for one of ours that is wrong."""
    plan, path, today = step.plan, config.accepted_path or DEFAULT_PATH, datetime.now(UTC).date()
    if plan.mode is Mode.RELAY:
        if plan.base_branch is None:
            return Pardons(today)
        found = read_base(step.client, path, plan.base_branch, today)
        return _with(Pardons(today, trusted=False), found.waivers, found.trouble, log)
    own = pardons_of(config, step.environment.workspace, today)
    if plan.base_branch is None or not own.waivers:
        return own
    found = compare_with_base(step.client, own.waivers, path, plan.base_branch, today)
    return _with(replace(own, trusted=not plan.from_fork), found.waivers, found.trouble, log)


def with_comments(step: Step, pardons: Pardons, log: Log) -> Pardons:
    """The same with what was accepted in comments of the pull request. GitHub not answering accepts nothing."""
    plan = step.plan
    if plan.pull_number is None:
        return pardons
    asked = Question(plan.pull_number, plan.head_sha, pardons.today, step.settings.accept_label)
    found = read_acceptances(step.client, asked)
    if found.waivers or found.refusals:
        log.did(f"read {count(len(found.waivers), 'acceptance')} in comments, {len(found.refusals)} not followed")
    return replace(
        pardons,
        waivers=(*pardons.waivers, *found.waivers),
        refusals=(*pardons.refusals, *found.refusals),
        troubles=(*pardons.troubles, *found.troubles),
    )


def _with(pardons: Pardons, waivers: tuple[Waiver, ...], trouble: str | None, log: Log) -> Pardons:
    if waivers:
        log.did(f"read {count(len(waivers), 'entry', 'entries')} of accepted failures and quarantine")
    return replace(pardons, waivers=waivers, troubles=(*pardons.troubles, *((trouble,) if trouble else ())))
