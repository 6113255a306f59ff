"""The check run on the commit, and where there is none to be had, annotations in the log."""

from __future__ import annotations

from dataclasses import dataclass

from runner.action.log import Log
from runner.action.step import Step
from runner.github.checks import Annotation, Check, Conclusion, Level, write_check
from runner.github.commands import MAX_ANNOTATIONS, Commands
from runner.github.failure import GitHubError
from runner.reports.remarks import Remark


@dataclass(frozen=True, slots=True)
class CheckDraft:
    """A check to be; texts are Markdown."""

    conclusion: Conclusion
    title: str
    summary: str
    page: str
    remarks: tuple[Remark, ...] = ()


def check(step: Step, draft: CheckDraft, log: Log) -> str | None:
    """Write the check run; its address, or None. Never raises: the log says what is lost.

    Remarks go where they are seen once: on the check run, else as annotations of this step.
    """
    remarks = draft.remarks if step.settings.annotations else ()
    if step.settings.check_run is None or not step.plan.head_sha:
        annotate(log.commands, remarks)
        return None
    environment = step.environment
    wanted = Check(
        name=step.settings.check_run,
        head_sha=step.plan.head_sha,
        conclusion=draft.conclusion,
        title=draft.title,
        summary=draft.summary,
        text=draft.page,
        details_url=environment.run_url,
        external_id=f"{step.key}.{environment.run_id}.{environment.run_attempt}",
        annotations=tuple(_annotation(remark) for remark in remarks),
    )
    try:
        written = write_check(step.client, wanted)
    except GitHubError as error:
        log.lost("No check run", error)
        annotate(log.commands, remarks)
        return None
    if written.missing is not None:
        log.lost("Not all annotations", written.missing)
    log.did(f"check run {wanted.name} written on {wanted.head_sha[:7]}: {wanted.conclusion.value}")
    return written.html_url


def annotate(commands: Commands, remarks: tuple[Remark, ...]) -> None:
    """As many as the runner keeps, the worst first; the number of the others is said."""
    blocking = [remark for remark in remarks if remark.blocking]
    others = [remark for remark in remarks if not remark.blocking]
    for remark in blocking[:MAX_ANNOTATIONS]:
        commands.error(remark.message, title=remark.title, file=remark.file, line=remark.line)
    for remark in others[:MAX_ANNOTATIONS]:
        commands.warning(remark.message, title=remark.title, file=remark.file, line=remark.line)
    left_out = max(len(blocking) - MAX_ANNOTATIONS, 0) + max(len(others) - MAX_ANNOTATIONS, 0)
    if left_out:
        commands.say(f"{left_out} more cases are in the job summary")


def _annotation(remark: Remark) -> Annotation:
    level = Level.FAILURE if remark.blocking else Level.WARNING
    return Annotation(remark.file, remark.line, level, remark.title, remark.message)
