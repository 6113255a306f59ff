"""Conversations with HTTP agents: who remembers the turns, which id goes where, what is sent again after an error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from eval_gate.model.conversation import Message, Response
from eval_gate.targets.agent_address import ContainerProbe
from eval_gate.targets.base import Request, TargetError, TargetFault
from eval_gate.targets.conversation_session import ConversationSession
from eval_gate.targets.http.connection import ResponseHead
from eval_gate.targets.http.protocols import PRESETS, STREAMED_PRESETS
from eval_gate.targets.http.request_builder import RequestBuilder
from eval_gate.targets.http.session_reader import SessionReader
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.targets.http.target import HttpTarget
from eval_gate.text.redaction import Redactor
from tests.support.agents import Agent, Exchange, Handler, agent

TURNS = ("I am Ada.", "I like tea.", "Who am I?")
TEMPLATE = {"q": "{{message}}", "thread": "{{session}}"}


def described(url: str = "http://a/chat", **settings: object) -> HttpSettings:
    values = {"name": "a", "url": url, "initialDelayMs": 1} | settings
    return HttpSettings.model_validate(HttpSettings.complete_values(values))


def requests_of(session: ConversationSession, answers: Sequence[str], *, system: str = "") -> Request:
    """The request of the turn after these answers."""
    messages = [Message(role="system", content=system)] if system else []
    for turn, answer in enumerate(answers):
        messages += [Message(role="user", content=TURNS[turn]), Message(role="assistant", content=answer)]
    messages.append(Message(role="user", content=TURNS[len(answers)]))
    return Request("c-1", tuple(messages), run_id="r", turn=len(answers) + 1, open_session=session)


async def lead(target: HttpTarget, turns: int = 3, *, system: str = "") -> tuple[list[Response], ConversationSession]:
    session, responses = ConversationSession(), []
    for _ in range(turns):
        responses.append(await target.respond(requests_of(session, [one.text for one in responses], system=system)))
    return responses, session


def converse(
    handler: Handler, *, turns: int = 3, path: str = "/chat", system: str = "", **settings: object
) -> tuple[list[Response], Agent, HttpTarget, ConversationSession]:
    """A conversation with an agent, and what the agent got."""

    async def main(url: str) -> tuple[list[Response], HttpTarget, ConversationSession]:
        target = HttpTarget(described(url, **settings), redact=Redactor(), concurrency=1)
        try:
            responses, session = await lead(target, turns, system=system)
        finally:
            await target.aclose()
        return responses, target, session

    with agent(handler) as running:
        responses, target, session = asyncio.run(main(f"http://127.0.0.1:{running.port}{path}"))
        return responses, running, target, session


def answering(*bodies: dict, headers: Sequence[dict[str, str]] = ({},)) -> Handler:
    """An agent with a body for each request, and the headers with it; the last of them for all further ones."""

    async def handler(exchange: Exchange) -> None:
        number = exchange.number
        exchange.answer(bodies[min(number, len(bodies) - 1)], **headers[min(number, len(headers) - 1)])

    return handler


def bodies_of(running: Agent) -> list[dict]:
    return [one.json for one in running.requests]


OK = {"response": "ok", "toolCalls": []}


def test_conversation__own_protocol__has_a_session_and_from_turn_two_on_the_conversation() -> None:
    _, running, _, session = converse(answering({"response": "hm"}))
    first, second, third = bodies_of(running)
    assert first == {"message": TURNS[0], "session": session.id}
    assert second == {
        "message": TURNS[1],
        "session": session.id,
        "conversation": [
            {"role": "user", "content": TURNS[0]},
            {"role": "assistant", "content": "hm"},
            {"role": "user", "content": TURNS[1]},
        ],
    }
    assert (third["session"], len(third["conversation"])) == (session.id, 5)


def test_conversation__id_of_eval_gate__is_the_same_everywhere_in_all_turns() -> None:
    _, running, target, session = converse(
        answering(OK),
        path="/threads/{{session}}/runs",
        headers={"X-Thread": "t {{session}}"},
        query={"s": "{{session}}"},
        requestTemplate=TEMPLATE | {"all": "{{prompt}}"},
    )
    for turn, sent in enumerate(running.requests):
        address = sent.head.split(" ")[1]
        assert address == f"/threads/{session.id}/runs?s={session.id}"
        assert sent.header("x-thread") == f"t {session.id}"
        assert sent.json == {"q": TURNS[turn], "thread": session.id, "all": TURNS[turn]}
    assert (target.conversation_problem, target.remembers_turns) == (None, True)


def test_conversation__messages_before_the_first_turn__are_in_its_prompt_and_in_no_later_one() -> None:
    template = {"q": "{{prompt}}", "thread": "{{session}}"}
    _, running, _, _ = converse(answering(OK), system="Be brief.", requestTemplate=template)
    assert [one["q"] for one in bodies_of(running)] == [
        f"@[System]:\nBe brief.\n\n@[User]:\n{TURNS[0]}",
        TURNS[1],
        TURNS[2],
    ]


def test_conversation__agent_without_memory__gets_all_messages_as_text_each_time() -> None:
    _, running, target, _ = converse(answering({"response": "hm"}), requestTemplate={"q": "{{prompt}}"}, turns=2)
    assert [one["q"] for one in bodies_of(running)] == [
        TURNS[0],
        f"@[User]:\n{TURNS[0]}\n\n@[Assistant]:\nhm\n\n@[User]:\n{TURNS[1]}",
    ]
    assert (target.conversation_problem, target.remembers_turns) == (None, False)


@pytest.mark.parametrize(("written", "sent"), [("s-1", "s-1"), (4711, 4711), ("a/b+c==", "a/b+c==")])
def test_conversation__id_of_the_agent__is_left_out_at_first_and_then_sent_back_as_it_was(written, sent) -> None:
    _, running, _, _ = converse(
        answering({"data": {"id": written}, "response": "ok"}),
        sessionPath="data.id",
        headers={"X-Thread": "{{session}}"},
        query={"s": "{{session}}", "k": "1"},
        requestTemplate={"q": "{{message}}", "meta": {"thread": "{{session}}", "n": 1}, "ids": ["{{session}}"]},
    )
    first, *later = running.requests
    assert first.json == {"q": TURNS[0], "meta": {"n": 1}, "ids": []}
    assert (first.header("x-thread"), first.head.split(" ")[1]) == (None, "/chat?k=1")
    for one in later:
        assert one.json["meta"] == {"thread": sent, "n": 1}
        assert one.header("x-thread") == str(sent)
        assert parse_qs(urlsplit(one.head.split(" ")[1]).query) == {"s": [str(sent)], "k": ["1"]}


def test_conversation__own_protocol_with_the_agents_id__has_no_session_in_the_first_turn() -> None:
    _, running, _, _ = converse(answering(OK | {"session": "s-9"}), sessionPath="session")
    assert [one.get("session") for one in bodies_of(running)] == [None, "s-9", "s-9"]


def test_conversation__id_that_changes__is_the_newest_and_stays_where_none_is_returned() -> None:
    answers = answering(OK | {"id": "r-1"}, OK | {"id": "r-2"}, OK, OK)
    template = {"input": "{{message}}", "previous_response_id": "{{session}}"}
    with agent(answers) as running:

        async def main() -> None:
            target = HttpTarget(
                described(running.url, requestTemplate=template, sessionPath="id"), redact=Redactor(), concurrency=1
            )
            session = ConversationSession()
            for answers_so_far in ([], ["ok"], ["ok", "ok"], ["ok", "ok"]):
                await target.respond(requests_of(session, answers_so_far))
            await target.aclose()

        asyncio.run(main())
    assert [one.get("previous_response_id") for one in bodies_of(running)] == [None, "r-1", "r-2", "r-2"]


def test_conversation__id_in_a_header__is_sent_back() -> None:
    _, running, _, _ = converse(
        answering(OK, headers=[{"X_Session": "h/1=="}]),
        sessionHeader="x-session",
        headers={"X-Session": "{{session}}"},
        requestTemplate={"q": "{{message}}"},
    )
    assert [one.header("x-session") for one in running.requests] == [None, "h/1==", "h/1=="]


def test_conversation__cookie__goes_back_by_itself_beside_a_fixed_one() -> None:
    _, running, target, _ = converse(
        answering(OK, headers=[{"Set_Cookie": "sid=c-1; Path=/; HttpOnly"}, {"Set_Cookie": "other=1"}]),
        sessionCookie="sid",
        headers={"Cookie": "lang=en"},
        requestTemplate={"q": "{{message}}"},
    )
    assert [one.header("cookie") for one in running.requests] == ["lang=en", "lang=en; sid=c-1", "lang=en; sid=c-1"]
    assert (target.conversation_problem, target.remembers_turns) == (None, True)


def test_find_cookie__several_of_a_name__is_the_last() -> None:
    head = ResponseHead(200, "", {}, ("a=1; Path=/", "sid = x=y ; Secure", "sid=z", "sidx=q"))
    assert (head.find_cookie("sid"), head.find_cookie("a"), head.find_cookie("b")) == ("z", "1", "")


def test_conversation__two_executions__share_nothing() -> None:
    with agent(answering(OK, headers=[{"Set_Cookie": "sid=first"}, {"Set_Cookie": "sid=second"}])) as running:

        async def main() -> None:
            settings = described(running.url, sessionCookie="sid", requestTemplate={"q": "{{message}}"})
            target = HttpTarget(settings, redact=Redactor(), concurrency=1)
            for _ in range(2):
                await lead(target, 1)
            await target.aclose()

        asyncio.run(main())
    assert [one.header("cookie") for one in running.requests] == [None, None]


@pytest.mark.parametrize(
    "answer",
    [
        OK,
        OK | {"id": None},
        OK | {"id": ""},
        OK | {"id": "x" * 1_001},
        OK | {"id": "a\r\nX: 1"},
        OK | {"id": "a\u0085"},
        OK | {"id": "s-***-1"},
        OK | {"id": ["a"]},
        OK | {"id": True},
    ],
)
def test_conversation__id_that_must_not_be_sent__is_a_malformed_response(answer) -> None:
    with pytest.raises(TargetError, match="sessionPath") as caught:
        converse(answering(answer), requestTemplate=TEMPLATE, sessionPath="id")
    assert caught.value.fault is TargetFault.MALFORMED
    assert "X: 1" not in caught.value.message


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"sessionHeader": "X-Session", "headers": {"X-Session": "{{session}}"}},
            'the response has no header "X-Session" (sessionHeader); it has the headers content-',
        ),
        ({"sessionCookie": "sid"}, 'the response has no cookie "sid" (sessionCookie); it has no cookie'),
        (
            {"sessionPath": {"where": "id", "path": "id"}, "query": {"s": "{{session}}"}},
            'the response has no value at "id" (sessionPath); it has the keys response, toolCalls, data',
        ),
        (
            {"sessionPath": "data.id", "query": {"s": "{{session}}"}},
            'the response has no value at "data.id" (sessionPath); "data" has the key session',
        ),
    ],
)
def test_conversation__no_id_where_the_next_turn_needs_one__is_an_error_in_the_first(settings, words) -> None:
    with pytest.raises(TargetError, match="the response has no ") as caught:
        converse(answering(OK | {"data": {"session": "1"}}), **{"requestTemplate": {"q": "{{message}}"}} | settings)
    assert words in caught.value.message


def test_conversation__agent_that_may_have_no_id__gets_everything_as_long_as_it_returns_none() -> None:
    settings = {
        "sessionPath": {"where": "id", "path": "id"},
        "requestTemplate": {"q": "{{prompt}}", "thread": "{{session}}"},
    }
    _, running, _, _ = converse(answering(OK, OK | {"id": "late"}, OK), **settings)
    first, second, third = bodies_of(running)
    assert first == {"q": TURNS[0]}
    assert second == {"q": f"@[User]:\n{TURNS[0]}\n\n@[Assistant]:\nok\n\n@[User]:\n{TURNS[1]}"}
    assert third == {"q": TURNS[2], "thread": "late"}


@given(value=st.text(max_size=20) | st.integers() | st.none() | st.booleans() | st.lists(st.text(max_size=3)))
def test_conversation__any_id__is_refused_or_arrives_whole_and_nowhere_else(value) -> None:
    settings = described(
        sessionPath="id",
        headers={"X-Thread": "{{session}}"},
        query={"s": "{{session}}"},
        requestTemplate={"q": "{{message}}", "thread": "{{session}}"},
    )
    session = ConversationSession()
    reader = SessionReader(settings, session)
    reader.read_value({"id": value})
    try:
        reader.update_session(Response(text="ok"))
    except TargetError:
        assert session.own_id is None
        return
    made = RequestBuilder(settings, ContainerProbe()).build_request(requests_of(session, ["ok"]))
    parts = urlsplit(str(made.url))
    assert (parts.netloc, parts.path, parts.fragment) == ("a", "/chat", "")
    assert parse_qs(parts.query) == {"s": [str(value)]}
    assert json.loads(made.content or b"") == {"q": TURNS[1], "thread": value}
    assert made.headers["x-thread"].isascii()
    assert made.headers["x-thread"].isprintable()


def test_conversation__id_in_a_stream__is_that_of_an_event_or_of_the_whole_response() -> None:
    events = [
        {"thread": "t-1", "delta": "o"},
        {"delta": "k"},
        {"type": "end", "whole": {"response": "ok", "thread": "t-2"}},
    ]
    body = "".join(f"data: {json.dumps(one)}\n\n" for one in events).encode()

    async def handler(exchange: Exchange) -> None:
        exchange.answer(body, Content_Type="text/event-stream")

    described_stream = {"requestTemplate": TEMPLATE, "sessionPath": "thread", "responseFormat": "sse"}
    _, running, _, _ = converse(handler, **described_stream, responsePath="delta")
    assert [one.get("thread") for one in bodies_of(running)] == [None, "t-1", "t-1"]
    full = {"fullResponse": {"where": "type=end", "path": "whole"}}
    _, running, _, _ = converse(handler, **described_stream, events=full)
    assert [one.get("thread") for one in bodies_of(running)] == [None, "t-2", "t-2"]


def test_conversation__job__may_name_its_session_at_once_or_with_its_result() -> None:
    async def handler(exchange: Exchange) -> None:
        if exchange.head.startswith("POST"):
            exchange.answer({"id": "7", "session": f"s-{exchange.number}"}, "202 Accepted", Location="/jobs/7")
        else:
            exchange.answer({"status": "done", "response": "ok"})

    _, running, _, _ = converse(
        handler, turns=2, requestTemplate=TEMPLATE, sessionPath="session", poll={"intervalMs": 20}
    )
    assert [one.json.get("thread") for one in running.requests if one.body] == [None, "s-0"]


def test_conversation__task_of_a_job_that_ended__is_not_continued() -> None:
    async def handler(exchange: Exchange) -> None:
        if exchange.head.startswith("POST"):
            exchange.answer({"id": "7", "task": "t"}, "202 Accepted", Location="/jobs/7")
        else:
            exchange.answer({"status": "done", "response": "ok"})

    template = {"q": "{{prompt}}", "task": "{{task}}"}
    settings = {"taskPath": "task", "poll": {"intervalMs": 20}}
    _, running, _, _ = converse(handler, turns=2, requestTemplate=template, **settings)
    assert [sorted(one.json) for one in running.requests if one.body] == [["q"], ["q"]]


CALL = {"name": "look"}


def test_calls__of_the_conversation__are_those_of_the_turn_without_the_earlier_ones() -> None:
    lists = [{"response": "ok", "toolCalls": [{"name": name} for name in names]} for names in ("a", "ab", "abba")]
    responses, _, _, session = converse(answering(*lists), toolCallsScope="conversation")
    assert [[call.name for call in one.tool_calls] for one in responses] == [["a"], ["b"], ["b", "a"]]
    assert session.calls == ("a", "b", "b", "a")


def test_calls__fewer_than_before__are_not_those_of_the_conversation() -> None:
    lists = ({"response": "ok", "toolCalls": [CALL, CALL]}, {"response": "ok", "toolCalls": [CALL]})
    with pytest.raises(TargetError, match=r"has 1, and 2 in the turn before.*toolCallsScope") as caught:
        converse(answering(*lists), toolCallsScope="conversation")
    assert caught.value.fault is TargetFault.MALFORMED


@pytest.mark.parametrize("names", ["ba", "bb", "bab"])
def test_calls__that_begin_otherwise_than_before__hide_none_of_the_turn(names) -> None:
    lists = [{"response": "ok", "toolCalls": [{"name": name} for name in listed]} for listed in ("a", names)]
    with pytest.raises(TargetError, match=r"begins with other calls.*toolCallsScope") as caught:
        converse(answering(*lists), turns=2, toolCallsScope="conversation")
    assert caught.value.fault is TargetFault.MALFORMED


def test_calls__of_the_turn__are_as_listed_and_unknown_ones_stay_unknown() -> None:
    responses, _, _, _ = converse(answering({"response": "ok", "toolCalls": [CALL]}))
    assert [len(one.tool_calls) for one in responses] == [1, 1, 1]
    responses, _, _, _ = converse(answering({"response": "ok"}), toolCallsScope="conversation")
    assert [one.tool_calls_known for one in responses] == [None] * 3


def failing(status: str, *, at: int = 1, times: int = 1, **headers: str) -> Handler:
    """An agent whose requests from this number on fail so many times; `lost` breaks the connection."""

    async def handler(exchange: Exchange) -> None:
        if at <= exchange.number < at + times:
            if status == "lost":
                exchange.reset()
            else:
                exchange.answer({"error": "no"}, status, **headers)
        else:
            exchange.answer(OK | {"id": "s-1"})

    return handler


NO_MEMORY = {"requestTemplate": {"messages": "{{conversation}}"}}
BY_OUR_ID, BY_ITS_ID = {"requestTemplate": TEMPLATE}, {"requestTemplate": TEMPLATE, "sessionPath": "id"}


@pytest.mark.parametrize("settings", [NO_MEMORY, BY_OUR_ID, BY_ITS_ID])
def test_retry__turn_that_was_surely_not_processed__is_sent_again_in_the_same_session(settings) -> None:
    responses, running, _, _ = converse(failing("429 Too Many Requests"), **settings)
    assert [one.attempts for one in responses] == [1, 2, 1]
    assert running.requests[1].body == running.requests[2].body


@pytest.mark.parametrize("status", ["503 Service Unavailable", "502 Bad Gateway", "504 Gateway Timeout", "lost"])
def test_retry__turn_that_may_have_been_processed__is_sent_again_only_to_an_agent_without_memory(status) -> None:
    responses, running, _, _ = converse(failing(status), **NO_MEMORY)
    assert ([one.attempts for one in responses], len(running.requests)) == ([1, 2, 1], 4)
    for settings in (BY_OUR_ID, BY_ITS_ID, {"sessionCookie": "a", "requestTemplate": {"q": "{{prompt}}"}}):
        with agent(failing(status, at=0, times=9)) as running:

            async def main(url: str, settings: dict = settings) -> None:
                target = HttpTarget(described(url, **settings), redact=Redactor(), concurrency=1)
                try:
                    with pytest.raises(TargetError) as caught:
                        await target.respond(requests_of(ConversationSession(), []))
                    assert caught.value.retryable
                finally:
                    await target.aclose()

            asyncio.run(main(running.url))
            assert len(running.requests) == 1


@pytest.mark.parametrize("method", ["POST", "PUT", "GET"])
def test_retry__lost_connection_whatever_the_method__sends_the_turn_once(method) -> None:
    with agent(failing("lost", at=1)) as running:

        async def main() -> None:
            query = {"q": "{{message}}", "thread": "{{session}}"}
            target = HttpTarget(described(running.url, method=method, query=query), redact=Redactor(), concurrency=1)
            try:
                await lead(target)
            finally:
                await target.aclose()

        with pytest.raises(TargetError, match="connection broke before the response"):
            asyncio.run(main())
    assert len(running.requests) == 2


def test_retry__case_with_one_message__is_as_it_was() -> None:
    with agent(failing("503 Service Unavailable", at=0)) as running:

        async def main() -> Response:
            target = HttpTarget(described(running.url, requestTemplate=TEMPLATE), redact=Redactor(), concurrency=1)
            try:
                return await target.respond(Request("c-1", (Message(role="user", content="hi"),)))
            finally:
                await target.aclose()

        assert asyncio.run(main()).attempts == 2
        threads = [one["thread"] for one in bodies_of(running)]
    assert threads[0] != threads[1]


@pytest.mark.parametrize(("at", "hint"), [(0, "at this path"), (1, "no longer finds the session")])
def test_conversation__not_found__is_the_path_in_the_first_turn_and_the_session_later(at, hint) -> None:
    with pytest.raises(TargetError, match="404") as caught:
        converse(failing("404 Not Found", at=at), path="/threads/{{session}}/runs")
    assert hint in (caught.value.hint or "")


def test_retry_policy__of_conversations__is_that_of_requests() -> None:
    target = HttpTarget(described(maxRetries=7, retryableStatusCodes=[500]), redact=Redactor(), concurrency=1)
    assert (target.retry_policy.max_retries, target.retry_policy.retryable_status_codes) == (7, frozenset({500}))


def task_of_1_0(state: str, **more: object) -> dict:
    return {"result": {"task": {"status": {"state": f"TASK_STATE_{state}"}} | more}}


def task_of_0_3(state: str, **more: object) -> dict:
    return {"result": {"status": {"state": state.lower().replace("_", "-")}} | more}


@pytest.mark.parametrize(("protocol", "task"), [("a2a", task_of_1_0), ("a2a-0.3", task_of_0_3)], ids=["1.0", "0.3"])
def test_apply_preset__a2a_interrupted_task__is_continued_and_a_finished_one_is_not(protocol, task) -> None:
    parts = {"artifacts": [{"parts": [{"kind": "text", "text": "ok"}]}]}
    answers = (
        task("INPUT_REQUIRED", id="t-1", contextId="ctx", **parts),
        task("COMPLETED", id="t-1", contextId="ctx", **parts),
        task("COMPLETED", id="t-2", contextId="ctx", **parts),
    )
    _, running, _, _ = converse(answering(*answers), agentProtocol=protocol)
    sent = [one["params"]["message"] for one in bodies_of(running)]
    assert [(one.get("contextId"), one.get("taskId")) for one in sent] == [(None, None), ("ctx", "t-1"), ("ctx", None)]
    assert [one["parts"][0]["text"] for one in sent] == list(TURNS)


def test_apply_preset__a2a_message_without_a_context__gets_the_whole_conversation_again() -> None:
    answer = {"result": {"message": {"role": "ROLE_AGENT", "parts": [{"text": "ok"}]}}}
    _, running, _, _ = converse(answering(answer), agentProtocol="a2a", turns=2)
    text = bodies_of(running)[1]["params"]["message"]["parts"][0]["text"]
    assert text == f"@[User]:\n{TURNS[0]}\n\n@[Assistant]:\nok\n\n@[User]:\n{TURNS[1]}"


def test_apply_preset__langgraph_thread__sends_the_new_message_and_reads_the_calls_of_the_turn() -> None:
    def thread(*kinds: str) -> dict:
        calls = {"call": [{"name": "look", "args": {}, "id": "call-1"}], "ai": []}
        return {"messages": [{"type": "ai", "content": kind, "tool_calls": calls[kind]} for kind in kinds]}

    handler = answering(thread("call", "ai"), thread("call", "ai", "call", "ai"), thread(*(("call", "ai") * 2), "ai"))
    responses, running, _, session = converse(
        handler, path="/threads/{{session}}/runs/wait", agentProtocol="langgraph-thread"
    )
    assert bodies_of(running)[2] == {
        "assistant_id": "agent",
        "if_not_exists": "create",
        "input": {"messages": [{"role": "user", "content": TURNS[2]}]},
    }
    assert f"/threads/{session.id}/runs/wait" in running.requests[0].head
    assert [len(one.tool_calls) for one in responses] == [1, 1, 0]


THREAD_URL = "http://a/threads/{{session}}/runs/wait"


@pytest.mark.parametrize("name", [*PRESETS, *(f"{name} {kind}" for name, kind in STREAMED_PRESETS)])
def test_preset__each__holds_a_conversation_or_says_what_it_needs(name) -> None:
    protocol, _, kind = name.partition(" ")
    url = THREAD_URL if protocol == "langgraph-thread" else "http://a/chat"
    settings = described(url, agentProtocol=protocol, **({"responseFormat": kind} if kind else {}))
    needs_more = protocol == "tool-forge-sidecar"
    assert (settings.conversation_problem is not None) is needs_more
    assert not settings.repeats_turns


def test_preset__sidecar_with_a_session_of_ones_own__gets_no_conversation() -> None:
    answer = {"message": "ok", "toolCalls": []}
    _, running, _, session = converse(
        answering(answer), agentProtocol="tool-forge-sidecar", requestFields={"chat": "{{session}}"}, turns=2
    )
    assert bodies_of(running)[1] == {"message": TURNS[1], "chat": session.id}


def test_preset__request_of_ones_own__has_its_own_session() -> None:
    own = {"agentProtocol": "a2a", "requestTemplate": {"text": "{{prompt}}", "ctx": "{{session}}"}}
    assert (described(**own).session_path, described(**own).task_path) == ((), ())
    cookie = described(agentProtocol="a2a", sessionCookie="sid")
    assert (cookie.session_path, cookie.session_cookie) == ((), "sid")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"requestTemplate": {"q": "{{message}}"}}, "sends neither {{session}} nor {{conversation}}"),
        ({"requestTemplate": TEMPLATE, "session": "case"}, "shares one session between executions"),
        ({"requestTemplate": {"q": "{{caseId}}", "s": "{{session}}"}}, "does not send {{message}}"),
        ({"requestTemplate": {"q": "{{prompt}}"}, "sessionPath": "id"}, "does not send {{session}}"),
        ({"agentProtocol": "tool-forge-sidecar"}, '`requestFields: { session: "{{session}}" }`'),
        ({"agentProtocol": "langgraph-thread"}, "`url: http://localhost:2024/threads/{{session}}/runs/wait`"),
        ({"method": "GET", "query": {"q": "{{message}}"}}, '`query: { session: "{{session}}" }`'),
    ],
)
def test_conversation_problem__request_that_cannot_hold_one__is_known_before_the_run(settings, words) -> None:
    target = HttpTarget(described(**settings), redact=Redactor(), concurrency=1)
    assert words in (target.conversation_problem or "")


@pytest.mark.parametrize(
    ("settings", "place", "words"),
    [
        ({"sessionPath": "id", "sessionCookie": "sid"}, "sessionCookie", "keep one of"),
        ({"sessionPath": "id", "sessionHeader": "X-S"}, "sessionHeader", "keep one of"),
        ({"sessionHeader": "X-S", "sessionCookie": "sid"}, "sessionCookie", "keep one of"),
        ({"sessionHeader": "X S"}, "sessionHeader", "is not a name"),
        ({"sessionCookie": "a;b"}, "sessionCookie", "is not a name"),
        ({"sessionPath": "id", "session": "case"}, "sessionPath", "remove `session: case`"),
        ({"sessionPath": "id", "url": "http://a/{{session}}/chat"}, "sessionPath", "in url as a whole value"),
        ({"sessionPath": "id", "headers": {"A": "Bearer {{session}}"}}, "sessionPath", "in headers as a whole value"),
        ({"sessionPath": "id", "query": {"s": "s-{{session}}"}}, "sessionPath", "in query as a whole value"),
        (
            {"taskPath": "task", "requestTemplate": {"q": "{{prompt}} {{task}}"}},
            "requestTemplate",
            "must be a whole value",
        ),
        ({"requestTemplate": {"q": "{{prompt}}", "t": "{{task}}"}}, "requestTemplate", "{{task}} has no value"),
        (
            {"sessionPath": "id", "poll": {"url": "/jobs/{{id}}?s={{session}}", "idPath": "job"}},
            "sessionPath",
            "in poll as a whole value",
        ),
        (
            {"sessionPath": "id", "poll": {"requestTemplate": {"of": "s-{{session}}"}}},
            "sessionPath",
            "in poll as a whole value",
        ),
        ({"responseFormat": "text", "sessionPath": "id"}, "sessionPath", "a plain text has no paths"),
        ({"toolCallsScope": "all"}, "toolCallsScope", "'turn' or 'conversation'"),
    ],
)
def test_settings__sessions_that_cannot_work__are_refused_where_they_stand(settings, place, words) -> None:
    with pytest.raises(ValidationError) as caught:
        described(**settings)
    (mistake,) = caught.value.errors()
    assert (mistake["loc"][0], words in mistake["msg"]) == (place, True), mistake["msg"]


def test_notices__turns_that_an_agent_with_memory_has_twice__are_said_once() -> None:
    both = {"requestTemplate": {"messages": "{{conversation}}", "thread": "{{session}}"}}
    _, _, target, _ = converse(answering(OK), **both)
    (notice,) = target.notices
    assert notice.startswith("the agent a got earlier turns again in {{conversation}}")
    _, _, target, _ = converse(answering(OK), **both, turns=1)
    assert target.notices == ()


@pytest.mark.parametrize(
    ("answer", "settings", "number"),
    [
        (OK | {"session": "s-1"}, {}, 1),
        (OK | {"session": "s-1"}, {"sessionPath": "session"}, 0),
        (OK | {"session": "s-1"}, {"requestTemplate": TEMPLATE}, 0),
        (OK | {"session": None}, {}, 0),
        (OK, {}, 0),
    ],
)
def test_notices__id_of_the_agent_that_no_turn_gets__is_said(answer, settings, number) -> None:
    _, _, target, _ = converse(answering(answer), **settings)
    assert ["set `sessionPath: session`" in one for one in target.notices] == [True] * number


def test_notices__messages_before_the_first_turn_that_are_not_sent__are_said() -> None:
    _, _, target, _ = converse(answering(OK), system="Be brief.", requestTemplate=TEMPLATE)
    (notice,) = target.notices
    assert "did not get the messages before the first turn" in notice
    _, _, target, _ = converse(answering(OK), system="Be brief.")
    assert target.notices == ()
