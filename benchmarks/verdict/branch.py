"""Runs out of draws, made as the engine makes them and kept as the action keeps them: re-runs, ledger, disk, shards."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from eval_gate.config.policy import FailOn, Policy
from eval_gate.engine.case_result import count_reruns_as_new
from eval_gate.gate.reruns import RerunInterval, Reruns
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.model.case import CaseKey, Tier, build_pass_rule, decide_pass
from eval_gate.model.execution import ErrorKind, Status, Trial
from eval_gate.model.result import (
    BaseAgentSummary,
    CaseResult,
    RerunStopReason,
    RunResult,
    Shard,
    SuiteResult,
    ToolIdentity,
)
from eval_gate.model.run_totals import summarize_cases
from eval_gate.model.setup import TargetIdentity
from eval_gate.results.baseline import Baseline, NoBaseline, has_enough_scores
from eval_gate.results.history import EMPTY_HISTORY, History
from eval_gate.results.merge import merge_runs
from eval_gate.results.run_reader import read_run, require_baseline
from eval_gate.results.run_writer import write_history, write_result
from eval_gate.session.history_update import build_next_history
from eval_gate.struct import replace

FILE = "suite.json"
PASS_SCORE = 0.8
"""Of worlds with graded cases."""
SHARDS = 4
TOO_LATE = "no answer in time"
_TOOL = ToolIdentity(version="simulated")
_TARGET = TargetIdentity(name="agent", provider="http", identity="http://simulated")
_THERE = TargetIdentity(name="agent", provider="http", identity="http://simulated.base")

Execution = str | float
"""`P`, `F`, `C` (HTTP 500), `T` (no answer in time), or the score of a graded case."""
Again = Callable[[int], Execution]
"""One more execution of the case with this number."""


def policy(
    false_alarm_rate: float, *, graded: bool, pass_score: float = PASS_SCORE, max_score_drop: float | None = None
) -> Policy:
    """Build the policy of the action with this error rate.

    `pass_score` only applies to graded cases.
    """
    return Policy(
        frozenset({FailOn.REGRESSIONS}),
        false_alarm_rate=false_alarm_rate,
        pass_score=pass_score if graded else 1.0,
        max_score_drop=max_score_drop,
    )


@lru_cache(maxsize=10_000)
def _trial(what: Execution) -> Trial:
    if isinstance(what, float):
        status = Status.PASSED if what >= 1.0 else Status.FAILED
        return Trial(status=status, score=what, duration_ms=1.0)
    if what == "C":
        return Trial(status=Status.ERROR, score=0.0, duration_ms=1.0, error_kind=ErrorKind.AGENT_ERROR)
    if what == "T":
        return Trial(
            status=Status.ERROR,
            score=0.0,
            duration_ms=1.0,
            error_kind=ErrorKind.AGENT_ERROR,
            error=TOO_LATE,
            timed_out=True,
        )
    return Trial(status=Status.PASSED if what == "P" else Status.FAILED, score=float(what == "P"), duration_ms=1.0)


@lru_cache(maxsize=20_000)
def _case(
    at: int,
    done: tuple[Execution, ...],
    end: RerunStopReason | None,
    there: tuple[Execution, ...] = (),
    first: int = 1,
    needed: int | None = None,
) -> CaseResult:
    """Join executions as `engine.case_result.join_trials` does, without what no verdict reads.

    `first` are no re-runs, of which `needed` have to pass; None for more than half.
    """
    trials = tuple(map(_trial, done))
    judged = [trial for trial in trials if trial.status.is_scored]
    passes, rule = [trial.status is Status.PASSED for trial in judged], build_pass_rule(first, needed)
    passed = decide_pass(rule, passes)
    status = Status.ERROR if passed is None else Status.PASSED if passed else Status.FAILED
    shown = next((trial for trial in trials if trial.status is status), trials[0])
    return CaseResult(
        id=f"case-{at}",
        passed=status is Status.PASSED,
        status=status,
        score=sum(trial.score for trial in judged) / len(judged) if status.is_scored else 0.0,
        graded=isinstance(done[0], float),
        flaky=0 < sum(passes) < len(judged) and not (passed and rule),
        pass_rule=rule,
        trials=trials,
        reruns=len(done) - first,
        rerun_stop_reason=end,
        base_agent_trials=tuple(map(_trial, there)),
        fingerprint=f"case-{at}",
        error=shown.error,
        error_kind=None if status.is_scored else ErrorKind.AGENT_ERROR,
    )


@lru_cache(maxsize=20_000)
def _key(at: int, files: tuple[str, ...]) -> CaseKey:
    return CaseKey(files[at % len(files)], f"case-{at}")


def _group_suites(name: str, when: str, made: Sequence[tuple[str, CaseResult]]) -> list[SuiteResult]:
    """Group cases by their eval file."""
    by_file: dict[str, list[CaseResult]] = {}
    for file, case in made:
        by_file.setdefault(file, []).append(case)
    return [
        SuiteResult(
            run_id=name,
            timestamp=when,
            tier=Tier.GOLDEN,
            tool_name="t",
            cases=tuple(cases),
            summary=summarize_cases(cases),
            eval_file=file,
        )
        for file, cases in by_file.items()
    ]


@dataclass(frozen=True)
class Asking:
    """By what rules a run is made, how often a case is run again at most, and who runs it."""

    rules: Policy
    reruns: int
    again: Again
    control: Again | None = None
    """The base branch's agent, asked about the case with this number; None where there is none."""
    trials: int = 1
    """How often every case is executed whatever comes of it."""
    needed: int | None = None
    """How many of these have to pass; None for more than half."""
    wait_s: float = 0.0
    """The most that all waits of a case may take."""
    on_wait: Callable[[int], None] = lambda _: None
    """Told how long the re-runs of the run wait."""


