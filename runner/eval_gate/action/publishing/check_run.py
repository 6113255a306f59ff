"""Check run of the gate, and annotations in the log when no check run can be written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from eval_gate.action.inputs import DEFAULT_CHECK
from eval_gate.action.precedence import (
    NameTakenError,
    NewerResult,
    Publication,
    Publisher,
    build_name_taken_error,
    classify_publisher,
    is_same_leg,
    is_superseding,
)
from eval_gate.action.step import Step
from eval_gate.action.step_log import StepLog
from eval_gate.github.check_runs import (
    Annotation,
    AnnotationLevel,
    CheckConclusion,
    CheckContent,
    CheckRun,
    CheckState,
    change_check,
    copy_check_result,
    list_checks_named,
    write_check,
)
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.github.workflow_commands import WorkflowCommands
from eval_gate.model.result import ResultProducer
from eval_gate.reports.case_annotations import CaseAnnotations
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.escape import format_count

_EXTERNAL_ID: Final = re.compile(
    r"([A-Za-z0-9._-]{1,200}?)\.(\d{1,18})\.(\d{1,9})(?:\.([0-9a-f]{8}(?:-[0-9a-f]{8}){2}))?(?:\.(\d{1,18})-(\d{1,9}))?"
    r"(?:\.c(\d{1,18}))?",
    re.ASCII,
)
"""Gate, run, attempt and leg; run and attempt that made a relayed result; and the comment that shows it."""

NO_REMARKS: Final = CaseAnnotations()
_SATISFYING: Final = frozenset({CheckConclusion.SUCCESS, CheckConclusion.NEUTRAL})
"""Conclusions that satisfy a required check."""


class CheckDraft(FrozenStruct):
    """Draft of a check run. Texts are Markdown."""

    conclusion: CheckConclusion
    title: str
    summary: str
    page: str
    remarks: CaseAnnotations = NO_REMARKS
    state: CheckState | None = None


class PreviousResult(FrozenStruct):
    """Result in this gate's check run on the head before the last push."""

    sha: str
    state: CheckState | None = None
    comment_id: int | None = None


class CheckPlace(FrozenStruct):
    """Name under which the check run is written; None when none is written."""

    name: str | None = None
    comment_id: int | None = None
    """The comment that an earlier result of this gate on this commit wrote."""
    conflict: NameTakenError | None = None
    """Why none is written: another gate of this run uses the chosen name."""
    newer_result: NewerResult | None = None
    """Another result that counts on this commit."""
    doubt: GitHubError | None = None
    """Why the existing check runs are unknown. Then only a result that does not pass is written."""


class WrittenCheck(FrozenStruct):
    """Check run after publication."""

    check: CheckRun | None = None
    newer_result: NewerResult | None = None
    """The result that another run wrote there meanwhile, where it counts."""

    @property
    def url(self) -> str | None:
        """Its address."""
        return self.check.html_url if self.check else None


def publish_check(step: Step, draft: CheckDraft, log: StepLog) -> WrittenCheck:
    """Write the check run by itself. Raises NameTakenError as `find_check_place`."""
    place = find_check_place(step)
    if place.conflict is not None:
        raise place.conflict
    return write_check_at(place, step, draft, log)


def find_check_place(step: Step) -> CheckPlace:
    """Find a free name for the check run, if one is to be written. Raises NameTakenError if another leg uses it."""
    if step.settings.check_run is None or not step.plan.head_sha:
        return CheckPlace()
    try:
        return _find_free_place(step, step.publication)
    except GitHubError as error:
        # a passed check run must not stay on the commit of a result that does not pass
        return CheckPlace() if step.provisional else CheckPlace(step.check_names[0], doubt=error)


def find_previous_result(step: Step, log: StepLog) -> PreviousResult | None:
    """Find this gate's result for the head before the last push; None if it is unknown."""
    sha, ours = step.plan.previous_head_sha, step.publication.maker
    if not sha:
        return None
    try:
        for name in step.check_names:
            if latest := _find_latest(ours, list_checks_named(step.client, name, sha)):
                result, check = latest
                # this leg cannot tell whether regressions of another leg are fixed
                same = is_same_leg(ours, result.maker.leg)
                return PreviousResult(sha, check.state if same else None, result.comment_id)
    except GitHubError as error:
        log.record(f"the result of {sha[:7]} before this push is not known: {error}")
    return None


