"""Which cases of a run are run again, and how often: as long as one more result could decide."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

from runner.gate.acceptable import held_to
from runner.gate.baseline import Baseline
from runner.gate.compare import compare
from runner.gate.conclude import facts_of
from runner.gate.evidence import Confirmation, Step
from runner.gate.history import held_baseline, records
from runner.gate.judge import set_aside
from runner.gate.limits import Policy
from runner.gate.pardons import Pardons
from runner.gate.settle import CaseFacts, confirmation_for, next_step
from runner.model.case import CaseKey
from runner.model.comparison import CaseClass
from runner.model.grounds import NO_RUNS, Counts
from runner.model.result import RunResult

_WORTH_A_LOOK: Final = frozenset(
    {CaseClass.REGRESSION, CaseClass.STILL_FAILING, CaseClass.NEW_PASS, CaseClass.FLAKY, CaseClass.UNSETTLED}
)
"""Without any of these nothing is in doubt, and nobody is asked for the history."""


class Reruns:
    """The engine's `Confirming`, for one run against one baseline."""

    def __init__(
        self,
        baseline: Baseline,
        policy: Policy,
        confirm: int,
        *,
        everything_selected: bool = True,
        pardons: Pardons | None = None,
        with_history: Callable[[], Baseline] | None = None,
    ) -> None:
        """`confirm` is the most re-runs of one case. `with_history` gets the same baseline with its branch's record."""
        self.baseline = baseline
        """With the history, once it was needed."""
        self._with_history = with_history
        self._policy = policy
        self._confirm = confirm
        self._everything = everything_selected
        self._pardons = pardons
        self._facts: dict[CaseKey, CaseFacts] = {}
        self._confirmation = Confirmation(0)

    def doubtful(self, result: RunResult) -> Collection[tuple[str, str]]:
        """Eval file and id of every case whose first execution leaves something to decide."""
        held = held_to(result, self._policy.pass_score)
        then = held_baseline(self.baseline, self._policy.pass_score)
        comparison = compare(then, held, everything_selected=self._everything)
        if not any(change.change in _WORTH_A_LOOK for change in comparison.changes):
            return ()
        if self._with_history is not None:
            self.baseline = self._with_history()
            then = held_baseline(self.baseline, self._policy.pass_score)
        facts = facts_of(
            comparison,
            held,
            records(then, held),
            patterns=self._policy.must_pass,
            set_aside=set_aside(held, self._pardons),
        )
        self._confirmation = confirmation_for(facts, error_rate=self._policy.error_rate, confirm=self._confirm)
        self._facts = {one.key: replace(one, again=NO_RUNS) for one in facts}
        return [key for key in self._facts if self.again(*key, 0, 0, 0)]

    def again(self, eval_file: str, case_id: str, passes: int, failures: int, broken: int) -> bool:
        """Whether one more execution could decide; what could not be judged uses up a re-run and says nothing."""
        facts = self._facts.get(CaseKey(eval_file, case_id))
        if facts is None:
            return False
        left = max(self._confirm - broken, 0)
        seen = replace(facts, again=Counts(passes=passes, failures=failures))
        step = next_step(seen, replace(self._confirmation, confirm=left))
        return step is Step.AGAIN and passes + failures < left
