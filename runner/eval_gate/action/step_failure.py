"""Steps that end without a run result: publish the reason everywhere."""

from __future__ import annotations

import os
from collections.abc import Mapping

from eval_gate import __version__
from eval_gate.action.precedence import NameTakenError
from eval_gate.action.publishing.check_run import CheckDraft
from eval_gate.action.publishing.comment import draft_problem
from eval_gate.action.publishing.run_publication import (
    INCONCLUSIVE_HEADING,
    StepEnd,
    build_outputs,
    publish_comment_and_check,
    write_job_summary,
    write_step_outputs,
)
from eval_gate.action.step import Step
from eval_gate.action.step_log import StepLog
from eval_gate.action.workflow_context import build_workflow_context
from eval_gate.errors import ExitCode, GateError, find_exhaustion_error
from eval_gate.github.check_runs import CheckConclusion
from eval_gate.github.workflow_commands import WorkflowCommands
from eval_gate.github.workflow_environment import WorkflowEnvironment
from eval_gate.model.comparison import Outcome
from eval_gate.process.environment import find_secrets
from eval_gate.reports.check_run import format_problem_title
from eval_gate.reports.context import ReportContext
from eval_gate.reports.markdown import render_problem
from eval_gate.reports.wording.problems import render_error
from eval_gate.struct import Struct, replace
from eval_gate.text.escape import escape_markdown
from eval_gate.text.redaction import Redactor


class StepContext(Struct):
    """Context of a step that exists however early the step ends."""

    environment: WorkflowEnvironment
    variables: Mapping[str, str]
    commands: WorkflowCommands
    step: Step | None = None
    """Where comment and check run belong; None as long as nothing may be written there."""

    def finish_step(self, end: StepEnd) -> ExitCode:
        """Write the outputs, and return the exit code of the step."""
        write_step_outputs(self.environment, end.outputs, self.commands)
        return end.exit_code


def publish_error(step: Step | None, error: GateError, context: StepContext, *, is_logged: bool = False) -> StepEnd:
    """Publish why a step ends without a run: everywhere, so that no earlier result stays visible.

    Without a step, and for a name of another leg, in summary and outputs alone. `is_logged`: the log has it already.
    """
    error.mask(Redactor(find_secrets(os.environ)))
    _log_error(error, context.commands, is_logged=is_logged)
    if step is not None and not isinstance(error, NameTakenError):
        log = StepLog(context.commands, step.plan.read_only)
        try:
            return _publish_step_error(step, error, context.variables, log)
        except NameTakenError as conflict:  # the existing check run is another leg's, and stays
            return publish_error(None, conflict, context)
    problem = render_problem(error, ReportContext(run_url=context.environment.run_url), _format_heading(error))
    write_job_summary(context.environment, problem, context.commands)
    return StepEnd(error.exit_code, build_outputs(None, Outcome.INCONCLUSIVE, error.exit_code))


def publish_interruption(environment: WorkflowEnvironment, commands: WorkflowCommands, code: ExitCode) -> None:
    """Publish without network that the step was canceled: the runner kills a canceled step within seconds."""
    error = GateError(
        "run-incomplete",
        "the job was cancelled before everything was published",
        "re-run the job",
        exit_code=code,
    )
    context = StepContext(environment, {}, commands)
    context.finish_step(publish_error(None, error, context))


def publish_nothing_to_do(step: Step, log: StepLog) -> StepEnd:
    """End a step that had nothing to do, without a gate verdict, and write the reason to the job summary."""
    words = "".join(f"- {sentence}\n" for sentence in map(escape_markdown, log.trail))
    write_job_summary(step.environment, f"# Agent eval gate — nothing to do\n\n{words}", log.commands)
    return StepEnd(ExitCode.PASSED, {**build_outputs(None, Outcome.PASSED, ExitCode.PASSED), "verdict": ""})


def build_internal_error(error: Exception) -> GateError:
    """Build the error to publish for a defect of this program or an exhausted resource."""
    broke = f"eval-gate {__version__} failed with an internal error: {type(error).__name__}"
    fault = GateError("internal-error", broke, "report it with the traceback in the log", exit_code=ExitCode.INCOMPLETE)
    return find_exhaustion_error(error) or fault


def _publish_step_error(step: Step, error: GateError, variables: Mapping[str, str], log: StepLog) -> StepEnd:
    """Publish the error everywhere; the check is a failure, because a neutral one would satisfy."""
    heading, context = _format_heading(error), build_workflow_context(step, variables)
    text = render_problem(error, context, heading)
    title = format_problem_title(error.message, usage=error.exit_code is ExitCode.USAGE)
    check = CheckDraft(CheckConclusion.FAILURE, title, text, "")
    published = publish_comment_and_check(step, draft_problem(error, heading), check, context, log)
    lost = replace(context, losses=tuple(log.losses))
    write_job_summary(step.environment, render_problem(error, lost, heading), log.commands)
    outputs = build_outputs(None, Outcome.INCONCLUSIVE, error.exit_code)
    urls = {"comment-url": published.comment_url or "", "check-run-url": published.check_url or ""}
    return StepEnd(error.exit_code, {**outputs, **urls})


def _format_heading(error: GateError) -> str:
    return "nothing ran" if error.exit_code is ExitCode.USAGE else INCONCLUSIVE_HEADING


def _log_error(error: GateError, commands: WorkflowCommands, *, is_logged: bool) -> None:
    """Log the whole error, unless `is_logged`, and annotate the step with its message."""
    for line in () if is_logged else render_error(error):
        commands.print_line(line)
    place = next((problem for problem in error.problems if problem.file), None)
    what = f"{error.message}: {error.problems[0]}" if error.problems else error.message
    commands.write_error(
        what,
        title=f"Eval Gate: {error.code}",
        file=place.file if place else None,
        line=(place.line if place else 0) or 0,
    )
