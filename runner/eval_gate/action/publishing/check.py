"""The check run on the commit, and where there is none to be had, annotations in the log."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from eval_gate.action.inputs import DEFAULT_CHECK
from eval_gate.action.log import Log
from eval_gate.action.precedence import Overtaken, Publication, Publisher, name_taken, overtakes, publisher_of
from eval_gate.action.step import Step
from eval_gate.github.checks import (
    Annotation,
    CheckContent,
    CheckRun,
    Conclusion,
    Level,
    checks_named,
    rename_check,
    repeat_check,
    write_check,
)
from eval_gate.github.commands import Commands
from eval_gate.github.failure import GitHubError
from eval_gate.model.result import MadeBy
from eval_gate.reports.remarks import Remark, Remarks
from eval_gate.reports.words.numbers import count
from eval_gate.struct import FrozenStruct

_EXTERNAL_ID: Final = re.compile(
    r"([A-Za-z0-9._-]{1,200}?)\.(\d{1,18})\.(\d{1,9})(?:\.([0-9a-f]{8}(?:-[0-9a-f]{8}){2}))?(?:\.(\d{1,18})-(\d{1,9}))?",
    re.ASCII,
)
"""Gate, run, attempt, and leg, which older versions did not write; and run and attempt that made a relayed result."""


NO_REMARKS: Final = Remarks()


class CheckDraft(FrozenStruct):
    """A check to be; texts are Markdown."""

    conclusion: Conclusion
    title: str
    summary: str
    page: str
    remarks: Remarks = NO_REMARKS


class CheckPlace(FrozenStruct):
    """The name under which the check run is to be written; None for nowhere."""

    name: str | None = None
    overtaken: Overtaken | None = None
    """The result that counts on this commit, where it is not ours."""
    doubt: GitHubError | None = None
    """Why it is not known what is there: only a result that does not pass may be written then."""


class WrittenCheck(FrozenStruct):
    """The check run as it was left."""

    url: str | None = None
    overtaken: Overtaken | None = None
    """The result that another run wrote there meanwhile, where it counts."""


def check(step: Step, draft: CheckDraft, log: Log) -> WrittenCheck:
    """Write the check run by itself. Raises TakenError as `find_name`."""
    return check_at(find_name(step, log), step, draft, log)


def find_name(step: Step, log: Log) -> CheckPlace:
    """Under which name it is to be written; under none where none is wanted, or the log says what is lost.

    Raises TakenError where another leg of this run has written it, and nothing else.
    """
    if step.settings.check_run is None or not step.plan.head_sha:
        return CheckPlace()
    try:
        return _free_name(step, step.publication)
    except GitHubError as error:
        # whatever is there, a green one does not stay beside a result that does not pass
        return CheckPlace() if step.provisional else CheckPlace(step.check_names[0], doubt=error)


def check_at(place: CheckPlace, step: Step, draft: CheckDraft, log: Log) -> WrittenCheck:
    """Write the check run there, unless a newer result counts. The log says what is lost.

    Remarks go where they are seen once: on the check run, else as annotations of this step.
    """
    remarks = draft.remarks if step.settings.annotations else NO_REMARKS
    name = place.name
    if name is None or place.overtaken is not None:
        annotate(log.commands, remarks)
        return WrittenCheck(overtaken=place.overtaken)
    if place.doubt is not None and draft.conclusion is Conclusion.SUCCESS:
        log.lost("No check run", place.doubt)
        annotate(log.commands, remarks)
        return WrittenCheck()
    wanted = _wanted(step, name, draft, remarks)
    try:
        written = write_check(step.client, wanted)
    except GitHubError as error:
        log.lost("No check run", error)
        annotate(log.commands, remarks)
        return WrittenCheck()
    log.did(f"check run {wanted.name} written on {wanted.head_sha[:7]}: {wanted.conclusion.value}")
    return WrittenCheck(written.html_url, _settle(step, name, written, log))


def _settle(step: Step, name: str, written: CheckRun, log: Log) -> Overtaken | None:
    """Give way to what was written under this name at the same time; the result that counts where ours does not.

    GitHub shows the check that was completed last, and a check run cannot be taken away: ours gets another name beside
    another gate's, and says the same as a newer result of this gate.
    """
    ours = step.publication
    try:
        checks = checks_named(step.client, name, ours.sha)
        counts = _newest(ours, checks)
        if counts is not None:
            repeat_check(step.client, written, counts)
            return _overtaken(counts)
        before = next((found for one in checks if one.id < written.id and (found := published_by(one))), None)
        if before is not None and before.maker.gate != ours.maker.gate:
            rename_check(step.client, written, step.check_names[-1])
            log.did(f"another gate has written the check {name} too: ours is {step.check_names[-1]}")
    except GitHubError as error:
        log.did(f"whether another run has written the check {name} meanwhile is not known: {error}")
    return None


def _wanted(step: Step, name: str, draft: CheckDraft, remarks: Remarks) -> CheckContent:
    return CheckContent(
        name=name,
        head_sha=step.plan.head_sha,
        conclusion=draft.conclusion,
        title=draft.title,
        summary=f"{draft.summary}\n{_left_out(remarks)}.\n" if remarks.left_out else draft.summary,
        text=draft.page,
        details_url=step.environment.run_url,
        external_id=_signature(step.publication),
        annotations=tuple(_annotation(remark) for remark in remarks.shown),
    )


def _free_name(step: Step, ours: Publication) -> CheckPlace:
    """The first name that no other gate has on this commit. Raises GitHubError, and TakenError."""
    chosen = step.settings.check_run != DEFAULT_CHECK
    for name in step.check_names:
        checks = checks_named(step.client, name, step.plan.head_sha)
        writers = [one.maker for one in map(published_by, checks) if one is not None]
        beside = [one for one in writers if one.run_id == ours.maker.run_id]
        if any(_in_the_way(ours.maker, one, chosen=chosen) for one in beside):
            raise name_taken(f"the check `{name}`", "check-run" if chosen else "comment-key")
        if step.provisional and ours.maker.gate not in {one.gate for one in writers}:
            continue
        if not writers or writers[0].gate == ours.maker.gate:
            counts = _newest(ours, checks)
            return CheckPlace(name, _overtaken(counts) if counts else None)
    return CheckPlace() if step.provisional else CheckPlace(step.check_names[-1])


def _newest(ours: Publication, checks: Iterable[CheckRun]) -> CheckRun | None:
    """The check run of the newest result that counts instead of ours; one that was cancelled says nothing."""
    counting = [
        (theirs.order, one)
        for one in checks
        if (theirs := published_by(one))
        and overtakes(theirs, ours, ours.sha)
        and one.conclusion != Conclusion.CANCELLED
    ]
    return max(counting, key=lambda pair: pair[0])[1] if counting else None


def _overtaken(counts: CheckRun) -> Overtaken:
    theirs = published_by(counts)
    assert theirs is not None  # it counts
    return Overtaken(theirs.order[0], counts.conclusion == Conclusion.SUCCESS)


def _in_the_way(ours: MadeBy, theirs: MadeBy, *, chosen: bool) -> bool:
    """Whether a check of this run keeps us from writing another one of its name."""
    found = publisher_of(ours, theirs)
    return found is Publisher.ANOTHER_LEG or (chosen and found is Publisher.ANOTHER_GATE)


def _signature(ours: Publication) -> str:
    maker, judged = ours.maker, ours.judged
    leg = f".{maker.leg}" if maker.leg else ""
    relayed = f".{judged[0]}-{judged[1]}" if judged else ""
    return f"{maker.gate}.{maker.run_id}.{maker.attempt}{leg}{relayed}"


def published_by(check: CheckRun) -> Publication | None:
    """The result that a check of ours shows; None for anything else of that name."""
    match = _EXTERNAL_ID.fullmatch(check.external_id or "")
    if match is None:
        return None
    gate, run_id, attempt, leg, judged, judged_attempt = match.groups()
    maker = MadeBy(gate=gate, run_id=int(run_id), attempt=int(attempt), leg=leg)
    return Publication(maker, check.head_sha, (int(judged), int(judged_attempt)) if judged else None)


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
