"""Asks the base branch's agent what was asked here, and keeps what it did: in a journal of its own, beside the run's.

Nothing that goes wrong with it ends the run or changes what is known of it: the trouble is kept in a sentence.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Final

from eval_gate.engine.confirming import ControlRequest
from eval_gate.engine.journal import Journal, TrialRecord
from eval_gate.engine.plan import RunPlan
from eval_gate.engine.pool import work_through
from eval_gate.engine.rerun_allowance import Allowance
from eval_gate.engine.trials import NoAnswerError, TrialJob, TrialRunner, TrialServices
from eval_gate.engine.unreported_tools import mark_unreported
from eval_gate.model.case import CaseKey, EvalCase
from eval_gate.model.result import Control
from eval_gate.struct import FrozenStruct
from eval_gate.targets.base import Target, TargetError

CONTROL_NAME: Final = "control.jsonl"
"""Its journal, with the lines that `cases.jsonl` has of the run's own target. Nobody reads it again: a run that is gone
on with asks anew, because what counts is what it does now, and not what somebody left there meanwhile."""
GIVE_UP_AFTER: Final = 3
"""Executions in a row without connection or answer in time."""
_MAX_SAID: Final = 500


class RunServices(FrozenStruct):
    """What asking it takes of the run: how a trial is made fit to be kept, what it cost, when to stop."""

    shared: Callable[[], TrialServices]
    stored: Callable[[TrialRecord], Awaitable[TrialRecord]]
    spend: Callable[[TrialRecord], None]
    affordable: Callable[[], bool]
    """Whether the money of the run is not used up."""
    unless_stopped: Callable[[Coroutine[None, None, None]], Awaitable[None]]
    """Waits for something no longer than the run goes on. Raises TargetError."""
    stop: asyncio.Event


class ControlAsking:
    """The base branch's agent of one run, and its answers so far."""

    def __init__(self, plan: RunPlan, control: Target, folder: Path, services: RunServices) -> None:
        self._plan, self._control, self._services = plan, control, services
        self._file = folder / CONTROL_NAME
        self._records: dict[CaseKey, list[TrialRecord]] = defaultdict(list)
        self._cases = {case.key: case for case in plan.runnable()}
        self._trouble: str | None = None
        self._healthy = False
        self._silent = 0

    @property
    def facts(self) -> Control | None:
        """Who it is and what went wrong, once there is anything to say of it."""
        if not self._records and self._trouble is None:
            return None
        every = [record for records in self._records.values() for record in records]
        costs = [usd for one in every for usd in (one.cost_usd, one.judge_cost_usd) if usd is not None]
        return Control(target=self._control.identity, trouble=self._trouble, cost_usd=sum(costs) if costs else None)

    @property
    def records(self) -> Mapping[CaseKey, Sequence[TrialRecord]]:
        """What it did, by case, in the order of its executions."""
        lists = any(record.calls_listed for records in self._records.values() for record in records)
        return {
            key: mark_unreported(sorted(records, key=lambda one: one.trial), lists=lists)
            for key, records in self._records.items()
        }

    async def ask(self, wanted: ControlRequest, allowance: Allowance) -> bool:
        """Ask each of these cases once; whether it is worth asking what comes next."""
        self._trouble = self._trouble or wanted.trouble
        if not wanted.keys or self._trouble is not None or not self._may_begin(wanted, allowance):
            return False
        if not await self._is_there():
            return False
        asked = [self._cases[key] for key in wanted.keys]
        shared = self._services.shared()
        trials = TrialRunner(self._control, self._plan.limits, shared, apart=False)
        with Journal(self._file) as journal:

            async def work(case: EvalCase) -> None:
                if self._trouble is not None:
                    return
                record = await self._asked(trials, case)
                journal.append(record)
                self._records[record.case].append(record)
                self._services.spend(record)

            try:
                await work_through(iter(asked), self._plan.concurrency_of(self._control), work, self._services.stop)
            finally:
                await shared.patterns.aclose()
        return not self._services.stop.is_set()

    async def _asked(self, trials: TrialRunner, case: EvalCase) -> TrialRecord:
        number = max((one.trial for one in self._records[case.key]), default=-1) + 1
        try:
            record = await trials.run(TrialJob(case, number))
            self._silent = 0
        except NoAnswerError as failure:
            record = failure.record
            self._silent += 1
        record = await self._services.stored(record)
        if self._silent >= GIVE_UP_AFTER:
            self._trouble = self._trouble or f"it gave no answer: {(record.error or '')[:_MAX_SAID]}"
        return record

    def _may_begin(self, wanted: ControlRequest, allowance: Allowance) -> bool:
        needed = len(wanted.keys) * wanted.rounds
        if not self._services.affordable():
            self._trouble = "what the run may cost is used up"
        elif (allowance.remaining is not None and allowance.remaining < needed) or not allowance.take(len(wanted.keys)):
            more = "1 more answer" if needed == 1 else f"{needed} more answers"
            self._trouble = f"the rerun-budget of {allowance.budget} does not reach for {more}"
        return self._trouble is None

    async def _is_there(self) -> bool:
        """Asked once."""
        if not self._healthy:
            try:
                await self._services.unless_stopped(self._control.check_health())
            except TargetError as error:
                self._trouble = f"it could not be reached: {error.message[:_MAX_SAID]}"
                return False
            self._healthy = not self._services.stop.is_set()
        return self._healthy
