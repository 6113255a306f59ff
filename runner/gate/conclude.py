"""From what happened in two runs to what one may conclude: records and re-runs refine the plain comparison. Pure.

The plain rule is the contract's own ("passed then, fails now"). It stays as it is in a run without re-runs
(`--confirm 0`), and it is what makes a case a suspect in all others.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Mapping, Sequence

from runner.gate.baseline import Baseline
from runner.gate.flakiness import Seen, record_of
from runner.gate.history import executions, records
from runner.gate.settle import CaseFacts, confirmation_for, settle
from runner.model.case import CaseKey
from runner.model.comparison import CaseChange, Comparison
from runner.model.grounds import NO_RECORD, CaseRecord, Counts
from runner.model.result import CaseResult, RunResult

TAG = "tag:"
"""Begins a pattern that is about tags: `tag:safety`."""


def must_pass(case: CaseResult, patterns: Sequence[str]) -> bool:
    """Whether a case must pass whatever its record: a glob over its id, or `tag:` and one of its tags."""
    return any(
        pattern.removeprefix(TAG) in case.tags if pattern.startswith(TAG) else fnmatch.fnmatchcase(case.id, pattern)
        for pattern in patterns
    )


def facts_of(
    comparison: Comparison,
    run: RunResult,
    known: Mapping[CaseKey, CaseRecord],
    *,
    patterns: Sequence[str] = (),
    set_aside: Collection[tuple[str, str]] = (),
) -> list[CaseFacts]:
    """What is known of every case of this run, in its order; cases that are set aside are in no test.

    Cases that depend on earlier ones are left to the plain rule: they cannot be run again by themselves.
    `run` is held to the pass score, as the runs were that `known` was made of.
    """
    cases = run.by_key()
    facts = []
    for change in comparison.changes:
        key = change.key
        case = cases.get(key)
        if case is None or case.dependent or key in set_aside:
            continue
        first, again = executions(case)
        facts.append(
            CaseFacts(
                key,
                change.change,
                known.get(key) or _record_of_baseline(change),
                first,
                again,
                must_pass=must_pass(case, patterns),
            )
        )
    return facts


def _record_of_baseline(change: CaseChange) -> CaseRecord:
    """The baseline alone, where the history knows the case by another name, as after its file was moved."""
    then = change.baseline
    if not change.change.compared or then is None:
        return NO_RECORD
    return record_of([Seen("", Counts(passes=then.k, failures=max(then.n - then.k, 0)))])


def conclude(
    comparison: Comparison,
    run: RunResult,
    baseline: Baseline,
    *,
    error_rate: float,
    patterns: Sequence[str] = (),
    set_aside: Collection[tuple[str, str]] = (),
) -> Comparison:
    """The comparison with what the records and re-runs make of it; unchanged for a run of the plain rule."""
    if not run.confirm:
        return comparison
    known = records(baseline, run)
    facts = facts_of(comparison, run, known, patterns=patterns, set_aside=set_aside)
    settlement = settle(facts, confirmation_for(facts, error_rate=error_rate, confirm=run.confirm))
    settled = {one.key: one for one in settlement.cases}

    def refined(change: CaseChange) -> CaseChange:
        one = settled.get(change.key)
        if one is None:
            return change
        record = known.get(one.key)
        return change.model_copy(update={"change": one.change, "grounds": one.grounds, "case_record": record})

    return comparison.model_copy(
        update={
            "changes": tuple(refined(change) for change in comparison.changes),
            "suite_finding": settlement.suite,
            "error_rate": error_rate,
        }
    )
