"""Re-runs that answer byte for byte the same: counted once, and never a reason to let a dead case through."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_gate.gate.evidence.repeats import FASTER, LEAST_MS, repeats_of
from eval_gate.model.comparison import CaseChange, CaseClass
from eval_gate.model.grounds import GroundKind
from eval_gate.model.result import CaseResult, RerunEnd
from eval_gate.struct import replace
from tests.support.sizes import size
from tests.support.verdicts import make_executed, make_judged

SURE = "FFFFF"


def monotonous(letters: str = SURE, *, first_ms: float = 120, again_ms: float = 120, same: bool = True) -> CaseResult:
    """A case whose re-runs all answered as the first did."""
    case = make_executed("it", letters, rerun_end=RerunEnd.DECIDED)
    first, *again = case.trials
    told = [replace(one, repeats=same, duration_ms=again_ms) for one in again]
    return replace(case, trials=(replace(first, duration_ms=first_ms), *told))


def judged(case: CaseResult, record: str = "P" * 20) -> CaseChange:
    others = {f"other-{number}": "P" * len(record) for number in range(20)}
    run = make_judged([case, *(make_executed(name, "P") for name in others)], {"it": record, **others})
    assert run.comparison is not None
    return next(one for one in run.comparison.changes if one.case_id == "it")


def test_judged__answers_differ__the_evidence_is_that_of_all_executions() -> None:
    change = judged(monotonous(same=False))
    assert (change.change, change.grounds.why, change.grounds.repeats) == (
        CaseClass.REGRESSION,
        GroundKind.EVIDENCE,
        None,
    )


def test_judged__answers_are_the_same__counts_because_it_failed_every_time_and_the_chance_is_of_one_failure() -> None:
    change, varied = judged(monotonous()), judged(monotonous(same=False))
    assert (change.change, change.grounds.why) == (CaseClass.REGRESSION, GroundKind.EVERY_RUN)
    assert (change.grounds.here.failures, change.grounds.reruns) == (5, 4)
    assert change.grounds.chance > 10 * varied.grounds.chance
    assert (change.grounds.repeats.reruns, change.grounds.repeats.cached) == (4, False)


@pytest.mark.slow
@settings(max_examples=size(40))
@given(st.text("P", min_size=1, max_size=20), st.integers(1, 6), st.sampled_from([1.0, 120.0, 5_000.0]))
def test_judged__dead_and_monotonous__is_a_regression_whatever_its_record_of_passes(record, reruns, again_ms) -> None:
    case = monotonous("F" * (reruns + 1), first_ms=2_000, again_ms=again_ms)
    assert judged(case, record).change is CaseClass.REGRESSION


@pytest.mark.slow
def test_judged__flaky_on_record_and_looks_cached__is_not_sure_by_one_failure_fetched_often() -> None:
    record = "PFPFPPFPPPFPPFPPPFPP"
    slow = judged(monotonous("FFFFFFF", first_ms=2_000, again_ms=1_900), record)
    cached = judged(monotonous("FFFFFFF", first_ms=2_000, again_ms=4), record)
    assert cached.change is CaseClass.UNSETTLED
    assert cached.grounds.repeats.cached
    assert slow.grounds.repeats is None
    assert slow == judged(monotonous("FFFFFFF", same=False, first_ms=2_000, again_ms=1_900), record)


@pytest.mark.parametrize("end", [RerunEnd.CERTAIN, RerunEnd.SPENT, RerunEnd.STOPPED, RerunEnd.BROKEN])
def test_judged__re_runs_that_would_decide_were_never_made__are_missing_as_before(end) -> None:
    case = replace(monotonous("FF"), rerun_end=end)
    assert judged(case, "PP").grounds.why.undecided


@pytest.mark.parametrize(
    ("first_ms", "again_ms", "cached"),
    [
        (2_000, 4, True),
        (LEAST_MS, LEAST_MS / FASTER - 1, True),
        (LEAST_MS, LEAST_MS / FASTER, False),
        (LEAST_MS - 1, 1, False),
        (2_000, 1_500, False),
    ],
)
def test_repeats_of__by_how_long_they_took__look_cached(first_ms, again_ms, cached) -> None:
    assert repeats_of(monotonous(first_ms=first_ms, again_ms=again_ms)).cached is cached


def test_repeats_of__one_of_them_differs_or_passed__is_none() -> None:
    case = monotonous()
    varied = replace(case.trials[-1], repeats=False)
    assert repeats_of(replace(case, trials=(*case.trials[:-1], varied))) is None
    assert repeats_of(make_executed("it", "FPF")) is None
    assert repeats_of(make_executed("it", "F")) is None
