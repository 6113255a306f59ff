"""The story of a run: open the journal, work through the trials, and say what came of every case."""

from __future__ import annotations

import asyncio
import gc
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from runner import __version__
from runner.engine.journal import JOURNAL_NAME, Journal, TrialRecord, read_journal
from runner.engine.plan import RunPlan
from runner.engine.pool import work_through
from runner.engine.rubrics import OTHERS_FAILED
from runner.engine.store import run_folder, write_record
from runner.engine.totals import summarise
from runner.engine.trials import Shared, TrialRunner, UnreachableError, settle
from runner.model.case import EvalCase, EvalSuite
from runner.model.result import CaseResult, RunResult, Status, SuiteResult, Summary, ToolFacts, ToolIdentity
from runner.targets.base import TargetError
from runner.text.ecma_regex import PatternMatcher

GIVE_UP_AFTER = 5
"""Trials in a row that found no connection, or as many as are in flight at once if that is more."""


class Observer(Protocol):
    """Somebody who watches a run, such as the progress display. Must return quickly and never raise."""

    def started(self, plan: RunPlan, total: int, done: int) -> None:
        """`total` trials belong to the run, `done` of them were finished by an earlier process."""
        ...

    def finished(self, record: TrialRecord) -> None:
        """One more trial is finished and journalled."""
        ...


Job = tuple[str, EvalCase, int]
"""One trial to be made: eval file, case, number of the trial."""
Trials = dict[tuple[str, str], list[TrialRecord]]
"""Finished trials by (eval file, case id)."""


