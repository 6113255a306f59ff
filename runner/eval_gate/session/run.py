"""Prepare and execute the run of a session, and stop it cleanly on signals."""

from __future__ import annotations

import asyncio
import math
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final, Protocol

from eval_gate.config.rerun_budget import parse_rerun_budget, parse_rerun_interval
from eval_gate.config.selection import Selection
from eval_gate.config.settings import RunLimits
from eval_gate.engine.run import Observer, Run
from eval_gate.engine.run_plan import CheckBaselineFiles, RunPlan
from eval_gate.errors import ExitCode, GateError
from eval_gate.gate.reruns import NO_INTERVAL, RerunInterval, Reruns
from eval_gate.gate.verdict_decision import GateInputs
from eval_gate.model.result import BaseAgentSummary, RunResult
from eval_gate.model.setup import TargetIdentity
from eval_gate.results.baseline import Baseline, NoBaseline
from eval_gate.session.reuse import apply_reuse
from eval_gate.session.session import PendingGateInputs, Session
from eval_gate.struct import Struct, replace
from eval_gate.targets.readiness import report_waiting_to

_SIGNALS: Final[Mapping[int, tuple[ExitCode, str]]] = {
    signal.SIGINT: (ExitCode.INTERRUPTED, "interrupted (SIGINT)"),
    signal.SIGTERM: (ExitCode.TERMINATED, "terminated (SIGTERM)"),
}


class RunObserver(Observer, Protocol):
    """Observer of a run that can be closed."""

    def close(self) -> None:
        """Leave the terminal as it was."""
        ...


class ExecutedRun(Struct):
    """An executed run without a verdict yet."""

    result: RunResult
    interrupted: ExitCode | None = None
    """The exit code of the signal that ended it early, if one did."""

    def take_result(self) -> RunResult:
        """Return the result and release it; it is not available afterwards. One copy of many cases is enough."""
        result = self.result
        del self.result
        return result


async def make_run(session: Session, progress: RunObserver) -> ExecutedRun:
    """Prepare and execute a run. Raises GateError before the first request."""
    return await execute_plan(session, await _plan_with_reuse(session), progress)


async def _plan_with_reuse(session: Session) -> RunPlan:
    """Plan a run, without the suites whose results it reuses."""
    plan = await plan_run(session)
    try:
        return await apply_reuse(session, plan)
    except BaseException:
        await plan.aclose()
        raise


async def plan_run(session: Session) -> RunPlan:
    """Read and check everything that the run needs. The plan holds a target: execute it, or close it."""
    from eval_gate.engine.preparation.plan_builder import (
        build_run_plan,  # takes 100 ms, and external results do not need it
    )

    config, context = session.config, session.context
    if session.is_run_of_branch and config.warm_up is not None and session.selection.shard is not None:
        raise GateError(
            "conflicting-options",
            "warmUp does not go with shards: a history is that of all cases, and a shard runs some of them",
            "run the default branch without shards, or omit warmUp",
        )
    baseline = session.gate_inputs.baseline
    context = replace(context, baseline_files=_count_baseline_cases(baseline))
    if isinstance(baseline, Baseline):
        context = replace(context, baseline_folder=baseline.folder)
    plan = await build_run_plan(config, _balance_shards(session), context)
    plan.redactor.add_secrets(context.secrets)
    reruns = session.max_reruns
    waits = plan.rubrics_wait and any(map(plan.is_deferred, plan.list_runnable_cases()))
    if not (reruns or waits):
        return plan
    pending = session.pending_gate_inputs
    wait = partial(_wait_for_inputs, pending, plan.check_baseline_files) if pending is not None else None
    return plan.with_rerun_policy(build_reruns(session, _build_rerun_interval(session.config.limits), wait), reruns)


def _wait_for_inputs(pending: PendingGateInputs, check: CheckBaselineFiles | None) -> GateInputs:
    """Wait for the baseline, and check that the eval files that it has cases of are read. Raises GateError."""
    inputs = pending.wait_for_inputs()
    if check is not None:
        check(_count_baseline_cases(inputs.baseline))
    return inputs


def _count_baseline_cases(baseline: Baseline | NoBaseline) -> Mapping[str, int]:
    """Count the baseline's cases by eval file; none for another tool, or until the baseline is available."""
    if not isinstance(baseline, Baseline) or baseline.result.is_external:
        return {}
    return {suite.eval_file: len(suite.cases) for suite in baseline.result.suites}


