"""What a program's answer holds: messages, a text, a trace, or simply itself."""

import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.model.conversation import OutputCall, OutputMessage, ToolCall, TraceEvent
from eval_gate.model.usage import Usage
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.command import response
from eval_gate.targets.command.response import parse_record, parse_response


def read(**document):
    return parse_response(json.dumps(document))


def assistant(content, **others) -> dict:
    return {"role": "assistant", "content": content, **others}


# bare texts


@pytest.mark.contract("cli.answer", "agentv.test-case-execution.provider-does-not-support-traces")
@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", ""),
        ("hello", "hello"),
        ("hello\n", "hello"),
        ("hello\r\n", "hello"),
        ("one\r\ntwo\rthree\r\n\r\n", "one\ntwo\rthree\n"),
        ("hello\n\n", "hello\n"),
        (" hello ", " hello "),
        ("\ufeffhello", "hello"),
        ("[1, 2]", "[1, 2]"),
        ('"text"', '"text"'),
        ("{not json}", "{not json}"),
        ('{"answer": 42}\n', '{"answer": 42}'),
        ('{"output_messages": []}', '{"output_messages": []}'),
        ('{"output_messages": "none"}', '{"output_messages": "none"}'),
        ('{"trace": []}', '{"trace": []}'),
        ('{"a": 1} {"b": 2}', '{"a": 1} {"b": 2}'),
        ("\0\0", "\0\0"),
    ],
)
def test_read_answer__provider_does_not_support_traces__whole_content_is_the_answer(content, text) -> None:
    found = parse_response(content)
    assert (found.text, found.messages, found.trace, found.tool_calls_known) == (text, None, None, False)
    assert (found.tool_calls, found.warnings) == ((), ())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("hello\n", "hello\n"),
        ("", ""),
        (None, ""),
        (42, "42"),
        (True, "true"),
        ({"a": [1]}, '{"a":[1]}'),
        (["ü"], '["ü"]'),
    ],
)
def test_read_answer__text__is_the_answer(value, text) -> None:
    found = read(text=value)
    assert (found.text, found.tool_calls_known, found.messages) == (text, False, None)


# messages


@pytest.mark.contract("agentv.output-message-format.toolcall-with-optional-trace-fields")
@pytest.mark.parametrize(("outer", "inner"), [("output_messages", "tool_calls"), ("outputMessages", "toolCalls")])
def test_read_answer__toolcall_with_optional_trace_fields__is_read(outer, inner) -> None:
    call = {
        "tool": "searchDocs",
        "input": {"query": "test"},
        "output": {"results": []},
        "id": "call_123",
        "timestamp": "2025-01-01T00:00:00Z",
    }
    found = read(**{outer: [{"role": "assistant", inner: [call]}]})
    assert found.messages == (OutputMessage(role="assistant", tool_calls=(OutputCall(**call),)),)
    assert found.tool_calls == (
        ToolCall(name="searchDocs", params={"query": "test"}, id="call_123", result={"results": []}),
    )
    assert (found.text, found.tool_calls_known, found.warnings) == ("", True, ())


@pytest.mark.contract("agentv.output-message-format.outputmessage-with-optional-metadata")
def test_read_answer__outputmessage_with_optional_metadata__is_read() -> None:
    message = assistant("response", timestamp="2025-01-01T00:00:00Z", metadata={"latency_ms": 150})
    found = read(output_messages=[message])
    assert found.messages == (OutputMessage(**message),)
    assert found.text == "response"


@pytest.mark.contract("cli.messages")
@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([assistant("a"), assistant("b")], "b"),
        ([assistant("a"), {"role": "tool", "content": "b"}], "a"),
        ([assistant("a"), assistant(None), assistant("")], "a"),
        ([assistant("a"), {"role": "assistant", "tool_calls": [{"tool": "t"}]}], "a"),
        ([assistant({"answer": 1})], '{"answer":1}'),
        ([assistant([1, "ü"])], '[1,"ü"]'),
        ([assistant(0)], "0"),
        ([assistant(False)], "false"),
        ([{"role": "user", "content": "hi"}], ""),
    ],
)
def test_read_answer__messages__last_words_of_the_assistant_are_the_answer(messages, text) -> None:
    found = read(output_messages=messages, text="another")
    assert found.text == text
    assert len(found.messages) == len(messages)


