"""Warm-up rounds: a run of the branch executes all cases in further rounds while its history is short.

A round is a run of its own with the same cases: it opens the target, its connections, sessions and processes anew, has
a run id, a folder and a journal of its own below the folder of the run, and no re-runs. A killed run that is resumed
takes up the rounds where they were. A round is stored only as a run of the history that names the run it belongs to
(`HistoryRun.warm_up_of`): it changes neither verdict nor counts of that run.

What it moves (`benchmarks/verdict/figures.md`): the history of a pull request has ten runs from the first day on, and
its figures are those after ten runs as far as executions of one day are independent.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from eval_gate.config.rerun_budget import RerunBudget, parse_rerun_budget, parse_rerun_interval
from eval_gate.config.settings import BaseAgentChoice, RecordingMode
from eval_gate.engine.rerun_policy import RerunAllowance
from eval_gate.engine.run_plan import RunPlan
from eval_gate.errors import ExitCode, GateError
from eval_gate.gate.evidence.case_history import find_comparable_runs
from eval_gate.gate.evidence.run_share import compute_rerun_wait
from eval_gate.model.execution_usage import measure_execution
from eval_gate.model.result import CaseResult, RunResult, WarmUp
from eval_gate.model.usage import add_up
from eval_gate.reports.wording.numbers import format_money
from eval_gate.results.baseline import Baseline
from eval_gate.results.history import History, build_history_run
from eval_gate.results.run_writer import write_history
from eval_gate.session.history_update import build_next_history
from eval_gate.session.run import RunObserver, execute_plan, plan_run
from eval_gate.session.session import Session
from eval_gate.struct import replace
from eval_gate.targets.isolation import isolate_execution

FOLDER: Final = "warm-up"
"""Folder of the rounds, in the folder of their run."""
DEFAULT_BUDGET: Final = RerunBudget(seconds=3600.0)
"""Budget of all rounds of one run if `rerunBudget` is not set."""


class WarmUpRounds:
    """Warm-up rounds that the history of a finished run lacks, so far."""

    def __init__(self, session: Session, run: RunResult, progress: RunObserver) -> None:
        self._session, self._run, self._progress = session, run, progress
        self._began = build_next_history(run, session.gate_inputs.baseline)
        self._rounds: list[RunResult] = []
        self._spent_usd: float | None = None
        self._problem: str | None = None
        budget = session.config.limits.rerun_budget
        self._allowance = RerunAllowance(DEFAULT_BUDGET if budget is None else parse_rerun_budget(budget))
        self.interrupted: ExitCode | None = None

    @property
    def history(self) -> History:
        """The history that ends with the run, with its rounds."""
        baseline = self._session.gate_inputs.baseline
        result = baseline.result if isinstance(baseline, Baseline) else None
        return self._began.with_warm_up(self._run, self._rounds, result) if self._rounds else self._began

    @property
    def summary(self) -> WarmUp | None:
        """Summary of the rounds for the run result; None without rounds and problems."""
        if not self._rounds and self._problem is None:
            return None
        return WarmUp(
            rounds=len(self._rounds),
            history_runs=len(find_comparable_runs(self.history)),
            executions=sum(len(case.list_executions()) for one in self._rounds for _, case in one.iter_cases()),
            cost_usd=self._spent_usd,
            problem=self._problem,
        )

    def _count_missing(self) -> int:
        rounds = self._session.config.warm_up
        if rounds is None or not build_history_run(self._run).is_usable:
            return 0
        return max(rounds - len(find_comparable_runs(self._began)) - len(self._rounds), 0)

    async def make_all(self) -> None:
        """Make rounds until none is missing, the limits are used up, or the agent does not answer.

        The history is written after each. None is missing if the setting is off, or if the run says too little to be
        in the history.
        """
        rounds = self._count_missing()
        if rounds and self._session.config.recording in {RecordingMode.REPLAY, RecordingMode.AUTO}:
            self._problem = "recorded responses are the same in every round"
        while self._count_missing() and self._problem is None and self.interrupted is None:
            number = len(self._rounds) + 1
            try:
                run = await self._make_round(number, rounds)
            except GateError as error:  # the run is over and stored: what its rounds lack does not change it
                self._problem = f"{error.message} in round {number}"
                return
            if run is not None and build_history_run(run).is_usable:
                self._rounds.append(run)
                write_history(self._session.folder, self._run.run_id, self.history)
            elif run is not None:
                self._problem = f"{run.stop_reason or 'most cases have no score'} in round {number}"

    async def _make_round(self, number: int, rounds: int) -> RunResult | None:
        wait_s, folder = self._get_wait_s(), self._session.folder / self._run.run_id / FOLDER
        run_id = f"{self._run.run_id}-{FOLDER}-{number}"
        is_resumed = (folder / run_id).exists()
        if not is_resumed and not self._can_begin(wait_s):
            return None
        self._progress.on_wait(f"warm-up round {number} of {rounds}")
        if not is_resumed:
            await asyncio.sleep(wait_s)
        plan = await self._plan_round(run_id, folder)
        with isolate_execution():
            executed = await execute_plan(self._session, plan, self._progress, folder)
        self.interrupted = executed.interrupted
        costs = _list_costs(executed.result)
        self._allowance.add_cost(sum(costs))
        self._spent_usd = add_up((self._spent_usd, *costs))
        return executed.result

    def _get_wait_s(self) -> float:
        """Get the seconds before a round: as long as a re-run waits, by the setting or by what the history shows."""
        interval = self._session.config.limits.rerun_interval
        if interval is not None:
            return parse_rerun_interval(interval)
        evidence = self._run.comparison.evidence if self._run.comparison else None
        return compute_rerun_wait(evidence.run_share) if evidence else 0.0

    def _can_begin(self, wait_s: float) -> bool:
        usd, room = estimate_round_cost(self._run) or 0.0, self._get_left_usd()
        if room is not None and room < usd + 1e-9:
            self._problem = f"maxCostUsd leaves {format_money(max(room, 0.0))} for a round of about {format_money(usd)}"
        elif not self._allowance.try_begin(count_round_executions(self._run), wait_s=wait_s):
            self._problem = f"the limit of {self._allowance.budget} is used up"
        return self._problem is None

    def _get_left_usd(self) -> float | None:
        """Get what the run and its rounds may still cost; None without a limit."""
        most = self._session.config.limits.max_cost_usd
        return None if most is None else most - sum(_list_costs(self._run), start=self._spent_usd or 0.0)

    async def _plan_round(self, run_id: str, folder: Path) -> RunPlan:
        """Plan a round: everything is read and opened again, without re-runs and deferred cases."""
        session = self._session
        config = replace(
            session.config,
            base_agent=BaseAgentChoice(),
            recording=RecordingMode.OFF,
            policy=replace(session.config.policy, reruns=0),
            limits=replace(session.config.limits, max_cost_usd=self._get_left_usd()),
            output_dir=str(folder),
        )
        plan = await plan_run(replace(session, config=config, context=replace(session.context, resume=None)))
        return replace(plan, run_id=run_id, timestamp=self._run.timestamp, rerun_policy=None, rubrics_wait=False)


def count_round_executions(run: RunResult) -> int:
    """Count the executions of one round: the first executions of every case that ran."""
    return sum(_count_first(case) for _, case in run.iter_cases())


def estimate_round_cost(run: RunResult) -> float | None:
    """Estimate the cost of one round in US dollars, with judges; None if no cost is known."""
    measured = ((measure_execution(case), _count_first(case)) for _, case in run.iter_cases())
    return add_up(usd and usd * count for one, count in measured for usd in (one.cost_usd, one.judge_cost_usd))


def _count_first(case: CaseResult) -> int:
    return max(len(case.list_executions()) - case.reruns, 0)


def _list_costs(run: RunResult) -> list[float]:
    return [usd for _, case in run.iter_cases() for usd in (case.cost_usd, case.judge_cost_usd) if usd is not None]
