"""Makes the run of a session: prepared as a whole, then carried out, and ended in good order whatever happens."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import Final, Protocol

from eval_gate.config.selection import Selection
from eval_gate.engine.plan import RunPlan
from eval_gate.engine.run import Observer, Run
from eval_gate.errors import ExitCode
from eval_gate.gate.confirming import Reruns
from eval_gate.model.result import Control, RunResult
from eval_gate.model.setup import TargetIdentity
from eval_gate.results.baseline import Baseline
from eval_gate.session.session import Session
from eval_gate.struct import Struct, replace
from eval_gate.targets.waiting import told_to

_SIGNALS: Final[Mapping[int, tuple[ExitCode, str]]] = {
    signal.SIGINT: (ExitCode.INTERRUPTED, "interrupted (SIGINT)"),
    signal.SIGTERM: (ExitCode.TERMINATED, "ended from outside (SIGTERM)"),
}


class RunObserver(Observer, Protocol):
    """An observer that has to be put away."""

    def close(self) -> None:
        """Leave the terminal as it was."""
        ...


class MadeRun(Struct):
    """A run as it was made: not judged yet."""

    result: RunResult
    interrupted: ExitCode | None = None
    """The exit code of the signal that ended it early, if one did."""

    def handed_over(self) -> RunResult:
        """The result, which is not here any more from then on: of many cases one copy is enough."""
        result = self.result
        del self.result
        return result


async def make_run(session: Session, progress: RunObserver) -> MadeRun:
    """Prepare and carry out. Raises GateError for what is wrong before anybody was asked anything."""
    return await carry_out(session, await plan_run(session), progress)


async def plan_run(session: Session) -> RunPlan:
    """Everything that the run needs, read and checked. It holds a target: carry it out, or close it."""
    from eval_gate.engine.preparing.prepare import prepare  # 100 ms that results of other tools need nothing of

    config, around = session.config, session.context
    if isinstance(session.question.baseline, Baseline):
        around = replace(around, baseline_folder=session.question.baseline.folder)
    plan = await prepare(config, _by_durations(session), around)
    plan.redact.learn(around.secrets)
    again = session.most_reruns
    waits = plan.rubrics_wait and any(map(plan.waits, plan.runnable()))
    if not (again or waits):
        return plan
    return plan.confirmed_by(reruns_of(session), again)


async def ask_base_later(session: Session, run: RunResult) -> RunResult:
    """A stored run with what the base branch's agent says of it, which is asked only where the run would be red.

    The cases and the agent are read anew, as for a run. Raises GateError for what is wrong with them.
    """
    named = session.config.control.named
    if named is None or run.by_another_tool:
        return run
    askable = frozenset(key for key, case in run.cases() if not case.dependent)
    asked = run.control or Control(target=TargetIdentity(name="base", provider="", identity=named))
    if not reruns_of(session).of_control(replace(run, control=asked), askable).keys:
        return run
    from eval_gate.engine.control import AskedLater

    plan = await plan_run(session)
    try:
        assert plan.control is not None  # it is named
        return await AskedLater(plan, plan.control, run, session.folder).execute(reruns_of(session))
    finally:
        await plan.aclose()


def reruns_of(session: Session) -> Reruns:
    """Who says which cases of the session are run again."""
    config = session.config
    later = session.later_question.question if session.later_question is not None else None
    budgeted = config.limits.rerun_budget is not None
    return Reruns(session.question, session.most_reruns, budgeted=budgeted, later=later)


def _by_durations(session: Session) -> Selection:
    """The selection, whose shards are cut by what the baseline took: it is the one run that all shards know alike."""
    selection, baseline = session.selection, session.question.baseline
    if selection.shard is None or not isinstance(baseline, Baseline):
        return selection
    return replace(selection, before=baseline.result)


async def carry_out(session: Session, plan: RunPlan, progress: RunObserver) -> MadeRun:
    """Ask and judge case by case; the journal has each as soon as it is finished. Closes target and display.

    Where nobody else holds the plan, its cases are let go of as their results are made.
    """
    run = Run(plan, session.folder, progress)
    plan = plan.of_no_case()
    try:
        ended = session.later_question.end if session.later_question is not None else None
        owned = _own_process(run, ended) if session.context.owns_process else nullcontext(list[ExitCode]())
        with owned as caught, told_to(progress.waiting):
            result = await run.execute()
            if session.later_question is not None:
                # whoever ends us meanwhile ends the wait, and not the run, which is made
                await asyncio.to_thread(session.later_question.question)
    finally:
        progress.close()
        await plan.aclose()
    return MadeRun(result, caught[0] if caught else None)


@contextmanager
def _own_process(run: Run, ended: Callable[[], object] | None = None) -> Iterator[list[ExitCode]]:
    """The first SIGINT or SIGTERM ends the run in good order, and its exit code is in the list; a second one ends us.

    `ended` is told of the first one too. It is noted at once, since the loop may not turn again: results are made in
    one go. No loop listens itself: when it stops to, a signal has for a moment the system's own action, which kills us.
    As the first process of a container Python has no default action for SIGTERM, so both are handled here.
    """
    caught: list[ExitCode] = []
    loop = asyncio.get_running_loop()
    then = {number: signal.getsignal(number) or signal.SIG_DFL for number in _SIGNALS}

    def hear(number: int, _frame: FrameType | None) -> None:
        if caught:  # amid the answer to another one, which is not over
            return
        code, reason = _SIGNALS[number]
        caught.append(code)
        hear_no_more()
        loop.call_soon_threadsafe(stop, reason)

    def stop(reason: str) -> None:
        run.stop(reason)
        if ended is not None:
            ended()

    def hear_no_more() -> None:
        for number, handler in then.items():
            signal.signal(number, handler)

    for number in _SIGNALS:
        signal.signal(number, hear)
    try:
        yield caught
    finally:
        hear_no_more()
