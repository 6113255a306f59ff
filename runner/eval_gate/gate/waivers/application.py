"""Which failures of a run are waived, by which waiver, and which waivers are idle or expired. Pure.

| a waiver | and the cases that it names | becomes |
|:--|:--|:--|
| after its last day | | `expired` |
| new, in a pull request that may not waive | | `proposed` |
| in force | one of them fails | `in_use`: exactly these failures are waived |
| in force | all of them pass | `unneeded` |
| in force | none has a score | `idle` |
| in force | there are none | `unmatched`, or `idle` where only some cases were selected |

Nothing but `in_use` changes a verdict. A case that could not be measured is only waived where that is a regression.
No waiver covers a must-pass case (`exclude_must_pass`).

A regression that the branch was permitted to have counts again once the permission has ended: on the branch in every
run until the case passes. A pull request names it, and it counts in it only if it takes a permission away.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import date
from types import MappingProxyType
from typing import Final

from msgspec import json

from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.score_changes import exceeds_limit
from eval_gate.gate.waivers.case_names import CaseNameIndex, RenameRule
from eval_gate.model.case import CaseKey, CaseName
from eval_gate.model.comparison import CaseChange, CaseClass, Comparison
from eval_gate.model.evidence import GroundKind, PermittedRegression
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.model.waiver import (
    AppliedWaivers,
    CaseStanding,
    FileOrigin,
    WaivedCase,
    Waiver,
    WaiverEntry,
    WaiverKind,
    WaiverStanding,
    WaiverState,
)
from eval_gate.results.permitted_regressions import find_day, is_permission_ended
from eval_gate.results.result_names import LATEST
from eval_gate.struct import replace
from eval_gate.text.escape import format_first_few

_NO_RESULT_CLASSES = frozenset({CaseClass.ERRORED, CaseClass.SUSPECTED_REGRESSION, CaseClass.NOT_RUN})
_INCONCLUSIVE_CLASSES = frozenset({CaseClass.INCONCLUSIVE, CaseClass.FLAKY})
_MAY_COUNT = frozenset({CaseClass.STILL_FAILING, CaseClass.STILL_ERRORED, CaseClass.INCOMPARABLE})
"""Classes of failures of the branch that count once their permission has ended."""


def list_standings(
    run: RunResult, comparison: Comparison | None, *, max_score_drop: float | None = None
) -> tuple[CaseStanding, ...]:
    """How every case of a run stands, in the order of the run; the run is held to the policy's pass score."""
    changes = {one.key: one for one in (comparison.changes if comparison else ())}
    return tuple(
        CaseStanding(
            suite=key.suite,
            case_id=key.case_id,
            standing=_classify_standing(case, changes.get(key), max_score_drop),
        )
        for key, case in run.iter_cases()
    )


_WAIVABLE_GROUNDS: Final = {
    GroundKind.GATE_FAILED,  # not re-run because of other regressions: their waiver may cover it too
    GroundKind.RUN_SHARE,  # failed every time, and no number of executions of this run would confirm it
}


def _classify_standing(case: CaseResult, change: CaseChange | None, max_score_drop: float | None) -> WaiverStanding:
    became = change.change if change else None
    if became is CaseClass.REGRESSION:
        return WaiverStanding.REGRESSED  # a crash among them: where it is called a regression it can be accepted as one
    if change is not None and change.grounds is not None and change.grounds.kind in _WAIVABLE_GROUNDS:
        return WaiverStanding.FAILS
    if not case.status.is_scored or became in _NO_RESULT_CLASSES:
        return WaiverStanding.NO_RESULT
    if became in _INCONCLUSIVE_CLASSES:
        return WaiverStanding.UNSTABLE
    if not case.passed:
        return WaiverStanding.FAILS
    return WaiverStanding.UNSTABLE if case.flaky or _has_score_drop(change, max_score_drop) else WaiverStanding.PASSES


def _has_score_drop(change: CaseChange | None, most: float | None) -> bool:
    if change is None or change.score_change is None:
        return False
    return change.score_drop or (most is not None and exceeds_limit(-change.score_change, most))


