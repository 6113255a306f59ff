"""What earlier pushes add to the evidence of a case, and that they promise no more than one run does."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.gate.evidence.prior import Prior
from eval_gate.gate.evidence.pushes import STARTS, earlier_of, evidence, needed, next_step
from eval_gate.gate.evidence.reruns import Confirmation, Doubt, RerunStep, e_value
from eval_gate.gate.evidence.settle import CaseFacts, settle
from eval_gate.gate.evidence.settle import next_step as step_of
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass
from eval_gate.model.execution import Status, Trial
from eval_gate.model.grounds import CaseRecord, Counts, GroundKind
from eval_gate.model.limits import PUSHES
from eval_gate.model.result import RerunEnd
from eval_gate.model.setup import TargetIdentity
from eval_gate.results.ledger import EMPTY, Ledger
from eval_gate.struct import replace
from tests.support.results import FILE, make_result, make_run, make_suite_result

STEADY = Prior.of(25.0, 0.5)
CONFIRMATION = Confirmation(100, STEADY)
TEN = Counts(passes=10)
KEY = CaseKey(FILE, "c")


def counts(letters: str) -> Counts:
    return Counts(passes=letters.count("P"), failures=letters.count("F"))


def facts(first: str, again: str = "", *earlier: str, record: Counts = TEN, **fields) -> CaseFacts:
    here = counts(first + again)
    plain = CaseClass.REGRESSION if here.fails else CaseClass.STILL_PASSING
    known = CaseRecord(counts=record)
    return CaseFacts(KEY, plain, known, counts(first), counts(again), earlier=tuple(map(counts, earlier)), **fields)


def settled(case: CaseFacts, confirmation: Confirmation = CONFIRMATION) -> tuple[CaseClass, GroundKind | None]:
    found = settle([case], confirmation).cases[0]
    return found.change, found.grounds.why if found.grounds else None


# --- what it promises


def pushes_of(record: Counts, prior: Prior) -> Iterator[tuple[float, list[Counts]]]:
    """Every way that four pushes can go, re-run as a gate would, with its chance when nothing has changed."""
    unchanged = prior.after(record)

    def runs(seen: Counts, here: Counts) -> Iterator[tuple[Counts, Counts]]:
        """A failing case is run again until it passes more often than it fails, three executions at most."""
        if here.runs and (not here.fails or here.runs == 3):
            yield seen, here
            return
        for one in (Counts(passes=1), Counts(failures=1)):
            yield from runs(seen.plus(one), here.plus(one))

    def after(seen: Counts, pushes: list[Counts]) -> Iterator[list[Counts]]:
        if len(pushes) == 4:
            yield pushes
            return
        for total, here in runs(seen, Counts()):
            yield from after(total, [*pushes, here])

    for pushes in after(Counts(), []):
        total = Counts()
        for push in pushes:
            total = total.plus(push)
        yield math.exp(unchanged.log_chance(total)), pushes


@pytest.mark.slow
@pytest.mark.contract("verdict.pushes")
@pytest.mark.parametrize("prior", [STEADY, Prior.of(2.0, 0.3), Prior.of(9.0, 1.0)])
@pytest.mark.parametrize("record", [Counts(), TEN, Counts(passes=7, failures=3)])
def test_evidence__nothing_changed__has_a_mean_of_one_at_most_and_is_seldom_large_in_any_push(prior, record) -> None:
    confirmation = Confirmation(100, prior)
    total, means, highest = 0.0, [0.0] * 4, []
    for chance, pushes in pushes_of(record, prior):
        total += chance
        known = from_first_failure(pushes)
        values = [evidence(confirmation, record, *split) for split in known]
        for at, value in enumerate(values):
            means[at] += chance * value
        highest.append((chance, max(values)))
    assert total == pytest.approx(1)
    assert max(means) <= 1 + 1e-9
    for bar in (1.0, 2.0, 5.0, 20.0):
        assert math.fsum(chance for chance, value in highest if value >= bar) <= 1 / bar


def from_first_failure(pushes: list[Counts]) -> list[tuple[tuple[Counts, ...], Counts]]:
    """Each push, and those before it as a file remembers them."""
    found = []
    for at, here in enumerate(pushes):
        start = next((number for number in range(at) if pushes[number].failures), at)
        found.append((tuple(pushes[start:at]), here))
    return found


def test_evidence__each_start__has_what_was_before_it_on_record() -> None:
    first, here = counts("FP"), counts("FF")
    starts = [e_value(STEADY, TEN, first.plus(here)), e_value(STEADY, TEN.plus(first), here)]
    assert evidence(CONFIRMATION, TEN, (first,), here) == pytest.approx(sum(starts) / 6)


def test_evidence__more_pushes_than_are_kept__looks_at_the_newest() -> None:
    many = tuple([counts("FP")] * (PUSHES + 3))
    assert STARTS == PUSHES + 1
    assert evidence(CONFIRMATION, TEN, many, counts("F")) == evidence(CONFIRMATION, TEN, many[-PUSHES:], counts("F"))


TAPES = st.text("PF", min_size=1, max_size=7)


@pytest.mark.contract("verdict.pushes")
@given(
    earlier=st.lists(TAPES, max_size=PUSHES),
    again=st.text("PF", max_size=6),
    record=st.builds(Counts, passes=st.integers(0, 20), failures=st.integers(0, 3)),
    confirm=st.integers(1, 6),
    end=st.sampled_from([None, *RerunEnd]),
    cases=st.integers(1, 500),
)
def test_settle__earlier_pushes__never_make_a_verdict_milder(earlier, again, record, confirm, end, cases) -> None:
    confirmation = replace(CONFIRMATION, confirm=confirm, cases=cases)
    case = facts("F", again[:confirm], *earlier, record=record, end=end)
    change = settle([case], confirmation).cases[0].change
    assert change in {settle([replace(case, earlier=())], confirmation).cases[0].change, CaseClass.REGRESSION}


@given(earlier=st.lists(TAPES, min_size=1, max_size=PUSHES), here=TAPES, confirm=st.integers(1, 6))
def test_next_step__case_confirmed_by_this_run_alone__stays_so(earlier, here, confirm) -> None:
    confirmation = replace(CONFIRMATION, confirm=confirm)
    before, seen = tuple(map(counts, earlier)), counts(here)
    for alone in RerunStep:
        step = next_step(confirmation, TEN, before, seen, 0, alone)
        assert step is alone or (alone is not RerunStep.CONFIRMED and step is RerunStep.CONFIRMED)


# --- what it finds


def test_settle__half_broken_in_three_pushes__is_found_by_them_together() -> None:
    pushes = ("FFPFPPP", "FPFPFFP")
    alone = facts("F", "FPF")
    assert settled(replace(alone, end=RerunEnd.DECIDED))[1] is not GroundKind.PUSHES
    case = facts("F", "FPF", *pushes)
    change = settle([case], CONFIRMATION).cases[0]
    assert (change.change, change.grounds.why) == (CaseClass.REGRESSION, GroundKind.PUSHES)
    assert (change.grounds.pushes, change.grounds.earlier) == (2, Counts(passes=7, failures=7))
    assert change.grounds.here == counts("FFPF")
    assert change.grounds.chance < settle([alone], CONFIRMATION).cases[0].grounds.chance


def test_next_step__passes_at_first_after_a_doubtful_push__is_looked_at_until_it_is_known() -> None:
    def step(again: str) -> RerunStep | None:
        return step_of(facts("P", again, "FFPFPFP"), CONFIRMATION)

    assert step("") is RerunStep.AGAIN
    assert step("F") is RerunStep.AGAIN
    assert step("FF") is RerunStep.AGAIN
    assert step("FFF") is RerunStep.CONFIRMED
    assert settled(facts("P", "FFF", "FFPFPFP")) == (CaseClass.REGRESSION, GroundKind.PUSHES)
    assert step_of(facts("P", ""), CONFIRMATION) is None


def test_next_step__flaked_once_in_an_earlier_push__is_not_looked_at_again() -> None:
    assert step_of(facts("P", "", "FPP"), replace(CONFIRMATION, prior=Prior.of(9.0, 1.0))) is RerunStep.UNSETTLED


def test_next_step__mended__is_let_go_after_a_few_passes_and_passes() -> None:
    dead = "FFF"
    passes = next(
        number for number in range(8) if step_of(facts("P", "P" * number, dead), CONFIRMATION) is not RerunStep.AGAIN
    )
    assert passes <= 6
    assert settled(facts("P", "P" * passes, dead)) == (CaseClass.STILL_PASSING, None)


def test_next_step__mended_and_flakes_once_pushes_later__is_not_held_against_it() -> None:
    confirmation = replace(CONFIRMATION, prior=Prior.of(9.0, 1.0))
    assert settled(facts("F", "PP", "FFF", "PPPP", "P"), confirmation) == (CaseClass.UNSETTLED, GroundKind.RECOVERED)


@pytest.mark.parametrize("end", [RerunEnd.BROKEN, RerunEnd.STOPPED, RerunEnd.SPENT, None])
def test_settle__reruns_that_only_earlier_pushes_asked_for_are_missing__is_what_this_run_says(end) -> None:
    assert settled(facts("P", "", "FFPFPFP", end=end)) == (CaseClass.STILL_PASSING, None)
    assert settled(facts("P", "F", "FFPFPFP", end=end)) == (CaseClass.UNSETTLED, GroundKind.RECOVERED)


@pytest.mark.parametrize("record", [CaseRecord(counts=Counts(failures=3)), CaseRecord(counts=TEN, newest_failed=True)])
def test_doubt__passes_here_and_the_branch_fails_it__asks_nothing(record) -> None:
    case = replace(facts("P", "", "FFFF"), record=record)
    assert case.doubt is not Doubt.REGRESSION


def test_next_step__dead_before_and_passes_more_often_than_it_fails_here__is_no_regression() -> None:
    dead = ("FFFFFFF", "FFFFFFF")
    assert step_of(facts("F", "FPP", *dead), CONFIRMATION) is RerunStep.CONFIRMED
    assert step_of(facts("F", "FPPP", *dead), CONFIRMATION) is not RerunStep.CONFIRMED
    assert settled(facts("F", "FPPPPP", *dead)) == (CaseClass.UNSETTLED, GroundKind.RECOVERED)
    assert settled(facts("P", "FPPPP", *dead))[0] is CaseClass.FLAKY


def test_needed__after_a_doubtful_push__is_fewer_failures() -> None:
    few = Confirmation(500, STEADY)
    alone = few.needed(TEN)
    assert alone is not None
    assert needed(few, TEN, ()) == alone
    assert needed(few, TEN, (counts("FFPFFPF"),)) == 2 < alone
    impossible = replace(few, confirm=1)
    assert needed(impossible, TEN, (counts("P"),)) == impossible.needed(TEN)


# --- which pushes count


def pushed(number: int, trials: str, **fields):
    made = make_result("c", "passed" if "P" in trials else "failed", trials=trials, **fields.pop("case", {}))
    return make_run(make_suite_result([made]), run_id=f"push-{number}", **fields)


def ledger(*runs) -> Ledger:
    found = EMPTY
    for run in runs:
        found = found.with_run(run)
    return found


def test_earlier_of__pushes__are_the_oldest_first_from_the_first_failure_on_with_reruns() -> None:
    known = ledger(pushed(1, "P"), pushed(2, "FPF", case={"reruns": 2}), pushed(3, "P"))
    assert earlier_of(known, pushed(4, "F"), 1.0) == {KEY: (counts("FPF"), counts("P"))}


def test_earlier_of__case_that_never_failed__is_not_there() -> None:
    assert earlier_of(ledger(pushed(1, "P"), pushed(2, "P")), pushed(3, "F"), 1.0) == {}


@pytest.mark.parametrize(
    "other",
    [
        {"case": {"fingerprint": "another question"}},
        {"target": TargetIdentity(name="another", provider="http", identity="x")},
    ],
)
def test_earlier_of__another_yardstick_or_target__does_not_count(other) -> None:
    assert earlier_of(ledger(pushed(1, "F", **other)), pushed(2, "F"), 1.0) == {}


def test_earlier_of__itself__does_not_count() -> None:
    assert earlier_of(ledger(pushed(1, "F")), pushed(1, "F"), 1.0) == {}


def test_earlier_of__push_that_was_an_outage__says_nothing() -> None:
    broken = [make_result(name, "error") for name in ("a", "b")]
    outage = make_run(make_suite_result([make_result("c", "failed", trials="F"), *broken]), run_id="outage")
    assert earlier_of(ledger(outage), pushed(2, "F"), 1.0) == {}


def test_earlier_of__graded_case__is_held_to_this_gates_pass_score() -> None:
    trial = Trial(status=Status.FAILED, score=0.7, duration_ms=1)
    graded = replace(make_result("c", "failed", score=0.7, graded=True), trials=(trial,))
    run = make_run(make_suite_result([graded]), run_id="push-1")
    assert earlier_of(ledger(run), make_run(make_suite_result([graded]), run_id="push-2"), 0.9) == {KEY: (counts("F"),)}
    assert earlier_of(ledger(run), make_run(make_suite_result([graded]), run_id="push-2"), 0.6) == {}
