"""New and changed cases: which are run how often, and what they are seen to do."""

from __future__ import annotations

import pytest

from eval_gate.gate.evidence.case_classification import CaseFacts
from eval_gate.gate.evidence.new_case_runs import (
    MIN_EXTRA_EXECUTIONS,
    count_outcomes,
    is_failing,
    is_flaky,
    plan_extra_executions,
)
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass
from eval_gate.model.evidence import Counts
from eval_gate.model.execution import CaseDetails, Status
from tests.support.results import make_result
from tests.support.verdicts import make_executed

ONCE = Counts(passes=1)


def new(number: int, plain: CaseClass = CaseClass.ADDED, **fields) -> CaseFacts:
    return CaseFacts(CaseKey("a.json", f"n-{number}"), plain, **{"first": ONCE} | fields)


def asked(*facts: CaseFacts, bounded: bool = False, **fields) -> dict[str, int]:
    cases = {one.key: make_result(one.key.case_id, **fields) for one in facts}
    return {key.case_id: more for key, more in plan_extra_executions(facts, cases, bounded=bounded).items()}


def test_more_runs__new_and_changed_cases__are_made_up_to_the_number() -> None:
    assert asked(new(1), new(2, CaseClass.INCOMPARABLE)) == {"n-1": 2, "n-2": 2}


@pytest.mark.parametrize("plain", [one for one in CaseClass if one not in {CaseClass.ADDED, CaseClass.INCOMPARABLE}])
def test_more_runs__every_other_class__none(plain) -> None:
    assert asked(new(1, plain)) == {}


def test_more_runs__in_doubt_already_or_unanswered_or_recorded__none() -> None:
    assert asked(new(1, first=Counts(failures=1), must_pass=True)) == {}
    assert asked(new(1, first=Counts())) == {}
    assert asked(new(1), details=CaseDetails(replayed=True)) == {}


@pytest.mark.slow
def test_more_runs__thousands_of_new_cases__take_half_of_the_run_and_the_first_ones_have_all_of_theirs() -> None:
    many = [new(number) for number in range(2_000)]
    bounded = asked(*many, bounded=True)
    assert sum(bounded.values()) == 1_000
    assert list(bounded) == [f"n-{number}" for number in range(500)]
    assert sum(asked(*many[:60], bounded=True).values()) == MIN_EXTRA_EXECUTIONS
    assert len(asked(*many)) == 2_000


@pytest.mark.parametrize(
    ("letters", "counts", "failing", "flaky"),
    [
        ("P", Counts(passes=1), False, False),
        ("PPP", Counts(passes=3), False, False),
        ("PFP", Counts(passes=2, failures=1), False, True),
        ("PF", Counts(passes=1, failures=1), True, True),
        ("FFF", Counts(failures=3), True, False),
    ],
)
def test_seen_here__by_its_letters__counts_and_says_what_it_does(letters, counts, failing, flaky) -> None:
    case = make_executed("a", letters)
    assert (count_outcomes(case), is_failing(case), is_flaky(case)) == (counts, failing, flaky)


def test_fails__never_judged__is_an_error_and_no_failure() -> None:
    assert not is_failing(make_result("a", status=Status.ERROR))
