"""Regressions of the branch whose permission ended: which count again in this run. Pure.

On the branch they count in every run until the case passes. A pull request names them, and they count in it only if
it takes a permission away that has not ended.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final

from eval_gate.gate.case_matching import GateCases
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseChange, CaseClass, Comparison
from eval_gate.model.evidence import PermittedRegression
from eval_gate.model.result import RunResult
from eval_gate.results.permitted_regressions import find_day, is_permission_ended
from eval_gate.results.result_names import LATEST
from eval_gate.struct import replace

_MAY_COUNT: Final = frozenset({CaseClass.STILL_FAILING, CaseClass.STILL_ERRORED, CaseClass.INCOMPARABLE})


def count_ended_permissions(
    comparison: Comparison,
    permitted: Sequence[PermittedRegression],
    cases: GateCases,
    covered: Container[CaseKey],
    max_score_drop: float | None = None,
) -> Comparison:
    """Mark the cases that fail as the branch was permitted to let them, and make those that count regressions.

    A score that counts is compared with the one that it fell from. `permitted` has the keys of the baseline. `covered`
    are the cases that a waiver names which has not ended.
    """
    known = {one.key: one for one in permitted}
    if not known:
        return comparison
    is_branch, day = _is_run_of_branch(comparison, cases.run), find_day(cases.run)

    def count(change: CaseChange) -> CaseChange:
        one, case = known.get(cases.get_earlier_key(change.key)), cases.here.get(change.key)
        if one is None or case is None or change.key in covered:
            return change
        one = replace(one, taken_back=not is_permission_ended(one, day))
        if case.passed:
            counts = max_score_drop is not None and change.score_change is not None and (is_branch or one.taken_back)
            return _count_lower_score(change, one, case.score) if counts and one.score is not None else change
        if change.change not in _MAY_COUNT:
            return change
        if is_branch or one.taken_back:
            return replace(change, change=CaseClass.REGRESSION, grounds=None, permitted=one)
        return replace(change, permitted=one)

    return replace(comparison, changes=tuple(map(count, comparison.changes)))


def _count_lower_score(change: CaseChange, permission: PermittedRegression, score: float) -> CaseChange:
    """Compare a score with the one that it was permitted to fall from, and not with runs since."""
    assert permission.score is not None
    fall = round(score - permission.score, 6)
    return replace(change, score_change=fall, score_history=None, score_drop=True, permitted=permission)


def _is_run_of_branch(comparison: Comparison, run: RunResult) -> bool:
    """Whether the run is one of the branch itself and not of a change that is to be merged into it.

    A run of the branch is compared with its own commit or an earlier one. Without a branch, the runs of a folder
    follow each other in the same way. A stored run that is judged again stays what it was.
    """
    facts, before = comparison.baseline, run.comparison
    if before is not None and before.baseline.run_id == facts.run_id:
        facts = before.baseline
    return facts.base_sha == run.sha if facts.base_sha else facts.source in {LATEST, facts.run_id}
