"""How well a judge agrees with people who looked at the same answers.

Source: Cohen 1960, Educational and Psychological Measurement 20, 37-46. Agreement alone flatters: where nine answers of
ten are good, a judge that always says "good" agrees nine times of ten. Kappa is 0 for that judge, and 1 for one that
never differs.
"""

from __future__ import annotations

import random
from typing import Final, NamedTuple

from eval_gate.model.case import CaseKey
from eval_gate.struct import FrozenStruct

_DRAWS: Final = 4_000
_SEED: Final = 20_260_101
_TAIL: Final = 0.025


class Agreement(NamedTuple):
    """How many answers judge and people called good or bad, by what both said."""

    both_pass: int = 0
    false_passes: int = 0
    """The judge passes what people fail: what a gate lets through."""
    false_failures: int = 0
    """The judge fails what people pass."""
    both_fail: int = 0

    @property
    def compared(self) -> int:
        """Answers that both have judged."""
        return sum(self)

    @property
    def agreed(self) -> int:
        """Answers of which both say the same."""
        return self.both_pass + self.both_fail

    @property
    def passed_by_people(self) -> int:
        """Answers that people call good."""
        return self.both_pass + self.false_failures

    @property
    def failed_by_people(self) -> int:
        """Answers that people call bad."""
        return self.both_fail + self.false_passes

    @property
    def kappa(self) -> float | None:
        """Agreement beyond chance, -1 to 1; None where people said the same of every answer."""
        if not (self.passed_by_people and self.failed_by_people):
            return None
        return _kappa(*self)

    def kappa_between(self) -> tuple[float, float] | None:
        """The middle 95 % of what kappa may be, after these answers; None where there is none.

        Drawn from the table's posterior with half an answer more in each cell (Jeffreys), always with the same seed:
        formulas for large samples say "exactly 1" after three answers without a difference. What was seen is always
        among them: the posterior by itself ends short of 1 and -1, also where nothing differs.
        """
        seen = self.kappa
        if seen is None:
            return None
        draw = random.Random(_SEED).gammavariate  # noqa: S311 (statistics)
        found = sorted(_kappa(*(draw(cell + 0.5, 1.0) for cell in self)) for _ in range(_DRAWS))
        return min(seen, found[int(_TAIL * _DRAWS)]), max(seen, found[int((1 - _TAIL) * _DRAWS)])


class Disagreement(NamedTuple):
    """An answer of which judge and people do not say the same."""

    key: CaseKey
    passed: bool
    """By the judge; people say the opposite."""
    score: float
    said: str | None
    """What people wrote beside their label."""


class JudgeAgreement(NamedTuple):
    """One judge, and what it graded by, as the record has it."""

    judge: str
    agreement: Agreement
    prompts: tuple[str, ...]
    rubrics: tuple[str, ...]


class Calibration(FrozenStruct):
    """What came of holding a run against labels."""

    agreement: Agreement
    differs: tuple[Disagreement, ...]
    judges: tuple[str, ...]
    """Who graded, as the record says it."""
    unmatched: tuple[str, ...]
    """Labels for which the run has no case."""
    undecided: int
    """Labels of which people are as many for as against, or that say neither."""
    unjudged: int
    """Cases with a label that this run, or the evaluator, has not judged."""
    by_judge: tuple[JudgeAgreement, ...] = ()
    """The same for each judge by itself; a case that nobody graded is in none."""


def _kappa(both_pass: float, false_passes: float, false_failures: float, both_fail: float) -> float:
    whole = both_pass + false_passes + false_failures + both_fail
    agreed = (both_pass + both_fail) / whole
    judge, people = (both_pass + false_passes) / whole, (both_pass + false_failures) / whole
    chance = judge * people + (1 - judge) * (1 - people)
    return (agreed - chance) / (1 - chance)
