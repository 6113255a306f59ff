"""Publication of a run result everywhere, before the step may fail.

Each place is tried separately. A refusal of GitHub is reported in the next places, the summary and the log, and does
not change the verdict. One decision for comment and check run determines whether this result counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from eval_gate.action.inputs import OUTPUTS
from eval_gate.action.precedence import NameTakenError, NewerResult
from eval_gate.action.publishing.check_run import (
    CheckDraft,
    find_check_place,
    find_newer_result,
    find_previous_result,
    publish_check,
    remember_comment,
    write_check_at,
)
from eval_gate.action.publishing.comment import (
    CommentDraft,
    add_previous_regressions,
    build_check_state,
    draft_comment,
    draft_problem,
    find_comment_place,
    keep_one_comment,
    write_comment_in,
)
from eval_gate.action.publishing.drift_issue import BranchDrift, publish_drift
from eval_gate.action.publishing.result_artifact import ResultUpload, StoredArtifact, store_page
from eval_gate.action.step import Step
from eval_gate.action.step_log import StepLog
from eval_gate.errors import ExitCode
from eval_gate.gate.pass_score import apply_recorded_pass_score
from eval_gate.github.check_runs import CheckConclusion
from eval_gate.github.runner_files import append_summary, write_outputs
from eval_gate.github.workflow_commands import WorkflowCommands
from eval_gate.github.workflow_environment import WorkflowEnvironment
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass, Outcome
from eval_gate.model.result import RunResult
from eval_gate.reports.case_annotations import build_annotations
from eval_gate.reports.check_run import format_cancelled_title, render_check_run
from eval_gate.reports.context import ReportContext
from eval_gate.reports.markdown import render_problem, render_summary
from eval_gate.reports.rendering import render
from eval_gate.reports.run_statistics import compute_pass_rates
from eval_gate.reports.view.report_view import build_view
from eval_gate.reports.wording.problems import format_waiting, render_waiting_comment, render_waiting_summary
from eval_gate.session.evaluation import get_exit_code
from eval_gate.struct import FrozenStruct, replace

INCONCLUSIVE_HEADING: Final = "inconclusive"
WAITING_TITLE: Final = "Waiting for the base agent in a second step"
MAX_SUSPECTS: Final = 100
"""Ids that the output `suspects` names."""


class RunFiles(FrozenStruct):
    """Files of the run in the workspace: run result and report page."""

    result_path: Path
    page: Path


class FinishedRun(FrozenStruct):
    """Finished run with its verdict. A relay has no files and stores nothing."""

    result: RunResult
    files: RunFiles | None
    interrupted: ExitCode | None = None
    """The exit code of the signal that ended it early, if one did."""
    pending_cases: tuple[CaseKey, ...] = ()
    """The regressions that a second step gives to the base agent, before anything is published."""
    drift: BranchDrift | None = None
    """The drift over the branch's runs, if this is one of them."""
    trend: Path | None = None
    """The folder with page and badge of the branch, if this is one of its runs."""

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the step."""
        return get_exit_code(self.result, self.interrupted)

    @property
    def outcome(self) -> Outcome:
        """The gate verdict; inconclusive for an interrupted run."""
        return self.result.verdict.outcome if self.result.verdict and not self.interrupted else Outcome.INCONCLUSIVE


class StepEnd(FrozenStruct):
    """Exit code and outputs of a step."""

    exit_code: ExitCode
    outputs: Mapping[str, str]


def publish_run(step: Step, finished: FinishedRun, context: ReportContext, log: StepLog) -> StepEnd:
    """Publish artifacts, then comment and check run or annotations, then the summary: each can name the earlier ones.

    The step ends by the verdict; it does not pass if a newer result of this commit counts and did not pass.
    Raises NameTakenError if another leg of this run has published under this name; the summary is written all the same.
    Raises GateError `base-branch-changed` if the pull request has another base branch by now.
    """
    if finished.interrupted:
        return _publish_interrupted(step, finished, context, log)
    try:
        return _publish_everywhere(step, finished, context, log)
    except NameTakenError:
        _write_run_summary(step, finished, context, log)
        raise


def publish_pending(step: Step, finished: FinishedRun, context: ReportContext, log: StepLog) -> StepEnd:
    """Publish summary and outputs of a failed result that a second step may still clear.

    No check run is written, so that a required one is missing and blocks, and this step fails: nothing passes if the
    second step never runs. An existing comment or check run of an earlier attempt or run is replaced.
    """
    _withdraw_earlier(step, len(finished.pending_cases), context, log)
    write_job_summary(step.environment, render_waiting_summary(len(finished.pending_cases)), log.commands)
    log.commands.write_warning(format_waiting(len(finished.pending_cases)), title="Eval Gate: not published yet")
    ids = [key.case_id for key in finished.pending_cases[:MAX_SUSPECTS]]
    outputs = {**_build_run_outputs(finished), "needs-base-agent": "true", "suspects": json.dumps(ids)}
    return StepEnd(finished.exit_code, outputs)


def _withdraw_earlier(step: Step, suspects: int, context: ReportContext, log: StepLog) -> None:
    """Replace this gate's earlier comment and check run, if any, by a note that a second step decides."""
    text = render_waiting_comment(suspects, step.plan.head_sha, context.comment_key)
    draft = CommentDraft(Outcome.INCONCLUSIVE, noteworthy=True, render=lambda _context, _start: text)
    waiting = CheckDraft(CheckConclusion.FAILURE, WAITING_TITLE, text, "")
    with suppress(NameTakenError):  # another leg's check run stays
        publish_comment_and_check(replace(step, provisional=True), draft, waiting, context, log)


