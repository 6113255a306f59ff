"""Re-runs that answer byte for byte the same: recorded, and counted like all others."""

from __future__ import annotations

import pytest

from eval_gate.gate.evidence.identical_responses import CACHE_SPEEDUP, MIN_FIRST_MS, find_repeats
from eval_gate.model.comparison import CaseChange, CaseClass
from eval_gate.model.evidence import GroundKind
from eval_gate.model.result import CaseResult, RerunStopReason
from eval_gate.struct import replace
from tests.support.verdicts import make_executed, make_judged

SURE = "FFFFF"


def monotonous(letters: str = SURE, *, first_ms: float = 120, again_ms: float = 120, same: bool = True) -> CaseResult:
    """A case whose re-runs all answered as the first did."""
    case = make_executed("it", letters, rerun_stop_reason=RerunStopReason.DECIDED)
    first, *again = case.trials
    told = [replace(one, repeats_first_failure=same, duration_ms=again_ms) for one in again]
    return replace(case, trials=(replace(first, duration_ms=first_ms), *told))


def judged(case: CaseResult, history: str = "P" * 20) -> CaseChange:
    others = {f"other-{number}": "P" * len(history) for number in range(20)}
    rest = [make_executed(name, "P") for name in others]
    run = make_judged([*rest, case], {"it": history, **others})
    assert run.comparison is not None
    return next(one for one in run.comparison.changes if one.case_id == "it")


def test_judged__answers_are_the_same__is_said_and_counts_as_if_they_differed() -> None:
    change, varied = judged(monotonous()), judged(monotonous(same=False))
    assert (change.change, change.grounds.kind) == (CaseClass.REGRESSION, GroundKind.EVIDENCE)
    assert (change.grounds.reruns, change.grounds.repeats.cached) == (4, False)
    assert varied.grounds.repeats is None
    assert replace(change, grounds=replace(change.grounds, repeats=None)) == varied


def test_judged__flaky_on_record_and_looks_cached__counts_like_any_other() -> None:
    history = "PFPFPPFPPPFPPFPPPFPP"
    cached = judged(monotonous("FFFFFFF", first_ms=2_000, again_ms=4), history)
    varied = judged(monotonous("FFFFFFF", same=False, first_ms=2_000, again_ms=4), history)
    assert cached.grounds.repeats.cached
    assert replace(cached, grounds=replace(cached.grounds, repeats=None)) == varied


def test_judged__only_the_first_connection_was_slow__does_not_look_cached() -> None:
    case = monotonous("FFFFFFF", first_ms=2_000, again_ms=4)
    assert judged(case).grounds.repeats.cached
    assert not judged(replace(case, ran_first=True)).grounds.repeats.cached


@pytest.mark.parametrize(
    ("first_ms", "again_ms", "cached"),
    [
        (2_000, 4, True),
        (MIN_FIRST_MS, MIN_FIRST_MS / CACHE_SPEEDUP - 1, True),
        (MIN_FIRST_MS, MIN_FIRST_MS / CACHE_SPEEDUP, False),
        (MIN_FIRST_MS - 1, 1, False),
        (2_000, 1_500, False),
    ],
)
def test_repeats_of__by_how_long_they_took__look_cached(first_ms, again_ms, cached) -> None:
    assert find_repeats(monotonous(first_ms=first_ms, again_ms=again_ms)).cached is cached


def test_repeats_of__one_of_them_differs_or_passed__is_none() -> None:
    case = monotonous()
    varied = replace(case.trials[-1], repeats_first_failure=False)
    assert find_repeats(replace(case, trials=(*case.trials[:-1], varied))) is None
    assert find_repeats(make_executed("it", "FPF")) is None
    assert find_repeats(make_executed("it", "F")) is None
