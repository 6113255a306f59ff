"""Failures of test runners under names that the baseline does not have, beside tests that passed there and are gone.

A hook that fails, a part of a test and a renamed test all look like this. The baseline cannot say that they are
new: what is gone, or was not run because of them, may be what failed.
"""

from __future__ import annotations

from collections.abc import Iterator

from eval_gate.config.settings import ResultsFormat
from eval_gate.gate.moved_cases import absent_cases, earlier_keys
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import Blame, Status
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.struct import FrozenStruct

_NO_PASS = frozenset({Status.FAILED, Status.ERROR})


class OtherNames(FrozenStruct):
    """Failing cases here that may be others of the baseline, and these others."""

    failing: tuple[CaseKey, ...] = ()
    lost: tuple[CaseKey, ...] = ()


def other_names(baseline: RunResult, run: RunResult) -> OtherNames:
    """Of JUnit's results; of every other tool a case is known by what it asks as well."""
    if not run.target.provider == baseline.target.provider == ResultsFormat.JUNIT:
        return OtherNames()
    lost = dict(_lost(baseline, run))
    if not lost:
        return OtherNames()
    there, earlier = baseline.by_key(), earlier_keys(baseline, run)
    pairs = [
        (key, other)
        for key, case in run.cases()
        if case.status in _NO_PASS and (case.blame is Blame.OURS or (key not in there and key not in earlier))
        for other, then in lost.items()
        if case.blame is Blame.OURS or _may_be(key, case, other, then)
    ]
    return OtherNames(tuple(dict.fromkeys(key for key, _ in pairs)), tuple(dict.fromkeys(key for _, key in pairs)))


def _lost(baseline: RunResult, run: RunResult) -> Iterator[tuple[CaseKey, CaseResult]]:
    """The cases that passed in the baseline, and are gone or skipped here."""
    here, now = run.by_key(), {then: key for key, then in earlier_keys(baseline, run).items()}
    gone = frozenset(absent_cases(baseline, run).removed)
    for key, case in baseline.cases():
        found = here.get(now.get(key, key))
        if case.passed and (key in gone or (found is not None and found.status is Status.SKIPPED)):
            yield key, case


def _may_be(key: CaseKey, case: CaseResult, other: CaseKey, then: CaseResult) -> bool:
    """Whether a failing case may stand for another one: it is of the same suite or file, or has its short name."""
    if other.suite in {key.suite, key.case_id}:  # the name of a class is what failed before or after its tests
        return True
    if case.location is not None and then.location is not None and case.location.file == then.location.file:
        return True
    return key.case_id == other.case_id and key.suite.rpartition(": ")[2] == other.suite.rpartition(": ")[2]
