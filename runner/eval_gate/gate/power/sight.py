"""What a run with these cases and this record can see: figures for people, and the cases that cannot be gated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final

from eval_gate.gate.evidence.settle import CaseFacts
from eval_gate.gate.power.cases import CaseGroup, CaseGroups
from eval_gate.gate.power.chances import Losses, Tree
from eval_gate.model.case import CaseKey
from eval_gate.model.grounds import Counts
from eval_gate.struct import FrozenStruct, replace

MOST_CONFIRM: Final = 100
"""As many re-runs of a case as can be asked for."""
MOST_STATES: Final = 50_000
"""States of re-runs, over all kinds of cases, that a report looks at: half a second's work."""


class UngatedReason(StrEnum):
    """Why a case cannot be gated: it may die, and no run says so."""

    FLAKY = "flaky"
    """It fails so often on record that failing every time here would be no proof."""
    MAIN_BROKE = "main-broke"
    """The newest run of the default branch failed it: nothing that fails it now is to blame."""
    FAILING = "failing"
    """It mostly fails on record."""
    NO_RECORD = "no-record"
    """No run on record judged it by the same question and expectation."""


class Ungated(FrozenStruct):
    """A case that cannot be gated. `needed` failures in a row would be proof; None where no number that is allowed is.

    `executions` is how many executions of it there can be in one run.
    """

    key: CaseKey
    reason: UngatedReason
    record: Counts
    executions: int
    needed: int | None = None


class Sight(FrozenStruct):
    """What can be seen in one run. Chances are 0 to 1, of a case whose failures begin with this change.

    `always`, `half` and `fifth`: it fails always, half of the time, one time in five; means over all cases of the run.
    `loss` is the smallest number of points by which all cases have to become worse for nine of ten runs to be red:
    None where even the largest loss is not found so often, or where nothing is known of it (`loss_known`).
    """

    cases: int
    runs: int
    confirm: int
    always: float
    half: float
    fifth: float
    loss: int | None
    loss_known: bool
    ungated: tuple[Ungated, ...] = ()


@lru_cache(maxsize=1)
def sight_of(cases: CaseGroups) -> Sight:
    """Work out the figures of these cases, once for all reports of a run. A run without cases can see nothing."""
    trees = [Tree(kind, cases) for kind in cases.kinds]
    always, half, fifth = (_mean(trees, rate) for rate in (1.0, 0.5, 0.2))
    # without re-runs nearly every run is red, whatever was lost; and a regression that is allowed is found, but not red
    loss_known = bool(cases.confirmation.confirm) and not cases.allowed and bool(trees)
    return Sight(
        cases=cases.number,
        runs=cases.runs,
        confirm=cases.confirmation.confirm,
        always=always,
        half=half,
        fifth=fifth,
        loss=Losses(cases, trees).smallest() if loss_known else None,
        loss_known=loss_known,
        ungated=tuple(_ungated(trees)),
    )


def can_be_seen(cases: CaseGroups) -> bool:
    """Whether a report may say it: there is a record and are re-runs, and they do not take long to work out."""
    confirm = cases.confirmation.confirm
    states = len(cases.kinds) * cases.trials * (confirm + 1) ** 2
    return cases.number > 0 and cases.runs > 0 and confirm > 0 and states <= MOST_STATES


def _mean(trees: Sequence[Tree], rate: float) -> float:
    """The mean over all cases of the chance to be found."""
    number = sum(tree.kind.number for tree in trees)
    return math.fsum(tree.chance_of_regression(rate) * tree.kind.number for tree in trees) / number if number else 0.0


def _ungated(trees: Sequence[Tree]) -> Iterator[Ungated]:
    """The cases that are not found even when they fail every time."""
    for tree in trees:
        if tree.chance_of_regression(1.0) > 0.0:
            continue
        kind, why = tree.kind, _why(tree.kind)
        executions = tree.cases.trials + tree.cases.confirmation.confirm
        needed = None
        if why is UngatedReason.FLAKY:
            # with N / error rate, which is proof whatever the number of re-runs
            further = replace(tree.cases.confirmation, confirm=MOST_CONFIRM, sure=None, every=None)
            needed = further.needed(kind.record.counts)
        for key in kind.keys:
            yield Ungated(key, why, kind.record.counts, executions, needed)


def _why(kind: CaseGroup) -> UngatedReason:
    facts: CaseFacts = kind.facts
    if not facts.plain.compared:
        return UngatedReason.NO_RECORD
    if kind.record.counts.fails:
        return UngatedReason.FAILING
    return UngatedReason.MAIN_BROKE if kind.record.newest_failed or not kind.passed_then else UngatedReason.FLAKY