class Run:
    """One run in progress. `stop(reason)` ends it early; what is finished is kept."""

    def __init__(self, plan: RunPlan, output_dir: Path, observer: Observer) -> None:
        self._plan = plan
        self._folder = run_folder(output_dir, plan.run_id)
        if plan.recording is not None:
            plan.recording.begin(self._folder)
        self._output_dir = output_dir
        self._observer = observer
        self._stop = asyncio.Event()
        self._stopped: str | None = None
        self._unreachable_in_a_row = 0
        self._spent = 0.0
        self._held_back = False
        self._trials: Trials = defaultdict(list)

    def stop(self, reason: str) -> None:
        """End the run as soon as possible; the first reason given is the one that is told."""
        self._stopped = self._stopped or reason
        self._stop.set()

    async def execute(self) -> RunResult:
        """Run what an earlier process of the same run has not finished, and build the result of all.

        Raises GateError when the results folder cannot be written; nothing was asked of the target then.
        """
        started = time.perf_counter()
        plan = self._plan
        self._take_over(read_journal(self._folder / JOURNAL_NAME))
        # from the first moment: a killed run is found and resumed by this record, and never taken for a finished one
        write_record(self._output_dir, self._begun())
        jobs = self._open_jobs()
        total = len(plan.runnable()) * plan.limits.trials
        # what was loaded lives until the end: no collection needs to look at it while cases are timed
        gc.freeze()
        with Journal(self._folder / JOURNAL_NAME) as journal:
            self._observer.started(plan, total, total - len(jobs))
            if jobs and await self._healthy():
                await self._work([job for job in jobs if not plan.waits(job[1])], journal)
                waiting = [job for job in jobs if plan.waits(job[1])]
                self._held_back = bool(waiting) and not self._others_passed()
                if waiting and not self._held_back and self._stopped is None:
                    await self._work(waiting, journal)
        return self._result(round((time.perf_counter() - started) * 1000, 3))

    async def _healthy(self) -> bool:
        try:
            await self._plan.target.check_health()
        except TargetError as error:
            self.stop(_sentence(error.message, error.hint))
            return False
        return not self._stop.is_set()

    async def _work(self, jobs: list[Job], journal: Journal) -> None:
        plan = self._plan
        patterns = PatternMatcher()
        trials = TrialRunner(plan.target, plan.limits, Shared(plan.tokens, patterns, plan.judge))

        async def work(job: Job) -> None:
            try:
                record = await trials.run(*job)
                self._unreachable_in_a_row = 0
            except UnreachableError as failure:
                record = failure.record
                self._count_unreachable(failure)
            journal.append(record)
            self._trials[record.eval_file, record.case_id].append(record)
            self._observer.finished(record)
            self._spend(record)

        try:
            await work_through(self._affordable(jobs), plan.limits.concurrency, work, self._stop)
        finally:
            await patterns.aclose()

    def _spend(self, record: TrialRecord) -> None:
        self._spent += (record.cost_usd or 0.0) + (record.judge_cost_usd or 0.0)

    def _affordable(self, jobs: Iterable[Job]) -> Iterator[Job]:
        """The jobs, until the budget is used up; what is in flight then is finished all the same."""
        budget = self._plan.limits.max_cost_usd
        for job in jobs:
            if budget is not None and self._spent >= budget:
                self._stopped = self._stopped or f"the budget of ${budget:g} is used up (${self._spent:.4f} spent)"
                return
            yield job

    def _count_unreachable(self, failure: UnreachableError) -> None:
        """Give up on a target that is gone: the rest is `not_run`, instead of hours of refused connections."""
        self._unreachable_in_a_row += 1
        attempts = self._unreachable_in_a_row
        if attempts >= max(GIVE_UP_AFTER, self._plan.limits.concurrency):
            self.stop(_sentence(f"no connection to the target, {attempts} cases in a row: {failure}", failure.hint))

    def _take_over(self, records: Iterable[TrialRecord]) -> None:
        """Keep what an earlier process finished. A trial that could not be judged is not finished: it runs again."""
        known = {(suite.file, case.id): case.fingerprint for suite, case in self._plan.runnable()}
        latest = {record.key: record for record in records}
        for record in latest.values():
            case_key = record.eval_file, record.case_id
            if record.status.judged and known.get(case_key) == record.fingerprint:
                self._trials[case_key].append(record)

    def _others_passed(self) -> bool:
        """Whether all cases that no rubric waits for were judged and passed."""
        first = [(suite.file, case.id) for suite, case in self._plan.runnable() if not self._plan.waits(case)]
        return all(
            (records := self._trials.get(key)) and all(record.status is Status.PASSED for record in records)
            for key in first
        )

    def _open_jobs(self) -> list[Job]:
        finished = {record.key for records in self._trials.values() for record in records}
        return [
            (suite.file, case, trial)
            for trial in range(self._plan.limits.trials)
            for suite, case in self._plan.runnable()
            if (suite.file, case.id, trial) not in finished
        ]

    def _begun(self) -> RunResult:
        """The record of a run that has only begun: what it is about, and no case yet."""
        plan = self._plan
        total = sum(len(suite.cases) for suite in plan.suites)
        return RunResult(
            run_id=plan.run_id,
            timestamp=plan.timestamp,
            complete=False,
            tool=ToolIdentity(version=__version__),
            target=plan.target.identity,
            git=plan.git,
            shard=plan.shard,
            partial=plan.partial,
            summary=Summary(total_cases=total, not_run=total),
            warnings=plan.warnings,
        )

    def _result(self, wall_ms: float) -> RunResult:
        suites = tuple(self._suite_result(suite) for suite in self._plan.suites)
        cases = [case for suite in suites for case in suite.cases]
        return self._begun().model_copy(
            update={
                "complete": all(case.status is not Status.NOT_RUN for case in cases),
                "suites": suites,
                "summary": summarise(cases, wall_ms),
                "stopped": self._stopped,
                "warnings": (*self._plan.warnings, *self._plan.target.notices, *self._plan.judge_notices()),
            }
        )

    def _case_result(self, suite: EvalSuite, case: EvalCase) -> CaseResult:
        records = self._trials.get((suite.file, case.id), [])
        if not records and self._held_back and self._stopped is None and self._plan.waits(case):
            case = case.model_copy(update={"skip_reason": OTHERS_FAILED})
        return settle(case, records)

    def _suite_result(self, suite: EvalSuite) -> SuiteResult:
        plan = self._plan
        staleness = plan.staleness.get(suite.file)
        cases = tuple(self._case_result(suite, case) for case in suite.cases)
        return SuiteResult(
            run_id=plan.run_id,
            timestamp=plan.timestamp,
            tier=suite.tier,
            tool_name=suite.tool_name,
            agent_endpoint=plan.target.identity.identity,
            metadata=staleness.facts if staleness else ToolFacts(eval_file_hash=suite.file_hash),
            staleness_warnings=staleness.warnings if staleness else (),
            stale=staleness.stale if staleness else False,
            stale_facts=staleness.stale_facts if staleness else (),
            notices=staleness.notices if staleness else (),
            cases=cases,
            summary=summarise(cases),
            eval_file=suite.file,
            format=suite.format,
            warnings=suite.warnings,
        )


def _sentence(message: str, hint: str | None) -> str:
    return f"{message} ({hint})" if hint else message
