"""A step that ends without a run to speak of, whatever the reason: the explanation is published all the same."""

from __future__ import annotations

import os
from collections.abc import Mapping

from eval_gate import __version__
from eval_gate.action.context import context_of
from eval_gate.action.log import Log
from eval_gate.action.precedence import TakenError
from eval_gate.action.publishing.check import CheckDraft
from eval_gate.action.publishing.comment import Draft
from eval_gate.action.publishing.publish import StepEnd, comment_and_check, outputs_of, put_out, summarise
from eval_gate.action.step import Step
from eval_gate.errors import ExitCode, GateError, exhausted
from eval_gate.github.checks import Conclusion
from eval_gate.github.commands import Commands
from eval_gate.github.environment import WorkflowEnvironment
from eval_gate.model.comparison import Outcome
from eval_gate.process.environment import secrets_in
from eval_gate.reports.check import problem_title
from eval_gate.reports.context import ReportContext
from eval_gate.reports.markdown import render_problem
from eval_gate.reports.words.problems import error_lines
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.escape import plain
from eval_gate.text.redact import Redactor


class Around(FrozenStruct):
    """What there is however early a step ends."""

    environment: WorkflowEnvironment
    variables: Mapping[str, str]
    commands: Commands


def publish_error(step: Step | None, error: GateError, around: Around, *, said: bool = False) -> StepEnd:
    """Publish why a step ends without a run to speak of: everywhere it can be seen, so that no result of before stays.

    Without a step, and for what is another leg's, in summary and outputs alone. `said`: the log has it from elsewhere.
    """
    error.mask(Redactor(secrets_in(os.environ)))
    _say(error, around.commands, said=said)
    if step is not None and not isinstance(error, TakenError):
        log = Log(around.commands, step.plan.read_only)
        try:
            return _publish_trouble(step, error, around.variables, log)
        except TakenError as taken:  # what is there is another leg's: nothing is written beside it
            return publish_error(None, taken, around)
    context = ReportContext(run_url=around.environment.run_url)
    summarise(around.environment, render_problem(error, context, _heading(error)), around.commands)
    return StepEnd(error.exit_code, outputs_of(None, Outcome.ERROR, error.exit_code))


def publish_interruption(environment: WorkflowEnvironment, commands: Commands, code: ExitCode) -> None:
    """What needs no network, where a step is cancelled before it has published: the runner kills it within seconds."""
    error = GateError(
        "not-complete",
        "the job was cancelled before everything was published",
        "re-run the job",
        exit_code=code,
    )
    end = publish_error(None, error, Around(environment, {}, commands))
    put_out(environment, end.outputs, commands)


def nothing_to_do(step: Step, log: Log) -> StepEnd:
    """The end of a step that had nothing to do: no verdict, and the summary says why."""
    words = "".join(f"- {sentence}\n" for sentence in map(plain, log.trail))
    summarise(step.environment, f"# Agent eval gate — nothing to do\n\n{words}", log.commands)
    return StepEnd(ExitCode.PASSED, {**outputs_of(None, Outcome.PASS, ExitCode.PASSED), "verdict": ""})


def crash(error: Exception) -> GateError:
    """A defect of ours, or a machine that has no more of something, as what is published of it."""
    broke = f"eval-gate {__version__} broke: {type(error).__name__}"
    found = GateError("internal", broke, "report it with the traceback in the log", exit_code=ExitCode.INCOMPLETE)
    return exhausted(error) or found


def _publish_trouble(step: Step, error: GateError, variables: Mapping[str, str], log: Log) -> StepEnd:
    """Comment, check run, summary and outputs. The check is a failure: a neutral one would satisfy.

    Raises TakenError where they are another leg's of this run.
    """
    heading, context = _heading(error), context_of(step, variables)

    def render(shown: ReportContext, _start: int) -> str:
        return render_problem(error, shown, heading, as_comment=True)

    text = render_problem(error, context, heading)
    title = problem_title(error.message, usage=error.exit_code is ExitCode.USAGE)
    published = comment_and_check(
        step,
        Draft(Outcome.ERROR, noteworthy=True, render=render),
        CheckDraft(Conclusion.FAILURE, title, text, ""),
        context,
        log,
    )
    lost = replace(context, losses=tuple(log.losses))
    summarise(step.environment, render_problem(error, lost, heading), log.commands)
    outputs = outputs_of(None, Outcome.ERROR, error.exit_code)
    urls = {"comment-url": published.comment_url or "", "check-run-url": published.check_url or ""}
    return StepEnd(error.exit_code, {**outputs, **urls})


def _heading(error: GateError) -> str:
    return "nothing was run" if error.exit_code is ExitCode.USAGE else "could not decide"


def _say(error: GateError, commands: Commands, *, said: bool) -> None:
    """The whole error in the log, unless it is said there, and its sentence where the run's page shows it."""
    for line in () if said else error_lines(error):
        commands.say(line)
    place = next((problem for problem in error.problems if problem.file), None)
    what = f"{error.message}: {error.problems[0]}" if error.problems else error.message
    commands.error(
        what,
        title=f"Eval Gate: {error.code}",
        file=place.file if place else None,
        line=(place.line if place else 0) or 0,
    )