def _publish_everywhere(step: Step, finished: FinishedRun, context: ReportContext, log: StepLog) -> StepEnd:
    artifact, page = _store_artifacts(step, finished, context, log)
    context = replace(
        context, report_url=_format_artifact_url(step, artifact), page_url=_format_artifact_url(step, page)
    )
    published = publish_comment_and_check(
        step, draft_comment(finished.result), _draft_check(finished, context), context, log
    )
    drift = publish_drift(step, finished.drift, context, log)
    outcome, exit_code = _resolve_outcome(finished, published.newer_result)
    if exit_code is not finished.exit_code and published.newer_result is not None:
        error = published.newer_result.build_error(passed=True)
        log.commands.write_error(error.message, title=f"Eval Gate: {error.code}")
        write_job_summary(step.environment, render_problem(error, context, INCONCLUSIVE_HEADING), log.commands)
    _write_run_summary(step, finished, context, log, drift.part)
    return StepEnd(
        exit_code,
        {
            **_build_run_outputs(finished),
            "verdict": outcome.value,
            "exit-code": str(int(exit_code)),
            "drift": ", ".join(drift.names),
            "drift-issue-url": drift.issue_url,
            "comment-url": published.comment_url or "",
            "check-run-url": published.check_url or "",
            "artifact-id": str(artifact.id if artifact else ""),
            "report-url": context.page_url or "",
        },
    )


def _resolve_outcome(finished: FinishedRun, overtaken: NewerResult | None) -> tuple[Outcome, ExitCode]:
    """Return the final outcome and exit code: a passed run is inconclusive if a newer result contradicts it."""
    passed = finished.exit_code is ExitCode.PASSED
    if passed and overtaken is not None and overtaken.is_contradicting(passed=passed):
        return Outcome.INCONCLUSIVE, ExitCode.INCOMPLETE
    return finished.outcome, finished.exit_code


def _store_artifacts(
    step: Step, finished: FinishedRun, context: ReportContext, log: StepLog
) -> tuple[StoredArtifact | None, StoredArtifact | None]:
    """Store the run result and the report page as artifacts; each of the two is None if it was not stored."""
    keeps = finished.files is not None and step.plan.can_store
    storing = ResultUpload(step, finished.files.result_path, log) if finished.files is not None and keeps else None
    page = log.start_work(
        lambda own: store_page(step, lambda: _render_page(finished, context), storing, own), "storing the page"
    )
    return storing.stored.get_result() if storing is not None else None, page.get_result()


