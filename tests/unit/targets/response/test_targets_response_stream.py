"""Streamed answers: cut into events however they come, described by their author, and within bounds."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.model.conversation import Message, Response
from eval_gate.targets.base import Request, TargetError, TargetFault
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.targets.http.target import HttpTarget
from eval_gate.targets.response.stream import NdjsonParser, SseParser, StreamEvent
from eval_gate.text.redaction import Redactor
from tests.support.agents import Exchange, agent

SECRET = "top-secret-token"


def cut(cutter: SseParser | NdjsonParser, *pieces: bytes) -> list[StreamEvent]:
    return [event for piece in pieces for event in cutter.feed(piece)] + list(cutter.end())


def pieces_of(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(at % (len(data) + 1) for at in cuts), len(data)]
    return [data[begin:end] for begin, end in pairwise(places)]


@pytest.mark.parametrize(
    ("data", "events"),
    [
        (b"data: a\n\n", [("", b"a")]),
        (b"data:a\r\n\r\ndata: b\r\n\r\n", [("", b"a"), ("", b"b")]),
        (b"data: a\r\rdata: b\r\r", [("", b"a"), ("", b"b")]),
        (b"data: a\ndata: b\n\n", [("", b"a\nb")]),
        (b"event: x\ndata: a\n\ndata: b\n\n", [("x", b"a"), ("", b"b")]),
        (b": comment\nid: 7\nretry: 5\ndata\n\n", [("", b"")]),
        (b"\xef\xbb\xbfdata: a\n\n", [("", b"a")]),
        (b"event: end\n\n\n\n", [("end", b"")]),
        (b"data:  two blanks\n\n", [("", b" two blanks")]),
        (b"data: a\n\ndata: no end", [("", b"a"), ("", b"no end")]),
        (b"", []),
    ],
)
def test_sse__as_the_standard_has_it__is_cut_into_events(data, events) -> None:
    assert cut(SseParser(), data) == events


def test_ndjson__lines__are_values() -> None:
    assert cut(NdjsonParser(), b'{"a": 1}\r\n\n  \n[2]') == [("", b'{"a": 1}'), ("", b"[2]")]


@given(data=st.text("da: \r\n\u20acx").map(str.encode), cuts=st.lists(st.integers(0, 100), max_size=6))
def test_events__however_they_arrive__are_the_same(data, cuts) -> None:
    for kind in (SseParser, NdjsonParser):
        assert cut(kind(), *pieces_of(data, cuts)) == cut(kind(), data)


def ask(*pieces: bytes, kind: str = "text/event-stream", ends: bool = True, within: float = 20, **settings) -> Response:
    """What an agent answers that sends these pieces one after the other. `ends`: it then closes the stream."""

    async def handler(exchange: Exchange) -> None:
        exchange.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        for piece in pieces:
            exchange.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await exchange.writer.drain()
            await asyncio.sleep(0)
        if ends:
            exchange.write(b"0\r\n\r\n")
        else:
            await asyncio.sleep(60)

    async def main(url: str) -> Response:
        described = HttpSettings.model_validate({"name": "a", "url": url, "responseFormat": "sse"} | settings)
        target = HttpTarget(described, redact=Redactor([SECRET]), concurrency=1)
        try:
            async with asyncio.timeout(within):
                return await target.respond(Request("gs-1", (Message(role="user", content="hi"),)))
        finally:
            await target.aclose()

    with agent(handler) as running:
        return asyncio.run(main(running.url))


def broken(*pieces: bytes, **settings) -> TargetError:
    with pytest.raises(TargetError) as caught:
        ask(*pieces, **settings)
    return caught.value


def event(value: object, name: str = "") -> bytes:
    text = value if isinstance(value, str) else json.dumps(value)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def test_respond__bare_events__are_the_text() -> None:
    response = ask(event("Hel"), event("lo"), event("5"), event("[DONE]"), event("more"))
    assert (response.text, response.tool_calls_known) == ("Hello5", None)


def test_respond__events_at_the_described_paths__are_text_and_calls() -> None:
    response = ask(
        event({"delta": "a"}),
        event({"tools": [{"name": "t", "params": {"x": 1}}]}),
        event({"delta": "b"}),
        responsePath="delta",
        toolCallsPath="tools",
    )
    assert (response.text, [call.name for call in response.tool_calls]) == ("ab", ["t"])
    assert response.tool_calls[0].params == {"x": 1}


def test_respond__events_by_name_and_condition__are_told_apart() -> None:
    response = ask(
        event({"t": "thinking", "s": "hm"}, "delta"),
        event({"t": "say", "s": "a"}, "delta"),
        event({"t": "say", "s": "no"}, "other"),
        event({"id": 1, "n": "tool", "a": '{"x"'}, "call"),
        event({"id": 1, "a": ": 1}"}, "call"),
        event({"id": 1, "ok": "failed", "r": "boom"}, "call"),
        event({}, "stop"),
        events={
            "text": {"event": "delta", "where": "t=say", "path": "s"},
            "toolCall": {"event": "call"},
            "done": {"event": "stop"},
        },
        nameField="n",
        argsField="a",
        successField="ok",
        resultField="r",
    )
    (call,) = response.tool_calls
    assert (response.text, call.name, call.params, call.success, call.result) == ("a", "tool", {"x": 1}, False, "boom")


def test_respond__texts_of_several_messages__have_a_blank_line_between() -> None:
    rule = {"path": "s", "id": "m"}
    events = [event({"m": m, "s": s}) for m, s in ((1, "a"), (1, "b"), (2, ""), (3, "c"))]
    assert ask(*events, events={"text": rule}).text == "ab\n\nc"


def test_respond__last_event_that_is_the_whole__is_read_as_an_answer() -> None:
    response = ask(
        event({"state": {"response": "half"}}),
        event({"state": {"response": "whole", "toolCalls": [{"name": "t"}], "usage": {"inputTokens": 3}}}),
        events={"fullResponse": "state", "text": {"event": "nothing"}},
    )
    assert (response.text, response.tool_calls[0].name, response.first_token_ms) == ("whole", "t", None)


def test_respond__done__does_not_wait_for_the_end_of_the_stream() -> None:
    settings = {"events": {"text": "d", "done": {"where": "end=true"}}}
    assert ask(event({"d": "a"}), event({"end": True}), ends=False, **settings).text == "a"


def test_respond__time_to_the_first_token__is_less_than_to_the_last() -> None:
    response = ask(event(": nothing"), *[event("a")] * 50)
    assert response.first_token_ms is not None
    assert 0 < response.first_token_ms <= response.duration_ms


def test_respond__secret_in_pieces_of_an_answer__is_masked_behind_the_door() -> None:
    inner = ask(event(f"whole {SECRET}"))
    assert inner.text == "whole ***"
    parts = ask(event(SECRET[:8]), event(SECRET[8:]))
    assert Redactor([SECRET]).mask_struct(parts).text == "***"  # as MaskedTarget has every answer pass


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pieces", "settings", "said"),
    [
        ([event({"a": 1})], {}, "none of the 1 events has text at the configured path; its events are {a: number}"),
        ([], {}, "none of the 0 events has text"),
        ([event({"r": "[" * 0, "d": 1})], {"responsePath": "d"}, "none of the 1 events has text"),
        ([b"data: " + b"[" * 300 + b"\n\n"], {}, "an event is nested deeper than 200 levels"),
        ([event("x\n") * 1000] * 101, {}, "the stream has more than 100,000 events"),
        ([event("x" * 1000)] * 200, {"maxResponseBytes": 100_000}, "the response is larger than 100,000 bytes"),
        ([b"x" * 1000] * 200, {"maxResponseBytes": 100_000}, "the response is larger than 100,000 bytes"),
        (
            [event({"response": "a", "toolCalls": [{"n": 1}]})],
            {},
            '"a call in the events" has no name of up to 1000 characters',
        ),
        (
            [event({"toolCalls": [{"name": "a"}] * 5_000})] * 3,
            {},
            "the stream has more than 10,000 calls",
        ),
    ],
    ids=range(9),
)
def test_respond__stream_that_is_wrong_or_too_much__is_ended_and_said(pieces, settings, said) -> None:
    error = broken(*pieces, **settings)
    assert error.message.removeprefix("agent error: ").startswith(said)
    assert error.fault is TargetFault.MALFORMED
    assert len(error.message) < 500


@pytest.mark.parametrize(
    ("described", "body"),
    [
        ("sse", [event({"delta": {"content": piece}}) for piece in (SECRET[:7], SECRET[7:])]),
        ("ndjson", [json.dumps({"delta": [piece]}).encode() + b"\n" for piece in (SECRET[:7], SECRET[7:])]),
        ("json", [b": hello\n\n", *(event({"delta": {"content": piece}}) for piece in (SECRET[:7], SECRET[7:]))]),
        ("json", [json.dumps({"delta": [piece]}).encode() + b"\n" for piece in (SECRET[:7], SECRET[7:])]),
    ],
)
def test_respond__secret_in_pieces_of_a_stream_that_cannot_be_read__only_shapes_are_said(described, body) -> None:
    error = broken(*body, responseFormat=described, responsePath="answer")
    assert "{delta: {content: string}}" in error.message or "{delta: [string]}" in error.message
    assert SECRET[:7] not in error.message
    assert SECRET[7:] not in error.message


def test_respond__stream_that_breaks_in_the_middle__is_an_error_of_the_agent() -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        exchange.write(b"9\r\ndata: a\n\n\r\n")
        await exchange.writer.drain()
        exchange.writer.close()

    async def main(url: str) -> None:
        described = HttpSettings.model_validate({"name": "a", "url": url, "responseFormat": "sse"})
        target = HttpTarget(described, redact=Redactor(), concurrency=1)
        try:
            await target.respond(Request("gs-1", (Message(role="user", content="hi"),)))
        finally:
            await target.aclose()

    with agent(handler) as running, pytest.raises(TargetError, match="broke during the response"):
        asyncio.run(main(running.url))


def test_respond__json_where_a_stream_was_described__says_what_came() -> None:
    error = broken(b'{"response": "a"}', kind="application/json; charset=utf-8")
    assert error.message.startswith("agent error: the response is not an event stream but application/json")
    assert error.hint == "set the target's responseFormat"


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("text/event-stream", "responseFormat: sse"),
        ("text/plain; charset=utf-8", "responseFormat: text"),
        ("application/x-ndjson", None),
        ("text/html", None),
    ],
)
def test_respond__another_format_where_json_was_described__the_hint_names_it(kind, said) -> None:
    error = broken(b"data: hello\n\n", kind=kind, responseFormat="json")
    assert error.hint is not None
    assert (said or "responsePath, toolCallsPath or agentProtocol") in error.hint


def test_respond__text__is_the_answer_and_tells_nothing_of_calls() -> None:
    response = ask("Grüße ☀".encode(), kind="text/plain", responseFormat="text")
    assert (response.text, response.tool_calls_known) == ("Grüße ☀", False)
    latin = ask("Grüße".encode("latin-1"), kind="text/plain; charset=latin-1", responseFormat="text")
    assert latin.text == "Grüße"
    assert ask(b"\xff!", kind="text/plain; charset=nonsense", responseFormat="text").text == "\ufffd!"