def write_check_at(
    place: CheckPlace, step: Step, draft: CheckDraft, log: StepLog, comment_id: int | None = None
) -> WrittenCheck:
    """Write the check run at its place, unless a newer result counts. Losses are logged.

    Remarks become annotations of the check run, else of this step. `comment_id` is the comment that belongs to it, if
    any. Raises NameTakenError if another leg of this run wrote one at the same time.
    """
    remarks = draft.remarks if step.settings.annotations else NO_REMARKS
    if place.doubt is not None and draft.conclusion in _SATISFYING:
        log.record_loss("No check run", place.doubt)
    elif place.name is not None and place.newer_result is None:
        content = _build_content(step, place.name, draft, remarks, comment_id)
        try:
            check = _write_content(step, content, remarks, log)
            log.record(f"check run {content.name} written on {content.head_sha[:7]}: {content.conclusion.value}")
            return WrittenCheck(check, _resolve_conflict(step, content.name, check, log))
        except GitHubError as error:
            log.record_loss("No check run", error)
    write_annotations(log.commands, remarks)
    return WrittenCheck(newer_result=place.newer_result)


def find_newer_result(step: Step, place: CheckPlace, log: StepLog) -> NewerResult | None:
    """Find the result that another run wrote there meanwhile, where it counts."""
    if place.name is None:
        return None
    try:
        return _build_newer_result(
            _find_newest(step.publication, list_checks_named(step.client, place.name, step.plan.head_sha))
        )
    except GitHubError as error:
        log.record(f"cannot check whether another run wrote the check {place.name} meanwhile: {error}")
        return None


def remember_comment(step: Step, check: CheckRun, comment_id: int, log: StepLog) -> None:
    """Store the comment's id in the check run, so that the next result finds the comment."""
    try:
        change_check(step.client, check, "signing", {"external_id": _format_signature(step.publication, comment_id)})
    except GitHubError as error:
        log.record(f"the check run does not name the comment: {error}")


def _write_content(step: Step, content: CheckContent, remarks: CaseAnnotations, log: StepLog) -> CheckRun:
    """Write the check run, without annotations if GitHub refuses one: no older result may stay on the commit."""
    try:
        return write_check(step.client, content)
    except GitHubError as error:
        if error.kind is not FailureKind.REFUSED or not content.annotations:
            raise
        check = write_check(step.client, replace(content, annotations=()))
        log.record_loss("No annotations on the check run", error)
        write_annotations(log.commands, remarks)
        return check


def _resolve_conflict(step: Step, name: str, own: CheckRun, log: StepLog) -> NewerResult | None:
    """Resolve a conflict with a check of this name written meanwhile: GitHub shows the last one, and deletes none."""
    ours = step.publication
    try:
        checks = list_checks_named(step.client, name, ours.sha)
        counts = _find_newest(ours, checks)
        if counts is not None:
            copy_check_result(step.client, own, counts[1])
            return _build_newer_result(counts)
        earlier = [(result, one) for one in checks if one.id < own.id and (result := parse_publication(one))]
        for result, one in reversed(earlier):
            if classify_publisher(ours.maker, result.maker) is Publisher.ANOTHER_LEG:
                copy_check_result(step.client, own, one)
                raise build_name_taken_error(f"the check `{name}`", "comment-key")
        if earlier and earlier[0][0].maker.gate != ours.maker.gate:
            change_check(step.client, own, "renaming", {"name": step.check_names[-1]})
            log.record(f"another gate also wrote the check {name}: this one is {step.check_names[-1]}")
    except GitHubError as error:
        log.record(f"cannot check whether another run wrote the check {name} meanwhile: {error}")
    return None


def _build_content(
    step: Step, name: str, draft: CheckDraft, remarks: CaseAnnotations, comment_id: int | None
) -> CheckContent:
    return CheckContent(
        name=name,
        head_sha=step.plan.head_sha,
        conclusion=draft.conclusion,
        title=draft.title,
        summary=f"{draft.summary}\n{_describe_left_out(remarks)}.\n" if remarks.omitted_count else draft.summary,
        text=draft.page,
        details_url=step.environment.run_url,
        external_id=_format_signature(step.publication, comment_id),
        annotations=tuple(
            Annotation(
                one.file,
                one.line,
                AnnotationLevel.FAILURE if one.blocking else AnnotationLevel.WARNING,
                one.title,
                one.message,
            )
            for one in remarks.items
        ),
        state=draft.state,
    )