async def add_base_agent_results(session: Session, run: RunResult) -> RunResult:
    """Add the results of the base agent to a stored run.

    The base agent is run only if the run would otherwise fail. The cases and the agent are read again, as for a
    run. Raises GateError for any problem with them.
    """
    name = session.config.base_agent.display_name
    if name is None or run.is_external:
        return run
    repeatable = frozenset(key for key, case in run.without_reused.iter_cases() if not case.dependent)
    base_agent = run.base_agent or BaseAgentSummary(target=TargetIdentity(name="base", provider="", identity=name))
    if not build_reruns(session).build_base_agent_request(replace(run, base_agent=base_agent), repeatable).keys:
        return run
    from eval_gate.engine.base_agent_run import BaseAgentFollowUp

    plan = await plan_run(session)
    try:
        assert plan.base_agent is not None  # it has a name
        return await BaseAgentFollowUp(plan, plan.base_agent, run, session.folder).execute(build_reruns(session))
    finally:
        await plan.aclose()


def _build_rerun_interval(limits: RunLimits) -> RerunInterval:
    """Build the interval of a run's own re-runs, which leaves half of a budget of time for the executions."""
    if limits.rerun_interval is not None:
        return RerunInterval(parse_rerun_interval(limits.rerun_interval))
    budget = None if limits.rerun_budget is None else parse_rerun_budget(limits.rerun_budget)
    return RerunInterval(most_s=math.inf if budget is None or budget.seconds is None else budget.seconds / 2)


def build_reruns(
    session: Session, interval: RerunInterval = NO_INTERVAL, wait_for_inputs: Callable[[], GateInputs] | None = None
) -> Reruns:
    """Build the policy of re-runs; `wait_for_inputs` waits for a baseline that is not available yet."""
    config = session.config
    budgeted = config.limits.rerun_budget is not None
    return Reruns(
        session.gate_inputs, session.max_reruns, budgeted=budgeted, load_inputs=wait_for_inputs, interval=interval
    )


def _balance_shards(session: Session) -> Selection:
    """Return the selection with shards balanced by the durations in the baseline, which all shards have in common."""
    selection, baseline = session.selection, session.gate_inputs.baseline
    if selection.shard is None or not isinstance(baseline, Baseline):
        return selection
    return replace(selection, timing_run=baseline.result)


async def execute_plan(
    session: Session, plan: RunPlan, progress: RunObserver, folder: Path | None = None
) -> ExecutedRun:
    """Execute the cases; the journal has each as soon as it is finished. Closes the target and the display.

    The folder of the run is made in `folder`, by default the session's results folder. Cases are released as their
    results are built, unless the caller holds the plan.
    """
    run = Run(plan, folder or session.folder, progress)
    plan = plan.without_cases()
    try:
        stop_waiting = session.pending_gate_inputs.stop_waiting if session.pending_gate_inputs is not None else None
        owned = _handle_signals(run, stop_waiting) if session.context.owns_process else nullcontext(list[ExitCode]())
        with owned as caught, report_waiting_to(progress.on_wait):
            result = await run.execute()
            if session.pending_gate_inputs is not None:
                # a signal ends the wait, but not the run, which is complete
                await asyncio.to_thread(_wait_for_inputs, session.pending_gate_inputs, plan.check_baseline_files)
    finally:
        progress.close()
        await plan.aclose()
    return ExecutedRun(result, caught[0] if caught else None)


@contextmanager
def _handle_signals(run: Run, on_stop: Callable[[], object] | None = None) -> Iterator[list[ExitCode]]:
    """Stop the run cleanly on the first SIGINT or SIGTERM, and yield the list that gets its exit code."""
    caught: list[ExitCode] = []
    loop = asyncio.get_running_loop()
    handlers = {number: signal.getsignal(number) or signal.SIG_DFL for number in _SIGNALS}

    def handle(number: int, _frame: FrameType | None) -> None:
        if caught:  # another signal is being handled
            return
        code, reason = _SIGNALS[number]
        caught.append(code)
        restore_handlers()  # a second signal ends this process
        loop.call_soon_threadsafe(stop, reason)

    def stop(reason: str) -> None:
        run.stop(reason)
        if on_stop is not None:
            on_stop()

    def restore_handlers() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    # Not by the event loop: results are made in one go, so it may not run for a while, and when it stops handling a
    # signal, this briefly has the default action of the system, which kills the process. As the first process of a
    # container, Python has no default action for SIGTERM, so both are handled.
    for number in _SIGNALS:
        signal.signal(number, handle)
    try:
        yield caught
    finally:
        restore_handlers()
