"""A model as a target: routing in one turn, conversations with stubbed tools (tool-forge behaviour 1.4)."""

from __future__ import annotations

import asyncio
import json

import pytest

from eval_gate.model.conversation import Message, Response, ToolSpec
from eval_gate.targets.base import Request, TargetError
from eval_gate.targets.model.target import ModelTarget
from tests.support.chats import TOY, ScriptedChat, limited, make_asker, says

TOOLS = (ToolSpec(name="get_weather", parameters={"type": "object", "properties": {"city": {"type": "string"}}}),)


def respond(chat: ScriptedChat, stubs=None, max_turns: int = 5, system: str | None = "be brief") -> Response:
    target = ModelTarget(TOY, make_asker(chat), system, TOOLS)
    question = Message(role="user", content="weather in Lisbon?")
    return asyncio.run(target.respond(Request("gs-1", (question,), stubs=stubs, max_turns=max_turns)))


@pytest.mark.contract("modes.routing-only")
def test_routing__no_stubs__is_one_turn_with_the_registrys_tools() -> None:
    chat = ScriptedChat(says("Let me look.", "get_weather", city="Lisbon"))
    response = respond(chat)
    (asked,) = chat.asked
    assert [message.role for message in asked[0]] == ["system", "user"]
    assert asked[1] == TOOLS
    assert [(call.name, call.params, call.success) for call in response.tool_calls] == [
        ("get_weather", {"city": "Lisbon"}, None)
    ]
    assert (response.text, response.max_turns_reached, response.usage.input_tokens) == ("Let me look.", False, 10)


@pytest.mark.contract("modes.stub-loop")
def test_stubs__results_are_fed_back_until_a_turn_without_calls() -> None:
    chat = ScriptedChat(says("", "get_weather", city="Lisbon"), says("21 degrees in Lisbon."))
    response = respond(chat, {"get_weather": {"celsius": 21, "city": "Lisbon"}})
    second = chat.asked[1][0]
    assert [message.role for message in second] == ["system", "user", "assistant", "tool"]
    assert second[2].tool_calls[0].id == second[3].tool_call_id == "call-0"
    assert second[3].content == '{"celsius":21,"city":"Lisbon"}'
    assert (response.text, [call.name for call in response.tool_calls]) == ("21 degrees in Lisbon.", ["get_weather"])
    assert (response.usage.input_tokens, response.usage.output_tokens) == (20, 10)
    assert [message.role for message in response.conversation][-1] == "assistant"


@pytest.mark.contract("modes.stub-missing")
def test_stubs__tool_without_a_stub__gets_an_error_and_the_loop_goes_on() -> None:
    chat = ScriptedChat(says("", "get_weather", "get_forecast"), says("done"))
    respond(chat, {"get_weather": None})
    first, second = chat.asked[1][0][-2:]
    assert (first.content, json.loads(second.content)) == ("null", {"error": 'no stub for "get_forecast"'})


@pytest.mark.contract("modes.stub-max-turns")
def test_stubs__never_ends__stops_at_max_turns_with_the_last_text() -> None:
    chat = ScriptedChat(says("again", "get_weather"))
    response = respond(chat, {"get_weather": {}}, max_turns=3)
    assert (len(chat.asked), response.text, response.max_turns_reached) == (3, "again", True)
    assert len(response.tool_calls) == 3


def test_stubs__empty__is_stub_mode_all_the_same() -> None:
    """Presence decides (tool-forge behaviour A-13)."""
    chat = ScriptedChat(says("", "get_weather"), says("I could not look."))
    assert respond(chat, {}).text == "I could not look."


def test_stubs__tools_the_registry_does_not_know__are_told_with_open_arguments() -> None:
    chat = ScriptedChat(says("done"))
    respond(chat, {"get_tides": {}, "get_weather": {}})
    assert [tool.name for tool in chat.asked[0][1]] == ["get_weather", "get_tides"]


def test_model__breaks_then_works__counts_the_tries() -> None:
    chat = ScriptedChat(limited(), limited(), says("ok"))
    response = respond(chat)
    assert (response.text, response.attempts, len(chat.asked)) == ("ok", 3, 3)


def test_model__breaks_for_good__is_an_error_after_its_retries() -> None:
    chat = ScriptedChat(limited())
    with pytest.raises(TargetError):
        respond(chat)
    assert len(chat.asked) == 4


def test_model__unknown_price_of_one_turn__is_an_unknown_sum() -> None:
    assert respond(ScriptedChat(says("ok"))).cost_usd is None


def test_model__no_system_prompt__is_asked_without() -> None:
    chat = ScriptedChat(says("ok"))
    respond(chat, system=None)
    assert [message.role for message in chat.asked[0][0]] == ["user"]


def take_turns(chat: ScriptedChat, *texts: str, stubs=None, max_turns: int = 5) -> list[Response]:
    """The responses to these messages of a user, one turn each, with everything said before."""
    target = ModelTarget(TOY, make_asker(chat), "be brief", TOOLS)

    async def talk() -> list[Response]:
        history: list[Message] = []
        responses = []
        for turn, text in enumerate(texts, 1):
            history.append(Message(role="user", content=text))
            request = Request("gs-1", tuple(history), stubs=stubs, max_turns=max_turns, turn=turn)
            responses.append(await target.respond(request))
            history += responses[-1].new_messages
        return responses

    return asyncio.run(talk())


def test_conversation__with_stubs__each_turn_has_the_calls_and_results_of_the_turns_before() -> None:
    chat = ScriptedChat(
        says("", "get_weather", city="Rome"), says("21"), says("", "get_weather", city="Oslo"), says("3")
    )
    first, second = take_turns(chat, "Rome?", "And Oslo?", stubs={"get_weather": {"celsius": 21}})
    last = chat.asked[-1][0]
    roles = ["system", "user", "assistant", "tool", "assistant", "user", "assistant", "tool"]
    assert [message.role for message in last] == roles
    assert (last[2].tool_calls[0].params, last[3].content, last[4].content) == (
        {"city": "Rome"},
        '{"celsius":21}',
        "21",
    )
    assert [call.params for call in second.tool_calls] == [{"city": "Oslo"}]  # only its own
    assert (first.text, second.text, second.usage.input_tokens) == ("21", "3", 20)


def test_conversation__without_stubs__calls_have_results_because_providers_want_them() -> None:
    chat = ScriptedChat(says("I look.", "get_weather", "get_weather"), says("done"))
    first, second = take_turns(chat, "Rome?", "And now?")
    asked_last = chat.asked[-1][0]
    assert [message.role for message in asked_last] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert [message.tool_call_id for message in asked_last[3:5]] == ["call-0", "call-1"]
    assert [call.result for call in first.tool_calls] == [None, None]  # what is scored has no invented result
    assert (second.text, second.new_messages) == ("done", (Message(role="assistant", content="done"),))


def test_conversation__max_turns__counts_the_requests_of_each_turn() -> None:
    chat = ScriptedChat(*[says("", "get_weather")] * 4)
    first, second = take_turns(chat, "a", "b", stubs={}, max_turns=2)
    assert (first.max_turns_reached, second.max_turns_reached, len(chat.asked)) == (True, True, 4)
    assert [message.role for message in chat.asked[2][0]][-2:] == ["tool", "user"]


def test_conversation__model__remembers_nothing_and_can_always_repeat() -> None:
    target = ModelTarget(TOY, make_asker(ScriptedChat(says("ok"))), None, ())
    assert (target.conversation_problem, target.remembers_turns, target.retry_policy.max_retries) == (None, False, 0)
