"""What differs in the tool calls of both sides, in half sentences."""

from __future__ import annotations

import pytest

from eval_gate.model.comparison import CaseChange, CaseClass, PassCount
from eval_gate.model.execution import BaselineResult, CaseDetails, Status, StoredCall
from eval_gate.reports.view.response_comparison import (
    MAX_CHANGES,
    build_response_comparison,
    describe_call_changes,
)
from tests.support.chat_results import make_conversation
from tests.support.results import make_result
from tests.support.sides import make_details

LOOKUP = ("lookup", {"id": "A17"})


@pytest.mark.parametrize(
    ("then", "here", "said"),
    [
        ([("refund", {})], [("escalate", {})], ("called `escalate` instead of `refund`",)),
        ([LOOKUP], [("lookup", {"id": "A71"})], ('`lookup`: `id` `"A17"` → `"A71"`',)),
        ([LOOKUP], [("lookup", {"id": "A17", "all": True})], ("`lookup`: `all` nothing → `true`",)),
        ([LOOKUP], [LOOKUP], ()),
        ([LOOKUP, ("refund", {})], [LOOKUP], ("did not call `refund`",)),
        ([LOOKUP], [LOOKUP, LOOKUP, LOOKUP], ("called `lookup` 2 times again",)),
        ([LOOKUP], [LOOKUP, ("mail", {})], ("called `mail` in addition",)),
        ([LOOKUP], [], ("did not call `lookup`",)),
        (
            [("f", {"order": {"items": [{"id": 1}]}})],
            [("f", {"order": {"items": [{"id": 2}]}})],
            ("`f`: `order.items[0].id` `1` → `2`",),
        ),
        (
            [("f", {"a": 1, "b": 1, "c": 1, "d": 1})],
            [("f", {"a": 2, "b": 2, "c": 2, "d": 2})],
            ("`f`: `a` `1` → `2`, `b` `1` → `2` and 2 more",),
        ),
    ],
)
def test_calls__both_sides__say_what_differs(then, here, said) -> None:
    assert describe_call_changes(make_details(None, then), make_details(None, here)) == said


def test_calls__only_names_are_kept__names_are_compared() -> None:
    then, here = CaseDetails(tools_called=("lookup", "refund")), CaseDetails(tools_called=("lookup", "escalate"))
    assert describe_call_changes(then, here) == ("called `escalate` instead of `refund`",)
    assert describe_call_changes(then, make_details(None, [("lookup", {"a": 1}), ("refund", {})])) == ()


def test_calls__arguments_were_cut__are_not_said_to_be_the_same_nor_taken_apart() -> None:
    cut = [
        CaseDetails(tool_calls=(StoredCall(name="f", arguments=text, truncated_parts=("arguments",)),))
        for text in ("{a", "{b")
    ]
    assert describe_call_changes(*cut) == ("`f`: different arguments",)


def test_calls__very_many_differences__are_counted() -> None:
    then = make_details(None, [(f"f{number}", {"a": 1}) for number in range(40)])
    here = make_details(None, [(f"f{number}", {"a": 2}) for number in range(40)])
    said = describe_call_changes(then, here)
    assert (len(said), said[-1]) == (MAX_CHANGES + 1, "36 more differences in the calls")


def test_calls__hostile_names_and_values__stay_between_their_backticks() -> None:
    deep: object = "x"
    for _ in range(100):
        deep = {"`|@team\n": deep}
    then, here = (
        make_details(None, [("`a`\n@team", {"k": "`" * 500})]),
        make_details(None, [("`a`\n@team", {"k": deep})]),
    )
    (said,) = describe_call_changes(then, here)
    assert said.count("`") == 10
    assert "\n" not in said
    assert len(said) < 300


TURNS = (("a", "one", []), ("b", "two", []), ("c", "three", []))


@pytest.mark.parametrize(
    ("here", "there", "notes"),
    [
        (TURNS[:2], TURNS, ("This turn was not sent here.",)),
        (TURNS, TURNS[:2], ("This turn was not sent in the baseline.",)),
        (TURNS, (), ("The baseline has no stored response.",)),
        ((*TURNS[:2], ("c", None, [])), TURNS, ("The response here is not stored. The baseline's:",)),
        ((*TURNS[:2], ("c", "", [])), TURNS, ("The response is empty.",)),
    ],
    ids=["shorter", "longer", "no turns", "not stored", "empty"],
)
def test_build_response_comparison__one_side_has_no_such_turn__is_not_called_unstored(here, there, notes) -> None:
    case = make_result("a", details=make_conversation(here, "P" * len(here)))
    side = BaselineResult(status=Status.PASSED, details=make_conversation(there, "P" * len(there)))
    change = CaseChange(
        suite="s",
        case_id="a",
        change=CaseClass.STILL_PASSING,
        baseline=PassCount(passes=1, executions=1, score=1.0),
        baseline_result=side,
    )
    sides = build_response_comparison(case, change)
    assert sides is not None
    assert sides.notes == notes
    assert sides.turn.number == 3
