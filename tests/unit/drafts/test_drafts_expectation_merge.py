"""Parts of expectations that are merged with what was found, with the failing parts given by a function."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from eval_gate.drafts.expectation_merge import ExpectationMerger, Part
from eval_gate.drafts.expectations import DraftExpectation, ToolMode
from eval_gate.drafts.response_facts import ResponseFact

FOUND = DraftExpectation(
    non_empty=True,
    contains_any=(("light", "wind"), ("north", "cold")),
    patterns=(r"[\s\S]{35}",),
)


def merger(found: DraftExpectation, *failing: str, called: Collection[str] = ()) -> ExpectationMerger:
    async def fails(part: Part) -> bool:
        return any(word in str(part) for word in failing)

    return ExpectationMerger(found, called, fails)


def merge_expect(old: Part, found: DraftExpectation, *failing: str) -> Part:
    return asyncio.run(merger(found, *failing).merge_expect(old))


def merge_assertions(old: list, found: DraftExpectation, *failing: str) -> list:
    return asyncio.run(merger(found, *failing).merge_assertions(old))


def test_merge__groups_and_lengths__only_take_the_place_of_their_like() -> None:
    old = {"responseContains": ["gone", "here"]}
    assert merge_expect(old, FOUND, "gone") == {"responseContains": ["here"]}
    old = {"responseContainsAny": [["gone"], ["light", "wind"]], "responseMatches": ["stays"]}
    assert merge_expect(old, FOUND, "gone") == {
        "responseContainsAny": [["north", "cold"], ["light", "wind"]],
        "responseMatches": ["stays"],
    }
    assert merge_expect({"responseMatches": ["gone"]}, FOUND, "gone") == {"responseMatches": [r"[\s\S]{35}"]}


def test_merge__assertions__groups_and_lengths_only_take_the_place_of_their_like() -> None:
    passing, gone = {"type": "equals", "value": "here"}, {"type": "contains", "value": "gone"}
    assert merge_assertions([passing, gone], FOUND, "gone") == [passing]
    group = {"type": "contains-any", "value": ["gone"]}
    assert merge_assertions([group, passing], FOUND, "gone") == [
        {"type": "contains-any", "value": ["light", "wind"]},
        {"type": "contains-any", "value": ["north", "cold"]},
        passing,
    ]


def test_merge__number_that_holds_the_digits_of_a_passing_one__is_another_number() -> None:
    found = DraftExpectation(
        numbers=("12", "1,012"), facts=(ResponseFact("12", is_number=True), ResponseFact("1,012", is_number=True))
    )
    assert merge_expect({"responseContainsNumber": ["12", "30"]}, found, "30") == {
        "responseContainsNumber": ["12", "1,012"]
    }
    listed = [{"type": "contains-number", "value": one} for one in ("12", "30")]
    assert merge_assertions(listed, found, "30") == [listed[0], {"type": "contains-number", "value": "1,012"}]


def test_merge__number_that_is_expected_in_another_notation__is_not_expected_twice() -> None:
    found = DraftExpectation(numbers=("1.250,40",), facts=(ResponseFact("1.250,40", is_number=True),))
    old = {"responseContains": ["gone"], "responseContainsNumber": ["1,250.40"]}
    assert merge_expect(old, found, "gone") == {"responseContainsNumber": ["1,250.40"]}


def test_merge__nothing_failing__is_the_same() -> None:
    old = {"toolsCalled": [], "responseContains": [], "responseMatches": ["x"], "maxTokens": 3}
    assert merge_expect(old, FOUND) == old
    listed = ["Says it.", {"type": "rubrics", "criteria": ["x"]}, {"type": "contains", "value": "x"}, {"value": "odd"}]
    assert merge_assertions(listed, FOUND) == listed


def test_merge__tools_unknown__leaves_the_tools() -> None:
    """A target that does not list its calls says nothing about them."""
    old = {"toolsCalled": ["gone"]}
    assert merge_expect(old, FOUND, "gone") == old
    trajectory = {"type": "tool-trajectory", "mode": "exact", "expected": [{"tool": "gone"}]}
    assert merge_assertions([trajectory], FOUND, "gone") == [trajectory]


def test_merge__tool_sets_that_vary__replace_the_one_that_was_expected() -> None:
    found = DraftExpectation(tool_mode=ToolMode.ACCEPTABLE, tool_sets=(("a",), ("a", "b")))
    assert merge_expect({"toolsCalled": ["gone"], "maxTokens": 3}, found, "gone") == {
        "toolsAcceptable": [["a"], ["a", "b"]],
        "maxTokens": 3,
    }


def test_merge__failing_fields__get_the_value_that_was_found() -> None:
    found = DraftExpectation(fields=(("order.status", "pending"), ("n", 2)))
    old = {"fields": {"order.status": "gone", "n": 1, "items.length": "gone"}}
    assert merge_expect(old, found, "gone") == {"fields": {"order.status": "pending", "n": 1, "items.length": "gone"}}
