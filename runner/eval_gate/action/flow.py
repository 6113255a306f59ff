"""Main flow of a step: plan, find the baseline, run, compare, decide, publish, exit.

It always publishes before it fails, and it exits by the verdict alone: a failed publication is logged, and does not
change the exit code.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from eval_gate.action.baseline_lookup import discard_unrelated_baseline
from eval_gate.action.baseline_refresh import find_baseline_refresh
from eval_gate.action.inputs import BaseAgentTiming, guess_inputs, read_inputs
from eval_gate.action.lookups import Lookups
from eval_gate.action.publishing.drift_issue import BranchDrift, compute_branch_drift
from eval_gate.action.publishing.run_publication import (
    FinishedRun,
    RunFiles,
    StepEnd,
    publish_pending,
    publish_run,
)
from eval_gate.action.refresh_command import refresh_baseline
from eval_gate.action.relay import RelayedBaseError, confirm_reused_suites, find_pull_request_steps, lower_precedence
from eval_gate.action.run_source import build_session, get_run, is_first_step, preload_engine, warm_up_history
from eval_gate.action.step import Step, open_publishing_step, open_step, open_temporary_folder
from eval_gate.action.step_config import load_step_config
from eval_gate.action.step_failure import (
    StepContext,
    build_internal_error,
    publish_error,
    publish_interruption,
    publish_nothing_to_do,
)
from eval_gate.action.step_log import StepLog
from eval_gate.action.step_plan import StepMode
from eval_gate.action.trust.event_files import EventFiles
from eval_gate.action.workflow_context import build_workflow_context
from eval_gate.analysis.trend.trend_page import TREND_FOLDER, write_trend
from eval_gate.config.outputs import ReportRequest
from eval_gate.config.settings import BaseAgentChoice, RunConfig
from eval_gate.errors import PAGES, ExitCode, GateError, get_signal_exit_code, treat_errors_as_incomplete
from eval_gate.files.reading import RefusedReadError, check_reads
from eval_gate.gate.base_agent_cases import find_clearable_cases
from eval_gate.gate.verdict_decision import decide_verdict
from eval_gate.github.runner_files import give_to_workspace_owner
from eval_gate.github.workflow_commands import WorkflowCommands
from eval_gate.github.workflow_environment import WorkflowEnvironment, read_workflow_environment
from eval_gate.process.signals import FINAL_ACTIONS, defer_signals
from eval_gate.reports.console.style import ConsoleStyle
from eval_gate.reports.context import ReportContext
from eval_gate.reports.rendering import render
from eval_gate.results.baseline import refuse_own_baseline
from eval_gate.session.evaluation import EvaluatedRun, store_run, write_run_reports
from eval_gate.struct import replace
from eval_gate.targets.coding_agent import WRITTEN_FOLDERS

PAGE_FORMAT = "html"
"""The report that is always written next to the run result: the artifact carries it."""
_UNPUBLISHABLE_ERRORS = frozenset({"unsafe-event", "invalid-event", "missing-token", "github-unreachable"})
"""Errors after which the commit is unknown, or GitHub accepts no publication."""
_VERDICT_ORDER = ("", "passed", "failed", "inconclusive")
"""Verdicts, from the best to the worst."""


def run_action(variables: Mapping[str, str], *, on_host: bool = False) -> ExitCode:
    """Run one step of a workflow, and return its exit code. Raises GateError only outside of a workflow.

    Every error is published; an internal error is then raised again.
    `on_host`: the step runs on the job's machine, with the tools of the workflow, not in a container.
    """
    environment = read_workflow_environment(variables)
    commands = WorkflowCommands()
    context = StepContext(environment, variables, commands)
    try:
        os.chdir(environment.workspace)
        # until the end: only what `commands` itself writes is a command, whatever evals and agents print
        with commands.stop_commands(), open_temporary_folder(environment) as own, ExitStack() as checks:
            return context.finish_step(_run_step(context, own, checks, on_host=on_host))
    except KeyboardInterrupt as by_signal:
        # a run that is ended amid its cases is published in good order; here GitHub is waited for, or written to
        publish_interruption(environment, commands, get_signal_exit_code(by_signal))
        raise
    except RefusedReadError as refused:
        # the files are not of the event's commit, so no result is written on it
        return context.finish_step(publish_error(None, refused.error, context))
    except GateError as error:
        return context.finish_step(publish_error(context.step, error, context))
    except Exception as error:
        internal = build_internal_error(error)  # the log has its traceback later
        try:
            end = publish_error(context.step, internal, context, is_logged=True)
        except Exception:  # noqa: BLE001 (the first one is raised, with its traceback)
            end = publish_error(None, internal, context, is_logged=True)
        context.finish_step(end)
        raise


def _run_step(context: StepContext, environment: WorkflowEnvironment, checks: ExitStack, *, on_host: bool) -> StepEnd:
    variables, commands = context.variables, context.commands
    settings = guess_inputs(variables, on_host=on_host)
    for secret in (settings.token, environment.runtime_token):
        commands.mask_secret(secret.open() if secret else "")
    try:
        settings = read_inputs(variables, on_host=on_host)
        files = EventFiles(environment, settings)
        checks.enter_context(check_reads(files.check_read))
        config = load_step_config(settings, variables, environment.workspace)
        step = open_step(environment, settings)
        if step.plan.mode not in {StepMode.NOTHING, StepMode.REFRESH}:
            files.check_paths(config, settings)
            files.confirm_configuration(step)
    except GateError as error:
        if error.code not in _UNPUBLISHABLE_ERRORS:
            context.step = open_publishing_step(environment, settings)
        raise

    def give() -> None:
        # the run adds folders
        paths = [Path(config.output_dir), *(one.file for one in config.output_requests if one.file), *WRITTEN_FOLDERS]
        give_to_workspace_owner([environment.workspace / path for path in paths], environment.workspace)

    FINAL_ACTIONS.add(give)  # also when a second signal ends the process at once
    try:
        return _carry_out_plan(context, step, config, StepLog(commands, step.plan.read_only))
    finally:
        step.client.close()
        with defer_signals():
            give()
            FINAL_ACTIONS.discard(give)


def run_publish(variables: Mapping[str, str]) -> ExitCode:
    """Run the action's step for `workflow_run` events; publish an error for every other event.

    Raises GateError only outside of a workflow.
    """
    environment = read_workflow_environment(variables)
    event = environment.event_name
    if event == "workflow_run":
        return run_action(variables)
    error = GateError(
        "unsupported-event",
        f"publish works only in workflows that start by workflow_run, not by {event}",
        f"see {PAGES}/action.md#forks for both workflows; for other events use `eval-gate action`",
    )
    context = StepContext(environment, variables, WorkflowCommands())
    return context.finish_step(publish_error(None, error, context))


def _carry_out_plan(context: StepContext, step: Step, config: RunConfig, log: StepLog) -> StepEnd:
    for reason in step.plan.reasons:
        log.record(reason)
    if step.plan.mode is StepMode.REFRESH:
        return refresh_baseline(step, context.variables, log)
    steps: tuple[Step, ...] = (step,) if step.plan.mode is StepMode.GATE else ()
    if step.plan.mode is StepMode.RELAY:
        # until GitHub confirms what the event says, nothing is written on its commit
        steps = find_pull_request_steps(step, log)
    ends, failures = [], []
    for one in steps:
        try:
            ends.append(_run_one(context, one, config, log.copy()))
        except RelayedBaseError as error:
            failures.append((one, error))
    # if the run belongs to another pull request, this one's own result takes precedence
    error_ends = [publish_error(lower_precedence(one) if ends else one, error, context) for one, error in failures]
    # of several pull requests with one head, the step reports the worst result
    worst = max(
        ends or error_ends, key=lambda end: (end.exit_code, _VERDICT_ORDER.index(end.outputs["verdict"])), default=None
    )
    return worst or publish_nothing_to_do(step, log)


def _run_one(context: StepContext, step: Step, config: RunConfig, log: StepLog) -> StepEnd:
    """Run the step for one commit or pull request, and publish its error. Raises only RelayedBaseError."""
    context.step = step
    try:
        return _evaluate_and_publish(step, config, context.variables, log)
    except RelayedBaseError:
        raise
    except GateError as error:
        return publish_error(step, error, context)


def _evaluate_and_publish(step: Step, config: RunConfig, variables: Mapping[str, str], log: StepLog) -> StepEnd:
    """Evaluate the change of one step and publish the result."""
    lookups = Lookups(step, config, variables, log)
    preload_engine(step)
    lookups.second_leg_check.get_result()
    step, finished, context = _run_gate(step, lookups, config, variables, log)
    if finished.pending_cases:
        return publish_pending(step, finished, context, log)
    end = publish_run(step, finished, context, log)
    # a relay passes when it has published: the verdict is on the pull request's own commit
    return replace(end, exit_code=ExitCode.PASSED) if step.plan.mode is StepMode.RELAY else end


def _run_gate(
    step: Step, lookups: Lookups, config: RunConfig, variables: Mapping[str, str], log: StepLog
) -> tuple[Step, FinishedRun, ReportContext]:
    """Run the cases, decide the verdict, and write the reports. A baseline by reference is read before the cases."""
    trusted_config = lookups.trusted_config.get_result()
    is_deferred = (
        step.settings.base_agent is BaseAgentTiming.LATER and step.plan.mode is StepMode.GATE and is_first_step(step)
    )
    if is_deferred:
        trusted_config = replace(trusted_config, config=replace(trusted_config.config, base_agent=BaseAgentChoice()))
    session = build_session(step, trusted_config.config, lookups, variables, log)
    executed_run = get_run(step, session, lookups, log)
    step = replace(step, partial=bool(executed_run.result.selections))
    # after an interruption, this waits for a short time only
    origin = discard_unrelated_baseline(step, lookups.get_origin(), executed_run.result, log)
    if step.plan.mode is StepMode.RELAY:
        executed_run = replace(executed_run, result=confirm_reused_suites(executed_run.result, origin.baseline))
    refuse_own_baseline(origin.baseline, executed_run.result.run_id)
    gate_inputs = replace(session.gate_inputs, baseline=origin.baseline)
    session = replace(session, gate_inputs=gate_inputs, pending_gate_inputs=None)
    decided_run = decide_verdict(executed_run.result, gate_inputs)
    context = replace(
        build_workflow_context(step, variables, origin, decided_run),
        ignored_rules=trusted_config.unused_rules,
        evals=trusted_config.config.evals,
    )
    if not executed_run.interrupted:
        context = replace(context, baseline_refresh=find_baseline_refresh(step, origin, decided_run, context, log))
    # a relay stores nothing of its input
    stored_run = None if step.plan.mode is StepMode.RELAY else store_run(session, decided_run, executed_run)
    if stored_run is not None:
        stored_run = warm_up_history(session, stored_run, log)
        decided_run = replace(decided_run, warm_up=stored_run.run.warm_up)
        executed_run = replace(executed_run, interrupted=stored_run.interrupted)
    files = _write_reports(session.config.output_requests, stored_run, context) if stored_run else None
    report_context = replace(context, result_path=str(files.result_path)) if files else context
    log.commands.print_line(render("console", decided_run, report_context, style=ConsoleStyle()).rstrip())
    drift = (
        compute_branch_drift(step, stored_run.result_path, config.policy.pass_score)
        if stored_run and not executed_run.interrupted
        else None
    )
    trend = _write_trend(drift, stored_run.result_path.parent, context) if drift and stored_run else None
    finished = FinishedRun(decided_run, files, executed_run.interrupted, drift=drift, trend=trend)
    if is_deferred and finished.exit_code is ExitCode.FAILED:
        # the verdict has looked up the waivers already
        clearable = find_clearable_cases(decided_run, replace(gate_inputs, waiver_lookup=None))
        finished = replace(finished, pending_cases=clearable)
    return step, finished, context


def _write_reports(requests: Sequence[ReportRequest], evaluated_run: EvaluatedRun, context: ReportContext) -> RunFiles:
    """Write the requested reports, and the report page even if it was not requested."""
    page = next((one for one in requests if one.format == PAGE_FORMAT), ReportRequest(PAGE_FORMAT, None))
    all_requests = tuple(dict.fromkeys((*requests, page)))
    files = write_run_reports(all_requests, evaluated_run, context)
    return RunFiles(evaluated_run.result_path, files[all_requests.index(page)])


def _write_trend(drift: BranchDrift, folder: Path, context: ReportContext) -> Path | None:
    """Write page and badge of the branch over time, and return their folder; None if no run is complete."""
    with treat_errors_as_incomplete():
        files = write_trend(folder / TREND_FOLDER, drift.history, drift.pass_score, context)
    return files[0].parent if files else None
