"""Asks the base branch's agent about a run that is there already, such as one that was joined of shards.

A drop of all cases shows only in the whole: no shard could have asked. Nothing of the run is asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path

from eval_gate.config.rerun_budget import RerunBudget, parse_rerun_budget
from eval_gate.engine.confirming import Confirming
from eval_gate.engine.control.during_run import ControlAsking, RunServices
from eval_gate.engine.journal import TrialRecord
from eval_gate.engine.plan import RunPlan
from eval_gate.engine.rerun_allowance import Allowance
from eval_gate.engine.retention import _without_answer, redacted
from eval_gate.engine.trials import TrialServices
from eval_gate.model.case import CaseKey
from eval_gate.model.result import Control, RunResult, SuiteResult
from eval_gate.results.masking import MARGIN
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
            for key, case in self._plan.runnable()
            if key in self._plan.askable() and key in then and then[key].fingerprint == case.fingerprint
        )
        allowance = Allowance(self._budget())
        try:
            while True:
                wanted = await asyncio.to_thread(confirming.of_control, self._told(), askable)
                if not await self._asking.ask(wanted, allowance):
                    return self._told()
        finally:
            await self._masking.aclose()

    def _told(self) -> RunResult:
        trials, facts, before = self._asking.trials, self._asking.facts, self._run.control

        def suite_told(suite: SuiteResult) -> SuiteResult:
            cases = tuple(
                case.model_copy(update={"control": (*case.control, *more)})
                if (more := trials.get(CaseKey(suite.eval_file, case.id)))
                else case
                for case in suite.cases
            )
            return suite.model_copy(update={"cases": cases})

        known = (
            facts or before or Control(target=self._plan.control.identity if self._plan.control else self._run.target)
        )
        costs = [one.cost_usd for one in (facts, before) if one is not None and one.cost_usd is not None]
        control = known.model_copy(update={"cost_usd": sum(costs) if costs else None})
        suites = tuple(map(suite_told, self._run.suites)) if trials else self._run.suites
        return self._run.model_copy(update={"suites": suites, "control": control})

    def _budget(self) -> RerunBudget:
        said = self._plan.limits.rerun_budget
        if said is not None:
            return parse_rerun_budget(said)
        return RerunBudget.usual(len(self._plan.runnable()) * self._plan.limits.trials, control=True)

    def _shared(self) -> TrialServices:
        plan = self._plan
        return TrialServices(
            plan.tokens,
            PatternMatcher(),
            plan.judges,
            plan.environment,
            mask=plan.redact.data,
            withheld=plan.withheld,
            margin=MARGIN if plan.patterns else 0,
            run_id=self._run.run_id,
        )

    async def _stored(self, record: TrialRecord) -> TrialRecord:
        kept, patterns = _without_answer(record, self._plan.limits.stored), self._plan.patterns
        return await redacted(kept, patterns, self._masking) if patterns else kept

    def _spend(self, record: TrialRecord) -> None:
        self._spent += (record.cost_usd or 0.0) + (record.judge_cost_usd or 0.0)

    def _affordable(self) -> bool:
        most = self._plan.limits.max_cost_usd
        return most is None or self._spent < most


async def _awaited(check: Coroutine[None, None, None]) -> None:
    await check
