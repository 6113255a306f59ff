"""Figures of what a run with these cases and history can find, and cases that cannot be gated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from eval_gate.gate.evidence.case_classification import CaseFacts
from eval_gate.gate.power.case_groups import CaseGroups, drop_shares
from eval_gate.gate.power.loss_detection import ExecutionTree, LossSimulation
from eval_gate.model.case import CaseKey
from eval_gate.model.evidence import Counts
from eval_gate.struct import FrozenStruct, replace

MAX_RERUNS: Final = 100
MAX_STATES: Final = 50_000
"""States of re-runs, over all kinds of cases, that a report looks at: half a second's work."""
SETTLED_RUNS: Final = 10
"""Runs in the history from which on what a suite can detect seldom changes much: the promises begin here."""


class UngatedReason(StrEnum):
    """Why a case cannot be gated, so that it can break without failing any run."""

    FLAKY = "flaky"
    """It fails so often in the history that failing every time here would be no proof."""
    RUN_SHARE = "run-share"
    """Failing every time in one run would be no proof, because executions of one run belong together."""
    MAIN_BROKE = "main-broke"
    """The newest run of the default branch failed it: nothing that fails it now is to blame."""
    FAILING = "failing"
    """It mostly fails in the history."""
    NO_HISTORY = "no-history"
    """No run in the history judged it by the same question and expectation."""


class UngatedCase(FrozenStruct):
    """A case that cannot be gated: `needed_failures` in a row would be proof, and one run has `executions` of it."""

    key: CaseKey
    reason: UngatedReason
    history: Counts
    executions: int
    needed_failures: int | None = None


class CaseDetection(NamedTuple):
    """Chances (0 to 1) that one run finds a case that fails always, half of the time, or one time in five.

    They are means over all cases of the run, so each is also the share of such cases that is found.
    """

    dead_case: float
    half_failing: float
    fifth_failing: float


class DetectionPower(FrozenStruct):
    """Chances that one run finds a failing case, and the smallest loss it finds.

    `smallest_loss` is the smallest number of points by which all cases have to become worse for nine of ten runs to
    fail. It is None if even the largest loss is not found so often, or if nothing is known about it (`is_loss_known`).
    """

    cases: int
    runs: int
    max_reruns: int
    chances: CaseDetection
    smallest_loss: int | None
    is_loss_known: bool
    ungated_cases: tuple[UngatedCase, ...] = ()


@lru_cache(maxsize=1)
def compute_detection_power(cases: CaseGroups) -> DetectionPower:
    """Work out the figures of these cases, once for all reports of a run. A run without cases can see nothing."""
    trees = [ExecutionTree(kind, cases) for kind in cases.groups]
    # without re-runs nearly every run is red, whatever was lost; and a regression that is allowed is found, but not red
    loss_known = bool(cases.criteria.max_reruns) and not cases.allowed_regressions and bool(trees)
    return DetectionPower(
        cases=cases.number,
        runs=cases.runs,
        max_reruns=cases.criteria.max_reruns,
        chances=_compute_case_detection(trees),
        smallest_loss=LossSimulation(cases, trees).find_smallest_loss() if loss_known else None,
        is_loss_known=loss_known,
        ungated_cases=tuple(_iter_ungated_cases(trees)),
    )


@lru_cache(maxsize=2)
def compute_case_detection(cases: CaseGroups) -> CaseDetection:
    """Work out the chances of single cases only, which needs no simulation."""
    return _compute_case_detection([ExecutionTree(kind, cases) for kind in cases.groups])


def can_compute_power(cases: CaseGroups) -> bool:
    """Whether a report may say it: there is a history and are re-runs, and they do not take long to work out."""
    max_reruns = cases.criteria.max_reruns
    states = len(cases.groups) * cases.criteria.trials * (max_reruns + 1) ** 2
    return cases.number > 0 and cases.runs > 0 and max_reruns > 0 and states <= MAX_STATES


def _compute_case_detection(trees: Sequence[ExecutionTree]) -> CaseDetection:
    return CaseDetection(*(_compute_mean_chance(trees, rate) for rate in (1.0, 0.5, 0.2)))


def _compute_mean_chance(trees: Sequence[ExecutionTree], rate: float) -> float:
    number = sum(tree.group.number for tree in trees)
    expected = math.fsum(tree.compute_regression_chance(rate) * tree.group.number for tree in trees)
    return expected / number if number else 0.0


def _iter_ungated_cases(trees: Sequence[ExecutionTree]) -> Iterator[UngatedCase]:
    for tree in trees:
        if tree.compute_regression_chance(1.0) > 0.0:
            continue
        kind, why = tree.group, _find_ungated_reason(tree)
        executions = tree.groups.criteria.trials + tree.groups.criteria.max_reruns
        needed = None
        if why is UngatedReason.FLAKY:
            # with N / error rate, which is proof whatever the number of re-runs
            further = replace(tree.groups.criteria, max_reruns=MAX_RERUNS, thresholds=None)
            needed = further.count_needed_failures(kind.history.counts)
        for key in kind.keys:
            yield UngatedCase(key, why, kind.history.counts, executions, needed)


def _find_ungated_reason(tree: ExecutionTree) -> UngatedReason:
    kind = tree.group
    facts: CaseFacts = kind.facts
    if not facts.plain_class.is_compared:
        return UngatedReason.NO_HISTORY
    if kind.history.counts.is_failing:
        return UngatedReason.FAILING
    if kind.history.newest_failed or not kind.passed_before:
        return UngatedReason.MAIN_BROKE
    independent = ExecutionTree(kind, drop_shares(tree.groups))
    return UngatedReason.RUN_SHARE if independent.compute_regression_chance(1.0) > 0.0 else UngatedReason.FLAKY
