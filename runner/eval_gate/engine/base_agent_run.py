"""Runs suspects with the base branch's agent, during a run or for a merged run of shards.

Its executions have a journal of their own, next to the run's. A problem of the base agent neither ends the run nor
changes its result, which quotes it. Only the merged run shows a drop of all cases, so no shard could run the base agent
for it; nothing of such a run is re-run.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from eval_gate.engine.case_result import build_base_agent_trials, mark_unlisted_calls
from eval_gate.engine.case_workspaces import CaseWorkspaces
from eval_gate.engine.conversations import BudgetUsedError
from eval_gate.engine.hooks import HookRunner
from eval_gate.engine.journal import Journal, TrialKey, TrialRecord
from eval_gate.engine.rerun_policy import RerunAllowance, RerunPolicy
from eval_gate.engine.retention import prepare_for_journal
from eval_gate.engine.run_plan import ExecutionFingerprints, RunPlan
from eval_gate.engine.trials import NoResponseError, TrialJob, TrialRunner, TrialServices
from eval_gate.engine.worker_pool import await_unless_stopped, run_jobs
from eval_gate.model.case import CaseKey, EvalCase
from eval_gate.model.result import BaseAgentSummary, RunResult
from eval_gate.model.selection import BaseAgentCases
from eval_gate.model.usage import add_up
from eval_gate.results.run_writer import make_run_folder
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.base import Target, TargetError
from eval_gate.targets.conversation_session import ConversationSession
from eval_gate.text.escape import truncate_middle
from eval_gate.text.javascript.regex import PatternMatcher

BASE_AGENT_JOURNAL_NAME: Final = "base-agent.jsonl"
"""Its journal, with lines as in `cases.jsonl`. A resumed run does not read it, but runs the base agent again: only its
present behavior counts."""
MAX_FAILURES_IN_A_ROW: Final = 3
"""Executions in a row without a connection, or without a response in time."""
_MAX_ERROR: Final = 500
_BUDGET_USED: Final = "the cost limit of the run is used up"


class RunServices(FrozenStruct):
    """What a base agent run needs from the main run: services, retention, budget and the stop event."""

    make_trial_services: Callable[[], TrialServices]
    masking: PatternMatcher
    add_cost: Callable[[TrialKey, float], None]
    """Adds the cost of an execution in US dollars to that of the run."""
    has_budget: Callable[[], bool]
    """Whether the cost limit of the run is not reached."""
    stop: asyncio.Event


class BaseAgentRun:
    """Base agent of one run and its executions so far."""

    def __init__(self, plan: RunPlan, base_agent: Target, folder: Path, services: RunServices) -> None:
        self._plan, self._base_agent, self._services = plan, base_agent, services
        self._file = folder / BASE_AGENT_JOURNAL_NAME
        self._records: dict[CaseKey, list[TrialRecord]] = defaultdict(list)
        self._cases = {case.key: case for case in plan.list_runnable_cases()}
        self._trouble: str | None = None
        self._healthy = False
        self._failures_in_a_row = 0

    @property
    def facts(self) -> BaseAgentSummary | None:
        """Identity, problem and cost; None before the first execution or problem."""
        if not self._records and self._trouble is None:
            return None
        every = (record for records in self._records.values() for record in records)
        cost_usd = add_up(usd for one in every for usd in (one.cost_usd, one.judge_cost_usd))
        return BaseAgentSummary(target=self._base_agent.identity, problem=self._trouble, cost_usd=cost_usd)

    @property
    def records(self) -> Mapping[CaseKey, Sequence[TrialRecord]]:
        """Executions by case, in their order."""
        lists = any(record.calls_listed for records in self._records.values() for record in records)
        return {
            key: mark_unlisted_calls(sorted(records, key=lambda one: one.trial), lists=lists)
            for key, records in self._records.items()
        }

    async def run_round(self, request: BaseAgentCases, allowance: RerunAllowance) -> bool:
        """Run each of these cases once, and return whether another round may follow."""
        self._trouble = self._trouble or request.trouble
        if not request.keys or self._trouble is not None or not self._can_begin(request, allowance):
            return False
        if not await self._is_reachable():
            return False
        cases = [self._cases[key] for key in request.keys]
        shared = self._services.make_trial_services()
        trials = TrialRunner(self._base_agent, shared)
        with Journal(self._file) as journal:

            async def work(case: EvalCase) -> None:
                if self._trouble is not None:
                    return
                job = TrialJob(case, max((one.trial for one in self._records[case.key]), default=-1) + 1)
                try:
                    record = await self._run_job(trials, job)
                except BudgetUsedError as error:
                    self._trouble = _BUDGET_USED
                    self._services.add_cost(job.key, error.cost_usd)
                    return
                journal.append(record)
                self._records[record.case].append(record)
                self._services.add_cost(record.key, record.total_cost_usd)

            try:
                await run_jobs(iter(cases), self._plan.get_concurrency(self._base_agent), work, self._services.stop)
            finally:
                await shared.patterns.aclose()
        return not self._services.stop.is_set()

    async def _run_job(self, trials: TrialRunner, job: TrialJob) -> TrialRecord:
        try:
            record = await trials.run(job)
            self._failures_in_a_row = 0
        except NoResponseError as failure:
            record = failure.record
            self._failures_in_a_row += 1
        record = await prepare_for_journal(record, self._plan, self._services.masking)
        if self._failures_in_a_row >= MAX_FAILURES_IN_A_ROW:
            self._trouble = self._trouble or f"it gave no response: {truncate_middle(record.error or '', _MAX_ERROR)}"
        return record

    def _can_begin(self, request: BaseAgentCases, allowance: RerunAllowance) -> bool:
        if not self._services.has_budget():
            self._trouble = _BUDGET_USED
        else:
            self._trouble = allowance.begin_round(len(request.keys), request.rounds)
        return self._trouble is None

    async def _is_reachable(self) -> bool:
        """Whether the base agent is reachable; checked once."""
        if not self._healthy:
            try:
                await await_unless_stopped(self._base_agent.check_health(), self._services.stop)
            except TargetError as error:
                self._trouble = f"it could not be reached: {truncate_middle(error.message, _MAX_ERROR)}"
                return False
            self._healthy = not self._services.stop.is_set()
        return self._healthy


class BaseAgentFollowUp:
    """Base agent executions for one stored run."""

    def __init__(self, plan: RunPlan, base_agent: Target, run: RunResult, output_dir: Path) -> None:
        """`plan` is that of all cases of the run; cases whose fingerprint changed are not executed."""
        self._plan, self._run = replace(plan, run_id=run.run_id), run
        folder = make_run_folder(output_dir, run.run_id)
        folder.mkdir(parents=True, exist_ok=True)
        self._masking = PatternMatcher()
        self._workspaces = CaseWorkspaces(HookRunner.from_plan(self._plan))
        self._spent = 0.0
        self._sessions: dict[int, dict[str, ConversationSession]] = {}
        services = RunServices(
            self._make_trial_services, self._masking, self._add_cost, self._has_budget, asyncio.Event()
        )
        self._runner = BaseAgentRun(plan, base_agent, folder, services)

    async def execute(self, policy: RerunPolicy) -> RunResult:
        """Run the suspects with the base agent, and return the run result with its executions.

        Rounds continue as long as `policy` requests more, that is while the gate is red and the base agent's
        responses may change that. Only cases whose fingerprint is still that of the stored run are executed.
        """
        stored_cases = self._run.index_cases()
        repeatable = frozenset(
            key
            for case in self._plan.list_runnable_cases()
            if (key := case.key) in self._plan.list_base_agent_cases()
            and key in stored_cases
            and stored_cases[key].fingerprint == case.fingerprint
        )
        allowance = RerunAllowance(self._plan.compute_rerun_budget())
        try:
            while True:
                request = await asyncio.to_thread(policy.build_base_agent_request, self._build_result(), repeatable)
                if not await self._runner.run_round(request, allowance):
                    await self._workspaces.aclose()
                    return self._build_result()
        finally:
            await self._workspaces.aclose()
            await self._masking.aclose()

    def _build_result(self) -> RunResult:
        records, facts, stored = self._runner.records, self._runner.facts, self._run.base_agent
        cases = {
            key: replace(case, base_agent_trials=(*case.base_agent_trials, *build_base_agent_trials(more, case)))
            for key, case in self._run.iter_cases()
            if (more := records.get(key))
        }
        summary = (
            facts
            or stored
            or BaseAgentSummary(target=self._plan.base_agent.identity if self._plan.base_agent else self._run.target)
        )
        summary = replace(summary, cost_usd=add_up(one.cost_usd for one in (facts, stored) if one is not None))
        warnings = (*self._run.warnings, *self._workspaces.notices)
        return replace(self._run.replace_cases(cases), base_agent=summary, warnings=warnings)

    def _make_trial_services(self) -> TrialServices:
        return TrialServices(
            self._plan,
            PatternMatcher(),
            self._workspaces,
            ExecutionFingerprints.from_plan(self._plan),
            can_continue=lambda _key, _target, usd: self._has_budget(usd),
            sessions=self._sessions,
        )

    def _add_cost(self, _key: TrialKey, usd: float) -> None:
        self._spent += usd

    def _has_budget(self, begun_usd: float = 0.0) -> bool:
        """Whether the cost limit is not reached, with the cost of a conversation that has begun."""
        most = self._plan.limits.max_cost_usd
        return most is None or self._spent + begun_usd < most
