"""What the answers of the base branch's agent are worth: they only clear, and only what they have to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.gate.evidence.base_agent_clearance import (
    NO_BASE_AGENT_RESULTS,
    BaseAgentResults,
    CaseClearance,
    clear_cases,
    collect_base_agent_results,
    decide_clearance,
)
from eval_gate.gate.evidence.case_classification import CaseFacts, ClassifiedCase, classify_cases
from eval_gate.gate.evidence.prior import DEFAULT_PRIOR, Prior
from eval_gate.gate.evidence.rerun_decision import RerunCriteria
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass
from eval_gate.model.evidence import CaseHistorySummary, Counts, GroundKind
from eval_gate.model.execution import ErrorKind, Status, Trial
from eval_gate.model.result import BaseAgentSummary
from eval_gate.struct import replace
from tests.support.results import FILE, make_result, make_run, make_suite_result

SOLID = Counts(passes=10)
counts = st.builds(Counts, passes=st.integers(0, 3), failures=st.integers(0, 3))
histories = st.builds(Counts, passes=st.integers(1, 20), failures=st.integers(0, 9)).filter(
    lambda one: not one.is_failing
)


def of(passes: int, failures: int) -> Counts:
    return Counts(passes=passes, failures=failures)


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        (of(0, 0), CaseClearance.OPEN),
        (of(0, 1), CaseClearance.OPEN),
        (of(1, 1), CaseClearance.OPEN),
        (of(0, 2), CaseClearance.CLEARED),
        (of(1, 2), CaseClearance.CLEARED),
        (of(2, 0), CaseClearance.RED),
        (of(2, 1), CaseClearance.RED),
    ],
)
def test_standing_of__steady_case__is_red_by_two_passes_and_cleared_by_two_failures(answers, found) -> None:
    assert decide_clearance(answers, SOLID, Prior.from_counts(9.8, 0.2)) is found


@pytest.mark.parametrize(
    ("history", "answers", "found"),
    [
        (of(8, 2), of(0, 2), CaseClearance.OPEN),
        (of(8, 2), of(1, 2), CaseClearance.RED),
        (of(8, 2), of(0, 3), CaseClearance.CLEARED),
        (of(12, 8), of(0, 3), CaseClearance.RED),
    ],
)
def test_standing_of__case_that_flakes__the_record_keeps_its_word(history, answers, found) -> None:
    """Two failures of three are what it does on any day; of one that fails two times in five even three are."""
    assert decide_clearance(answers, history, Prior.from_counts(9.5, 0.5)) is found


@pytest.mark.parametrize(("answers", "found"), [(of(0, 2), CaseClearance.OPEN), (of(0, 3), CaseClearance.CLEARED)])
def test_standing_of__one_earlier_run__takes_a_third_failure(answers, found) -> None:
    assert decide_clearance(answers, of(1, 0), DEFAULT_PRIOR) is found


@given(counts, histories)
def test_standing_of__one_more_pass_there__never_clears(answers, history) -> None:
    if decide_clearance(answers, history, DEFAULT_PRIOR) is not CaseClearance.CLEARED:
        assert decide_clearance(answers.add(of(1, 0)), history, DEFAULT_PRIOR) is not CaseClearance.CLEARED


def trial(letter: str) -> Trial:
    status = {"P": Status.PASSED, "F": Status.FAILED}.get(letter, Status.ERROR)
    error_kind = {
        "C": ErrorKind.AGENT_ERROR,
        "U": ErrorKind.AGENT_UNREACHABLE,
        "O": ErrorKind.EVALUATION_ERROR,
        "T": ErrorKind.AGENT_ERROR,
    }.get(letter)
    return Trial(
        status=status, score=float(letter == "P"), duration_ms=1.0, error_kind=error_kind, timed_out=letter == "T"
    )


def asked(**tapes: str):
    """A run in which the base branch's agent did this, case by case."""
    cases = [make_result(name, base_agent_trials=tuple(map(trial, tape))) for name, tape in tapes.items()]
    run = make_run(make_suite_result(cases))
    return replace(run, base_agent=BaseAgentSummary(target=run.target))


def key(name: str) -> CaseKey:
    return CaseKey(FILE, name)


def passing(*names: str) -> list[ClassifiedCase]:
    return [ClassifiedCase(key(name), CaseClass.STILL_PASSING) for name in names]


@pytest.mark.parametrize("tape", ["CCC", "UUU", "OOO", "TTT", ""])
def test_answers_of__what_broke__is_neither_a_failure_nor_a_sign_of_life(tape) -> None:
    found = collect_base_agent_results(asked(a=tape, b=tape), passing("b"), 1.0)
    assert (found.get_counts(key("a")), found.is_working) == (Counts(), False)


@pytest.mark.parametrize(
    ("tapes", "works"), [("PPP", True), ("PPF", True), ("PFF", False), ("PF", False), ("F", False)]
)
def test_answers_of__cases_that_pass_here__show_whether_it_works(tapes, works) -> None:
    names = [f"c{at}" for at in range(len(tapes))]
    run = asked(dead="FF", **dict(zip(names, tapes, strict=True)))
    assert collect_base_agent_results(run, passing(*names), 1.0).is_working is works


def test_answers_of__record_that_does_not_say_who_was_asked__is_not_believed() -> None:
    run = replace(asked(a="FF", b="P"), base_agent=None)
    assert collect_base_agent_results(run, passing("b"), 1.0) is NO_BASE_AGENT_RESULTS