def apply_waivers(
    waivers: Iterable[Waiver],
    cases: Sequence[CaseStanding],
    today: date,
    *,
    everything: bool = True,
    trusted: bool = True,
    baseline_keys: Mapping[CaseKey, CaseKey] = MappingProxyType({}),
) -> AppliedWaivers:
    """Apply the waivers to these cases on this day (UTC); the order of the waivers does not matter.

    `everything` is False if only some cases were selected. Then a waiver that matches none of them is no typo.
    `trusted` is False on a pull request from a fork, and if only the base branch's rules count. Then entries of a
    waiver file do not count unless they are known to be on that branch.

    `baseline_keys` has the baseline's names of cases that have another name here. A waiver holds for the case that
    it was given to, by that name. By its new name, an entry of the file matches such a case only by its id, and not
    from a fork. A comment on this very change matches by the new name too.
    """
    names = CaseNameIndex(cases, baseline_keys)
    distinct = sorted(set(waivers), key=_build_sort_key)
    entries = tuple(_build_entry(one, names, today, everything=everything, trusted=trusted) for one in distinct)
    decisive: dict[CaseKey, int] = {}
    for place in sorted(range(len(entries)), key=lambda place: (*_rank_waiver(entries[place].waiver), place)):
        if entries[place].state is WaiverState.IN_USE:
            for case in entries[place].failing:
                decisive.setdefault(case.key, place)
    waived = tuple(
        WaivedCase(suite=case.suite, case_id=case.case_id, standing=case.standing, entry=decisive[case.key])
        for case in cases
        if case.key in decisive
    )
    return AppliedWaivers(entries=entries, waived=waived)


def exclude_must_pass(waiving: AppliedWaivers, must_pass: Container[CaseKey]) -> AppliedWaivers:
    """Remove the must-pass cases from all waivers and quarantines, and name the failing ones in `problems`.

    A waiver that matches no other case becomes `idle`.
    """
    entries = tuple(_exclude_from_entry(one, must_pass) for one in waiving.entries)
    waived = tuple(one for one in waiving.waived if one.key not in must_pass)
    failing = [one for one in waiving.waived if one.standing is not WaiverStanding.UNSTABLE]
    denied = [one.case_id for one in failing if one.key in must_pass]
    if not denied:
        return replace(waiving, entries=entries, waived=waived)
    what, whom = f"{len(denied)} must-pass cases failed", "them"
    if len(denied) == 1:
        what, whom = "1 must-pass case failed", "it"
    problem = f"{what}, and no waiver or quarantine can apply to {whom}: {format_first_few(denied, 3)}"
    return replace(
        waiving,
        entries=entries,
        waived=waived,
        problems=(*waiving.problems, problem),
    )


def _exclude_from_entry(entry: WaiverEntry, must_pass: Container[CaseKey]) -> WaiverEntry:
    def select(cases: Sequence[CaseName]) -> tuple[CaseName, ...]:
        return tuple(one for one in cases if one.key not in must_pass)

    failing, passing, without_result = (
        select(entry.failing),
        select(entry.passing),
        select(entry.without_result),
    )
    state = entry.state
    if state is WaiverState.IN_USE and not failing:
        state = WaiverState.UNNEEDED if passing and not without_result else WaiverState.IDLE
    elif state is WaiverState.UNNEEDED and not passing:
        state = WaiverState.IDLE
    return replace(entry, failing=failing, passing=passing, without_result=without_result, state=state)


