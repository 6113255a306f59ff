"""Asks the base branch's agent about a run that is there already, such as one that was joined of shards.

A drop of all cases shows only in the whole: no shard could have asked. Nothing of the run is asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path

from eval_gate.engine.confirming import Confirming
from eval_gate.engine.control.during_run import ControlAsking, RunServices
from eval_gate.engine.journal import TrialRecord
from eval_gate.engine.plan import RunPlan
from eval_gate.engine.rerun_allowance import Allowance
from eval_gate.engine.retention import for_journal
from eval_gate.engine.settling import trials_of_control
from eval_gate.engine.trials import TrialServices
from eval_gate.model.result import Control, RunResult
from eval_gate.results.write import run_folder
from eval_gate.targets.base import Target
from eval_gate.text.javascript.regex import PatternMatcher


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
            key: case.model_copy(update={"control": (*case.control, *trials_of_control(more, case))})
            for key, case in self._run.cases()
            if (more := records.get(key))
        }
        known = (
            facts or before or Control(target=self._plan.control.identity if self._plan.control else self._run.target)
        )
        costs = [one.cost_usd for one in (facts, before) if one is not None and one.cost_usd is not None]
        control = known.model_copy(update={"cost_usd": sum(costs) if costs else None})
        return self._run.with_cases(told).model_copy(update={"control": control})

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
