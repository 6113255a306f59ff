"""Executes a run: opens the journal, works through the trials, and builds the result."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from eval_gate.config.settings import ResponseRetention
from eval_gate.engine.base_agent_run import BaseAgentRun, RunServices
from eval_gate.engine.case_result import build_trial, find_listing_targets, mark_unlisted_calls
from eval_gate.engine.case_workspaces import CaseWorkspaces
from eval_gate.engine.circuit_breaker import CircuitBreaker
from eval_gate.engine.conversations import BudgetUsedError
from eval_gate.engine.hooks import HookRunner
from eval_gate.engine.journal import (
    JOURNAL_NAME,
    MAX_IN_MEMORY,
    FinishedTrials,
    Journal,
    JournalLine,
    TrialKey,
    TrialRecord,
    read_lines,
    rewrite_lines,
)
from eval_gate.engine.rerun_policy import RerunAllowance, RerunPolicy, RerunSpacing
from eval_gate.engine.result_builder import NO_BASE_AGENT_TRIALS, RunProgress, build_initial_result, build_run_result
from eval_gate.engine.retention import prepare_for_journal
from eval_gate.engine.run_plan import ExecutionFingerprints, RunPlan, describe_discarded_executions
from eval_gate.engine.suite_reruns import SuiteRerun, plan_suite_rerun
from eval_gate.engine.trials import (
    BatchResponses,
    NoResponseError,
    TrialJob,
    TrialRunner,
    TrialServices,
    build_defect_record,
    request_batches,
)
from eval_gate.engine.worker_pool import await_unless_stopped, run_jobs
from eval_gate.engine.workspaces import SharedWorkspaces, WorkspaceArtifacts, remove_artifacts
from eval_gate.model.case import CaseKey, EvalCase
from eval_gate.model.execution import ErrorCause, Status
from eval_gate.model.result import RerunStopReason, RunResult
from eval_gate.results.run_setup import RunSetup
from eval_gate.results.run_writer import make_run_folder, write_initial_result
from eval_gate.struct import replace
from eval_gate.targets.base import BatchTarget, Target, TargetError
from eval_gate.targets.conversation_session import ConversationSession
from eval_gate.targets.readiness import report_waiting_to
from eval_gate.text.javascript.regex import PatternMatcher

MAX_NAMED_ID: Final = 200
"""Characters of the id of a case in a notice."""


class Observer(Protocol):
    """Observer of a run, such as the progress display. It must return quickly and never raise."""

    def on_start(self, plan: RunPlan, total: int, finished: int) -> None:
        """Report the `total` trials of the run, and how many an earlier process has `finished`."""
        ...

    def on_trial(self, trial_record: TrialRecord) -> None:
        """One more trial is finished and journalled."""
        ...

    def on_wait(self, message: str) -> None:
        """Report that a target is not available yet; `message` is a sentence for people."""
        ...


class _TargetLane(NamedTuple):
    """Target of the current jobs, with the services that run and journal them."""

    target: Target
    runner: TrialRunner
    batch_responses: BatchResponses
    concurrency: int
    journal: Journal


class Run:
    """One run in progress. `stop(reason)` ends it early; finished trials are kept."""

    def __init__(self, plan: RunPlan, output_dir: Path, observer: Observer, in_memory: int = MAX_IN_MEMORY) -> None:
        """`in_memory`: finished trials that are not read again from the journal."""
        self._plan = plan
        self._folder = make_run_folder(output_dir, plan.run_id)
        if plan.recording is not None and plan.limits.keep_responses is not ResponseRetention.NONE:
            plan.recording.set_run_folder(self._folder)
        self._output_dir = output_dir
        self._observer = observer
        self._stop = asyncio.Event()
        self._target_stopped = asyncio.Event()
        """Set when the current target gets no more requests."""
        self._stopped: str | None = None
        self._stop_cause: tuple[ErrorCause | None, str | None] = (None, None)
        self._healthy: dict[int, bool] = {}
        self._sessions: dict[int, dict[str, ConversationSession]] = {}
        self._breaker = CircuitBreaker()
        self._listing: set[int] = set()
        """Targets (by `id`) that have listed their tool calls."""
        self._begun = Counter[int]()
        """Executions that were begun with each target (by `id`)."""
        self._notices: list[str] = []
        self._spent = 0.0
        self._conversation_costs: dict[TrialKey, float] = {}
        """Cost so far of the conversations that are in progress, or were cancelled with their target."""
        self._held_back = False
        self._trials = FinishedTrials(in_memory)
        self._resumed_trials: dict[CaseKey, int] = {}
        """Requested executions of the resumed run, for cases that it executed more often than this run."""
        self._shared_workspaces = SharedWorkspaces(plan.suites)
        self._case_workspaces = CaseWorkspaces(HookRunner.from_plan(plan))
        self._spacing = RerunSpacing()
        self._in_doubt: set[CaseKey] = set()
        self._due: set[CaseKey] = set()
        """Suspects that are being re-run."""
        self._masking = PatternMatcher()
        """Matches the `redact` patterns, independently of patterns in eval files."""
        self._base_agent = self._create_base_agent_run()
        self._allowance: RerunAllowance | None = None
        """Remaining budget while re-runs are in progress."""
        self._paused: RerunAllowance | None = None
        """Remaining budget between two phases of re-runs."""
        keeps = plan.keeps_artifacts and plan.limits.keep_responses is not ResponseRetention.NONE
        self._artifacts = WorkspaceArtifacts(self._folder, plan.patterns) if keeps else None

    def stop(self, reason: str) -> None:
        """End the run as soon as possible; the first reason counts."""
        if self._stopped is None:
            self._stopped, self._stop_cause = reason, (ErrorCause.INTERRUPTED, None)
        self._stop.set()
        self._target_stopped.set()

    async def execute(self) -> RunResult:
        """Run the jobs that no earlier process of the run finished, and build the run result.

        Raises GateError, before any request, if the results folder cannot be written.
        """
        started = time.perf_counter()
        plan = self._plan
        self._spacing.resume(self._folder / JOURNAL_NAME)
        await self._apply_retention()
        self._resume_from_journal(read_lines(self._folder / JOURNAL_NAME))
        # from the first moment: a killed run is found and resumed by this file, and never taken for a finished one
        write_initial_result(self._output_dir, build_initial_result(plan))
        jobs = self._list_open_jobs()
        total = plan.count_all_trials()
        async with AsyncExitStack() as opened:
            opened.push_async_callback(self._case_workspaces.aclose)
            journal = opened.enter_context(Journal(self._folder / JOURNAL_NAME))
            self._trials.journal = journal
            self._observer.on_start(plan, total, total - len(jobs))
            if jobs:
                waiting = [job for job in jobs if plan.is_deferred(job.case)]
                await self._run_jobs([job for job in jobs if not plan.is_deferred(job.case)], journal)
                self._held_back = bool(waiting) and await self._check_early_failure(journal)
                if waiting and not self._held_back and self._stopped is None:
                    await self._run_jobs(waiting, journal)
                del waiting
            if plan.rerun_policy is not None and self._stopped is None and not self._held_back:
                await self._rerun_suspects(plan.rerun_policy, journal)
            self._notices += self._list_budget_notices()
            await self._case_workspaces.aclose()
            self._notices += self._case_workspaces.notices
            del plan, jobs
            return self._build_result(round((time.perf_counter() - started) * 1000, 3), is_final=True)

    async def _run_jobs(self, jobs: list[TrialJob], journal: Journal) -> None:
        """Run all jobs, one target after the other: `--concurrency` is for the whole run."""
        by_target: dict[int, tuple[Target, list[TrialJob]]] = {}
        for job in jobs:
            target = self._plan.get_target(job.case)
            by_target.setdefault(id(target), (target, []))[1].append(job)
        for target, mine in by_target.values():
            if not self._stop.is_set() and await self._is_healthy(target):
                await self._run_target_jobs(target, mine, journal)

    async def _is_healthy(self, target: Target) -> bool:
        """Whether a target is healthy, checked once. Cases of an unhealthy target are `not_run`, with the reason."""
        if id(target) not in self._healthy:
            try:
                with report_waiting_to(self._observer.on_wait):
                    await await_unless_stopped(target.check_health(), self._stop)
                self._healthy[id(target)] = not self._stop.is_set()
            except TargetError as error:
                self._abandon_target(target, error.message, (error.cause, error.hint))
        return self._healthy[id(target)]

    def _abandon_target(self, target: Target, reason: str, cause: tuple[ErrorCause | None, str | None]) -> None:
        """Stop sending requests to this target for the given reason; other targets of the run go on."""
        if self._stopped is None:
            self._stopped, self._stop_cause = reason, cause
        self._healthy[id(target)] = False
        self._target_stopped.set()

    async def _run_target_jobs(self, target: Target, jobs: list[TrialJob], journal: Journal) -> None:
        plan = self._plan
        self._target_stopped.clear()
        if self._stop.is_set():
            return
        self._breaker.start_target()
        concurrency = plan.get_concurrency(target)
        batched = BatchResponses()
        if isinstance(target, BatchTarget) and target.batches and plan.model_proxy is None:
            affordable = jobs[: self._allowance.remaining] if self._allowance is not None else jobs
            # other jobs follow earlier executions, attempts or turns
            affordable = [job for job in affordable if not job.preceding_jobs and _is_one_request(job.case)]
            if await self._wait_for_batch(affordable):
                batched = await request_batches(target, affordable, plan.limits, self._target_stopped)
            self._notices += batched.notices
        patterns = PatternMatcher()
        shared = self._make_trial_services(patterns, self._artifacts)
        runner = TrialRunner(target, shared, self._spacing)
        lane = _TargetLane(target, runner, batched, concurrency, journal)

        async def work(job: TrialJob | None) -> None:
            while job is not None and not self._target_stopped.is_set():
                steps, rerun = (*job.preceding_jobs, job), SuiteRerun()
                if not self._can_begin(job, self._compute_wait_s(steps)):
                    return
                for one in steps:
                    if not self._target_stopped.is_set() and not await self._run_affordable_job(one, lane, rerun):
                        return
                job = self._plan_next_rerun(job.case) if self._is_rerun(job) else None

        try:
            await run_jobs(self._iter_affordable(jobs), concurrency, work, self._target_stopped)
        finally:
            await patterns.aclose()
            await self._masking.aclose()

    async def _wait_for_batch(self, jobs: Sequence[TrialJob]) -> bool:
        """Wait until all re-runs of a batch may begin, and return whether they may within the budget."""
        wait_s = self._compute_wait_s(jobs)
        if self._allowance is not None and not self._allowance.has_time(wait_s):
            return False
        if wait_s:
            self._observer.on_wait(f"{self._spacing.reason}: a batch of re-runs waits {wait_s:.1f} s")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._target_stopped.wait(), wait_s)
        return True

    def _compute_wait_s(self, jobs: Sequence[TrialJob]) -> float:
        """Compute the seconds until all jobs may begin; 0 for a learned wait that does not fit the budget."""
        limits, allowance = self._plan.limits, self._allowance
        reruns = [job.case.key for job in jobs if self._is_rerun(job)]
        wait_s = max(map(self._spacing.compute_wait_s, reruns), default=0.0)
        if wait_s and limits.rerun_interval is None and allowance is not None and not allowance.has_time(wait_s):
            # the remaining time is for executions: without a re-run, a suspect is not decided
            self._spacing.get_interval_s = lambda _: 0.0
            return 0.0
        return wait_s

    async def _run_affordable_job(self, job: TrialJob, lane: _TargetLane, rerun: SuiteRerun) -> bool:
        """Run a job, and return whether its conversation, if it has one, ended within the cost limit.

        Half a conversation shows nothing: it is not journalled, and only its cost counts.
        """
        try:
            await self._run_job(job, lane, rerun)
        except BudgetUsedError as error:
            self._add_cost(job.key, error.cost_usd)
            self._notices.append(
                f"case {job.case.id[:MAX_NAMED_ID]} was interrupted before turn {error.turn}, because the budget of "
                f"${self._plan.limits.max_cost_usd:g} is used up: its turns cost ${error.cost_usd:.4f}"
            )
            if not self._is_rerun(job):
                self._stop_for_budget()
            return False
        return True

    async def _run_job(self, job: TrialJob, lane: _TargetLane, rerun: SuiteRerun) -> None:
        """Make one execution and journal it; in a broken suite re-run, journal an error for each case that counts."""
        if rerun.broken_by is None:
            record = await self._run_trial(job, lane)
        elif job.preparatory:
            return
        else:
            record = await self._prepare_record(lane.runner.build_unmade_record(job, rerun.broken_by))
        if folder := self._shared_workspaces.name_workspace(job.case):
            record = replace(record, folder=folder)
        record, line = await self._write_record(lane.journal, rerun.add_execution(record))
        self._add_trial(record, line, lane.target)
        self._observer.on_trial(record)
        self._add_cost(record.key, record.total_cost_usd)

    async def _run_trial(self, job: TrialJob, lane: _TargetLane) -> TrialRecord:
        batch_response = lane.batch_responses.responses.get(job.key)
        self._begun[id(lane.target)] += 1
        ran_first = self._begun[id(lane.target)] <= lane.concurrency
        try:
            record = await self._prepare_record(await lane.runner.run(job, batch_response))
            self._breaker.record_response(lane.target)
        except NoResponseError as failure:
            record = await self._prepare_record(failure.record)
            self._count_failure(lane.target, lane.concurrency, NoResponseError(record))
        return replace(record, ran_first=True) if ran_first else record

    async def _check_early_failure(self, journal: Journal) -> bool:
        """Re-run suspects, and return whether they already fail the gate, so that deferred cases need not run."""
        policy = self._plan.rerun_policy
        if self._has_ended() or self._have_others_passed():
            return False
        if policy is None:
            return True
        await self._rerun_suspects(policy, journal)
        failed = not self._has_ended() and await asyncio.to_thread(policy.is_failing, self._build_result(0.0))
        if not (failed or self._has_ended()) and self._allowance is not None:
            self._paused, self._allowance = self._allowance.pause(), None
        return failed

    def _has_ended(self) -> bool:
        return self._stopped is not None

    async def _rerun_suspects(self, policy: RerunPolicy, journal: Journal) -> None:
        """Re-run suspected cases in turns; a second call, after more cases ran, leaves decided cases decided."""
        earlier_suspects, self._in_doubt = self._in_doubt, set()
        # new cases that were run more often must be found once more
        result = self._build_result(0.0, fresh=frozenset())
        doubtful = set(await asyncio.to_thread(policy.find_rerun_candidates, result))
        self._spacing.get_interval_s = policy.get_interval_s
        interval = self._plan.limits.rerun_interval
        self._spacing.reason = f"rerun-interval {interval}" if interval else "executions of one run belong together"
        cases = {case.key: case for case in self._plan.list_runnable_cases() if case.key in doubtful}
        begun = sum(len(self._list_reruns(case)) for key, case in cases.items() if key not in earlier_suspects)
        begun += self._trials.count_preparatory() if self._paused is None else 0
        self._in_doubt = earlier_suspects | doubtful
        base_agent = self._base_agent
        allowance = self._paused or RerunAllowance(self._plan.compute_rerun_budget())
        self._allowance = allowance.with_begun(begun)
        waiting = await self._rerun_in_turns(list(cases), cases, policy, journal)
        while base_agent is not None and await self._run_base_agent(base_agent, policy, allowance):
            waiting = await self._rerun_in_turns(waiting, cases, policy, journal)

    def _list_budget_notices(self) -> list[str]:
        """List notices about the cases for which the re-run budget did not suffice."""
        if self._allowance is None:
            return []
        ends = self._collect_rerun_ends().items()
        are_new = [key in self._new_cases for key, end in ends if end is RerunStopReason.BUDGET_USED]
        return list(self._allowance.iter_notices(suspects=are_new.count(False), new=are_new.count(True)))

    async def _rerun_in_turns(
        self, waiting: list[CaseKey], cases: Mapping[CaseKey, EvalCase], policy: RerunPolicy, journal: Journal
    ) -> list[CaseKey]:
        """Re-run the suspects that the policy selects until it selects none, and return the remaining suspects."""
        while waiting and self._stopped is None and (turn := policy.select_next(waiting)):
            self._due = set(turn)
            jobs = [job for key in turn if (job := self._plan_next_rerun(cases[key])) is not None]
            await self._run_jobs(list({job.key: job for job in jobs}.values()), journal)
            waiting = [key for key in waiting if key not in self._due]
        return waiting

    async def _run_base_agent(self, base_agent: BaseAgentRun, policy: RerunPolicy, allowance: RerunAllowance) -> bool:
        """Run the base agent while it may turn a failed gate, and return whether further re-runs are due."""
        repeatable, has_run = self._plan.list_base_agent_cases(), False
        with report_waiting_to(self._observer.on_wait):
            while self._stopped is None:
                request = await asyncio.to_thread(policy.build_base_agent_request, self._build_result(0.0), repeatable)
                if not await base_agent.run_round(request, allowance):
                    break
                has_run = True
        return has_run and await asyncio.to_thread(policy.has_cleared_failures, self._build_result(0.0))

    def _make_trial_services(
        self, patterns: PatternMatcher, artifacts: WorkspaceArtifacts | None = None
    ) -> TrialServices:
        plan = self._plan.without_cases()
        fingerprints = ExecutionFingerprints.from_plan(plan)
        return TrialServices(
            plan,
            patterns,
            self._case_workspaces,
            fingerprints,
            artifacts,
            can_continue=self._can_continue,
            sessions=self._sessions,
        )

    def _create_base_agent_run(self) -> BaseAgentRun | None:
        if self._plan.base_agent is None:
            return None
        services = RunServices(
            make_trial_services=lambda: self._make_trial_services(PatternMatcher()),
            masking=self._masking,
            add_cost=self._add_cost,
            has_budget=lambda: not self._is_over_budget(),
            stop=self._stop,
        )
        return BaseAgentRun(self._plan, self._plan.base_agent, self._folder, services)

    @property
    def _new_cases(self) -> Set[CaseKey]:
        """Cases that were run more often because no earlier run knows them."""
        policy = self._plan.rerun_policy
        return policy.new_cases if policy is not None else frozenset()

    def _can_begin(self, job: TrialJob, wait_s: float) -> bool:
        """Whether an execution may begin: a re-run, which is then counted, only if it and its wait fit the budget."""
        if self._allowance is None or not self._is_rerun(job):
            return True
        return self._allowance.try_begin(1 + len(job.preceding_jobs), wait_s=wait_s)

    def _plan_next_rerun(self, case: EvalCase) -> TrialJob | None:
        """Plan the next re-run of a case: a suite re-run of all cases in its folder, if it needs their files."""
        if self._is_over_budget():
            return None
        if case.dependent:
            return self._plan_suite_rerun(self._shared_workspaces.list_sharing_cases(case))
        first, records = self._get_first_rerun(case), self._list_reruns(case)
        if not self._should_rerun(case, records):
            return None
        return TrialJob(case, max((record.trial for record in records), default=first - 1) + 1)

    def _plan_suite_rerun(self, cases: Sequence[EvalCase]) -> TrialJob | None:
        """Plan the next suite re-run of cases that share a folder, up to the last case that is due."""
        numbers = [number for case in cases for number in self._trials.list_numbers(case.key)]
        begin = max(self._get_first_rerun(case) for case in cases)
        due = [case.key in self._due and self._should_rerun(case, self._list_reruns(case)) for case in cases]
        last = max((at for at, one in enumerate(due) if one), default=-1)
        return plan_suite_rerun(
            cases[: last + 1],
            max([begin - 1, *numbers]) + 1,
            lambda case: case.key in self._in_doubt and self._should_rerun(case, self._list_reruns(case)),
        )

    def _should_rerun(self, case: EvalCase, reruns: Sequence[TrialRecord]) -> bool:
        policy = self._plan.rerun_policy
        return policy is not None and policy.should_rerun(case.key, [build_trial(one) for one in reruns])

    def _list_reruns(self, case: EvalCase) -> list[TrialRecord]:
        first = self._get_first_rerun(case)
        records = (record for record in self._list_counted_trials(case) if record.trial >= first)
        return sorted(records, key=lambda record: record.trial)

    def _get_first_rerun(self, case: EvalCase) -> int:
        """Return the number of the first execution of a case that is a re-run."""
        return self._resumed_trials.get(case.key, self._plan.count_trials(case))

    def _is_rerun(self, job: TrialJob) -> bool:
        return job.trial >= self._plan.count_trials(job.case)

    def _collect_rerun_ends(self) -> dict[CaseKey, RerunStopReason]:
        """Collect the reasons why the re-runs of suspected cases ended."""
        policy = self._plan.rerun_policy
        if policy is None:
            return {}
        ends = {
            key: policy.get_rerun_end(key, [build_trial(one) for one in self._list_reruns(case)])
            for case in self._plan.list_runnable_cases()
            if (key := case.key) in self._in_doubt
        }
        if self._allowance is None or not self._allowance.refused:
            return ends
        return {
            key: RerunStopReason.BUDGET_USED if end is RerunStopReason.RUN_STOPPED else end for key, end in ends.items()
        }

    def _is_over_budget(self) -> bool:
        """Whether the cost limit of the run is reached."""
        budget = self._plan.limits.max_cost_usd
        return budget is not None and self._compute_spent_usd() >= budget

    def _compute_spent_usd(self) -> float:
        return self._spent + sum(self._conversation_costs.values())

    def _can_continue(self, key: TrialKey, target: Target, usd: float) -> bool:
        """Whether a conversation that has cost this much may have a further turn, given all that are in progress."""
        self._breaker.note_turn(target)
        self._conversation_costs[key] = usd
        return not self._is_over_budget()

    def _add_cost(self, key: TrialKey, usd: float) -> None:
        # if the cost of one turn is unknown, so is that of the conversation; the other turns still count
        usd = max(usd, self._conversation_costs.pop(key, 0.0))
        self._spent += usd
        if self._allowance is not None:
            self._allowance.add_cost(usd)

    def _iter_affordable(self, jobs: Iterable[TrialJob]) -> Iterator[TrialJob]:
        """Yield the jobs until the cost budget is used up; executions in flight at that moment still finish."""
        for job in jobs:
            if self._is_over_budget():
                self._stop_for_budget()
                return
            yield job

    def _stop_for_budget(self) -> None:
        if self._stopped is None:
            budget = self._plan.limits.max_cost_usd
            self._stopped = f"the budget of ${budget:g} is used up (${self._compute_spent_usd():.4f} spent)"
            self._stop_cause = ErrorCause.BUDGET_USED, None

    def _count_failure(self, target: Target, concurrency: int, failure: NoResponseError) -> None:
        """Abandon a target that is unreachable or hangs: its remaining cases get `not_run`."""
        timed_out_before = self._trials.has_timed_out(failure.record.case)
        if reason := self._breaker.record_failure(target, concurrency, failure, timed_out_before=timed_out_before):
            self._abandon_target(target, reason, (failure.record.error_cause, failure.record.error_hint))

    def _add_trial(self, trial_record: TrialRecord, line: JournalLine, target: Target) -> None:
        self._trials.add(trial_record, line)
        if trial_record.calls_listed:
            self._listing.add(id(target))

    async def _prepare_record(self, trial_record: TrialRecord) -> TrialRecord:
        """Return the trial with only as much of its response as may be stored."""
        return await prepare_for_journal(trial_record, self._plan, self._masking)

    async def _write_record(self, journal: Journal, trial_record: TrialRecord) -> tuple[TrialRecord, JournalLine]:
        """Append the trial, or an evaluation error if JSON cannot encode it, and return what was written."""
        try:
            return trial_record, journal.append(trial_record)
        except ValueError as error:
            trial_record = await self._prepare_record(build_defect_record(trial_record, error))
            return trial_record, journal.append(trial_record)

    def _list_counted_trials(self, case: EvalCase) -> list[TrialRecord]:
        """List the trials of a case so far, and mark unknown tool calls."""
        lists = id(self._plan.get_target(case)) in self._listing
        return mark_unlisted_calls(self._trials.load_trials(case.key), lists=lists)

    async def _apply_retention(self) -> None:
        """Apply the retention of this process to a resumed run, which may have begun with less strict settings."""
        plan = self._plan
        if plan.resumed_setup is None:
            return
        if plan.limits.keep_responses is ResponseRetention.NONE:
            remove_artifacts(self._folder)
        if plan.limits.keep_responses is ResponseRetention.NONE or plan.patterns:
            await rewrite_lines(self._folder / JOURNAL_NAME, self._prepare_record)

    def _resume_from_journal(self, lines: Iterable[tuple[TrialRecord, JournalLine]]) -> None:
        """Keep the scored trials of an earlier process; cases that share files run again if one of them runs again."""
        plan, trials = self._plan, self._trials
        cases = {case.key: case for case in plan.list_runnable_cases()}
        fingerprints, changed = ExecutionFingerprints.from_plan(plan), 0
        for record, line in lines:
            case = cases.get(record.case)
            if case is None:
                continue
            if fingerprints.compute(case) == record.fingerprint:
                trials.add(record, line)
            else:
                changed += 1
        if changed:
            self._notices.append(
                describe_discarded_executions(
                    changed, plan.resumed_setup, RunSetup.from_run(build_initial_result(plan))
                )
            )
        self._listing.update(find_listing_targets(plan, trials))
        for key in trials.list_cases():
            target = plan.get_target(cases[key])
            if trials.keep_scored(key, lists=id(target) in self._listing):
                self._breaker.record_response(target)
        resumed_setup = plan.resumed_setup.setup if plan.resumed_setup else None
        resumed_trials = (resumed_setup.trials if resumed_setup else None) or 0
        for key, trial in sorted(trials.list_keys()):
            if cases[key].trials is None and plan.limits.trials <= trial < resumed_trials:
                self._resumed_trials[key] = max(self._resumed_trials.get(key, 0), trial + 1)
        self._drop_interrupted()

    def _drop_interrupted(self) -> None:
        """Drop executions of interrupted cases, which are repeated, and the re-runs of these cases."""
        first, trials = self._plan.count_trials, self._trials
        counts = {case.key: first(case) for case in self._plan.list_runnable_cases()}
        for key, number in tuple(self._shared_workspaces.iter_interrupted(first, trials.find_folder)):
            trials.drop((key, number))
            for rerun in trials.list_numbers(key):
                if rerun >= counts[key]:
                    trials.drop((key, rerun))

    def _have_others_passed(self) -> bool:
        """Whether all cases that are executed and not deferred have passed."""
        first = [case for case in self._plan.list_runnable_cases() if not self._plan.is_deferred(case)]
        return all(
            (records := self._list_counted_trials(case)) and all(record.status is Status.PASSED for record in records)
            for case in first
        )

    def _list_open_jobs(self) -> list[TrialJob]:
        finished = self._trials.list_keys()
        cases, count = self._plan.list_runnable_cases(), self._plan.count_trials
        rounds = range(max(map(count, cases), default=0))
        jobs = (TrialJob(case, trial) for trial in rounds for case in cases if trial < count(case))
        return [job for job in jobs if job.key not in finished]

    def _build_result(self, wall_ms: float, *, is_final: bool = False, fresh: Set[CaseKey] | None = None) -> RunResult:
        """Build the result so far; `is_final` releases the trials. Without `fresh`, the policy names the new cases."""
        held_back = self._held_back and self._stopped is None
        base_agent = self._base_agent
        progress = RunProgress(
            self._trials,
            self._stopped,
            self._stop_cause,
            tuple(self._notices),
            held_back,
            self._collect_rerun_ends(),
            base_agent.records if base_agent else NO_BASE_AGENT_TRIALS,
            base_agent.facts if base_agent else None,
            self._new_cases if fresh is None else fresh,
            is_final,
            self._resumed_trials,
            policy.rerun_wait if (policy := self._plan.rerun_policy) is not None else 0,
        )
        return build_run_result(self._release_plan() if is_final else self._plan, progress, wall_ms)

    def _release_plan(self) -> RunPlan:
        """Return the plan, and keep only a copy without cases."""
        plan, self._plan = self._plan, self._plan.without_cases()
        return plan


def _is_one_request(case: EvalCase) -> bool:
    """Whether one execution of the case is one request, which can be part of a batch."""
    return case.attempt_rule is None and case.conversation is None and not case.hooks.list_hooks()
