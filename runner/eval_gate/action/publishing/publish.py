"""Publishes a judged run everywhere it is to be seen, and only then is the step allowed to fail.

Each place is tried on its own. What GitHub refuses is said where it can still be said: in the next place, in the
summary, in the log. The verdict does not change by it. Of comment and check run one decision says whether this result
counts, and both are written at the same time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from eval_gate.action.inputs import OUTPUTS
from eval_gate.action.log import Log
from eval_gate.action.precedence import Overtaken, TakenError
from eval_gate.action.publishing.artifacts import Stored
from eval_gate.action.publishing.check import CheckDraft, CheckPlace, check, check_at, find_name
from eval_gate.action.publishing.comment import Draft, comment_at, draft_of, find_place
from eval_gate.action.publishing.drift import tell
from eval_gate.action.publishing.store import Storing, store_page
from eval_gate.action.step import Step
from eval_gate.analysis.drift.drift import Drift
from eval_gate.errors import ExitCode
from eval_gate.gate.pass_score import judged_as
from eval_gate.github.checks import Conclusion
from eval_gate.github.commands import Commands
from eval_gate.github.environment import WorkflowEnvironment
from eval_gate.github.files import append_summary, write_outputs
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass, Outcome
from eval_gate.model.result import RunResult
from eval_gate.reports.check import cancelled_title, render_check
from eval_gate.reports.context import ReportContext
from eval_gate.reports.facts import rates_of
from eval_gate.reports.markdown import render_problem, render_summary
from eval_gate.reports.remarks import remarks_of
from eval_gate.reports.render import render
from eval_gate.reports.view.view import view_of
from eval_gate.reports.words.problems import render_waiting, render_waiting_in_place, waiting_words
from eval_gate.session.keep import exit_code_of
from eval_gate.struct import FrozenStruct, replace

UNDECIDED: Final = "could not decide"
WAITING_TITLE: Final = "The base branch's agent is to be asked by a second step"
MOST_SUSPECTS: Final = 100
"""Ids that the output `suspects` names."""


class RunFiles(FrozenStruct):
    """What the run left in the workspace: the record, and the page."""

    record: Path
    page: Path


class FinishedRun(FrozenStruct):
    """A judged run. Without files nothing is stored: a relay keeps nothing of what it was given."""

    result: RunResult
    files: RunFiles | None
    interrupted: ExitCode | None = None
    """The exit code of the signal that ended it early, if one did."""
    left: tuple[CaseKey, ...] = ()
    """The regressions that a second step asks the base branch's agent about, before anything is published."""
    drift: Drift | None = None
    """What became worse over the runs of the branch, where this is one of them."""

    @property
    def exit_code(self) -> ExitCode:
        """How the step ends."""
        return exit_code_of(self.result, self.interrupted)

    @property
    def outcome(self) -> Outcome:
        """What the gate says; an interrupted run says nothing."""
        return self.result.verdict.outcome if self.result.verdict and not self.interrupted else Outcome.ERROR


class StepEnd(FrozenStruct):
    """How a step ends, and what it puts out."""

    exit_code: ExitCode
    outputs: Mapping[str, str]


def publish(step: Step, finished: FinishedRun, context: ReportContext, log: Log) -> StepEnd:
    """Artifacts, then comment and check run or annotations, then the summary: each can name those before it.

    How the step ends: by the verdict, and never by a pass where a newer result of this commit counts and does not pass.
    Raises TakenError where another leg of this run has published under the same name; there is a summary all the same.
    Raises GateError `base-changed` where the verdict is about another branch than the pull request goes into by now.
    """
    if finished.interrupted:
        return _publish_interrupted(step, finished, context, log)
    try:
        return _publish(step, finished, context, log)
    except TakenError:
        _leave(step, finished, context, log)
        raise


def publish_nothing_yet(step: Step, finished: FinishedRun, context: ReportContext, log: Log) -> StepEnd:
    """Summary and outputs of a red result that a second step may still turn.

    No check run, so that a required one is missing and blocks; and this step fails. Where an earlier attempt or run
    has left a comment or check run, they do not go on saying what it found. Nothing passes because the second step
    never comes.
    """
    _withdraw_earlier(step, len(finished.left), context, log)
    summarise(step.environment, render_waiting(len(finished.left)), log.commands)
    log.commands.warning(waiting_words(len(finished.left)), title="Eval Gate: not published yet")
    ids = [key.case_id for key in finished.left[:MOST_SUSPECTS]]
    outputs = {**_outputs(finished), "needs-control": "true", "suspects": json.dumps(ids)}
    return StepEnd(finished.exit_code, outputs)