def facts(name: str, here: Counts, history: Counts = SOLID, *, must_pass: bool = False) -> CaseFacts:
    plain = CaseClass.REGRESSION if here.is_failing else CaseClass.STILL_PASSING
    first = of(0, 1) if here.is_failing else of(1, 0)
    again = Counts(passes=here.passes - first.passes, failures=here.failures - first.failures)
    return CaseFacts(key(name), plain, CaseHistorySummary(counts=history), first, again, must_pass=must_pass)


CONFIRMATION = RerunCriteria(20, Prior.from_counts(9.8, 0.2))


def settled(cases: list[CaseFacts], answers: BaseAgentResults):
    return clear_cases(classify_cases(cases, CONFIRMATION), cases, answers, CONFIRMATION)


def both(dead: Counts, works: bool = True) -> BaseAgentResults:
    return BaseAgentResults({key("dead"): dead}, works)


CASES = [facts("dead", of(0, 7)), facts("fine", of(1, 0))]


@pytest.mark.parametrize(("there", "change"), [(of(0, 2), CaseClass.STILL_FAILING), (of(1, 2), CaseClass.INCONCLUSIVE)])
def test_with_answers__dead_in_both__is_failing_there_or_in_doubt(there, change) -> None:
    (dead, _) = settled(CASES, both(there)).cases
    assert (dead.case_class, dead.grounds.kind, dead.grounds.base_agent) == (change, GroundKind.BASE_AGENT, there)


@pytest.mark.parametrize(
    "answers", [both(of(0, 3), works=False), both(of(2, 1)), both(of(0, 1)), NO_BASE_AGENT_RESULTS]
)
def test_with_answers__that_do_not_clear_it__leave_it_red(answers) -> None:
    assert settled(CASES, answers).cases[0].case_class is CaseClass.REGRESSION


def test_with_answers__case_that_must_pass__stays_what_it_is() -> None:
    cases = [facts("dead", of(0, 7), must_pass=True), facts("fine", of(1, 0))]
    assert settled(cases, both(of(0, 3))).cases[0].case_class is CaseClass.REGRESSION


@given(st.dictionaries(st.sampled_from(["dead", "fine"]), counts), st.booleans())
def test_with_answers__whatever_they_are__never_make_anything_worse(there, works) -> None:
    plain = classify_cases(CASES, CONFIRMATION)
    found = settled(CASES, BaseAgentResults({key(name): one for name, one in there.items()}, works))
    for before, after in zip(plain.cases, found.cases, strict=True):
        assert after.case_class is before.case_class or before.case_class is CaseClass.REGRESSION
    assert plain.suite_finding.is_drop or not found.suite_finding.is_drop


def whole(here: int, there: Counts, of_each: int = 40) -> CaseClass:
    """A fifth of 40 cases failed at first and recovered; the base branch's agent did this in each case."""
    cases = [facts(f"c{at}", of(0, 1)) for at in range(here)] + [
        facts(f"c{at}", of(1, 0)) for at in range(here, of_each)
    ]
    cases = [
        CaseFacts(one.key, one.plain_class, one.history, one.first, of(2, 0) if one.first.is_failing else one.reruns)
        for one in cases
    ]
    answers = BaseAgentResults({one.key: there if one.first.is_failing else of(2, 0) for one in cases}, is_working=True)
    found = settled(cases, answers)
    assert classify_cases(cases, CONFIRMATION).suite_finding.is_drop
    return found.cases[0].case_class


def test_with_answers__drop_of_all__holds_or_is_gone_as_they_say() -> None:
    assert whole(8, of(2, 0)) is CaseClass.REGRESSION
    assert whole(8, of(0, 2)) is CaseClass.INCONCLUSIVE


@pytest.mark.parametrize(
    ("there", "why"),
    [(of(2, 0), GroundKind.SUITE_DROP), (of(1, 1), GroundKind.MIXED)],
    ids=["passes there", "fails there"],
)
def test_with_answers__drop_of_all_by_trials__its_flaky_cases_are_of_it_only_while_it_holds(there, why) -> None:
    history = CaseHistorySummary(counts=SOLID)
    cases = [CaseFacts(key(f"c{at}"), CaseClass.FLAKY, history, first=of(4, 1)) for at in range(40)]
    answers = BaseAgentResults({one.key: there for one in cases}, is_working=True)
    before, found = classify_cases(cases, CONFIRMATION), settled(cases, answers)
    assert before.suite_finding.is_drop
    assert {(one.case_class, one.grounds.kind) for one in before.cases} == {(CaseClass.FLAKY, GroundKind.SUITE_DROP)}
    assert {(one.case_class, one.grounds.kind) for one in found.cases} == {(CaseClass.FLAKY, why)}
    assert found.suite_finding.is_drop is (why is GroundKind.SUITE_DROP)


def test_with_answers__drop_of_all_and_answers_to_half_of_them__stays_a_drop() -> None:
    cases = [facts(f"c{at}", of(0, 1)) for at in range(8)] + [facts(f"c{at}", of(1, 0)) for at in range(8, 40)]
    cases = [CaseFacts(one.key, one.plain_class, one.history, one.first, of(2, 0)) for one in cases]
    answers = BaseAgentResults(
        {one.key: of(0, 2) if one.first.is_failing else of(2, 0) for one in cases[:20]}, is_working=True
    )
    found = settled(cases, answers)
    assert (found.suite_finding.is_drop, found.suite_finding.base_agent_chance) == (True, None)