def test_read_answer__calls_of_any_role_and_input__are_calls_in_order() -> None:
    messages = [
        assistant("x", tool_calls=[{"tool": "a", "input": {"k": 1}}, {"tool": "b"}, {"tool": "c", "input": [1]}]),
        {"role": "tool", "tool_calls": [{"tool": "d", "input": "text"}, {"tool": "e", "input": None}]},
    ]
    calls = read(output_messages=messages).tool_calls
    assert [(call.name, call.params) for call in calls] == [
        ("a", {"k": 1}),
        ("b", {}),
        ("c", {"input": [1]}),
        ("d", {"input": "text"}),
        ("e", {}),
    ]


@pytest.mark.contract("cli.messages")
def test_read_answer__malformed_parts__are_left_out_one_by_one_and_counted() -> None:
    messages = [
        assistant("kept", tool_calls=[{"tool": ""}, {"name": "x"}, "x", None, {"tool": "good"}, {"tool": "t" * 1001}]),
        {"content": "no role"},
        "text",
        {"role": 3},
        {"role": "tool", "tool_calls": "none"},
        {"role": "user", "name": 3, "timestamp": 17, "metadata": [1]},
    ]
    found = read(output_messages=messages)
    assert [message.role for message in found.messages] == ["assistant", "tool", "user"]
    assert [call.name for call in found.tool_calls] == ["good"]
    assert (found.messages[2].name, found.messages[2].timestamp, found.messages[2].metadata) == (None, None, None)
    assert found.warnings == (
        "left out of the response: 6 malformed tool calls",
        "left out of the response: 3 malformed messages",
    )


def test_read_answer__no_message_survives__text_or_whole_is_the_answer_and_calls_are_unknown() -> None:
    for document, text in (({"text": "words"}, "words"), ({}, '{"output_messages": ["x"]}')):
        found = read(output_messages=["x"], **document)
        assert (found.text, found.messages, found.tool_calls_known) == (text, None, False)
        assert found.warnings == ("left out of the response: 1 malformed message",)


# traces


@pytest.mark.contract("agentv.trace-data-model.traceevent-structure")
@pytest.mark.parametrize("kind", ["model_step", "tool_call", "tool_result", "message", "error"])
def test_read_answer__traceevent_structure__type_is_enough_and_the_rest_is_read(kind) -> None:
    full = {
        "type": kind,
        "timestamp": "2025-01-01T00:00:00Z",
        "id": "1",
        "name": "search",
        "input": {"q": 1},
        "output": [1],
        "text": "words",
        "metadata": {"a": 1},
    }
    found = read(text="done", trace=[{"type": kind}, full])
    assert found.trace == (TraceEvent(type=kind), msgspec.convert(full, TraceEvent))
    assert (found.tool_calls_known, found.messages, found.text) == (True, None, "done")


@pytest.mark.contract("agentv.trace-data-model.traceevent-structure", "cli.messages")
def test_read_answer__traceevent_structure__other_events_are_left_out() -> None:
    events = [{"type": "thought"}, {}, "x", {"type": ["tool_call"]}, {"type": "error", "text": 3, "metadata": 1}]
    found = read(text="done", trace=events)
    assert found.trace == (TraceEvent(type="error"),)
    assert found.warnings == ("left out of the response: 4 malformed events",)


def test_read_answer__trace_without_messages__gives_the_calls() -> None:
    events = [
        {"type": "tool_call", "name": "a", "input": {"k": 1}, "id": "1"},
        {"type": "tool_result", "name": "a"},
        {"type": "tool_call"},
        {"type": "tool_result", "name": "a", "output": "found", "id": "1"},
        {"type": "tool_call", "name": "b", "input": 7, "output": [1]},
    ]
    assert read(text="", trace=events).tool_calls == (
        ToolCall(name="a", params={"k": 1}, id="1", result="found"),
        ToolCall(name="b", params={"input": 7}, result=[1]),
    )