def _find_free_place(step: Step, ours: Publication) -> CheckPlace:
    """Find the first check run name that no other gate uses on this commit."""
    chosen = step.settings.check_run != DEFAULT_CHECK
    for name in step.check_names:
        checks = list_checks_named(step.client, name, step.plan.head_sha)
        writers = [one.maker for one in map(parse_publication, checks) if one is not None]
        conflict = build_name_taken_error(f"the check `{name}`", "check-run" if chosen else "comment-key")
        publishers = {classify_publisher(ours.maker, one) for one in writers if one.run_id == ours.maker.run_id}
        if Publisher.ANOTHER_LEG in publishers:
            raise conflict
        if chosen and Publisher.ANOTHER_GATE in publishers:
            return CheckPlace(conflict=conflict)
        if step.provisional and ours.maker.gate not in {one.gate for one in writers}:
            continue
        if not writers or writers[0].gate == ours.maker.gate:
            own = _find_latest(ours.maker, checks)
            newer = _build_newer_result(_find_newest(ours, checks))
            return CheckPlace(name, own[0].comment_id if own else None, newer_result=newer)
    return CheckPlace() if step.provisional else CheckPlace(step.check_names[-1])


def _find_newest(ours: Publication, checks: Iterable[CheckRun]) -> tuple[Publication, CheckRun] | None:
    """Find the newest result that takes precedence over this one, with its check run."""
    return next((one for one in _list_results(checks) if is_superseding(one[0], ours, ours.sha)), None)


def _find_latest(ours: ResultProducer, checks: Iterable[CheckRun]) -> tuple[Publication, CheckRun] | None:
    return next((one for one in _list_results(checks) if one[0].maker.gate == ours.gate), None)


def _list_results(checks: Iterable[CheckRun]) -> list[tuple[Publication, CheckRun]]:
    """List the results that check runs of Eval Gate show, the newest first; cancelled ones do not count."""
    counting = (one for one in checks if one.conclusion != CheckConclusion.CANCELLED)
    results = [(result, one) for one in counting if (result := parse_publication(one))]
    return sorted(results, key=lambda pair: pair[0].order, reverse=True)


def _build_newer_result(result: tuple[Publication, CheckRun] | None) -> NewerResult | None:
    return NewerResult(result[0].order[0], result[1].conclusion in _SATISFYING) if result else None


def _format_signature(ours: Publication, comment_id: int | None) -> str:
    maker, judged = ours.maker, ours.source_run
    leg = f".{maker.leg}" if maker.leg else ""
    relayed = f".{judged[0]}-{judged[1]}" if judged else ""
    comment = f".c{comment_id}" if comment_id else ""
    return f"{maker.gate}.{maker.run_id}.{maker.attempt}{leg}{relayed}{comment}"


def parse_publication(check: CheckRun) -> Publication | None:
    """Parse the result that a check run of Eval Gate shows. Returns None for any other check run of that name."""
    match = _EXTERNAL_ID.fullmatch(check.external_id or "")
    if match is None:
        return None
    gate, run_id, attempt, leg, judged, judged_attempt, comment = match.groups()
    maker = ResultProducer(gate=gate, run_id=int(run_id), attempt=int(attempt), leg=leg)
    source = (int(judged), int(judged_attempt)) if judged else None
    return Publication(maker, check.head_sha, source, int(comment) if comment else None)


def write_annotations(commands: WorkflowCommands, remarks: CaseAnnotations) -> None:
    """Annotate this step with the most severe problems of cases, and log how many are omitted."""
    for remark in remarks.items:
        say = commands.write_error if remark.blocking else commands.write_warning
        say(remark.message, title=remark.title, file=remark.file, line=remark.line)
    if remarks.omitted_count:
        commands.print_line(f"{_describe_left_out(remarks)}; all are in the job summary")


def _describe_left_out(remarks: CaseAnnotations) -> str:
    return (
        f"{format_count(remarks.omitted_count, 'more case')} {'is' if remarks.omitted_count == 1 else 'are'} "
        "not annotated"
    )