@dataclass
class Simulated:
    """Runs of all cases, which are dealt out to `files`. `executions` counts all of the last run."""

    question: GateInputs
    reruns: int
    again: Again
    control: Again | None = None
    executions: int = field(default=0)
    asked_there: int = field(default=0)
    """Executions of the base branch's agent."""
    trials: int = 1
    needed: int | None = None
    wait_s: float = 0.0
    on_wait: Callable[[int], None] = lambda _: None
    files: tuple[str, ...] = (FILE,)
    reused: tuple[SuiteResult, ...] = ()
    """Suites that are not executed: their results are those of the baseline."""

    def run(
        self, name: str, when: str, first: Sequence[tuple[int, Execution]], planned: int, shard: Shard | None = None
    ) -> RunResult:
        """First executions, the other trials, then re-runs as the engine makes them."""
        done: dict[int, tuple[Execution, ...]] = {
            at: (what, *(self.again(at) for _ in range(1, self.trials))) for at, what in first
        }
        ends: dict[int, RerunStopReason] = {}
        there: dict[int, tuple[Execution, ...]] = {}
        fresh: set[int] = set()
        reruns = Reruns(self.question, self.reruns, interval=RerunInterval(most_s=self.wait_s))

        def case(at: int, all_of: tuple[Execution, ...]) -> CaseResult:
            one = _case(at, all_of, ends.get(at), there.get(at, ()), self.trials, self.needed)
            return count_reruns_as_new(one) if at in fresh else one

        def result() -> RunResult:
            made = [(_key(at, self.files).suite, case(at, all_of)) for at, all_of in done.items()]
            suites = [*_group_suites(name, when, made), *self.reused]
            summary = summarize_cases([one for suite in suites for one in suite.cases])
            return RunResult(
                run_id=name,
                timestamp=when,
                complete=True,
                tool=_TOOL,
                target=_TARGET,
                suites=tuple(suites),
                summary=summary,
                planned_cases=planned,
                reruns=self.reruns,
                rerun_wait=reruns.rerun_wait,
                shard=shard,
                base_agent=BaseAgentSummary(target=_THERE) if there or self.control else None,
            )

        if self.reruns:
            numbers = {_key(at, self.files): at for at in done}
            doubtful = list(reruns.find_rerun_candidates(result()))
            self.on_wait(reruns.rerun_wait)
            more: dict[CaseKey, list[Execution]] = {key: [] for key in doubtful}
            waiting, firsts = doubtful, dict(done)
            while True:
                while waiting and (turn := reruns.select_next(waiting)):
                    for key in turn:
                        while reruns.should_rerun(key, [_trial(one) for one in more[key]]):
                            more[key].append(self.again(numbers[key]))
                    waiting = [key for key in waiting if key not in set(turn)]
                for key, mine in more.items():
                    done[numbers[key]] = firsts[numbers[key]] + tuple(mine)
                    ends[numbers[key]] = reruns.get_rerun_end(key, [_trial(one) for one in mine])
                fresh.update(numbers[key] for key in reruns.new_cases)
                if not self._asked_there(reruns, numbers, there, result):
                    break
        self.executions += sum(map(len, done.values()))
        return result()

    def _asked_there(
        self,
        reruns: Reruns,
        numbers: Mapping[CaseKey, int],
        there: dict[int, tuple[Execution, ...]],
        result: Callable[[], RunResult],
    ) -> bool:
        """Ask the base branch's agent as the engine does; whether that cleared anything."""
        before = self.asked_there
        while self.control and (wanted := reruns.build_base_agent_request(result(), numbers.keys()).keys):
            for key in wanted:
                at = numbers[key]
                there[at] = (*there.get(at, ()), self.control(at))
                self.asked_there += 1
        return self.asked_there > before and reruns.has_cleared_failures(result())


