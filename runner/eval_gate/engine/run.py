"""The story of a run: open the journal, work through the trials, and say what came of every case."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple, Protocol

from eval_gate.config.settings import Store
from eval_gate.engine.confirming import Confirming
from eval_gate.engine.control import ControlAsking, RunServices
from eval_gate.engine.fingerprints import SetupFingerprints, measured_anew
from eval_gate.engine.folders import Leavings, SharedFolders, remove_left_files
from eval_gate.engine.giving_up import Unanswered, with_hint
from eval_gate.engine.journal import (
    IN_MEMORY,
    JOURNAL_NAME,
    FinishedTrials,
    Journal,
    JournalLine,
    TrialRecord,
    read_lines,
    rewrite_lines,
)
from eval_gate.engine.outcome import NOTHING_ASKED, RunProgress, initial_record, outcome
from eval_gate.engine.plan import RunPlan
from eval_gate.engine.pool import work_through
from eval_gate.engine.rerun_allowance import Allowance
from eval_gate.engine.retention import for_journal
from eval_gate.engine.settling import trial_of
from eval_gate.engine.suite_reruns import SuiteRerun, suite_rerun
from eval_gate.engine.trials import (
    BatchAnswers,
    NoAnswerError,
    TrialJob,
    TrialRunner,
    TrialServices,
    ask_batches,
    defective,
)
from eval_gate.engine.unreported_tools import mark_unreported, targets_that_list
from eval_gate.model.case import CaseKey, EvalCase
from eval_gate.model.execution import Status
from eval_gate.model.result import RerunEnd, RunResult
from eval_gate.results.run_setup import RunSetup
from eval_gate.results.write import run_folder, write_record
from eval_gate.struct import replace
from eval_gate.targets.base import BatchTarget, Target, TargetError
from eval_gate.targets.waiting import told_to
from eval_gate.text.javascript.regex import PatternMatcher


class Observer(Protocol):
    """Somebody who watches a run, such as the progress display. Must return quickly and never raise."""

    def started(self, plan: RunPlan, total: int, done: int) -> None:
        """`total` trials belong to the run, `done` of them were finished by an earlier process."""
        ...

    def finished(self, record: TrialRecord) -> None:
        """One more trial is finished and journalled."""
        ...

    def waiting(self, said: str) -> None:
        """A target is not there yet, in words for people."""
        ...


class _Lane(NamedTuple):
    """One target at work, and where what comes of it is kept."""

    target: Target
    trials: TrialRunner
    batched: BatchAnswers
    concurrency: int
    journal: Journal


class Run:
    """One run in progress. `stop(reason)` ends it early; what is finished is kept."""

    def __init__(self, plan: RunPlan, output_dir: Path, observer: Observer, in_memory: int = IN_MEMORY) -> None:
        """`in_memory`: finished trials that are not read again from the journal."""
        self._plan = plan
        self._folder = run_folder(output_dir, plan.run_id)
        if plan.recording is not None and plan.limits.store is not Store.NONE:
            plan.recording.begin(self._folder)
        self._output_dir = output_dir
        self._observer = observer
        self._stop = asyncio.Event()
        self._lane = asyncio.Event()
        """Set when the target that is being asked is to be asked no more."""
        self._stopped: str | None = None
        self._healthy: dict[int, bool] = {}
        self._unanswered = Unanswered()
        self._listing: set[int] = set()
        """Targets (by `id`) that have listed their tool calls."""
        self._notices: list[str] = []
        self._spent = 0.0
        self._held_back = False
        self._trials = FinishedTrials(in_memory)
        self._asked_for: dict[CaseKey, int] = {}
        """How many executions a run that is resumed had asked for, of cases that it executed more often than this."""
        self._folders = SharedFolders(plan.suites)
        self._in_doubt: set[CaseKey] = set()
        self._due: set[CaseKey] = set()
        """Those of them whose turn it is."""
        self._control = self._asking_control()
        self._allowance: Allowance | None = None
        """What is left for re-runs, while there are any."""
        self._paused: Allowance | None = None
        """The same between two times at which there are."""
        keeps = plan.keeps_files and plan.limits.store is not Store.NONE
        self._leavings = Leavings(self._folder, plan.patterns) if keeps else None
        self._masking = PatternMatcher()
        """Looks for `redact`'s patterns, whatever patterns of eval files are at work meanwhile."""

    def stop(self, reason: str) -> None:
        """End the run as soon as possible; the first reason given is the one that is told."""
        self._stopped = self._stopped or reason
        self._stop.set()
        self._lane.set()

    async def execute(self) -> RunResult:
        """Run what an earlier process of the same run has not finished, and build the result of all.

        Raises GateError when the results folder cannot be written; nothing was asked of the target then.
        """
        started = time.perf_counter()
        plan = self._plan
        await self._keep_less()
        self._take_over(read_lines(self._folder / JOURNAL_NAME))
        # from the first moment: a killed run is found and resumed by this record, and never taken for a finished one
        write_record(self._output_dir, initial_record(plan))
        jobs = self._open_jobs()
        total = len(plan.runnable()) * plan.limits.trials
        with Journal(self._folder / JOURNAL_NAME) as journal:
            self._trials.journal = journal
            self._observer.started(plan, total, total - len(jobs))
            if jobs:
                waiting = [job for job in jobs if plan.waits(job.case)]
                await self._work([job for job in jobs if not plan.waits(job.case)], journal)
                self._held_back = bool(waiting) and await self._is_red(journal)
                if waiting and not self._held_back and self._stopped is None:
                    await self._work(waiting, journal)
                del waiting
            if plan.confirming is not None and self._stopped is None and not self._held_back:
                await self._confirm(plan.confirming, journal)
            self._notices += self._unspent()
            del plan, jobs
            return self._result(round((time.perf_counter() - started) * 1000, 3), over=True)

    async def _work(self, jobs: list[TrialJob], journal: Journal) -> None:
        """All jobs, target by target: what was asked for at once (`--concurrency`) holds for the whole run."""
        by_target: dict[int, tuple[Target, list[TrialJob]]] = {}
        for job in jobs:
            target = self._plan.target_of(job.case)
            by_target.setdefault(id(target), (target, []))[1].append(job)
        for target, mine in by_target.values():
            if not self._stop.is_set() and await self._is_healthy(target):
                await self._ask(target, mine, journal)

    async def _is_healthy(self, target: Target) -> bool:
        """Asked once a target. The cases of one that is not are `not_run`, and the run says why."""
        if id(target) not in self._healthy:
            try:
                with told_to(self._observer.waiting):
                    await self._until_stopped(target.check_health())
                self._healthy[id(target)] = not self._stop.is_set()
            except TargetError as error:
                self._give_up(target, with_hint(error.message, error.hint))
        return self._healthy[id(target)]

    async def _until_stopped(self, check: Coroutine[None, None, None]) -> None:
        """Wait for a target no longer than for the end of the run. Raises TargetError."""
        checking, stopping = asyncio.ensure_future(check), asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({checking, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if checking.done():
                checking.result()
        finally:
            for task in (checking, stopping):
                task.cancel()
            await asyncio.gather(checking, stopping, return_exceptions=True)

    def _give_up(self, target: Target, reason: str) -> None:
        """This target is asked no more. Other targets of the run are."""
        self._stopped = self._stopped or reason
        self._healthy[id(target)] = False
        self._lane.set()

    async def _ask(self, target: Target, jobs: list[TrialJob], journal: Journal) -> None:
        plan = self._plan
        self._lane.clear()
        if self._stop.is_set():
            return
        self._unanswered.begin()
        concurrency = plan.concurrency_of(target)
        batched = BatchAnswers()
        if isinstance(target, BatchTarget) and target.batches:
            affordable = jobs[: self._allowance.remaining] if self._allowance is not None else jobs
            affordable = [job for job in affordable if not job.before]  # these have to come after others
            batched = await ask_batches(target, affordable, plan.limits, self._lane)
            self._notices += batched.notices
        patterns = PatternMatcher()
        shared = TrialServices.of(plan, patterns, plan.run_id, self._leavings)
        trials = TrialRunner(target, plan.limits, shared)
        lane = _Lane(target, trials, batched, concurrency, journal)

        async def work(job: TrialJob | None) -> None:
            while job is not None and not self._lane.is_set():
                steps, rerun = (*job.before, job), SuiteRerun()
                wait_s = max([trials.wait_s(one, batched.answers.get(one.key)) for one in steps])
                if not self._may_begin(job, wait_s):
                    return
                for one in steps:
                    if not self._lane.is_set():
                        await self._make(one, lane, rerun)
                job = self._next(job.case) if job.trial >= plan.limits.trials else None

        try:
            await work_through(self._affordable(jobs), concurrency, work, self._lane)
        finally:
            await patterns.aclose()
            await self._masking.aclose()

    async def _make(self, job: TrialJob, lane: _Lane, rerun: SuiteRerun) -> None:
        """Make one execution, and keep it; of a suite re-run that broke only what counts is kept as broken."""
        if rerun.broken_by is None:
            record = await self._made(job, lane)
        elif job.preparatory:
            return
        else:
            record = await self._stored(lane.trials.unmade(job, rerun.broken_by))
        if folder := self._folders.name(job.case):
            record = replace(record, folder=folder)
        record, line = await self._written(lane.journal, rerun.told(record))
        self._keep(record, line, lane.target)
        self._observer.finished(record)
        self._spend(record)

    async def _made(self, job: TrialJob, lane: _Lane) -> TrialRecord:
        try:
            record = await self._stored(await lane.trials.run(job, lane.batched.answers.get(job.key)))
            self._unanswered.note_answer(lane.target)
        except NoAnswerError as failure:
            record = await self._stored(failure.record)
            self._count_unanswered(lane.target, lane.concurrency, NoAnswerError(record, failure.hint))
        return record

    async def _is_red(self, journal: Journal) -> bool:
        """Whether the gate fails by what was run so far, its re-runs among it, so that nothing else need be run."""
        confirming = self._plan.confirming
        if self._has_ended() or self._others_passed():
            return False
        if confirming is None:
            return True
        await self._confirm(confirming, journal)
        red = not self._has_ended() and await asyncio.to_thread(confirming.is_red, self._result(0.0))
        if not (red or self._has_ended()) and self._allowance is not None:
            self._paused, self._allowance = self._allowance.paused(), None
        return red

    def _has_ended(self) -> bool:
        return self._stopped is not None

    async def _confirm(self, confirming: Confirming, journal: Journal) -> None:
        """Run again what is in doubt, turn by turn; a run that is resumed goes on where it was.

        Called a second time where more cases were run since: what was decided stays decided.
        """
        known, self._in_doubt = self._in_doubt, set()
        # what was run more often because it is new is to be found once more
        result = self._result(0.0, fresh=frozenset())
        doubtful = set(await asyncio.to_thread(confirming.doubtful, result))
        cases = {case.key: case for case in self._plan.runnable() if case.key in doubtful}
        begun = sum(len(self._reruns(case)) for key, case in cases.items() if key not in known)
        begun += self._trials.count_preparatory() if self._paused is None else 0
        self._in_doubt = known | doubtful
        control = self._control
        self._allowance = allowance = (self._paused or Allowance(self._plan.rerun_budget())).with_begun(begun)
        waiting = await self._run_again(list(cases), cases, confirming, journal)
        while control is not None and await self._ask_control(control, confirming, allowance):
            waiting = await self._run_again(waiting, cases, confirming, journal)

    def _unspent(self) -> list[str]:
        """What the budget for re-runs did not reach for."""
        if self._allowance is None:
            return []
        spared = [key in self._fresh for key, end in self._ends().items() if end is RerunEnd.SPENT]
        return list(self._allowance.notices(suspects=spared.count(False), new=spared.count(True)))

    async def _run_again(
        self, waiting: list[CaseKey], cases: Mapping[CaseKey, EvalCase], confirming: Confirming, journal: Journal
    ) -> list[CaseKey]:
        """Turn by turn; those that were never due, because nothing could be learnt by them."""
        while waiting and self._stopped is None and (turn := confirming.turn(waiting)):
            self._due = set(turn)
            jobs = [job for key in turn if (job := self._next(cases[key])) is not None]
            await self._work(list({job.key: job for job in jobs}.values()), journal)
            waiting = [key for key in waiting if key not in self._due]
        return waiting

    async def _ask_control(self, control: ControlAsking, confirming: Confirming, allowance: Allowance) -> bool:
        """Ask the base branch's agent as long as the gate is red and it may turn that.

        Whether it cleared anything, so that cases which were spared for that are to be run again after all.
        """
        askable, asked = self._plan.askable(), False
        with told_to(self._observer.waiting):
            while self._stopped is None:
                wanted = await asyncio.to_thread(confirming.of_control, self._result(0.0), askable)
                if not await control.ask(wanted, allowance):
                    break
                asked = True
        return asked and await asyncio.to_thread(confirming.cleared, self._result(0.0))

    def _asking_control(self) -> ControlAsking | None:
        if self._plan.control is None:
            return None
        services = RunServices(
            shared=lambda: TrialServices.of(self._plan, PatternMatcher(), self._plan.run_id),
            stored=self._stored,
            spend=self._spend,
            affordable=lambda: not self._used_up(),
            unless_stopped=self._until_stopped,
            stop=self._stop,
        )
        return ControlAsking(self._plan, self._plan.control, self._folder, services)

    @property
    def _fresh(self) -> Set[CaseKey]:
        """Cases that were run more often because no earlier run knows them."""
        confirming = self._plan.confirming
        return confirming.fresh if confirming is not None else frozenset()

    def _may_begin(self, job: TrialJob, wait_s: float) -> bool:
        """A first execution may, and a re-run as long as the budget for those lasts, and the wait before it."""
        if job.trial < self._plan.limits.trials or self._allowance is None:
            return True
        return self._allowance.take(1 + len(job.before), wait_s=wait_s)

    def _next(self, case: EvalCase) -> TrialJob | None:
        """The next re-run of a case, if there is to be one; re-runs of one case come one after the other.

        Of a case that works on files of earlier ones it is the next one of all in its suite whose turn it is.
        """
        if self._used_up():
            return None
        if case.dependent:
            return self._next_of_suite(self._folders.sharing(case))
        first, records = self._first_rerun(case), self._reruns(case)
        if not self._wants_rerun(case, records):
            return None
        return TrialJob(case, max((record.trial for record in records), default=first - 1) + 1)

    def _next_of_suite(self, cases: Sequence[EvalCase]) -> TrialJob | None:
        """The next suite re-run of cases that share a folder: up to the last one whose turn it is."""
        numbers = [number for case in cases for number in self._trials.numbers_of(case.key)]
        begin = max(self._first_rerun(case) for case in cases)
        due = [case.key in self._due and self._wants_rerun(case, self._reruns(case)) for case in cases]
        last = max((at for at, one in enumerate(due) if one), default=-1)
        return suite_rerun(
            cases[: last + 1],
            max([begin - 1, *numbers]) + 1,
            lambda case: case.key in self._in_doubt and self._wants_rerun(case, self._reruns(case)),
        )

    def _wants_rerun(self, case: EvalCase, reruns: Sequence[TrialRecord]) -> bool:
        confirming = self._plan.confirming
        return confirming is not None and confirming.wants_rerun(case.key, [trial_of(one) for one in reruns])

    def _reruns(self, case: EvalCase) -> list[TrialRecord]:
        first = self._first_rerun(case)
        records = (record for record in self._counted(case) if record.trial >= first)
        return sorted(records, key=lambda record: record.trial)

    def _first_rerun(self, case: EvalCase) -> int:
        """The number of the first execution of a case that is a re-run."""
        return self._asked_for.get(case.key, self._plan.limits.trials)

    def _ends(self) -> dict[CaseKey, RerunEnd]:
        """Why the cases in doubt were not run again any more."""
        confirming = self._plan.confirming
        if confirming is None:
            return {}
        ends = {
            key: confirming.end(key, [trial_of(one) for one in self._reruns(case)])
            for case in self._plan.runnable()
            if (key := case.key) in self._in_doubt
        }
        if self._allowance is None or not self._allowance.refused:
            return ends
        return {key: RerunEnd.SPENT if end is RerunEnd.STOPPED else end for key, end in ends.items()}

    def _used_up(self) -> bool:
        """Whether the run has cost what it may cost."""
        budget = self._plan.limits.max_cost_usd
        return budget is not None and self._spent >= budget

    def _spend(self, record: TrialRecord) -> None:
        usd = (record.cost_usd or 0.0) + (record.judge_cost_usd or 0.0)
        self._spent += usd
        if self._allowance is not None:
            self._allowance.cost(usd)

    def _affordable(self, jobs: Iterable[TrialJob]) -> Iterator[TrialJob]:
        """The jobs, until the budget is used up; what is in flight then is finished all the same."""
        budget = self._plan.limits.max_cost_usd
        for job in jobs:
            if budget is not None and self._spent >= budget:
                self._stopped = self._stopped or f"the budget of ${budget:g} is used up (${self._spent:.4f} spent)"
                return
            yield job

    def _count_unanswered(self, target: Target, concurrency: int, failure: NoAnswerError) -> None:
        """Give up on a target that is gone or hangs: the rest is `not_run`."""
        was_late = self._trials.were_late(failure.record.case)
        if reason := self._unanswered.enough(target, concurrency, failure, was_late=was_late):
            self._give_up(target, reason)

    def _keep(self, record: TrialRecord, line: JournalLine, target: Target) -> None:
        self._trials.add(record, line)
        if record.calls_listed:
            self._listing.add(id(target))

    async def _stored(self, record: TrialRecord) -> TrialRecord:
        """The trial with as much of its answer as may be kept."""
        return await for_journal(record, self._plan.limits.store, self._plan.patterns, self._masking)

    async def _written(self, journal: Journal, record: TrialRecord) -> tuple[TrialRecord, JournalLine]:
        """The trial as it stands in the journal: where it holds what no file can, that is what became of it."""
        try:
            return record, journal.append(record)
        except ValueError as error:
            record = await self._stored(defective(record, error))
            return record, journal.append(record)

    def _counted(self, case: EvalCase) -> list[TrialRecord]:
        """The trials of a case so far, as they count."""
        lists = id(self._plan.target_of(case)) in self._listing
        return mark_unreported(self._trials.of(case.key), lists=lists)

    async def _keep_less(self) -> None:
        """Of a run that is resumed, keep no more than this process may: it may have been begun by laxer settings."""
        plan = self._plan
        if plan.resumed is None:
            return
        if plan.limits.store is Store.NONE:
            remove_left_files(self._folder)
        if plan.limits.store is Store.NONE or plan.patterns:
            await rewrite_lines(self._folder / JOURNAL_NAME, self._stored)

    def _take_over(self, written: Iterable[tuple[TrialRecord, JournalLine]]) -> None:
        """Keep what an earlier process finished. A trial that could not be judged is not finished: it runs again.

        So do all of a suite whose cases work on each other's files, where one of them does.
        """
        plan, trials = self._plan, self._trials
        known = {case.key: case for case in plan.runnable()}
        fingerprints, others = SetupFingerprints.of_plan(plan), 0
        for record, line in written:
            case = known.get(record.case)
            if case is None:
                continue
            if fingerprints.of(case) == record.fingerprint:
                trials.add(record, line)
            else:
                others += 1
        if others:
            self._notices.append(measured_anew(others, plan.resumed, RunSetup.of(initial_record(plan))))
        self._listing.update(targets_that_list(plan, trials))
        for key in trials.cases():
            target = plan.target_of(known[key])
            if trials.keep_judged(key, lists=id(target) in self._listing):
                self._unanswered.note_answer(target)
        before = plan.resumed.measuring if plan.resumed else None
        asked_for = (before.trials if before else None) or 0
        for key, trial in sorted(trials.keys()):
            if plan.limits.trials <= trial < asked_for:
                self._asked_for[key] = max(self._asked_for.get(key, 0), trial + 1)
        self._drop_broken_off()

    def _drop_broken_off(self) -> None:
        """Let go of what is made anew, and of re-runs that were made because of it."""
        first, trials = self._plan.limits.trials, self._trials
        for key, number in tuple(self._folders.broken_off(first, trials.folder_of)):
            trials.drop((key, number))
            for again in trials.numbers_of(key):
                if again >= first:
                    trials.drop((key, again))

    def _others_passed(self) -> bool:
        """Whether all cases that no rubric waits for were judged and passed."""
        first = [case for case in self._plan.runnable() if not self._plan.waits(case)]
        return all(
            (records := self._counted(case)) and all(record.status is Status.PASSED for record in records)
            for case in first
        )

    def _open_jobs(self) -> list[TrialJob]:
        finished = self._trials.keys()
        jobs = (TrialJob(case, trial) for trial in range(self._plan.limits.trials) for case in self._plan.runnable())
        return [job for job in jobs if job.key not in finished]

    def _result(self, wall_ms: float, *, over: bool = False, fresh: Set[CaseKey] | None = None) -> RunResult:
        """The result of all trials so far. Where the run is `over`, it holds neither trials nor cases from then on.

        `fresh` are the new cases, whose further runs are none of doubt; None for those that are known to be.
        """
        held_back = self._held_back and self._stopped is None
        control = self._control
        progress = RunProgress(
            self._trials,
            self._stopped,
            tuple(self._notices),
            held_back,
            self._ends(),
            control.records if control else NOTHING_ASKED,
            control.facts if control else None,
            self._fresh if fresh is None else fresh,
            over,
            self._asked_for,
        )
        return outcome(self._handed_over() if over else self._plan, progress, wall_ms)

    def _handed_over(self) -> RunPlan:
        """The plan, of which the run itself keeps no case."""
        plan, self._plan = self._plan, self._plan.of_no_case()
        return plan
