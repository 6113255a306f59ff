"""Interface that decides which cases to re-run. The engine knows no rules of its own for this."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from typing import Protocol

from eval_gate.model.case import CaseKey
from eval_gate.model.execution import Trial
from eval_gate.model.result import RerunStopReason, RunResult


class BaseAgentRequest(Protocol):
    """Next request to the base agent."""

    @property
    def keys(self) -> Sequence[CaseKey]:
        """Each of these once; nothing where no more is needed."""
        ...

    @property
    def rounds(self) -> int:
        """How often that has to be done, this time counted, to be worth anything."""
        ...

    @property
    def trouble(self) -> str | None:
        """Why required cases do not run, as a sentence."""
        ...


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
        """Find every case whose first execution (or trials) leaves something to decide. Raises GateError.

        Called in a separate thread, because it may fetch the baseline, and again when more cases were run.
        """
        ...

    def is_red(self, result: RunResult) -> bool:
        """Whether failures fail the gate already, whatever the other cases do. Called in a separate thread."""
        ...

    def select_next(self, waiting: Sequence[CaseKey]) -> Sequence[CaseKey]:
        """Select the waiting cases that are run again next; the others are asked about when these are done."""
        ...

    def should_rerun(self, key: CaseKey, reruns: Sequence[Trial]) -> bool:
        """Whether to run this case once more after these re-runs. Asked after every one, so it must answer at once."""
        ...

    def get_rerun_end(self, key: CaseKey, reruns: Sequence[Trial]) -> RerunStopReason:
        """Why a case in doubt is not run again any more, after all of its re-runs."""
        ...

    def build_base_agent_request(self, result: RunResult, askable: Set[CaseKey]) -> BaseAgentRequest:
        """Build the next request to the base agent, which can run `askable` cases, from its executions in `result`.

        Called in a separate thread, when the re-runs are done and after every round.
        """
        ...

    def has_cleared_failures(self, result: RunResult) -> bool:
        """Whether its answers cleared what had made the gate red, so that cases that were spared may need re-runs."""
        ...
