"""Regressions that a branch has because a run of it was allowed to pass with them.

Every run copies them from the run before until the case passes, so that a regression does not end with its permission.
The same applies to a score that fell while a waiver covered it, until it is back within `maxScoreDrop`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from types import MappingProxyType
from typing import Final

from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseChange, CaseClass, RuleCode
from eval_gate.model.evidence import NO_HISTORY, PermittedRegression, Stability
from eval_gate.model.execution import Status
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.model.waiver import AppliedWaivers, WaiverKind
from eval_gate.results.run_times import parse_timestamp
from eval_gate.struct import replace

_PASSING: Final = frozenset({CaseClass.NEW_PASS, CaseClass.STILL_PASSING})
_NOT_RUN: Final = frozenset({Status.SKIPPED, Status.NOT_RUN})


def update_permitted_regressions(
    permitted: Sequence[PermittedRegression],
    run: RunResult,
    earlier: Mapping[CaseKey, CaseKey],
    fallen_scores: Mapping[CaseKey, float] = MappingProxyType({}),
) -> tuple[PermittedRegression, ...]:
    """Update the permitted regressions of the run before by `run`.

    `earlier` has the earlier keys of renamed cases, `fallen_scores` what each score fell from that fell by too much.
    """
    renamed = {old: new for new, old in earlier.items()}
    keys = [renamed.get(one.key, one.key) for one in permitted]
    by_key = {key: replace(one, suite=key.suite, case_id=key.case_id) for key, one in zip(keys, permitted, strict=True)}
    changes = {change.key: change for change in (run.comparison.changes if run.comparison else ())}
    allowed, day = dict(_iter_permitted(run, changes, by_key, fallen_scores)), find_day(run)
    most = run.policy.max_score_drop if run.policy else None
    covered = run.waivers.covered_keys if run.waivers else frozenset()
    for key, case in run.iter_cases():
        passes = changes[key].change in _PASSING if key in changes else case.passed
        if passes and key not in fallen_scores and not (key in by_key and is_still_lower(by_key[key], case, most)):
            by_key.pop(key, None)
        elif key in allowed:
            by_key[key] = allowed[key]
        elif key in by_key and key not in covered and case.status not in _NOT_RUN:
            by_key[key] = _take_back(by_key[key], day)
    return tuple(by_key.values())


def is_still_lower(permission: PermittedRegression, case: CaseResult, most: float | None) -> bool:
    """Whether a permitted score is still more than `most` lower; true if the limit or the score is unknown."""
    if permission.score is None:
        return False
    return most is None or not case.status.is_scored or round(permission.score - case.score - most, 6) > 0


def is_permission_ended(permitted: PermittedRegression, day: date | None) -> bool:
    """Whether the last day of a permission is before the day of a run. One without a day held for its run only."""
    return permitted.until is None or day is None or permitted.until < day


def _take_back(permitted: PermittedRegression, day: date | None) -> PermittedRegression:
    """End a permission that the run does not have any more: the branch has the regression without one from here on."""
    if day is None or is_permission_ended(permitted, day):
        return permitted
    return replace(permitted, until=day - timedelta(days=1))


def find_day(run: RunResult) -> date | None:
    """Find the day of a run, in UTC; None if its timestamp cannot be read."""
    started = parse_timestamp(run.timestamp)
    return started.date() if started else None


def _iter_permitted(
    run: RunResult,
    changes: Mapping[CaseKey, CaseChange],
    permitted: Mapping[CaseKey, PermittedRegression],
    fallen_scores: Mapping[CaseKey, float],
) -> Iterator[tuple[CaseKey, PermittedRegression]]:
    """Yield the regressions that a waiver covers, and those that `allowedRegressions` covers."""
    rule = run.verdict.find_rule(RuleCode.REGRESSIONS) if run.verdict else None
    if rule is not None and rule.ok:
        for change in changes.values():
            broke = change.change is CaseClass.REGRESSION or _is_incomparable_failure(change, run)
            if broke and change.key not in run.waived_keys:
                yield change.key, PermittedRegression(suite=change.suite, case_id=change.case_id)
    applied = run.waivers or AppliedWaivers()
    for case in applied.waived:
        waiver, compared = applied.get_entry(case).waiver, changes.get(case.key)
        if compared is None:
            # without a baseline, the case counts as one that passed: a new name must not end a permission
            broke = run.comparison is None
        else:
            broke = _is_broken(compared, waiver.kind) or _is_incomparable_failure(compared, run)
        old = permitted.get(case.key)
        if old is not None or broke or case.key in fallen_scores:
            score = None if broke else old.score if old is not None and old.score else fallen_scores.get(case.key)
            one = PermittedRegression(suite=case.suite, case_id=case.case_id, waiver=waiver.kind, until=waiver.until)
            yield case.key, replace(one, score=score)


def _is_incomparable_failure(change: CaseChange, run: RunResult) -> bool:
    """Whether a case of another tool passed and now fails with another prompt: it passes the gate by permission only.

    Of our own evals, the eval files tell that the change edited the case.
    """
    baseline, current = change.baseline, change.current
    if not run.is_external or change.change is not CaseClass.INCOMPARABLE or baseline is None or current is None:
        return False
    return baseline.passed and not current.passed


def _is_broken(change: CaseChange, kind: WaiverKind) -> bool:
    """Whether a failing case that is waived passed on the branch before and fails now, other than a flaky one does."""
    history = change.case_history or NO_HISTORY
    if change.change is CaseClass.REGRESSION:
        # a quarantined case is not re-run, so that only its history says whether it is flaky
        return kind is not WaiverKind.QUARANTINE or history.stability in {Stability.PASSING, Stability.UNKNOWN}
    broke = history.stability is Stability.FAILING and history.broken_since is not None
    return change.change is CaseClass.STILL_FAILING and broke
