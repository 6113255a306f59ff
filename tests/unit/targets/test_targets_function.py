"""A function as a target: what it is given, what it may give back, and what becomes of what it raises."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

import pytest

from eval_gate.model.conversation import Message, Response
from eval_gate.model.execution import ErrorKind
from eval_gate.targets.base import Request, TargetError
from eval_gate.targets.conversation_session import ConversationSession
from eval_gate.targets.function import FunctionTarget

REQUEST = Request("c-1", (Message(role="user", content="first"), Message(role="user", content="How warm is it?")))


def asked(function, request: Request = REQUEST) -> Response:
    async def ask() -> Response:
        target = FunctionTarget(function)
        try:
            return await target.respond(request)
        finally:
            await target.aclose()

    return asyncio.run(ask())


def refused(function) -> TargetError:
    with pytest.raises(TargetError) as caught:
        asked(function)
    return caught.value


def test_answer__bare_text__says_nothing_of_tool_calls() -> None:
    response = asked(lambda request: f"{request.case_id}: {request.message}")
    assert (response.text, response.tool_calls, response.tool_calls_known) == ("c-1: How warm is it?", (), None)


def test_answer__in_the_shape_of_an_agent_behind_a_url__is_read_as_that_is() -> None:
    call = {"name": "get_weather", "params": {"city": "Oslo"}, "success": True}
    said = {"response": "4", "toolCalls": [call], "usage": {"inputTokens": 3, "outputTokens": 1}, "costUsd": 0.5}
    response = asked(lambda _: said)
    assert [(one.name, one.params, one.success) for one in response.tool_calls] == [
        ("get_weather", call["params"], True)
    ]
    assert (response.text, response.tool_calls_known, response.usage.input_tokens, response.cost_usd) == (
        "4",
        True,
        3,
        0.5,
    )


def test_function__async__is_awaited_in_the_loop() -> None:
    async def answer(_request):
        await asyncio.sleep(0)
        return threading.current_thread().name

    assert asked(answer).text == threading.main_thread().name


def test_function__plain__is_called_in_a_thread_with_the_callers_context() -> None:
    who = ContextVar("who", default="nobody")
    who.set("me")
    found = asked(lambda _: f"{who.get()} {threading.current_thread() is threading.main_thread()}")
    assert found.text == "me False"


def test_function__that_gives_an_awaitable_back__is_waited_for() -> None:
    class Agent:
        async def __call__(self, request: Request) -> str:
            return request.message.upper()

    assert asked(Agent()).text == "HOW WARM IS IT?"


def test_function__raises__is_the_agents_crash_in_its_own_words() -> None:
    def broken(_request):
        raise KeyError("city")

    error = refused(broken)
    assert (error.message, error.error_kind, error.retryable) == (
        "agent error: KeyError: 'city'",
        ErrorKind.AGENT_ERROR,
        False,
    )


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "it is of type NoneType"),
        (["text"], "it is of type list"),
        ({"response": {1, 2}}, "type set is not JSON serializable"),
        ({"text": "hi"}, 'the response has no value at "response"; it has the key text'),
        ({"response": "hi", "toolCalls": "get_weather"}, '"toolCalls" is not a list'),
    ],
)
def test_answer__of_another_shape__is_an_error_that_shows_the_right_one(answer, said) -> None:
    error = refused(lambda _: answer)
    assert said in error.message
    assert '{"response": …, "toolCalls": […]}' in error.hint


@pytest.mark.parametrize("answer", [lambda text: "You said: " + text, lambda text: text.lower()])
def test_answer__of_a_function_that_takes_a_text__says_where_the_text_is(answer) -> None:
    assert refused(answer).hint.endswith("the function gets a Request, whose text is request.message")


def test_identity__names_module_and_function() -> None:
    identity = FunctionTarget(refused).identity
    assert (identity.name, identity.provider, identity.identity) == ("refused", "python", f"python:{__name__}.refused")


def test_message__no_text__is_json() -> None:
    assert Request("c", (Message(role="user", content={"city": ["Oslo", 4]}),)).message == '{"city":["Oslo",4]}'


TALK = (
    Message(role="user", content="Order 4711 is broken."),
    Message(role="assistant", content="What is broken?"),
    Message(role="user", content="The lamp."),
)


@pytest.mark.parametrize("is_async", [False, True])
def test_function__turn_of_a_conversation__gets_the_new_message_all_messages_and_the_session(is_async) -> None:
    def answer(request: Request) -> str:
        roles = [message.role for message in request.messages]
        return f"{request.turn} {request.session} {request.message} {roles} {request.messages[1].content}"

    async def answer_later(request: Request) -> str:
        await asyncio.sleep(0)
        return answer(request)

    session = ConversationSession()
    request = Request("c", TALK, turn=2, open_session=session)
    response = asked(answer_later if is_async else answer, request)
    assert response.text == f"2 {session.id} The lamp. ['user', 'assistant', 'user'] What is broken?"


def test_function__case_with_one_message__has_no_session_and_turn_zero() -> None:
    assert asked(lambda request: f"{request.turn} {request.session}").text == "0 None"


def test_function__conversation__can_be_held_and_may_be_remembered() -> None:
    target = FunctionTarget(lambda _: "ok")
    assert (target.conversation_problem, target.remembers_turns, target.retry_policy.max_retries) == (None, True, 0)
