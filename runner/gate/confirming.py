"""Which cases of a run are run again, and how often: as long as one more result could decide."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from runner.gate.baseline import Baseline, NoBaseline
from runner.gate.evidence import Confirmation, Step
from runner.gate.judge import Question, facts_before_reruns
from runner.gate.past import counted
from runner.gate.settle import CaseFacts, next_step
from runner.model.case import CaseKey
from runner.model.grounds import NO_RUNS, Counts
from runner.model.result import RerunEnd, RunResult, Trial
from runner.results.ledger import executions


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
        """What the run is compared with."""
        return self._question.baseline

    def doubtful(self, result: RunResult) -> Collection[CaseKey]:
        """Every case whose first execution leaves something to decide."""
        run = result.model_copy(update={"confirm": self._confirm})
        facts, self._confirmation = facts_before_reruns(run, self._question)
        self._facts = {one.key: replace(one, again=NO_RUNS) for one in facts}
        self._graded = {key: case.graded for key, case in result.cases()}
        return [key for key in self._facts if self.again(key, ())]

    def again(self, key: CaseKey, reruns: Sequence[Trial]) -> bool:
        """Whether one more execution could decide; what says nothing about the target uses up a re-run all the same."""
        seen = self._seen(key, reruns)
        left = self._confirm - (len(reruns) - seen.runs)
        return len(reruns) < self._confirm and self._step(key, seen, left) is Step.AGAIN

    def end(self, key: CaseKey, reruns: Sequence[Trial]) -> RerunEnd:
        """Why it is not run again any more."""
        if self._step(key, self._seen(key, reruns), self._confirm) is not Step.AGAIN:
            return RerunEnd.DECIDED
        return RerunEnd.BROKEN if len(reruns) >= self._confirm else RerunEnd.STOPPED

    def _seen(self, key: CaseKey, reruns: Sequence[Trial]) -> Counts:
        """What these re-runs say about the target."""
        return counted(executions(reruns, graded=self._graded.get(key, False)), self._question.policy.pass_score)

    def _step(self, key: CaseKey, seen: Counts, most: int) -> Step | None:
        """What to do where `most` re-runs can say something."""
        facts = self._facts.get(key)
        if facts is None:
            return None
        return next_step(replace(facts, again=seen), replace(self._confirmation, confirm=most))
