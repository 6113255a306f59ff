"""The day a run shows itself to be on: a bad day is not many single regressions, and no day excuses a dead case."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.gate.evidence.case_classification import CaseFacts, adjust_to_day, decide_next_step
from eval_gate.gate.evidence.day_effects import (
    NO_DAY_EFFECTS,
    DayEffects,
    estimate_day,
    learn_day_effects,
)
from eval_gate.gate.evidence.prior import RATES, DayFactors, learn_prior
from eval_gate.gate.evidence.rerun_decision import RerunCriteria, RerunStep, Suspicion, compute_e_value
from eval_gate.gate.evidence.thresholds import ExecutionLimits, compute_run_thresholds
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass
from eval_gate.model.evidence import BranchRun, CaseHistorySummary, Counts
from eval_gate.struct import replace

RECORD = Counts(passes=19, failures=1)
PRIOR = learn_prior({(19, 1): 100})
BARS = compute_run_thresholds(PRIOR, {(19, 1): 100}, 100, ExecutionLimits(8), 0.05)
assert BARS is not None
CONFIRMATION = RerunCriteria(100, PRIOR, max_reruns=8, thresholds=BARS)


def runs(*failures: int) -> DayEffects:
    mean = sum(failures) / len(failures)
    return learn_day_effects(
        tuple(BranchRun(failures=one, expected=round(mean, 4), variance=round(mean * 0.95, 4)) for one in failures)
    )


DIFFER = runs(5, 4, 16, 5, 6, 4, 15, 5, 4, 6)
CALM = runs(5, 4, 6, 5, 6, 4, 5, 5, 4, 6)


def cases(failing: int, number: int = 100, again: Counts | None = None) -> list[CaseFacts]:
    """So many of all cases failed at first."""
    return [
        CaseFacts(
            CaseKey("a.json", f"c{at}"),
            CaseClass.REGRESSION if at < failing else CaseClass.STILL_PASSING,
            CaseHistorySummary(counts=RECORD, newest_run=Counts(passes=1)),
            Counts(failures=1) if at < failing else Counts(passes=1),
            again or Counts(),
        )
        for at in range(number)
    ]


def day_of(failing: int, number: int = 100) -> DayFactors:
    return estimate_day([(one.history.counts, one.first) for one in cases(failing, number)], DIFFER)


def test_on_this_day__runs_do_not_differ_on_record__changes_nothing() -> None:
    assert not CALM.has_effects
    for days in (CALM, NO_DAY_EFFECTS):
        assert adjust_to_day(CONFIRMATION, cases(20), days) is CONFIRMATION


def test_on_this_day__no_more_failures_than_usual__changes_nothing() -> None:
    assert DIFFER.has_effects
    assert adjust_to_day(CONFIRMATION, cases(3), DIFFER) is CONFIRMATION


def test_on_this_day__bad_day__asks_more_of_what_comes_and_goes_and_not_of_what_is_dead() -> None:
    bad = adjust_to_day(CONFIRMATION, cases(16), DIFFER)
    assert sum(factor * share for factor, share in bad.day) > 2
    dead, flaky = (replace(cases(16)[0], reruns=again) for again in (Counts(failures=8), Counts(passes=1, failures=4)))
    assert decide_next_step(flaky, CONFIRMATION) is RerunStep.CONFIRMED
    assert decide_next_step(flaky, bad) is not RerunStep.CONFIRMED
    assert decide_next_step(dead, bad) is RerunStep.CONFIRMED


@given(st.integers(0, 40), st.integers(0, 8), st.integers(1, 8))
def test_e_value__any_day__is_never_more_than_on_a_day_like_any_other(failing, passes, failures) -> None:
    day = day_of(failing)
    here = Counts(passes=passes, failures=failures)
    assert not day or abs(sum(share for _, share in day) - 1) < 0.01
    if passes == 0:
        assert compute_e_value(PRIOR, RECORD, here, day) <= compute_e_value(PRIOR, RECORD, here) * 1.05


@given(st.integers(0, 40), st.integers(0, 8), st.integers(0, 7))
def test_e_value__any_day__grows_with_every_failure_and_shrinks_with_every_pass(failing, passes, failures) -> None:
    day = day_of(failing)
    now = compute_e_value(PRIOR, RECORD, Counts(passes=passes, failures=failures), day)
    assert compute_e_value(PRIOR, RECORD, Counts(passes=passes, failures=failures + 1), day) >= now * (1 - 1e-9)
    assert compute_e_value(PRIOR, RECORD, Counts(passes=passes + 1, failures=failures), day) <= now * (1 + 1e-9)


@given(st.integers(0, 40), st.integers(0, 6))
def test_confirmation__on_any_day_unchanged__the_evidence_has_mean_one(failing, runs_of_it) -> None:
    """All results of so many executions, each as likely as the belief says of such a day."""
    day = day_of(failing)
    unchanged = PRIOR.add_history(RECORD).adjust_to_day(day)
    mean = 0.0
    for number in range(2**runs_of_it):
        failures = number.bit_count()
        here = Counts(passes=runs_of_it - failures, failures=failures)
        chance = sum(w * r**failures * (1 - r) ** here.passes for w, r in zip(unchanged.weights, RATES, strict=True))
        mean += chance * compute_e_value(PRIOR, RECORD, here, day)
    assert mean == pytest.approx(1.0, rel=1e-6)


@given(st.integers(2, 30), st.integers(0, 200))
def test_day_of__cases_that_pass_on_both_sides_are_added__the_day_is_no_worse(failing, added) -> None:
    """What they would have failed on such a day they did not."""
    few, more = day_of(failing), day_of(failing, 100 + added)
    assert _mean(more) <= _mean(few) * 1.0001


def _mean(day) -> float:
    return sum(factor * share for factor, share in day) or 1.0


def test_chance__new_pass__knows_of_no_day() -> None:
    bad = adjust_to_day(CONFIRMATION, cases(16), DIFFER)
    history, here = Counts(passes=1, failures=9), Counts(passes=4)
    assert bad.compute_chance(Suspicion.NEW_PASS, history, here) == CONFIRMATION.compute_chance(
        Suspicion.NEW_PASS, history, here
    )