def _render_page(finished: FinishedRun, context: ReportContext) -> bytes:
    """Return the report page as written or rendered here; one that was passed in with the results is never used."""
    if finished.files:
        return finished.files.page.read_bytes()
    return render("html", finished.result, context).encode("utf-8", "replace")


def _format_artifact_url(step: Step, artifact: StoredArtifact | None) -> str | None:
    """Build the URL at which GitHub downloads an archive, or shows a page."""
    environment = step.environment
    if artifact is None:
        return None
    base = f"{environment.server_url}/{environment.repository}"
    return f"{base}/actions/runs/{environment.run_id}/artifacts/{artifact.id}"


def _publish_interrupted(step: Step, finished: FinishedRun, context: ReportContext, log: StepLog) -> StepEnd:
    """Publish local output first, the check run last, and nothing else: the runner kills the process within seconds."""
    end = StepEnd(finished.exit_code, _build_run_outputs(finished))
    _write_run_summary(step, finished, context, log)
    write_step_outputs(step.environment, end.outputs, log.commands)
    with suppress(NameTakenError):  # another leg's check run stays
        publish_check(step, _draft_check(finished, context), log)
    return end


def _write_run_summary(step: Step, finished: FinishedRun, context: ReportContext, log: StepLog, part: str = "") -> None:
    context = replace(context, losses=tuple(log.losses), trail=tuple(log.trail))
    write_job_summary(step.environment, render_summary(build_view(finished.result, context)) + part, log.commands)


def _build_run_outputs(finished: FinishedRun) -> dict[str, str]:
    outputs = build_outputs(finished.result, finished.outcome, finished.exit_code)
    if finished.files is None:
        return outputs
    return {
        **outputs,
        "result-path": _format_relative_path(finished.files.result_path),
        "report-path": _format_relative_path(finished.files.page),
        "trend-path": _format_relative_path(finished.trend) if finished.trend else "",
    }


def write_job_summary(environment: WorkflowEnvironment, text: str, commands: WorkflowCommands) -> None:
    """Append to the job summary, if there is one. A summary that is too long or cannot be written causes a warning."""
    if environment.summary_file is None:
        return
    try:
        if append_summary(environment.summary_file, text):
            return
        why = "together, the summaries of this job are too long"
    except OSError as error:
        why = error.strerror or "it cannot be written"
    commands.write_warning(f"No job summary: {why}")


def write_step_outputs(
    environment: WorkflowEnvironment, outputs: Mapping[str, str], commands: WorkflowCommands
) -> None:
    """Write the step's outputs, if there is a file for them. A file that cannot be written causes a warning."""
    if environment.output_file is None:
        return
    try:
        write_outputs(environment.output_file, outputs)
    except OSError as error:
        commands.write_warning(f"No outputs: {error.strerror}")


def build_outputs(result: RunResult | None, outcome: Outcome, exit_code: ExitCode) -> dict[str, str]:
    """Build the step outputs from the run as the gate counts it. Numbers are text, and unknown values are empty."""
    outputs = dict.fromkeys((one.name for one in OUTPUTS), "")
    outputs |= {"verdict": outcome.value, "exit-code": str(int(exit_code))}
    if result is None:
        return outputs
    counted = apply_recorded_pass_score(result)
    summary, rate = counted.summary, compute_pass_rates(counted).current
    outputs |= {
        "needs-base-agent": "false",
        "total": str(summary.total_cases),
        "passed": str(summary.passed),
        "failed": str(summary.failed),
        "errored": str(summary.errored),
        "reused": str(sum(len(suite.cases) for suite in result.suites if suite.reused)),
        "stale": str(sum(suite.stale for suite in result.suites)),
        "flaky": str(summary.flaky),
        "pass-rate": f"{rate:.4f}" if rate is not None else "",
        "cost-usd": f"{summary.estimated_cost_usd:.6f}" if summary.estimated_cost_usd is not None else "",
        "run-id": result.run_id,
        "baseline-run-id": result.baseline_run_id or "",
    }
    comparison = result.comparison
    if comparison is not None:
        regressions = comparison.select_changes(CaseClass.REGRESSION)  # without waived and quarantined cases
        outputs["regressions"] = str(sum(change.key not in result.waived_keys for change in regressions))
        outputs["new-passes"] = str(len(comparison.select_changes(CaseClass.NEW_PASS)))
        outputs["baseline-sha"] = comparison.baseline.sha or ""
    return outputs


