"""What a target did, as graders see it: which messages, which calls, and the summary of both."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.evaluators.trace import (
    MAX_NAME,
    MAX_NAMES,
    build_prompt_messages,
    find_messages,
    has_reported_calls,
    list_called_tools,
    messages_to_json,
    summarize_trace,
    summary_to_json,
    trace_to_json,
)
from eval_gate.model.conversation import Message, OutputCall, OutputMessage, Response, ToolCall, TraceEvent
from eval_gate.model.result import TraceSummary
from eval_gate.model.specs.evaluator import ResponseContains, ToolTrajectory
from eval_gate.struct import replace
from tests.support.grading import judgement_of, with_messages, with_trace

BARE = Response(text="In Rome.", tool_calls_known=False)
"""A target that says nothing of what it did."""

EVENTS = """
[
  { "type": "tool_call", "name": "searchDocs" },
  { "type": "tool_result" },
  { "type": "tool_call", "name": "searchDocs" },
  { "type": "tool_result" },
  { "type": "tool_call", "name": "verify" },
  { "type": "tool_result" }
]
"""
EVENTS_SUMMARY = """
{
  "eventCount": 6,
  "toolNames": ["searchDocs", "verify"],
  "toolCallsByName": { "searchDocs": 2, "verify": 1 },
  "errorCount": 0
}
"""
MESSAGES = """
[
  { "role": "assistant", "toolCalls": [{ "tool": "searchDocs" }, { "tool": "verify" }] }
]
"""
MESSAGES_SUMMARY = """
{
  "eventCount": 2,
  "toolNames": ["searchDocs", "verify"],
  "toolCallsByName": { "searchDocs": 1, "verify": 1 },
  "errorCount": 0
}
"""


def messages(text: str) -> tuple[OutputMessage, ...]:
    return tuple(msgspec.convert(message, OutputMessage) for message in json.loads(text))


def events(text: str) -> tuple[TraceEvent, ...]:
    return tuple(msgspec.convert(event, TraceEvent) for event in json.loads(text))


@pytest.mark.contract("agentv.trace-data-model.tracesummary-computation")
def test_trace_summary__tracesummary_computation__is_the_specs_own() -> None:
    summary = summarize_trace(Response(text="x", trace=events(EVENTS)))
    assert summary_to_json(summary) == json.loads(EVENTS_SUMMARY)
    backwards = tuple(reversed(events(EVENTS)))
    assert summarize_trace(Response(text="x", trace=backwards)) == summary, "names are sorted"


@pytest.mark.contract("agentv.trace-data-model.tracesummary-from-outputmessages")
def test_trace_summary__tracesummary_from_outputmessages__is_the_specs_own() -> None:
    response = Response(text="x", messages=messages(MESSAGES))
    assert summary_to_json(summarize_trace(response)) == json.loads(MESSAGES_SUMMARY)


@pytest.mark.contract("agentv.behaviour.trace-summary")
def test_trace_summary__trace_with_errors_and_nameless_calls__counts_all_events() -> None:
    trace = (
        TraceEvent(type="model_step", name="thinks"),
        TraceEvent(type="tool_call", name="a"),
        TraceEvent(type="tool_call"),
        TraceEvent(type="tool_result", name="a"),
        TraceEvent(type="error", text="no"),
        TraceEvent(type="message", text="done"),
    )
    summary = summarize_trace(Response(text="x", trace=trace))
    assert summary == TraceSummary(event_count=6, tool_names=("a",), tool_calls_by_name={"a": 1}, error_count=1)


@pytest.mark.contract("agentv.behaviour.trace-none")
def test_trace_summary__bare_text__is_none() -> None:
    assert (summarize_trace(BARE), list_called_tools(BARE), find_messages(BARE)) == (None, None, None)


def test_trace_summary__plain_calls__a_failed_one_is_an_error() -> None:
    calls = (ToolCall(name="b", success=False), ToolCall(name="a", success=True), ToolCall(name="b"))
    response = Response(text="x", tool_calls=calls)
    assert summarize_trace(response) == TraceSummary(
        event_count=3, tool_names=("a", "b"), tool_calls_by_name={"a": 1, "b": 2}, error_count=1
    )
    reported = replace(response, messages=with_messages("b", "a", "b").messages)
    summary = summarize_trace(reported)
    assert summary is not None
    assert summary.error_count == 0, "output messages never say that a call failed"


def test_trace_summary__no_call_made__is_zeros_and_not_none() -> None:
    nothing = TraceSummary(event_count=0, tool_names=(), tool_calls_by_name={}, error_count=0)
    assert summarize_trace(Response(text="x")) == nothing
    assert summarize_trace(with_messages()) == nothing
    assert summarize_trace(with_trace()) == nothing


@pytest.mark.contract("agentv.evaluator-outputmessages-context.outputmessages-available-in-evaluator-context")
def test_messages_of__outputmessages_available_in_evaluator_context__with_their_calls() -> None:
    made = replace(with_messages("search", "verify"), trace=with_trace("other").trace)
    found = find_messages(made)
    assert found == made.messages
    assert found is not None
    assert [call.tool for message in found for call in message.tool_calls] == ["search", "verify"]
    assert list_called_tools(made) == ["search", "verify"]


@pytest.mark.contract("agentv.evaluator-outputmessages-context.fallback-to-trace-when-outputmessages-absent")
def test_messages_of__fallback_to_trace_when_outputmessages_absent__has_no_messages() -> None:
    made = with_trace("search", "verify")
    assert find_messages(made) is None
    assert list_called_tools(made) == ["search", "verify"]
    assert trace_to_json(made.trace) == [
        {"type": "tool_call", "name": "search"},
        {"type": "tool_result"},
        {"type": "tool_call", "name": "verify"},
        {"type": "tool_result"},
    ]


@pytest.mark.contract("agentv.behaviour.trace-roles")
def test_calls_of__calls_in_messages_of_any_role__count() -> None:
    made = tuple(
        OutputMessage(role=role, tool_calls=(OutputCall(tool=f"{role}s"),)) for role in ("tool", "planner", "assistant")
    )
    assert list_called_tools(Response(text="x", messages=made)) == ["tools", "planners", "assistants"]


def test_messages_of__plain_calls__are_one_message_of_the_assistant() -> None:
    calls = (ToolCall(name="search", params={"q": "Rome"}, id="c1"), ToolCall(name="verify"))
    assert find_messages(Response(text="In Rome.", tool_calls=calls)) == (
        OutputMessage(
            role="assistant",
            content="In Rome.",
            tool_calls=(OutputCall(tool="search", input={"q": "Rome"}, id="c1"), OutputCall(tool="verify", input={})),
        ),
    )


def test_messages_of__exchange_that_we_led__is_known_whatever_the_target_says() -> None:
    talk = (Message(role="user", content="Where?"), Message(role="assistant", content="In Rome."))
    assert list_called_tools(replace(BARE, conversation=talk)) == []


def test_messages_of__no_message_at_all__is_nothing_reported() -> None:
    assert find_messages(replace(BARE, messages=())) is None


@pytest.mark.contract("agentv.behaviour.trace-camel-case")
def test_messages_json__every_field__is_camel_case_and_only_what_is_there() -> None:
    call = OutputCall(tool="search", input={"a_b": None}, output=[], id="c1", timestamp="2025-01-01T00:00:00Z")
    full = OutputMessage(
        role="assistant",
        name="planner",
        content={"some_key": None},
        tool_calls=(call, OutputCall(tool="verify")),
        timestamp="2025-01-01T00:00:00Z",
        metadata={"latency_ms": 150},
    )
    assert messages_to_json((full, OutputMessage(role="tool"))) == [
        {
            "role": "assistant",
            "name": "planner",
            "content": {"some_key": None},
            "toolCalls": [
                {
                    "tool": "search",
                    "input": {"a_b": None},
                    "output": [],
                    "id": "c1",
                    "timestamp": "2025-01-01T00:00:00Z",
                },
                {"tool": "verify"},
            ],
            "timestamp": "2025-01-01T00:00:00Z",
            "metadata": {"latency_ms": 150},
        },
        {"role": "tool"},
    ]
    assert messages_to_json(None) is None


def test_shown_messages__bare_text_or_trace__is_shown_as_a_message() -> None:
    assert build_prompt_messages(BARE) == [{"role": "assistant", "content": "In Rome."}]
    [message] = build_prompt_messages(with_trace("a", text="x"))
    assert (message["content"], message["toolCalls"]) == ("x", [{"tool": "a", "input": {}}])


@pytest.mark.parametrize(
    "response",
    [with_messages("a", "a"), with_trace("a", "a"), Response(text="ok", tool_calls=(ToolCall(name="a"),) * 2)],
    ids=["messages", "trace", "plain calls"],
)
def test_judgement__of_an_agentv_case__has_the_summary_whatever_judges_it(response) -> None:
    for spec in (ResponseContains(values=("ok",)), ToolTrajectory(mode="any_order", minimums={"a": 1})):
        summary = judgement_of(spec, response=response).trace_summary
        assert summary is not None
        assert summary.tool_calls_by_name == {"a": 2}
    assert judgement_of(ResponseContains(values=("Rome",)), response=BARE).trace_summary is None


def test_trace_summary__hostile_names__stay_bounded_and_can_be_written() -> None:
    strange = ["x" * 10_000, "\ud800", *(f"tool{number}" for number in range(5_000)), "often", "often"]
    summary = summarize_trace(with_messages(*strange))
    assert summary is not None
    assert summary.event_count == len(strange)
    assert len(summary.tool_names) == len(summary.tool_calls_by_name) == MAX_NAMES
    assert summary.tool_calls_by_name["often"] == 2, "what is called most is kept"
    assert max(map(len, summary.tool_names)) <= MAX_NAME
    assert msgspec.json.encode(summarize_trace(with_messages("\ud800"))).decode()


NAMES = st.lists(st.sampled_from(["search", "verify", "Search", "ä"]) | st.text(min_size=1, max_size=8), max_size=20)


@given(NAMES)
def test_trace_summary__messages_and_an_equivalent_trace__agree_on_names_and_counts(names) -> None:
    of_messages, of_trace = summarize_trace(with_messages(*names)), summarize_trace(with_trace(*names))
    assert of_messages is not None
    assert of_trace is not None
    assert of_messages.tool_names == of_trace.tool_names == tuple(sorted(of_messages.tool_names))
    assert of_messages.tool_calls_by_name == of_trace.tool_calls_by_name
    assert sum(of_messages.tool_calls_by_name.values()) == of_messages.event_count == len(names)
    assert of_trace.event_count == 2 * len(names)
    assert list_called_tools(with_messages(*names)) == list_called_tools(with_trace(*names)) == names


@pytest.mark.parametrize(
    ("response", "reported"),
    [
        (Response(text="ok", tool_calls_known=None), False),
        (Response(text="ok", tool_calls_known=False), False),
        (Response(text="ok"), True),
        (Response(text="ok", tool_calls=(ToolCall(name="a"),)), True),
        (Response(text="ok", tool_calls=(ToolCall(name="a"),), tool_calls_known=False), True),
        (Response(text="ok", conversation=(Message(role="user", content="hi"),)), True),
    ],
    ids=["silent", "says nothing", "promised", "calls", "calls unasked", "our own exchange"],
)
def test_reports_calls__response__is_a_report_or_silence(response, reported) -> None:
    assert has_reported_calls(response) is reported
    assert (list_called_tools(response) is not None) is reported
