"""The pull request story on one page: plan, find the baseline, run, compare, judge, publish, exit.

It always publishes before it fails, and it exits by the verdict alone: what GitHub does to our publications is said,
and changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from eval_gate.action.baseline import get_baseline
from eval_gate.action.context import context_of
from eval_gate.action.inputs import read_inputs
from eval_gate.action.legs import TakenError
from eval_gate.action.log import Log
from eval_gate.action.opening import open_step
from eval_gate.action.plan import Mode
from eval_gate.action.publishing.publish import Finished, RunFiles, publish
from eval_gate.action.publishing.store import refuse_second
from eval_gate.action.relay import find_pull_request, relayed_result
from eval_gate.action.running import Asking, get_result, read_config, selection_of
from eval_gate.action.step import Step
from eval_gate.action.trouble import publish_refusal, publish_trouble, put_out_nothing
from eval_gate.action.trust.policy import ruled_by
from eval_gate.action.trust.variables import doorkeeper_for
from eval_gate.action.trust.waivers import waivers_from_file, with_comments
from eval_gate.config.settings import RunConfig
from eval_gate.errors import ExitCode, GateError
from eval_gate.gate.confirming import Reruns
from eval_gate.gate.evidence.past import ledger_after
from eval_gate.gate.judge import Question, judge
from eval_gate.gate.limits import Policy
from eval_gate.gate.must_pass import with_idle_patterns
from eval_gate.github.commands import Commands
from eval_gate.github.environment import WorkflowEnvironment, read_environment
from eval_gate.github.files import hand_back
from eval_gate.model.result import RunResult
from eval_gate.reports.console.style import ConsoleStyle
from eval_gate.reports.context import ReportContext
from eval_gate.reports.files import ReportRequest, asked_for, write_reports
from eval_gate.reports.render import render
from eval_gate.results.baseline import Baseline, NoBaseline
from eval_gate.results.write import write_result

PAGE = "html"
"""The report that is always written beside the record: the artifact carries it."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the result is held against and written as: read before anybody is asked anything."""

    policy: Policy
    reports: tuple[ReportRequest, ...]

    @classmethod
    def of(cls, config: RunConfig) -> Rules:
        """Raises GateError for words that are not known."""
        return cls(Policy.of(config), asked_for(config))


def run_action(variables: Mapping[str, str]) -> ExitCode:
    """One step of a workflow, from its environment to its exit code. Raises GateError only outside of a workflow."""
    environment = read_environment(variables)
    os.chdir(environment.workspace)
    commands = Commands()
    # until the end: only what `commands` itself writes is a command, whatever evals and agents print
    with commands.stopped():
        return _run(environment, variables, commands)


def _run(environment: WorkflowEnvironment, variables: Mapping[str, str], commands: Commands) -> ExitCode:
    try:
        settings = read_inputs(variables)
        for secret in (settings.token, environment.runtime_token):
            commands.mask(secret or "")
        config = read_config(settings, variables, environment.workspace)
        rules = Rules.of(config)
        step = open_step(environment, settings)
    except GateError as error:
        publish_refusal(environment, error, commands)
        return error.exit_code
    try:
        return _act(step, config, variables, Log(commands, step.plan.read_only))
    finally:
        step.client.close()
        made = [Path(config.output_dir), *(report.file for report in rules.reports if report.file)]
        hand_back([environment.workspace / path for path in made], environment.workspace)


def run_publish(variables: Mapping[str, str]) -> ExitCode:
    """The same where only a relay makes sense. Raises GateError for any event but `workflow_run`."""
    event = read_environment(variables).event_name
    if event != "workflow_run":
        raise GateError(
            "wrong-event",
            f"publish is for workflows started by workflow_run, not by {event}",
            "docs/forks.md shows both workflows; for everything else there is `eval-gate action`",
        )
    return run_action(variables)