def _format_relative_path(file: Path) -> str:
    """Format the path for later steps, whose workspace may have another root."""
    return os.path.relpath(file) if file.is_absolute() and file.is_relative_to(Path.cwd()) else str(file)


def _draft_check(finished: FinishedRun, context: ReportContext) -> CheckDraft:
    view = build_view(finished.result, context)
    text = render_check_run(view)
    if finished.interrupted:
        return CheckDraft(CheckConclusion.CANCELLED, format_cancelled_title(view), text.summary, text.page)
    conclusion = CheckConclusion.SUCCESS if finished.exit_code is ExitCode.PASSED else CheckConclusion.FAILURE
    if finished.exit_code is ExitCode.PASSED and finished.outcome is not Outcome.PASSED:
        conclusion = CheckConclusion.NEUTRAL
    return CheckDraft(conclusion, text.title, text.summary, text.page, build_annotations(view))


class PublishedLinks(FrozenStruct):
    """URLs of comment and check run, and the newer result that counts instead, if any."""

    comment_url: str | None = None
    check_url: str | None = None
    newer_result: NewerResult | None = None


def publish_comment_and_check(
    step: Step, draft: CommentDraft, check_draft: CheckDraft, context: ReportContext, log: StepLog
) -> PublishedLinks:
    """Publish both, unless a newer result of this gate counts. Losses are logged.

    Which result counts, check runs decide alone, because every writer may edit a comment. The check run is written
    first: of two runs at once, the one that does not count finds the other one's check run after it has commented.
    Raises NameTakenError if another leg of this run uses the check run's name, or two gates have the same chosen name:
    the comment is then written all the same.
    Raises GateError `base-branch-changed` as `find_comment_place`.
    """
    naming = log.start_work(lambda _: find_check_place(step), "the name of the check run")
    looking = log.start_work(lambda own: find_previous_result(step, own), "the result before")
    place, previous = naming.get_result(), looking.get_result()
    comment_id = place.comment_id or (previous.comment_id if previous else None)
    thread = None if place.newer_result else find_comment_place(step, draft, log, comment_id)
    sticky_id = thread.sticky.id if thread and thread.sticky else None
    check_draft = replace(check_draft, state=build_check_state(draft, previous))
    check = write_check_at(place, step, check_draft, log, sticky_id)
    newer, url = place.newer_result or check.newer_result, None
    if newer is None:
        comment_context = add_previous_regressions(context, previous)
        own_comment = write_comment_in(thread, step, draft, comment_context, log)
        if own_comment is not None:
            newer = find_newer_result(step, place, log)
            error = newer.build_error(passed=draft.outcome is Outcome.PASSED) if newer else None
            superseded = draft_problem(error, INCONCLUSIVE_HEADING) if error else None
            sole_comment = keep_one_comment(step, own_comment, comment_id, superseded, context, log)
            url = sole_comment.url or None
            if check.check is not None and newer is None and sole_comment.id != sticky_id:
                remember_comment(step, check.check, sole_comment.id, log)
    if place.conflict is not None:
        raise place.conflict
    if newer is not None:
        log.record_superseded(newer.explanation)
    return PublishedLinks(url, check.url, newer)
