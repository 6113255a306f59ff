"""What belongs to one turn of a conversation, and which turn shows best what differs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.model.execution import NO_DETAILS, BaselineResult, CaseDetails, Status
from eval_gate.model.result import CaseFingerprints
from eval_gate.results.turn_details import count_scripted_turns, has_other_calls, select_turn, slice_turn
from eval_gate.struct import replace
from tests.support.chat_results import BEFORE, FIND, FORGOT, REFUND, make_chat, make_conversation
from tests.support.results import make_result

BASELINE = make_conversation(BEFORE, "PPPPP")
SAME = (BEFORE[0][0], f"Certainly. {BEFORE[0][1]}", BEFORE[0][2])
"""The first turn in other words."""


def make_case(details: CaseDetails, failed_turn: int | None = None):
    return make_result("a", details=details, failed_turn=failed_turn)


def make_baseline_side(details: CaseDetails) -> BaselineResult:
    return BaselineResult(status=Status.PASSED, details=details)


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=4), min_size=1, max_size=8))
def test_slice_turn__any_conversation__its_turns_have_every_call_once_and_in_order(names) -> None:
    details = make_conversation([("m", "r", [(name, {}) for name in turn]) for turn in names], "P" * len(names))
    slices = [slice_turn(details, number) for number in range(1, len(names) + 1)]
    assert [list(one.tools_called) for one in slices] == names
    assert sum((one.tool_calls for one in slices), ()) == details.tool_calls
    assert slice_turn(details, 0) == slice_turn(details, len(names) + 1) == NO_DETAILS


def test_slice_turn__case_with_one_request__is_its_first_turn() -> None:
    details = CaseDetails(response="r", tools_called=("find_order",))
    assert (slice_turn(details, 1), slice_turn(details, 2)) == (details, NO_DETAILS)
    case, other = make_case(details), make_case(BASELINE)
    assert (select_turn(case, make_baseline_side(BASELINE)), select_turn(other, make_baseline_side(details))) == (1, 1)


def test_slice_turn__calls_beyond_the_limit_are_dropped__the_names_stay() -> None:
    details = replace(BASELINE, tool_calls=BASELINE.tool_calls[:1])
    assert slice_turn(details, 4).tools_called == ("refund",)
    assert slice_turn(details, 4).tool_calls == ()


@pytest.mark.parametrize(
    ("here", "failed_turn", "baseline", "number"),
    [
        (CaseDetails(response="one"), None, CaseDetails(response="other"), None),
        (make_conversation((*BEFORE[:2], FORGOT), "PPF"), 3, BASELINE, 3),
        (make_conversation((*BEFORE[:2], FORGOT, *BEFORE[3:]), "PPPPP"), None, BASELINE, 3),
        (make_conversation((*BEFORE[:3], (*BEFORE[3][:2], [FIND]), BEFORE[4]), "PPPPP"), None, BASELINE, 4),
        (make_conversation((SAME, *BEFORE[1:3], (*BEFORE[3][:2], [FIND]), BEFORE[4]), "PPPPP"), None, BASELINE, 4),
        (BASELINE, None, BASELINE, 5),
        (make_conversation(BEFORE[:4], "PPPP"), None, BASELINE, 5),
        (make_conversation((*BEFORE[:2], *((one[0], None, []) for one in BEFORE[2:])), "PPNNN"), None, NO_DETAILS, 2),
    ],
    ids=[
        "one request",
        "failed",
        "another response",
        "another call",
        "other words and another call",
        "same",
        "shorter",
        "no baseline",
    ],
)
def test_select_turn__conversation__failed_then_first_difference_then_last(here, failed_turn, baseline, number) -> None:
    assert select_turn(make_case(here, failed_turn), make_baseline_side(baseline)) == number


def test_select_turn__without_a_baseline__is_the_last_one_that_was_sent() -> None:
    assert select_turn(make_case(BASELINE), None) == 5


def test_has_other_calls__only_names_of_one_side_are_kept__names_are_compared() -> None:
    names = replace(BASELINE, tool_calls=())
    assert not any(has_other_calls(BASELINE, names, number) for number in range(1, 6))
    other = make_conversation((*BEFORE[:3], (*BEFORE[3][:2], [(REFUND[0], {"amount": True})]), BEFORE[4]), "PPPPP")
    one = make_conversation((*BEFORE[:3], (*BEFORE[3][:2], [(REFUND[0], {"amount": 1})]), BEFORE[4]), "PPPPP")
    assert has_other_calls(one, other, 4)


def test_count_scripted_turns__simulated_user__is_unknown_also_after_an_error() -> None:
    case = make_chat("a", "F", BASELINE, (3,))
    assert count_scripted_turns(case) == 5
    assert count_scripted_turns(replace(case, details=replace(BASELINE, user_end="reached"))) is None
    assert count_scripted_turns(replace(case, fingerprints=CaseFingerprints(user="a model"))) is None
    assert count_scripted_turns(replace(case, details=NO_DETAILS)) is None