def _build_entry(waiver: Waiver, names: CaseNameIndex, today: date, *, everything: bool, trusted: bool) -> WaiverEntry:
    cases = names.find_cases(waiver.case, waiver.suite, _get_rename_rule(waiver, trusted=trusted))
    failing = tuple(_to_case_name(case) for case in cases if case.standing.is_waivable)
    passing = tuple(_to_case_name(case) for case in cases if case.standing is WaiverStanding.PASSES)
    without_result = tuple(_to_case_name(case) for case in cases if case.standing is WaiverStanding.NO_RESULT)
    days_left = (waiver.until - today).days
    if days_left < 0:
        state = WaiverState.EXPIRED
    elif not trusted and isinstance(waiver.origin, FileOrigin) and waiver.is_new is not False:
        state = WaiverState.PROPOSED
    elif failing:
        state = WaiverState.IN_USE
    elif without_result or not (cases or everything):
        state = WaiverState.IDLE
    else:
        state = WaiverState.UNNEEDED if passing else WaiverState.UNMATCHED
    return WaiverEntry(
        waiver=waiver, state=state, days_left=days_left, failing=failing, passing=passing, without_result=without_result
    )


def _get_rename_rule(waiver: Waiver, *, trusted: bool) -> RenameRule:
    if not isinstance(waiver.origin, FileOrigin):
        return RenameRule.ALWAYS
    return RenameRule.BY_ID if trusted else RenameRule.NEVER


def find_waived_by_new_name(
    waiving: AppliedWaivers, baseline_keys: Mapping[CaseKey, CaseKey]
) -> tuple[WaivedCase, ...]:
    """Find the cases that the waiver file matches by their new name and not by the one in the baseline."""
    return tuple(
        case
        for case in waiving.waived
        if case.key in baseline_keys
        and isinstance((waiver := waiving.get_entry(case).waiver).origin, FileOrigin)
        and not CaseNameIndex([case], baseline_keys).find_cases(waiver.case, waiver.suite, RenameRule.NEVER)
    )


def _to_case_name(case: CaseStanding) -> CaseName:
    return CaseName(suite=case.suite, case_id=case.case_id)


def _rank_waiver(waiver: Waiver) -> tuple[bool, int]:
    """Rank the waivers of one case: a quarantine first, because its result does not count; then the latest end."""
    return waiver.kind is not WaiverKind.QUARANTINE, -waiver.until.toordinal()


def _build_sort_key(waiver: Waiver) -> tuple[bool, str, int, str]:
    """Files before comments, by line and by date; the whole of a waiver decides where these are the same."""
    origin = waiver.origin
    if isinstance(origin, FileOrigin):
        return False, origin.file, origin.line, json.encode(waiver).decode()
    return True, origin.written_at, 0, json.encode(waiver).decode()


def mark_ended_permissions(
    comparison: Comparison,
    permitted: Sequence[PermittedRegression],
    cases: GateCases,
    covered: Container[CaseKey],
    max_score_drop: float | None = None,
) -> Comparison:
    """Mark the failures that a permission of the branch covered, and make those that count again regressions.

    A score that counts is compared with the one that it fell from. `permitted` has the keys of the baseline. `covered`
    are the cases of waivers that have not ended.
    """
    by_key = {one.key: one for one in permitted}
    if not by_key:
        return comparison
    is_branch, day = _is_run_of_branch(comparison, cases.run), find_day(cases.run)

    def mark_change(change: CaseChange) -> CaseChange:
        one, case = by_key.get(cases.get_earlier_key(change.key)), cases.current_cases.get(change.key)
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

    return replace(comparison, changes=tuple(map(mark_change, comparison.changes)))


def _count_lower_score(change: CaseChange, permission: PermittedRegression, score: float) -> CaseChange:
    """Compare a score with the one that it was permitted to fall from, and not with runs since."""
    assert permission.score is not None
    fall = round(score - permission.score, 6)
    return replace(change, score_change=fall, score_history=None, score_drop=True, permitted=permission)


def _is_run_of_branch(comparison: Comparison, run: RunResult) -> bool:
    """Whether the run is one of the branch itself and not of a change that is to be merged into it.

    A run of the branch is compared with its own commit or an earlier one. Without a branch, the runs of a folder
    follow each other in the same way. A stored run that is checked again stays what it was.
    """
    facts, earlier = comparison.baseline, run.comparison
    if earlier is not None and earlier.baseline.run_id == facts.run_id:
        facts = earlier.baseline
    return facts.base_sha == run.sha if facts.base_sha else facts.source in {LATEST, facts.run_id}
