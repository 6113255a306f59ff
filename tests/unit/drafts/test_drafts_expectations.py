"""Expectations of drafts: what was the same in all executions, and remarks about what was not."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from eval_gate.drafts.expectations import DraftExpectation, ToolMode, derive_expectation
from eval_gate.drafts.observation import Observation
from eval_gate.drafts.refusal import REFUSAL
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response, ToolCall
from eval_gate.text.mask import MASK

NOW = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)


def call(
    name: str = "get_weather", result: JsonValue = None, success: bool | None = True, **params: JsonValue
) -> ToolCall:
    return ToolCall(name=name, params=params, success=success, result=result)


def derive(
    *executions: list[ToolCall], text: str = "It is 21 in Lisbon.", question: str = "How is Lisbon?"
) -> DraftExpectation:
    found = tuple(Response(text=text, tool_calls=tuple(calls)) for calls in executions)
    return derive_expectation(Observation(question, found), NOW)


def test_tools__the_same_each_time__are_expected_in_order_with_repeats() -> None:
    calls = [call("a"), call("b"), call("a")]
    found = derive(calls, calls)
    assert (found.tool_mode, found.tools) == (ToolMode.IN_ORDER, ("a", "b", "a"))
    assert found.remarks == ()


def test_tools__in_another_order__are_expected_in_any_order() -> None:
    found = derive([call("a"), call("b")], [call("b"), call("a")])
    assert (found.tool_mode, found.tools) == (ToolMode.ANY_ORDER, ("a", "b"))
    assert found.remarks == ("Left out, because it differed between 2 executions: the order of the tools",)


def test_tools__called_once_or_twice__are_expected_as_a_set() -> None:
    found = derive([call("a")], [call("a"), call("a")])
    assert (found.tool_mode, found.tool_sets) == (ToolMode.ACCEPTABLE, (("a",),))


def test_tools__one_more_now_and_then__both_sets_are_acceptable() -> None:
    found = derive([call("a")], [call("a"), call("b")])
    assert (found.tool_mode, found.tool_sets) == (ToolMode.ACCEPTABLE, (("a",), ("a", "b")))


def test_tools__others_each_time__are_left_out_and_said() -> None:
    found = derive([call("a")], [call("b")], [])
    assert found.tool_mode is ToolMode.UNKNOWN
    assert found.remarks == ("Left out, because it differed between 3 executions: the tools: a or b or no tool",)


def test_tools__none_is_called__no_tool_is_expected() -> None:
    found = derive([], [])
    assert (found.tool_mode, found.tools, found.no_tool_errors) == (ToolMode.IN_ORDER, (), False)
    assert found.description == "calls no tool, answers with 21"


def test_tools__unknown__nothing_is_expected_of_them() -> None:
    found = derive_expectation(Observation("How?", (Response(text="It is 21.", tool_calls_known=False),)), NOW)
    assert (found.tool_mode, found.params, found.description) == (ToolMode.UNKNOWN, (), "answers with 21")


def test_params__the_same_each_time__equal_their_value() -> None:
    found = derive([call(city="Lisbon", days=3)], [call(city="Lisbon", days=3)])
    checks = [(one.tool, one.param_name, one.assertion, one.value) for one in found.params]
    assert checks == [("get_weather", "city", "equals", "Lisbon"), ("get_weather", "days", "equals", 3)]
    assert found.call_args == ({"city": "Lisbon", "days": 3},)


def test_params__another_value_each_time__must_exist_and_are_named() -> None:
    found = derive([call(seed=1)], [call(seed=2)])
    assert [(one.param_name, one.assertion) for one in found.params] == [("seed", "exists")]
    assert found.call_args == ({},)
    assert "the value of seed of get_weather" in found.description


@pytest.mark.parametrize(("one", "other"), [(1, "1"), (1, True), ({"a": 1}, {"a": "1"}), ([1, 2], [2, 1])])
def test_params__another_type__is_another_value(one: JsonValue, other: JsonValue) -> None:
    assert [check.assertion for check in derive([call(days=one)], [call(days=other)]).params] == ["exists"]


def test_params__sent_now_and_then__are_left_out_and_said() -> None:
    found = derive([call(city="Rome")], [call(city="Rome", units="metric")])
    assert [one.param_name for one in found.params] == ["city"]
    assert "whether units of get_weather is sent" in found.description


def test_params__only_the_first_call_of_a_tool__is_checked_by_name_and_all_calls_by_place() -> None:
    calls = [call(city="Rome"), call(city="Oslo")]
    found = derive(calls, calls)
    assert [one.value for one in found.params] == ["Rome"]
    assert found.call_args == ({"city": "Rome"}, {"city": "Oslo"})


@pytest.mark.parametrize("value", ["2026-11-27T12:00:01Z", {"from": "2026-11-27"}])
def test_params__value_of_this_moment__must_only_exist_and_is_said(value: JsonValue) -> None:
    found = derive([call(at=value)], [call(at=value)])
    assert [one.assertion for one in found.params] == ["exists"]
    assert "the value looks like one of this moment: at of get_weather" in found.description


@pytest.mark.parametrize(
    "value",
    [
        f"key {MASK}",
        "{{seed:city}}",
        "{{date}}",
        "${{ secrets.KEY }}",
        {"a": ["b\u202ec"]},
        {"{{seed:x}}": 1},
        "x" * 400,
    ],
)
def test_params__masked_hidden_or_like_a_token__are_never_written(value: JsonValue) -> None:
    found = derive([call(city=value)], [call(city=value)])
    assert [(one.assertion, one.value) for one in found.params] == [("exists", None)]
    assert found.call_args == ({},)


@pytest.mark.parametrize(("success", "expected"), [(True, True), (None, False), (False, False)])
def test_tool_errors__only_where_each_call_succeeded__none_is_expected(success: bool | None, expected: bool) -> None:
    assert derive([call(success=success)], [call(success=success)]).no_tool_errors is expected


def test_failed_call__is_said() -> None:
    assert "A call failed: get_weather" in derive([call(success=False)]).description


def test_raw_json__no_response_has_it__none_is_expected() -> None:
    assert derive([call()]).not_contains == ('{"',)
    assert derive([call()], text='It is {"celsius": 21} in Lisbon.').not_contains == ()


def test_response_without_facts__whatever_it_says__forbids_nothing_and_checks_nothing() -> None:
    found = derive([], text="Which one of all of these do you mean? It is not to be known.", question="How is it?")
    assert (found.not_contains, found.checks_nothing, found.description) == ((), True, "calls no tool")


def test_refusal__as_a_judge_says__is_expected_and_nothing_else_of_the_text() -> None:
    responses = (Response(text="I can only help with the 3 orders."), Response(text="No, only with the 3 orders."))
    found = derive_expectation(Observation("Who won?", responses, refusals=(True, True)), NOW)
    assert (found.refusal, found.facts, found.patterns, found.checks_nothing) == (REFUSAL, (), (), False)
    assert found.description == "calls no tool, refuses"
    assert derive_expectation(Observation("Who won?", responses, refusals=(False, False)), NOW).numbers == ("3",)


def test_half_an_answer__no_fact_in_the_second_half__is_noticed_by_its_length() -> None:
    text = "It is 21 now, and it stays dry and calm and mild until the evening."
    found = derive([], text=text)
    assert found.patterns[-1] == rf"[\s\S]{{{int(len(text) * 0.6)}}}"
    assert derive([], text=f"{text} The low is 14.").patterns == ()


def test_empty_response__is_not_expected_to_have_text() -> None:
    found = derive([call()], [call()], text=" ")
    assert (found.non_empty, found.contains, found.patterns) == (False, (), ())
    assert found.description == "calls get_weather"


def test_nothing_in_common__checks_nothing() -> None:
    unknown = tuple(Response(text=text, tool_calls_known=False) for text in ("", "Lisbon"))
    assert derive_expectation(Observation("How?", unknown), NOW).checks_nothing
    assert derive_expectation(Observation("How?", ()), NOW).checks_nothing


def test_errors__of_some_executions__are_said() -> None:
    observation = Observation("How?", (Response(text="It is 21."),), errors=("timed out",))
    assert "1 of 2 executions had no response" in derive_expectation(observation, NOW).description


def test_description__with_text_of_strangers__is_one_line_without_hidden_signs() -> None:
    found = derive([call("get\nweather\u202e", city="a")], text="It is 21.")
    assert found.tool_mode is ToolMode.UNKNOWN
    assert "\n" not in found.description
    assert "\u202e" not in found.description


def derive_fields(*bodies: JsonValue, text: str = "Done.") -> dict[str, JsonValue]:
    responses = tuple(Response(text=text, body=body, model="m-1") for body in bodies)
    return dict(derive_expectation(Observation("Refund 4711?", responses), NOW).fields)


def test_iter_fields__the_same_each_time__are_expected_without_what_has_its_own_expectation() -> None:
    body = {"reply": "Done.", "order": {"status": "refunded", "day": "2026-11-27", "none": None}, "usage": {"n": 5}}
    body |= {"model": "m-1", "a.b": 1, "items": [{"id": 1}], "costUsd": 0.5, "key": MASK, "n": 3}
    assert derive_fields(body, body) == {"order.status": "refunded", "n": 3}
    assert derive_fields(body, body | {"n": 4, "order": {"status": "refunded"}}) == {"order.status": "refunded"}
    assert derive_fields(body | {"n": 1}, body | {"n": True}) == {"order.status": "refunded"}


def test_iter_fields__one_response_or_no_object__are_not_expected() -> None:
    assert derive_fields({"status": "ok"}) == {}
    assert derive_fields({"status": "ok"}, None) == {}
    assert derive_fields([1], [1]) == {}