def test_read_answer__messages_and_trace__messages_are_primary_and_both_are_kept() -> None:
    found = read(output_messages=[assistant("x")], trace=[{"type": "tool_call", "name": "a"}])
    assert found.tool_calls == ()
    assert (len(found.messages), len(found.trace)) == (1, 1)


def test_read_answer__empty_trace__says_that_nothing_was_called() -> None:
    found = read(text="x", trace=[])
    assert (found.trace, found.tool_calls_known) == ((), True)
    assert read(text="x", trace="none").trace is None


# what it cost


@pytest.mark.parametrize(
    ("document", "usage", "cost"),
    [
        (
            {"usage": {"input_tokens": 3, "output_tokens": 5}, "cost_usd": 0.25},
            Usage(input_tokens=3, output_tokens=5),
            0.25,
        ),
        ({"usage": {"inputTokens": 3, "outputTokens": 5}, "costUsd": 1}, Usage(input_tokens=3, output_tokens=5), 1.0),
        ({"usage": {"input_tokens": 3}}, Usage(input_tokens=3), None),
        ({"usage": {"input_tokens": True, "output_tokens": -1}, "cost_usd": -1}, None, None),
        ({"usage": {"input_tokens": 1.5}, "cost_usd": "1"}, None, None),
        ({"usage": 7, "cost_usd": True}, None, None),
        ({"usage": {}, "cost_usd": math.inf}, None, None),
    ],
)
def test_read_answer__usage_and_cost__are_read_in_both_spellings(document, usage, cost) -> None:
    found = read(text="x", **document)
    assert (found.usage, found.cost_usd) == (usage, cost)


# hostile answers


def test_read_answer__numbers_that_are_no_json__do_not_lose_the_rest() -> None:
    found = parse_response('{"text": "x", "trace": [{"type": "error", "metadata": {"a": NaN, "b": -Infinity}}]}')
    assert found.trace[0].metadata == {"a": None, "b": None}


def test_read_answer__half_a_surrogate_pair__is_replaced() -> None:
    found = parse_response(
        '{"output_messages": [{"role": "assistant", "content": "\\ud83d", "metadata": {"\\udc00": 1}}]}'
    )
    assert found.text == "\ufffd"
    msgspec.json.encode(found).decode()


@pytest.mark.parametrize("depth", [250, 5_000, 200_000])
def test_read_answer__nested_without_end__is_refused(depth) -> None:
    with pytest.raises(TargetError, match="nested deeper than 200 levels") as caught:
        parse_response('{"text": ' + "[" * depth + "]" * depth + "}")
    assert caught.value.fault is TargetFault.MALFORMED


@pytest.mark.parametrize(
    ("document", "limit", "words"),
    [
        ({"output_messages": [assistant("x")] * 4}, "RESPONSE_MESSAGES", "4 messages, more than 3"),
        ({"text": "", "trace": [{"type": "error"}] * 4}, "RESPONSE_EVENTS", "4 events, more than 3"),
        (
            {"output_messages": [assistant("x", tool_calls=[{"tool": "t"}] * 4)]},
            "RESPONSE_CALLS",
            "4 tool calls, more than 3",
        ),
        ({"output_messages": [assistant("x", tool_calls=[{"tool": "t"}] * 2)] * 2}, "RESPONSE_CALLS", "4 tool calls"),
    ],
)
def test_read_answer__too_many_parts__is_refused(monkeypatch, document, limit, words) -> None:
    monkeypatch.setattr(response, limit, 3)
    with pytest.raises(TargetError, match=words):
        read(**document)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["output_messages", "tool_calls", "role", "content", "tool", "text", "trace", "type", "usage"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_read_answer__any_json__is_an_answer_that_can_be_stored(document) -> None:
    msgspec.json.encode(parse_response(json.dumps(document))).decode()


@given(st.text())
def test_read_answer__any_text__is_an_answer(text) -> None:
    parse_response(text)
    parse_response(f"{{{text}}}")


# records of a batch


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({}, ""),
        ({"text": 3}, "3"),
        ({"text": None}, ""),
        ({"output_messages": []}, ""),
        ({"output_messages": [assistant("a")]}, "a"),
    ],
)
def test_read_record__of_a_batch__without_words_is_an_empty_answer(record, text) -> None:
    assert parse_record({"id": "a", **record}).text == text
