"""Asks the base branch's agent what was asked here: during a run, or about one that was joined of shards.

What it did is kept in a journal of its own, beside the run's. Nothing that goes wrong with it ends the run or changes
what is known of it: the trouble is kept in a sentence. A drop of all cases shows only in the whole, so that no shard
could have asked; nothing of such a run is asked again.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Final

from eval_gate.engine.confirming import Confirming, ControlRequest
from eval_gate.engine.journal import Journal, TrialRecord
from eval_gate.engine.plan import RunPlan
from eval_gate.engine.pool import work_through
from eval_gate.engine.rerun_allowance import Allowance
from eval_gate.engine.retention import for_journal
from eval_gate.engine.settling import trials_of_control
from eval_gate.engine.trials import NoAnswerError, TrialJob, TrialRunner, TrialServices
from eval_gate.engine.unreported_tools import mark_unreported
from eval_gate.model.case import CaseKey, EvalCase
from eval_gate.model.result import Control, RunResult
from eval_gate.results.write import run_folder
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.base import Target, TargetError
from eval_gate.text.javascript.regex import PatternMatcher

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


class AskedLater:
    """One stored run, and what the base branch's agent says of it."""

    def __init__(self, plan: RunPlan, control: Target, run: RunResult, output_dir: Path) -> None:
        """`plan` is that of all cases of the run; those that ask something else by now are not asked about."""
        self._plan, self._run = plan, run
        folder = run_folder(output_dir, run.run_id)
        folder.mkdir(parents=True, exist_ok=True)
        self._masking = PatternMatcher()
        self._spent = 0.0
        services = RunServices(self._shared, self._stored, self._spend, self._affordable, _awaited, asyncio.Event())
        self._asking = ControlAsking(plan, control, folder, services)

    async def execute(self, confirming: Confirming) -> RunResult:
        """The run with the answers, which were asked for as long as the gate is red and they may turn that."""
        then = self._run.by_key()
        askable = frozenset(
            key
            for case in self._plan.runnable()
            if (key := case.key) in self._plan.askable() and key in then and then[key].fingerprint == case.fingerprint
        )
        allowance = Allowance(self._plan.rerun_budget())
        try:
            while True:
                wanted = await asyncio.to_thread(confirming.of_control, self._told(), askable)
                if not await self._asking.ask(wanted, allowance):
                    return self._told()
        finally:
            await self._masking.aclose()

    def _told(self) -> RunResult:
        records, facts, before = self._asking.records, self._asking.facts, self._run.control
        told = {
            key: replace(case, control=(*case.control, *trials_of_control(more, case)))
            for key, case in self._run.cases()
            if (more := records.get(key))
        }
        known = (
            facts or before or Control(target=self._plan.control.identity if self._plan.control else self._run.target)
        )
        costs = [one.cost_usd for one in (facts, before) if one is not None and one.cost_usd is not None]
        control = replace(known, cost_usd=sum(costs) if costs else None)
        return replace(self._run.with_cases(told), control=control)

    def _shared(self) -> TrialServices:
        return TrialServices.of(self._plan, PatternMatcher(), self._run.run_id)

    async def _stored(self, record: TrialRecord) -> TrialRecord:
        return await for_journal(record, self._plan.limits.store, self._plan.patterns, self._masking)

    def _spend(self, record: TrialRecord) -> None:
        self._spent += (record.cost_usd or 0.0) + (record.judge_cost_usd or 0.0)

    def _affordable(self) -> bool:
        most = self._plan.limits.max_cost_usd
        return most is None or self._spent < most


async def _awaited(check: Coroutine[None, None, None]) -> None:
    await check
