"""Which cases of a run are run again, and how often: as long as one more result could decide."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from eval_gate.gate.evidence.past import counted
from eval_gate.gate.evidence.reruns import Confirmation, Step
from eval_gate.gate.evidence.settle import CaseFacts, next_step, next_steps
from eval_gate.gate.judge import Question, facts_before_reruns
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import Trial
from eval_gate.model.grounds import NO_RUNS
from eval_gate.model.result import RerunEnd, RunResult
from eval_gate.results.baseline import Baseline, NoBaseline
from eval_gate.results.ledger import executions


class Reruns:
    """The engine's `Confirming`, for one run and what its verdict will be asked about."""

    def __init__(self, question: Question, confirm: int) -> None:
        """`confirm` is the most re-runs of one case."""
        self._question = question
        self._confirm = confirm
        self._facts: dict[CaseKey, CaseFacts] = {}
        self._graded: dict[CaseKey, bool] = {}
        self._confirmation = Confirmation(0)

    @property
    def baseline(self) -> Baseline | NoBaseline:
        """What the run is compared with, or why there is nothing."""
        return self._question.baseline

    def doubtful(self, result: RunResult) -> Collection[CaseKey]:
        """Every case whose first execution leaves something to decide."""
        run = result.model_copy(update={"confirm": self._confirm})
        facts, self._confirmation = facts_before_reruns(run, self._question)
        # of most cases nothing is to be decided, whatever more was seen
        self._facts = {one.key: replace(one, again=NO_RUNS) for one in facts if one.doubt is not None}
        self._graded = {key: case.graded for key, case in result.cases()}
        steps = next_steps(self._facts.values(), self._confirmation)
        return [key for key, step in steps.items() if step is Step.AGAIN and self._confirm]

    def again(self, key: CaseKey, reruns: Sequence[Trial]) -> bool:
        """Whether one more execution could decide; what says nothing about the target uses up a re-run all the same."""
        return len(reruns) < self._confirm and self._open(key, reruns)

    def end(self, key: CaseKey, reruns: Sequence[Trial]) -> RerunEnd:
        """Why it is not run again any more."""
        if not self._open(key, reruns):
            return RerunEnd.DECIDED
        return RerunEnd.BROKEN if len(reruns) >= self._confirm else RerunEnd.STOPPED

    def _open(self, key: CaseKey, reruns: Sequence[Trial]) -> bool:
        """Whether it is not decided yet, as the verdict will see it: there too, broken re-runs are missing ones."""
        facts = self._facts.get(key)
        if facts is None:
            return False
        graded = self._graded.get(key, False)
        seen = counted(executions(reruns, graded=graded), self._question.policy.pass_score)
        return next_step(replace(facts, again=seen), self._confirmation) is Step.AGAIN
