"""The mock target: canned answers, delays, errors."""

from __future__ import annotations

import asyncio
import time

import pytest
from pydantic import ValidationError

from eval_gate.model.conversation import Message
from eval_gate.model.execution import ErrorKind
from eval_gate.targets.base import Request, TargetError
from eval_gate.targets.mock import MockSettings, MockTarget


def respond(case_id: str = "a", **settings):
    target = MockTarget(MockSettings.model_validate({"name": "m", **settings}))
    return asyncio.run(target.respond(Request(case_id, (Message(role="user", content="?"),))))


@pytest.mark.contract("provider.mock")
def test_mock__response__is_what_was_configured() -> None:
    assert respond(response="canned").text == "canned"


def test_mock__answers_by_case__with_calls() -> None:
    responses = {"a": "for a", "b": {"response": "for b", "toolCalls": [{"tool": "t", "input": {"x": 1}}]}}
    assert respond("a", responses=responses).text == "for a"
    (call,) = respond("b", responses=responses).tool_calls
    assert (call.name, call.params, call.success) == ("t", {"x": 1}, True)
    assert respond("c", responses=responses, response="other").text == "other"


def test_mock__error__breaks_the_case() -> None:
    with pytest.raises(TargetError, match="mock error: out of order"):
        respond(error="out of order")


@pytest.mark.slow
@pytest.mark.contract("provider.mock")
@pytest.mark.parametrize("delay", [{"delayMs": 60}, {"delayMinMs": 60, "delayMaxMs": 70}])
def test_mock__delay__is_waited_for(delay) -> None:
    started = time.perf_counter()
    response = respond(**delay)
    assert time.perf_counter() - started >= 0.059
    assert response.duration_ms >= 59


@pytest.mark.parametrize("wrong", [{"delayMs": -1}, {"delayMinMs": 5, "delayMaxMs": 1}, {"respons": "x"}])
def test_mock__wrong_settings__are_refused(wrong) -> None:
    with pytest.raises(ValidationError):
        MockSettings.model_validate({"name": "m", **wrong})


@pytest.mark.contract("agentv.provider-integration.mock-provider-for-dry-run")
def test_mock__provider_for_dry_run__canned_messages_and_trace_without_asking_anybody() -> None:
    calls = [{"tool": "look", "input": {"at": "sea"}}]
    settings = MockSettings.model_validate(
        {
            "name": "m",
            "response": "plain",
            "responses": {
                "said": {"outputMessages": [{"role": "assistant", "content": "calm", "tool_calls": calls}]},
                "traced": {"response": "windy", "trace": [{"type": "tool_call", "name": "look"}]},
            },
        }
    )
    target = MockTarget(settings)
    said, traced, plain = (asyncio.run(target.respond(Request(name, ()))) for name in ("said", "traced", "plain"))
    assert (said.text, said.messages[0].tool_calls[0].input) == ("calm", {"at": "sea"})
    assert (traced.text, traced.trace[0].name, traced.messages) == ("windy", "look", None)
    assert (plain.text, plain.messages, plain.trace) == ("plain", None, None)


def respond_to_turn(turn: int, **settings):
    target = MockTarget(MockSettings.model_validate({"name": "m", **settings}))
    return asyncio.run(target.respond(Request("a", (Message(role="user", content="?"),), turn=turn)))


BY_TURN = {"a": ["first", {"response": "second", "tool_calls": [{"tool": "t"}]}, {"error": "lost"}]}


def test_mock__responses_of_a_case_as_a_list__are_by_turn() -> None:
    assert respond_to_turn(1, responses=BY_TURN).text == "first"
    second = respond_to_turn(2, responses=BY_TURN)
    assert (second.text, [call.name for call in second.tool_calls]) == ("second", ["t"])
    with pytest.raises(TargetError, match="mock error: lost"):
        respond_to_turn(3, responses=BY_TURN)
    assert respond("a", responses=BY_TURN).text == "first"  # a case with one message


def test_mock__more_turns_than_responses__is_an_evaluation_error() -> None:
    with pytest.raises(TargetError, match="has 3 responses for this case") as caught:
        respond_to_turn(4, responses=BY_TURN)
    assert caught.value.error_kind is ErrorKind.EVALUATION_ERROR
    assert respond_to_turn(4, responses={"a": "always"}).text == "always"


def test_mock__conversation__can_be_held_and_repeated() -> None:
    target = MockTarget(MockSettings.model_validate({"name": "m"}))
    assert (target.conversation_problem, target.remembers_turns) == (None, False)


@pytest.mark.parametrize(
    ("responses", "place"),
    [
        ({"a": ["x", {"tool_calls": [{"tol": "t"}]}]}, ("responses", "a", 1, "tool_calls", 0)),
        ({"a": {"respons": "x"}}, ("responses", "a", "respons")),
        ({"a": []}, ("responses", "a")),
        ({"a": 3}, ("responses", "a")),
    ],
)
def test_mock__mistake_in_responses__is_named_where_it_is_written(responses, place) -> None:
    with pytest.raises(ValidationError) as caught:
        MockSettings.model_validate({"name": "m", "responses": responses})
    assert caught.value.errors()[0]["loc"][: len(place)] == place
