"""The pull request story on one page: plan, find the baseline, run, compare, judge, publish, exit.

It always publishes before it fails, and it exits by the verdict alone: what GitHub does to our publications is said,
and changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from eval_gate.action.baseline import fitting
from eval_gate.action.configuration import read_config
from eval_gate.action.context import context_of
from eval_gate.action.inputs import ControlTiming, guess_inputs, read_inputs
from eval_gate.action.judged_run import get_result, load_engine, makes_whole, session_of
from eval_gate.action.log import Log
from eval_gate.action.lookups import Lookups
from eval_gate.action.plan import Mode
from eval_gate.action.publishing.drift import drift_in
from eval_gate.action.publishing.publish import (
    FinishedRun,
    RunFiles,
    StepEnd,
    publish,
    publish_nothing_yet,
    put_out,
)
from eval_gate.action.relay import OtherBaseError, as_stranger, find_pull_requests
from eval_gate.action.step import Step, open_step, step_to_publish, tidied
from eval_gate.action.trouble import Around, crash, nothing_to_do, publish_error, publish_interruption
from eval_gate.action.trust.event_files import EventFiles
from eval_gate.config.outputs import ReportRequest
from eval_gate.config.settings import ControlChoice, RunConfig
from eval_gate.errors import PAGES, ExitCode, GateError, code_of_signal
from eval_gate.files.reading import RefusedReadError, checking_reads
from eval_gate.gate.control.asking import left_to_control
from eval_gate.gate.judge import judge
from eval_gate.github.commands import Commands
from eval_gate.github.environment import WorkflowEnvironment, read_environment
from eval_gate.github.files import hand_back
from eval_gate.process.ending import LAST, as_a_whole
from eval_gate.reports.console.style import ConsoleStyle
from eval_gate.reports.context import ReportContext
from eval_gate.reports.render import render
from eval_gate.session.keep import KeptRun, keep, report
from eval_gate.struct import replace
from eval_gate.targets.coding_agent import FOLDERS

PAGE = "html"
"""The report that is always written beside the record: the artifact carries it."""
_NOWHERE = frozenset({"unsafe-event", "bad-event", "no-token", "github-unavailable"})
"""Errors by which nobody knows whose commit it is, or nobody can write there."""
_BADNESS = ("", "pass", "fail", "error")
"""Verdicts, from the best to the worst."""


class _Known:
    """What is known of the step so far, for whatever ends it."""

    def __init__(self, around: Around) -> None:
        self.around = around
        self.step: Step | None = None
        """Where comment and check run belong; None as long as nothing may be written there."""

    def end(self, end: StepEnd) -> ExitCode:
        """Put out, and say how the step ends."""
        put_out(self.around.environment, end.outputs, self.around.commands)
        return end.exit_code


def run_action(variables: Mapping[str, str], *, on_host: bool = False) -> ExitCode:
    """One step of a workflow, from its environment to its exit code. Raises GateError only outside of a workflow.

    Whatever ends it is published: a defect of ours too, which is raised again when it is.
    `on_host`: it is the machine of the job, with the tools of whoever wrote the workflow, and no container.
    """
    environment = read_environment(variables)
    commands = Commands()
    known = _Known(Around(environment, variables, commands))
    try:
        os.chdir(environment.workspace)
        # until the end: only what `commands` itself writes is a command, whatever evals and agents print
        with commands.stopped(), tidied(environment) as own, ExitStack() as checks:
            return known.end(_run(known, own, checks, on_host=on_host))
    except KeyboardInterrupt as by_signal:
        # a run that is ended amid its cases is published in good order; here GitHub is waited for, or written to
        publish_interruption(environment, commands, code_of_signal(by_signal))
        raise
    except RefusedReadError as refused:
        # somebody's files say nothing of the event's commit: nothing is written there
        return known.end(publish_error(None, refused.error, known.around))
    except GateError as error:
        return known.end(publish_error(known.step, error, known.around))
    except Exception as error:
        known.end(_publish_crash(known, crash(error)))
        raise


def _publish_crash(known: _Known, error: GateError) -> StepEnd:
    """Publish it everywhere, or where that breaks as well, where it needs nobody. The log has its traceback later."""
    try:
        return publish_error(known.step, error, known.around, said=True)
    except Exception:  # noqa: BLE001 (the first one is raised, with its traceback)
        return publish_error(None, error, known.around, said=True)


def _run(known: _Known, environment: WorkflowEnvironment, checks: ExitStack, *, on_host: bool) -> StepEnd:
    variables, commands = known.around.variables, known.around.commands
    settings = guess_inputs(variables, on_host=on_host)
    for secret in (settings.token, environment.runtime_token):
        commands.mask(secret.open() if secret else "")
    try:
        settings = read_inputs(variables, on_host=on_host)
        files = EventFiles(environment, settings)
        checks.enter_context(checking_reads(files.check_read))
        config = read_config(settings, variables, environment.workspace)
        step = open_step(environment, settings)
        if step.plan.mode is not Mode.NOTHING:
            files.check_places(config, settings)
            files.confirm_configuration(step)
    except GateError as error:
        if error.code not in _NOWHERE:
            known.step = step_to_publish(environment, settings)
        raise

    def give() -> None:
        # folders become more while it runs
        made = [Path(config.output_dir), *(one.file for one in config.files if one.file), *FOLDERS]
        hand_back([environment.workspace / path for path in made], environment.workspace)

    LAST.add(give)  # whoever is in a hurry gets their files all the same
    try:
        return _act(known, step, config, Log(commands, step.plan.read_only))
    finally:
        step.client.close()
        with as_a_whole():
            give()
            LAST.discard(give)


def run_publish(variables: Mapping[str, str]) -> ExitCode:
    """The same where only a relay makes sense. Raises GateError only outside of a workflow."""
    environment = read_environment(variables)
    event = environment.event_name
    if event == "workflow_run":
        return run_action(variables)
    error = GateError(
        "wrong-event",
        f"publish is for workflows started by workflow_run, not by {event}",
        f"{PAGES}/forks.md shows both workflows; for everything else there is `eval-gate action`",
    )
    known = _Known(Around(environment, variables, Commands()))
    return known.end(publish_error(None, error, known.around))


def _act(known: _Known, step: Step, config: RunConfig, log: Log) -> StepEnd:
    for reason in step.plan.reasons:
        log.did(reason)
    steps: tuple[Step, ...] = (step,) if step.plan.mode is Mode.GATE else ()
    if step.plan.mode is Mode.RELAY:
        # until GitHub confirms what the event says, nothing is written on its commit
        steps = find_pull_requests(step, log)
    ends, others = [], []
    for one in steps:
        try:
            ends.append(_ended(known, one, config, log.copy()))
        except OtherBaseError as error:
            others.append((one, error))
    # where the run is another pull request's, what is known of this one by its own run counts
    told = [publish_error(as_stranger(one) if ends else one, error, known.around) for one, error in others]
    # of several pull requests with one head the worst is what the step says
    worst = max(ends or told, key=lambda end: (end.exit_code, _BADNESS.index(end.outputs["verdict"])), default=None)
    return worst or nothing_to_do(step, log)


def _ended(known: _Known, step: Step, config: RunConfig, log: Log) -> StepEnd:
    """How it ends for one commit or pull request, whatever becomes of others. Raises OtherBaseError alone."""
    known.step = step
    try:
        return _published(step, config, known.around.variables, log)
    except OtherBaseError:
        raise
    except GateError as error:
        return publish_error(step, error, known.around)


def _published(step: Step, config: RunConfig, variables: Mapping[str, str], log: Log) -> StepEnd:
    """Raises GateError, as TakenError where another leg of this run has published under the same name."""
    asked = Lookups(step, config, variables, log)
    load_engine(step)
    asked.second.result()
    step, finished, context = _gate(step, asked, config, variables, log)
    if finished.left:
        return publish_nothing_yet(step, finished, context, log)
    end = publish(step, finished, context, log)
    # a relay has done its work when it has published: the verdict is on the pull request's own commit
    return replace(end, exit_code=ExitCode.PASSED) if step.plan.mode is Mode.RELAY else end


def _gate(
    step: Step, asked: Lookups, config: RunConfig, variables: Mapping[str, str], log: Log
) -> tuple[Step, FinishedRun, ReportContext]:
    """Everything between the plan and its publication. A baseline that was named comes before the cases."""
    ruled = asked.ruled.result()
    later = step.settings.control is ControlTiming.LATER and step.plan.mode is Mode.GATE and makes_whole(step)
    if later:
        ruled = replace(ruled, config=replace(ruled.config, control=ControlChoice()))
    session = session_of(step, ruled.config, asked, variables, log)
    made = get_result(step, session, asked, log)
    step = replace(step, partial=bool(made.result.selections))
    # of an interrupted run they are there in a moment, or are not waited for
    origin = fitting(asked.origin(), made.result, log)
    question = replace(session.question, baseline=origin.baseline)
    session = replace(session, question=question, later_question=None)
    judged = judge(made.result, session.question)
    context = replace(context_of(step, variables, origin, judged), unused_rules=ruled.unused, evals=ruled.config.evals)
    # a relay keeps nothing of what it was given
    kept = None if step.plan.mode is Mode.RELAY else keep(session, judged, made)
    files = _kept(session.config.files, kept, context) if kept else None
    shown = replace(context, result_path=str(files.record)) if files else context
    log.commands.say(render("console", judged, shown, style=ConsoleStyle()).rstrip())
    drift = drift_in(step, kept.record, config.policy.pass_score) if kept and not made.interrupted else None
    finished = FinishedRun(judged, files, made.interrupted, drift=drift)
    if later and finished.exit_code is ExitCode.FAILED:
        # who accepted what is asked of GitHub once: for the verdict
        heard = replace(session.question, more_waivers=None)
        finished = replace(finished, left=left_to_control(made.result, heard))
    return step, finished, context


def _kept(asked: Sequence[ReportRequest], kept: KeptRun, context: ReportContext) -> RunFiles:
    """The reports that were asked for, and the page whether it was asked for or not."""
    page = next((one for one in asked if one.format == PAGE), ReportRequest(PAGE, None))
    wanted = tuple(dict.fromkeys((*asked, page)))
    files = report(wanted, kept, context)
    return RunFiles(kept.record, files[wanted.index(page)])
