"""Re-runs: the policy that decides about them, their remaining budget, and the time between executions of a case."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from pathlib import Path
from typing import Protocol

from eval_gate.config.rerun_budget import RerunBudget
from eval_gate.engine.worker_pool import yield_slot
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import Trial
from eval_gate.model.result import RerunStopReason, RunResult
from eval_gate.model.selection import BaseAgentCases
from eval_gate.targets.readiness import report_waiting
from eval_gate.text.escape import format_count


class RerunPolicy(Protocol):
    """Policy for re-runs: which cases to re-run, how often, and when to run the base agent."""

    @property
    def new_cases(self) -> Set[CaseKey]:
        """Cases without a history, which are run more often whatever comes of it: these are no re-runs."""
        ...

    @property
    def rerun_wait(self) -> int:
        """Whole seconds that re-runs of suspects wait; 0 before `find_rerun_candidates`, and without suspects."""
        ...

    def get_interval_s(self, key: CaseKey) -> float:
        """Return the seconds that a re-run of this case keeps from the execution before it."""
        ...

    def find_rerun_candidates(self, result: RunResult) -> Collection[CaseKey]:
        """Find every case that its first execution (or trials) does not decide. Raises GateError.

        Called in a separate thread, because it may fetch the baseline, and again when more cases were run.
        """
        ...

    def is_failing(self, result: RunResult) -> bool:
        """Whether failures fail the gate already, whatever the other cases do. Called in a separate thread."""
        ...

    def select_next(self, waiting: Sequence[CaseKey]) -> Sequence[CaseKey]:
        """Select the waiting cases that are run again next; the others follow when these are finished."""
        ...

    def should_rerun(self, key: CaseKey, reruns: Sequence[Trial]) -> bool:
        """Whether to run this case once more after these re-runs. Must be fast: it is called after every re-run."""
        ...

    def get_rerun_end(self, key: CaseKey, reruns: Sequence[Trial]) -> RerunStopReason:
        """Return the reason why a suspect has no further re-run."""
        ...

    def build_base_agent_request(self, result: RunResult, askable: Set[CaseKey]) -> BaseAgentCases:
        """Build the next request to the base agent, which can run `askable` cases, from its executions in `result`.

        Called in a separate thread, when the re-runs are done and after every round.
        """
        ...

    def has_cleared_failures(self, result: RunResult) -> bool:
        """Whether the base agent cleared the failures of the gate, so that other suspects may need re-runs."""
        ...


class RerunAllowance:
    """Allows re-runs to start until the budget is used; started re-runs always finish."""

    def __init__(self, budget: RerunBudget) -> None:
        self.budget = budget
        self.refused = False
        """Whether the budget refused a re-run."""
        self._waits = False
        """Whether the budget refused a re-run because its wait would not fit."""
        self._begun = 0
        self._since: float | None = None
        self._spent_s = 0.0
        """Seconds that were spent before the last pause."""
        self._usd = 0.0

    def with_begun(self, begun: int) -> RerunAllowance:
        """Count `begun` more re-runs, made by an earlier process of the same run, and return the allowance."""
        self._begun += begun
        return self

    def pause(self) -> RerunAllowance:
        """Stop the clock until the next re-run begins, and return the allowance."""
        self._spent_s += 0.0 if self._since is None else time.monotonic() - self._since
        self._since = None
        return self

    @property
    def remaining(self) -> int | None:
        """Number of re-runs that may still begin; None if the budget does not limit their number."""
        most = self.budget.executions
        return None if most is None else max(most - self._begun, 0)

    def iter_notices(self, *, suspects: int, new: int) -> Iterator[str]:
        """Yield notices about how many suspected regressions and new cases the budget did not suffice for."""
        spent = f"the rerun-budget of {self.budget} is used up"
        if self._waits:
            spent += ", because `rerun-interval` would wait longer"
        if suspects:
            which = format_count(suspects, "suspected regression is", "suspected regressions are")
            yield f"{which} not decided: {spent}"
        if new:
            yield f"{format_count(new, 'new case')} ran fewer times than configured: {spent}"

    def add_cost(self, usd: float) -> None:
        """Add a cost of re-runs, in US dollars."""
        self._usd += usd

    def try_begin(self, count: int = 1, *, wait_s: float = 0.0) -> bool:
        """Whether `count` more may begin after `wait_s` seconds; if so, count them."""
        budget, has_time = self.budget, self.has_time(wait_s)
        fits = has_time and (budget.executions is None or self._begun + count <= budget.executions)
        fits = fits and (budget.usd is None or self._usd < budget.usd)
        self._begun += count if fits else 0
        self.refused = self.refused or not fits
        self._waits = self._waits or (not has_time and self.has_time(0.0))
        return fits

    def begin_round(self, count: int, rounds: int) -> str | None:
        """Begin the first of `rounds` of `count` executions; return the reason if the budget is too small for all."""
        needed = count * rounds
        if (self.remaining is None or self.remaining >= needed) and self.try_begin(count):
            return None
        return f"the rerun-budget of {self.budget} is too small for {format_count(needed, 'more execution')}"

    def has_time(self, wait_s: float) -> bool:
        """Whether time remains after a wait of `wait_s` seconds. The clock runs from the first call on."""
        current_s = time.monotonic()
        self._since = current_s if self._since is None else self._since
        return self.budget.seconds is None or self._spent_s + current_s - self._since + wait_s < self.budget.seconds


class RerunSpacing:
    """Waits between the executions of each case of a run. All cases that are due wait at the same time."""

    def __init__(self) -> None:
        self.get_interval_s: Callable[[CaseKey], float] = lambda _: 0.0
        """Returns how many seconds a re-run of a case keeps from the execution before it."""
        self.reason = ""
        """Why re-runs wait, for the progress display."""
        self._earlier = time.monotonic()
        """When an earlier process of the run ended its last execution; the beginning of this one if there was none."""
        self._ended: dict[CaseKey, float] = {}
        self._reported_until = 0.0

    def resume(self, journal: Path) -> None:
        """Count from the last line of the journal: the time before this process has been waited for already."""
        if journal.exists():
            self._earlier = time.monotonic() - max(time.time() - journal.stat().st_mtime, 0.0)

    def note_end(self, key: CaseKey) -> None:
        """Note that an execution of a case ended now."""
        self._ended[key] = time.monotonic()

    def compute_wait_s(self, key: CaseKey) -> float:
        """Compute the seconds until a re-run of a case may begin."""
        interval_s = self.get_interval_s(key)
        due = self._ended.get(key, self._earlier) + interval_s
        return max(due - time.monotonic(), 0.0) if interval_s else 0.0

    async def wait(self, key: CaseKey) -> None:
        """Let others go first until a re-run of a case may begin."""
        wait_s, current_s = self.compute_wait_s(key), time.monotonic()
        if wait_s and current_s >= self._reported_until:
            self._reported_until = current_s + wait_s
            report_waiting(f"{self.reason}: a re-run waits {wait_s:.1f} s")
        await yield_slot(wait_s)