@dataclass(frozen=True)
class Branch:
    """The baseline of a pull request, and the ledger in its artifact."""

    newest: RunResult | None = None
    ledger: History = EMPTY_HISTORY

    @property
    def baseline(self) -> Baseline | NoBaseline:
        """As it is given to a run."""
        if self.newest is None:
            return NoBaseline("no-run-yet", "there is none yet")
        return Baseline(self.newest, "main", history=self.ledger)

    def pushed(self, number: int, first: Sequence[Execution], ask: Asking) -> Branch:
        """After one more run of the branch, kept with its ledger; one that could not be measured is no baseline."""
        simulated = Simulated(
            GateInputs(self.baseline, ask.rules),
            ask.reruns,
            ask.again,
            trials=ask.trials,
            needed=ask.needed,
            wait_s=ask.wait_s,
            on_wait=ask.on_wait,
        )
        when = f"2026-10-{number // 24 + 1:02}T{number % 24:02}:00:00Z"
        run = simulated.run(f"main-{number}", when, list(enumerate(first)), len(first))
        return Branch(run, build_next_history(run, self.baseline)) if has_enough_scores(run) else self


@dataclass(frozen=True)
class PullRequest:
    """One run of a pull request, judged; `executions` are all that it took."""

    judged: RunResult
    executions: int
    asked_there: int = 0
    """Executions of the base branch's agent."""


def pull_request(
    branch: Branch,
    first: Sequence[Execution],
    ask: Asking,
    *,
    sharded: bool = False,
    stored: bool = False,
) -> PullRequest:
    """`sharded`: in four parts, each run and judged alone, then merged. `stored`: all of it over the disk and back."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        baseline = branch.baseline
        if stored and branch.newest is not None:
            write_history(results, branch.newest.run_id, branch.ledger)
            write_result(results, branch.newest)
            baseline = require_baseline(_read(branch.newest), str(results / branch.newest.run_id), results)

        def kept(run: RunResult) -> RunResult:
            if not stored:
                return run
            write_history(results, run.run_id, build_next_history(run, baseline))
            write_result(results, run)
            return read_run(run.run_id, results)

        question = GateInputs(baseline, ask.rules)
        simulated = Simulated(
            question,
            ask.reruns,
            ask.again,
            ask.control,
            trials=ask.trials,
            needed=ask.needed,
            wait_s=ask.wait_s,
            on_wait=ask.on_wait,
        )
        numbered, when = list(enumerate(first)), "2026-11-21T10:00:00Z"
        if not sharded:
            run = decide_verdict(kept(simulated.run("here", when, numbered, len(first))), question)
            judged = decide_verdict(kept(run), question) if stored else run
            return PullRequest(judged, simulated.executions, simulated.asked_there)
        parts = [
            simulated.run(
                f"part-{index}", when, numbered[index::SHARDS], len(first), Shard(index=index + 1, count=SHARDS)
            )
            for index in range(SHARDS)
        ]
        joined = merge_runs([kept(decide_verdict(part, question)) for part in parts], "here")
        return PullRequest(decide_verdict(kept(joined), question), simulated.executions, simulated.asked_there)


def _read(run: RunResult) -> RunResult:
    """Return the run with an id that no run in the results folder has."""
    return replace(run, run_id="nobody")