def _act(step: Step, config: RunConfig, variables: Mapping[str, str], log: Log) -> ExitCode:
    for reason in step.plan.reasons:
        log.did(reason)
    if step.plan.mode is Mode.RELAY:
        try:
            found = find_pull_request(step, log)
        except GateError as error:
            # what the event says is not confirmed: nothing is written on its commit
            publish_refusal(step.environment, error, log.commands)
            return error.exit_code
    else:
        found = step if step.plan.mode is Mode.GATE else None
    if found is None:
        put_out_nothing(step, log.commands)
        return ExitCode.PASSED
    try:
        return _published(found, config, variables, log)
    except TakenError as error:
        # what is there is another leg's: nothing is written beside it
        publish_refusal(step.environment, error, log.commands)
        return error.exit_code


def _published(step: Step, config: RunConfig, variables: Mapping[str, str], log: Log) -> ExitCode:
    """Raises TakenError where another leg of this run has published under the same name."""
    if step.plan.mode is Mode.GATE:
        refuse_second(step)
    try:
        finished, context = _gate(step, config, variables, log)
    except GateError as error:
        publish_trouble(step, error, context_of(step, variables), log)
        return error.exit_code
    publish(step, finished, context, log)
    # a relay has done its work when it has published: the verdict is on the pull request's own commit
    return ExitCode.PASSED if step.plan.mode is Mode.RELAY else finished.exit_code


def _gate(step: Step, config: RunConfig, variables: Mapping[str, str], log: Log) -> tuple[Finished, ReportContext]:
    """Everything between the plan and its publication. The baseline comes first: a wrong one is said for nothing."""
    ruled = ruled_by(step, config, variables, log)
    config, rules, output_dir = ruled.config, Rules.of(ruled.config), Path(config.output_dir)
    origin = get_baseline(step, config, log)
    question = Question(
        origin.baseline,
        rules.policy,
        everything_selected=selection_of(step.settings).everything,
        waivers=waivers_from_file(step, config, log),
        more_waivers=lambda waivers: with_comments(step, waivers, log),
    )
    relaying = step.plan.mode is Mode.RELAY
    if relaying:
        result, interrupted = with_idle_patterns(relayed_result(step, log), config.must_pass), None
    else:
        doorkeeper = None if step.settings.results else doorkeeper_for(step, config, variables, log)
        asking = Asking(Reruns(question, config.confirm) if config.confirm else None, doorkeeper, origin.recorded)
        result, interrupted = get_result(step, config, variables, asking, log)
    judged = judge(result.model_copy(update={"made_by": step.made_by}), question)
    context = replace(context_of(step, variables, origin, judged), unused_rules=ruled.unused, evals=config.evals)
    # a relay keeps nothing of what it was given
    files = None if relaying else _kept(judged, origin.baseline, output_dir, rules.reports, context)
    shown = replace(context, result_path=str(files.record)) if files else context
    log.commands.say(render("console", judged, shown, style=ConsoleStyle()).rstrip())
    verdict = judged.verdict.exit_code if judged.verdict else ExitCode.INCOMPLETE
    return Finished(judged, interrupted or verdict, files, interrupted is not None), context


def _kept(
    judged: RunResult,
    baseline: Baseline | NoBaseline,
    output_dir: Path,
    requests: tuple[ReportRequest, ...],
    context: ReportContext,
) -> RunFiles:
    """The record with its ledger, the reports that were asked for, and the page."""
    asked = next((request for request in requests if request.format == PAGE), None)
    wanted = requests if asked else (*requests, ReportRequest(PAGE, None))
    try:
        record = write_result(output_dir, judged, ledger_after(judged, baseline))
        files = write_reports(wanted, judged, context, record.parent)
    except GateError as error:
        # something has been run by now: whatever cannot be written is not a mistake of usage any more
        error.exit_code = ExitCode.INCOMPLETE
        raise
    return RunFiles(record, files[wanted.index(asked) if asked else -1])