def _withdraw_earlier(step: Step, suspects: int, context: ReportContext, log: Log) -> None:
    """Have what this gate published before say that a second step decides; nothing where there is nothing."""
    text = render_waiting_in_place(suspects, step.plan.head_sha, context.comment_key)
    draft = Draft(Outcome.ERROR, noteworthy=True, render=lambda _context, _start: text)
    waiting = CheckDraft(Conclusion.FAILURE, WAITING_TITLE, text, "")
    with suppress(TakenError):  # it is not ours to change
        comment_and_check(replace(step, provisional=True), draft, waiting, context, log)


def _publish(step: Step, finished: FinishedRun, context: ReportContext, log: Log) -> StepEnd:
    artifact, page = _stored(step, finished, context, log)
    context = replace(context, report_url=_url(step, artifact), page_url=_url(step, page))
    published = comment_and_check(step, draft_of(finished.result), _check_draft(finished, context), context, log)
    told = tell(step, finished.drift, context, log)
    outcome, exit_code = _standing(finished, published.overtaken)
    if exit_code is not finished.exit_code and published.overtaken is not None:
        error = published.overtaken.error(passed=True)
        log.commands.error(error.message, title=f"Eval Gate: {error.code}")
        summarise(step.environment, render_problem(error, context, UNDECIDED), log.commands)
    _leave(step, finished, context, log, told.part)
    return StepEnd(
        exit_code,
        {
            **_outputs(finished),
            "verdict": outcome.value,
            "exit-code": str(int(exit_code)),
            "drift": ", ".join(told.names),
            "drift-issue-url": told.issue_url,
            "comment-url": published.comment_url or "",
            "check-run-url": published.check_url or "",
            "artifact-id": str(artifact.id if artifact else ""),
            "report-url": context.page_url or "",
        },
    )


def _standing(finished: FinishedRun, overtaken: Overtaken | None) -> tuple[Outcome, ExitCode]:
    """What the step says in the end: a pass that a newer result contradicts is none."""
    passed = finished.outcome is Outcome.PASS
    if passed and overtaken is not None and overtaken.contradicts(passed=passed):
        return Outcome.ERROR, ExitCode.INCOMPLETE
    return finished.outcome, finished.exit_code


def _stored(step: Step, finished: FinishedRun, context: ReportContext, log: Log) -> tuple[Stored | None, Stored | None]:
    """The result and the page as artifacts. Raises TakenError where another leg has stored its result."""
    keeps = finished.files is not None and step.plan.stores
    storing = Storing(step, finished.files.record, log) if finished.files is not None and keeps else None
    page = log.begin(lambda own: store_page(step, lambda: _page(finished, context), storing, own), "storing the page")
    return storing.result() if storing is not None else None, page.result()


def _page(finished: FinishedRun, context: ReportContext) -> bytes:
    """The page of this verdict: as it was written, or made now where nothing is written. Never one that was given."""
    if finished.files:
        return finished.files.page.read_bytes()
    return render("html", finished.result, context).encode("utf-8", "replace")


def _url(step: Step, artifact: Stored | None) -> str | None:
    """Where GitHub gives an artifact to whoever may read the run: an archive to keep, a page to look at."""
    environment = step.environment
    if artifact is None:
        return None
    base = f"{environment.server_url}/{environment.repository}"
    return f"{base}/actions/runs/{environment.run_id}/artifacts/{artifact.id}"


def _publish_interrupted(step: Step, finished: FinishedRun, context: ReportContext, log: Log) -> StepEnd:
    """What needs no network first: the runner kills us within seconds. No comment, and no artifact."""
    end = StepEnd(finished.exit_code, _outputs(finished))
    _leave(step, finished, context, log)
    put_out(step.environment, end.outputs, log.commands)
    with suppress(TakenError):  # it is not ours to change
        check(step, _check_draft(finished, context), log)
    return end


def _leave(step: Step, finished: FinishedRun, context: ReportContext, log: Log, part: str = "") -> None:
    told = replace(context, losses=tuple(log.losses), trail=tuple(log.trail))
    summarise(step.environment, render_summary(view_of(finished.result, told)) + part, log.commands)


def _outputs(finished: FinishedRun) -> dict[str, str]:
    outputs = outputs_of(finished.result, finished.outcome, finished.exit_code)
    if finished.files is None:
        return outputs
    return {
        **outputs,
        "result-path": _relative(finished.files.record),
        "report-path": _relative(finished.files.page),
    }


def summarise(environment: WorkflowEnvironment, text: str, commands: Commands) -> None:
    """The job summary, where there is one; what does not fit any more is said."""
    if environment.summary_file is None:
        return
    try:
        if append_summary(environment.summary_file, text):
            return
        why = "the summaries of this job are too long together"
    except OSError as error:
        why = error.strerror or "it cannot be written"
    commands.warning(f"No job summary: {why}")


