"""The check run on the commit, and where there is none to be had, annotations in the log."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from eval_gate.action.log import Log
from eval_gate.action.publishers import Publisher, name_taken, publisher_of
from eval_gate.action.step import Step
from eval_gate.github.checks import Annotation, CheckContent, CheckRun, Conclusion, Level, checks_named, write_check
from eval_gate.github.commands import Commands
from eval_gate.github.failure import GitHubError
from eval_gate.model.result import MadeBy
from eval_gate.reports.remarks import Remark, Remarks
from eval_gate.reports.words.numbers import count
from eval_gate.struct import FrozenStruct

_EXTERNAL_ID: Final = re.compile(
    r"([A-Za-z0-9._-]{1,200}?)\.(\d{1,18})\.(\d{1,9})(?:\.([0-9a-f]{8}(?:-[0-9a-f]{8}){2}))?", re.ASCII
)
"""Gate, run, attempt, and leg, which older versions did not write."""


NO_REMARKS: Final = Remarks()


class CheckDraft(FrozenStruct):
    """A check to be; texts are Markdown."""

    conclusion: Conclusion
    title: str
    summary: str
    page: str
    remarks: Remarks = NO_REMARKS


def check(step: Step, draft: CheckDraft, log: Log, *, first: Callable[[], object] = lambda: None) -> str | None:
    """Write the check run; its address, or None. The log says what is lost.

    `first` is waited for before anything is written, and not before it is seen under which name.
    Raises TakenError where another leg of this run has written it, and nothing else but what `first` raises.

    Remarks go where they are seen once: on the check run, else as annotations of this step.
    """
    remarks = draft.remarks if step.settings.annotations else NO_REMARKS
    if step.settings.check_run is None or not step.plan.head_sha:
        first()
        annotate(log.commands, remarks)
        return None
    try:
        wanted = _wanted(step, draft, remarks)
        first()
        written = write_check(step.client, wanted)
    except GitHubError as error:
        log.lost("No check run", error)
        annotate(log.commands, remarks)
        return None
    log.did(f"check run {wanted.name} written on {wanted.head_sha[:7]}: {wanted.conclusion.value}")
    return written.html_url


def _wanted(step: Step, draft: CheckDraft, remarks: Remarks) -> CheckContent:
    environment, ours = step.environment, step.made_by
    return CheckContent(
        name=_free_name(step, ours),
        head_sha=step.plan.head_sha,
        conclusion=draft.conclusion,
        title=draft.title,
        summary=f"{draft.summary}\n{_left_out(remarks)}.\n" if remarks.left_out else draft.summary,
        text=draft.page,
        details_url=environment.run_url,
        external_id=f"{ours.gate}.{ours.run_id}.{ours.attempt}.{ours.leg}",
        annotations=tuple(_annotation(remark) for remark in remarks.shown),
    )


def _free_name(step: Step, ours: MadeBy) -> str:
    """The first name that no other gate has on this commit. Raises GitHubError, and TakenError."""
    chosen = len(step.check_names) == 1
    for name in step.check_names:
        written = (_writer(one) for one in checks_named(step.client, name, step.plan.head_sha))
        writers = [one for one in written if one is not None]
        beside = [one for one in writers if one.run_id == ours.run_id]
        if any(_in_the_way(ours, one, chosen=chosen) for one in beside):
            raise name_taken(f"the check `{name}`", "check-run" if chosen else "comment-key")
        if chosen or not writers or writers[0].gate == ours.gate:
            return name
    return step.check_names[-1]


def _in_the_way(ours: MadeBy, theirs: MadeBy, *, chosen: bool) -> bool:
    """Whether a check of this run keeps us from writing another one of its name."""
    found = publisher_of(ours, theirs)
    return found is Publisher.ANOTHER_LEG or (chosen and found is Publisher.ANOTHER_GATE)


def _writer(check: CheckRun) -> MadeBy | None:
    """Who wrote a check of ours; None for anything else of that name."""
    match = _EXTERNAL_ID.fullmatch(check.external_id or "")
    if match is None:
        return None
    gate, run_id, attempt, leg = match.groups()
    return MadeBy(gate=gate, run_id=int(run_id), attempt=int(attempt), leg=leg)


def annotate(commands: Commands, remarks: Remarks) -> None:
    """The worst as annotations of this step; the number of the others is said."""
    for remark in remarks.shown:
        say = commands.error if remark.blocking else commands.warning
        say(remark.message, title=remark.title, file=remark.file, line=remark.line)
    if remarks.left_out:
        commands.say(f"{_left_out(remarks)}; all are in the job summary")


def _left_out(remarks: Remarks) -> str:
    return f"{count(remarks.left_out, 'more case')} {'is' if remarks.left_out == 1 else 'are'} not annotated"


def _annotation(remark: Remark) -> Annotation:
    level = Level.FAILURE if remark.blocking else Level.WARNING
    return Annotation(remark.file, remark.line, level, remark.title, remark.message)
