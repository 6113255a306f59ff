"""A step that ends before there is a run: the explanation is published all the same."""

from __future__ import annotations

import os

from eval_gate.action.log import Log
from eval_gate.action.publishing.check import CheckDraft
from eval_gate.action.publishing.comment import Draft
from eval_gate.action.publishing.comment_and_check import comment_and_check
from eval_gate.action.publishing.publish import outputs_of, put_out, summarise
from eval_gate.action.step import Step
from eval_gate.errors import ExitCode, GateError
from eval_gate.github.checks import Conclusion
from eval_gate.github.commands import Commands
from eval_gate.github.environment import WorkflowEnvironment
from eval_gate.model.comparison import Outcome
from eval_gate.process.environment import secrets_in
from eval_gate.reports.check import problem_title
from eval_gate.reports.context import ReportContext
from eval_gate.reports.markdown import render_problem
from eval_gate.reports.words.problems import error_lines
from eval_gate.struct import replace
from eval_gate.text.redact import Redactor


def publish_trouble(step: Step, error: GateError, context: ReportContext, log: Log) -> None:
    """Comment, check run, summary and outputs for an error. The check is a failure: a neutral one would satisfy.

    Raises TakenError where they are another leg's of this run.
    """
    _say(error, log.commands)
    heading = _heading(error)

    def render(shown: ReportContext, _start: int) -> str:
        return render_problem(error, shown, heading, as_comment=True)

    text = render_problem(error, context, heading)
    title = problem_title(error.message, usage=error.exit_code is ExitCode.USAGE)
    comment_url, check_url = comment_and_check(
        step,
        Draft(Outcome.ERROR, noteworthy=True, render=render),
        CheckDraft(Conclusion.FAILURE, title, text, ""),
        context,
        log,
    )
    lost = replace(context, losses=tuple(log.losses))
    summarise(step.environment, render_problem(error, lost, heading), log.commands)
    outputs = outputs_of(None, Outcome.ERROR, error.exit_code)
    put_out(
        step.environment, {**outputs, "comment-url": comment_url or "", "check-run-url": check_url or ""}, log.commands
    )


def publish_refusal(environment: WorkflowEnvironment, error: GateError, commands: Commands) -> None:
    """The same where inputs or event are so wrong that there is nobody to talk to GitHub: summary, outputs, log."""
    _say(error, commands)
    context = ReportContext(run_url=environment.run_url)
    summarise(environment, render_problem(error, context, _heading(error)), commands)
    put_out(environment, outputs_of(None, Outcome.ERROR, error.exit_code), commands)


def publish_interruption(environment: WorkflowEnvironment, commands: Commands, code: ExitCode) -> None:
    """What needs no network, where a step is cancelled before it has published: the runner kills it within seconds."""
    error = GateError(
        "not-complete",
        "the job was cancelled before everything was published",
        "re-run the job",
        exit_code=code,
    )
    publish_refusal(environment, error, commands)


def put_out_nothing(step: Step, commands: Commands) -> None:
    """Outputs of a step that had nothing to do: no verdict."""
    put_out(step.environment, {**outputs_of(None, Outcome.PASS, ExitCode.PASSED), "verdict": ""}, commands)


def _heading(error: GateError) -> str:
    return "nothing was run" if error.exit_code is ExitCode.USAGE else "could not decide"


def _say(error: GateError, commands: Commands) -> None:
    """The whole error in the log, and its sentence where the run's page shows it; keys of the step nowhere."""
    error.mask(Redactor(secrets_in(os.environ)))
    for line in error_lines(error):
        commands.say(line)
    place = next((problem for problem in error.problems if problem.file), None)
    what = f"{error.message}: {error.problems[0]}" if error.problems else error.message
    commands.error(
        what,
        title=f"Eval Gate: {error.code}",
        file=place.file if place else None,
        line=(place.line if place else 0) or 0,
    )