def put_out(environment: WorkflowEnvironment, outputs: Mapping[str, str], commands: Commands) -> None:
    """The step's outputs."""
    if environment.output_file is None:
        return
    try:
        write_outputs(environment.output_file, outputs)
    except OSError as error:
        commands.warning(f"No outputs: {error.strerror}")


def outputs_of(result: RunResult | None, outcome: Outcome, exit_code: ExitCode) -> dict[str, str]:
    """The outputs that come from the run as the gate counts it; numbers as text, empty where unknown."""
    outputs = dict.fromkeys((one.name for one in OUTPUTS), "")
    outputs |= {"verdict": outcome.value, "exit-code": str(int(exit_code))}
    if result is None:
        return outputs
    counted = judged_as(result)
    summary, rate = counted.summary, rates_of(counted).now
    outputs |= {
        "needs-control": "false",
        "total": str(summary.total_cases),
        "passed": str(summary.passed),
        "failed": str(summary.failed),
        "errored": str(summary.errored),
        "stale": str(sum(suite.stale for suite in result.suites)),
        "flaky": str(summary.flaky),
        "pass-rate": f"{rate:.4f}" if rate is not None else "",
        "cost-usd": f"{summary.estimated_cost_usd:.6f}" if summary.estimated_cost_usd is not None else "",
        "run-id": result.run_id,
        "baseline-run-id": result.baseline_run_id or "",
    }
    comparison = result.comparison
    if comparison is not None:
        regressions = comparison.of(CaseClass.REGRESSION)  # those that nobody accepted or set aside
        outputs["regressions"] = str(sum(change.key not in result.waived for change in regressions))
        outputs["new-passes"] = str(len(comparison.of(CaseClass.NEW_PASS)))
        outputs["baseline-sha"] = comparison.baseline.sha or ""
    return outputs


def _relative(file: Path) -> str:
    """As later steps can use it: their workspace has another path than ours."""
    return os.path.relpath(file) if file.is_absolute() and file.is_relative_to(Path.cwd()) else str(file)


def _check_draft(finished: FinishedRun, context: ReportContext) -> CheckDraft:
    view = view_of(finished.result, context)
    text = render_check(view)
    if finished.interrupted:
        return CheckDraft(Conclusion.CANCELLED, cancelled_title(view), text.summary, text.page)
    passed = finished.outcome is Outcome.PASS
    conclusion = Conclusion.SUCCESS if passed else Conclusion.FAILURE
    return CheckDraft(conclusion, text.title, text.summary, text.page, remarks_of(view))


class Published(FrozenStruct):
    """The addresses of both, None for what there is not; and the result that counts, where it is not ours."""

    comment_url: str | None = None
    check_url: str | None = None
    overtaken: Overtaken | None = None


def comment_and_check(step: Step, draft: Draft, check_draft: CheckDraft, context: ReportContext, log: Log) -> Published:
    """Publish both where this result counts, each where no newer one of this gate is. The log says what is lost.

    A comment is what anybody may edit who may write: whether the check run is written, check runs decide alone. A
    comment that shows nothing newer does not say otherwise than a check run that does.
    Raises TakenError where one of them is another leg's of this run: no check is written beside a comment that is, but
    the comment is beside a check that is.
    Raises GateError `base-changed` as `find_place`.
    """
    finding = log.begin(lambda own: find_place(step, draft, own), "where to comment")
    naming = log.begin(lambda own: find_name(step, own), "the name of the check run")
    place, taken = finding.result(), None
    try:
        name = naming.result()
    except TakenError as error:
        name, taken = CheckPlace(), error
    if name.overtaken is not None and name.overtaken.contradicts(passed=draft.outcome is Outcome.PASS):
        draft = _draft_of(name.overtaken, draft)
    commenting = log.begin(lambda own: comment_at(place.thread, step, draft, context, own), "the comment")
    checking = log.begin(lambda own: check_at(name, step, check_draft, own), "the check run")
    comment, check = commenting.result(), checking.result()
    if taken is not None:
        raise taken
    overtaken = place.overtaken or name.overtaken or comment.overtaken or check.overtaken
    if overtaken is not None:
        log.superseded(overtaken.words)
    return Published(comment.url, check.url, overtaken)


def _draft_of(overtaken: Overtaken, draft: Draft) -> Draft:
    """The comment in place of one that would contradict the result that counts."""
    error = overtaken.error(passed=draft.outcome is Outcome.PASS)

    def render(context: ReportContext, _start: int) -> str:
        return render_problem(error, context, "could not decide", as_comment=True)

    return Draft(Outcome.ERROR, noteworthy=True, render=render)
