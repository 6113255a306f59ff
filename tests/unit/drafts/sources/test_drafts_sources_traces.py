"""Traces: what the instrumentations of today and yesterday write, how runs are divided, and hostile files."""

import json
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.drafts.observation import ObservationSet
from eval_gate.drafts.sources import otlp
from eval_gate.drafts.sources.traces import read_traces
from eval_gate.errors import GateError
from eval_gate.model.conversation import Message, ToolCall, ToolSpec
from eval_gate.struct import replace
from tests.support.bounds import within_cpu

FILES = Path(__file__).parent / "files"


def value(content: object) -> dict:
    """Write a value as OTLP does."""
    match content:
        case bool():
            return {"boolValue": content}
        case int():
            return {"intValue": str(content)}
        case float():
            return {"doubleValue": content}
        case str():
            return {"stringValue": content}
        case list():
            return {"arrayValue": {"values": [value(one) for one in content]}}
        case dict():
            return {"kvlistValue": {"values": attributes(content)}}
        case _:
            return {}


def attributes(content: dict) -> list[dict]:
    return [{"key": key, "value": value(one)} for key, one in content.items()]


class Traces:
    """Maker of spans, each a second after the one before."""

    def __init__(self) -> None:
        self.numbers = count(1)
        self.spans: list[dict] = []

    def add(self, operation: str | None, parent: str | None = None, *, trace: str = "t", **more: object) -> str:
        at = next(self.numbers)
        named = {"gen_ai.operation.name": operation} if operation else {}
        own = {key.replace("__", "."): one for key, one in more.items() if key not in ("status", "events")}
        span = {
            "traceId": trace,
            "spanId": f"s{at}",
            "name": operation or "app",
            "startTimeUnixNano": str(at * 10**9),
            "endTimeUnixNano": str(at * 10**9 + 5 * 10**6),
            "attributes": attributes(named | own),
            "status": more.get("status", {}),
            "events": more.get("events", []),
        }
        self.spans.append(span | ({"parentSpanId": parent} if parent else {}))
        return f"s{at}"

    def chat(self, given: list[dict], said: list[dict], parent: str | None = None, **more: object) -> str:
        """Add a model call with messages in their structured form."""
        messages = {"gen_ai.input.messages": given, "gen_ai.output.messages": said}
        return self.add("chat", parent, **messages, **more)

    def document(self) -> dict:
        return {"resourceSpans": [{"scopeSpans": [{"spans": self.spans}]}]}

    def read(self, tmp_path: Path) -> ObservationSet:
        file = tmp_path / "traces.json"
        file.write_text(json.dumps(self.document()))
        return read_traces(file)


def user(text: str) -> dict:
    return {"role": "user", "parts": [{"type": "text", "content": text}]}


def said(text: str) -> dict:
    return {"role": "assistant", "parts": [{"type": "text", "content": text}]}


def calls(name: str, arguments: object, key: str | None = "c1") -> dict:
    part = {"type": "tool_call", "name": name, "arguments": arguments}
    return {"role": "assistant", "parts": [part | ({"id": key} if key else {})]}


def result(content: object, key: str = "c1") -> dict:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": key, "response": content}]}


def refuse(tmp_path: Path, data: bytes) -> str:
    file = tmp_path / "t.json"
    file.write_bytes(data)
    with pytest.raises(GateError) as caught:
        read_traces(file)
    assert caught.value.code == "invalid-draft-source"
    return str(caught.value.problems[0]).replace(f"{tmp_path}/", "")


WEATHER = ToolCall(
    name="get_weather",
    params={"city": "Paris", "unit": "celsius"},
    success=True,
    result={"city": "Paris", "degrees": 14},
    id="call_1",
)


@pytest.mark.parametrize("name", ["pydantic-ai-2.68.json", "pydantic-ai-1-events.json"])
def test_read_traces__pydantic_ai__run_with_a_tool_and_a_second_turn(name) -> None:
    found = read_traces(FILES / name)
    first, second = found.observations
    assert first.question == "What is the weather in Paris?"
    assert first.responses[0].text == "In Paris it is 14 degrees with light rain."
    assert [replace(call, duration_ms=None) for call in first.responses[0].tool_calls] == [WEATHER]
    assert second.question == "Thank you!"
    assert second.earlier_messages == (
        Message(role="user", content="What is the weather in Paris?"),
        Message(role="assistant", content="In Paris it is 14 degrees with light rain."),
    )
    assert second.responses[0].tool_calls == ()
    assert second.responses[0].tool_calls_known is True
    assert [tool.name for tool in found.tools] == ["get_weather"]
    assert found.tools[0].description == "Current weather of a city."
    assert found.notes == ()


@pytest.mark.parametrize("name", ["openai-v2-log-records.json", "openllmetry-0.40.json"])
def test_read_traces__openai_client__messages_are_log_records_or_numbered(name) -> None:
    [one] = read_traces(FILES / name).observations
    assert (one.question, one.earlier_messages) == ("Where is order 1234?", ())
    assert one.responses[0].text == "Order 1234 was shipped on 2026-03-02."
    assert one.responses[0].tool_calls == (
        ToolCall(name="get_order", params={"id": 1234}, result={"shipped": "2026-03-02"}, id="call_9"),
    )
    assert one.responses[0].model == "gpt-4o-mini-2024-07-18"


def test_read_traces__agent_with_messages_of_its_own__they_count_before_those_of_the_model() -> None:
    first, second = read_traces(FILES / "util-genai-1.3.json").observations
    assert first.question == "Cancel order 77."
    assert first.responses[0].text == "Order 77 was already shipped, so I cannot cancel it."
    [call] = first.responses[0].tool_calls
    assert (call.name, call.params, call.success, call.result) == (
        "cancel_order",
        {"id": 77},
        False,
        "order is already shipped",
    )
    assert second.question == "Then return it."  # its span has this message only: the others are of the conversation
    assert [one.content for one in second.earlier_messages] == ["Cancel order 77.", first.responses[0].text]


def test_read_traces__same_question_in_another_trace__is_a_further_execution(tmp_path) -> None:
    made = Traces()
    for trace in ("t1", "t2", "t3"):
        agent = made.add("invoke_agent", trace=trace)
        made.chat([user("a")], [said(trace)], agent, trace=trace)
    [one] = made.read(tmp_path).observations
    assert [response.text for response in one.responses] == ["t1", "t2", "t3"]


def test_read_traces__no_agent_spans__divides_a_trace_at_each_question(tmp_path) -> None:
    made = Traces()
    app = made.add(None)
    made.chat([user("a")], [calls("f", {"x": 1})], app)
    made.add("execute_tool", app, **{"gen_ai.tool.name": "f", "gen_ai.tool.call.id": "c1"})
    made.chat([user("a"), calls("f", {"x": 1}), result("r")], [said("one")], app)
    made.chat([user("a")], [said("two")], app)
    made.chat([user("a"), said("two"), user("b")], [said("three")], app)
    first, second = made.read(tmp_path).observations
    assert [(one.text, len(one.tool_calls)) for one in first.responses] == [("one", 1), ("two", 0)]
    assert (second.question, [one.content for one in second.earlier_messages]) == ("b", ["a", "two"])


def test_read_traces__agent_that_writes_to_its_model_as_a_user__is_one_run(tmp_path) -> None:
    made = Traces()
    agent = made.add("invoke_agent")
    made.chat([user("a")], [said("no JSON")], agent)
    made.chat([user("a"), said("no JSON"), user("Write JSON.")], [said("{}")], agent)
    [one] = made.read(tmp_path).observations
    assert (one.question, [response.text for response in one.responses]) == ("a", ["{}"])


def test_read_traces__agent_below_an_agent__is_a_part_of_its_run(tmp_path) -> None:
    made = Traces()
    outer = made.add("invoke_agent")
    made.chat([user("a")], [calls("ask_expert", {})], outer)
    tool = made.add("execute_tool", outer, **{"gen_ai.tool.name": "ask_expert", "gen_ai.tool.call.id": "c1"})
    inner = made.add("invoke_agent", tool)
    made.chat([user("expert question")], [calls("search", {})], inner)
    made.add("execute_tool", inner, **{"gen_ai.tool.name": "search"})
    made.chat([user("a"), calls("ask_expert", {}), result("r")], [said("b")], outer)
    [one] = made.read(tmp_path).observations
    assert (one.question, one.responses[0].text) == ("a", "b")
    assert [call.name for call in one.responses[0].tool_calls] == ["ask_expert"]


def test_read_traces__workflow_that_only_starts_agents__has_their_calls(tmp_path) -> None:
    made = Traces()
    outer = made.add("invoke_workflow")
    inner = made.add("invoke_agent", outer)
    made.chat([user("a")], [calls("search", {"q": 1})], inner)
    made.chat([user("a"), calls("search", {"q": 1}), result("r")], [said("b")], inner)
    [one] = made.read(tmp_path).observations
    assert (one.question, one.responses[0].text) == ("a", "b")
    assert [call.name for call in one.responses[0].tool_calls] == ["search"]


def test_read_traces__calls_without_ids__meet_their_spans_by_name_and_order(tmp_path) -> None:
    made = Traces()
    agent = made.add("invoke_agent")
    made.chat([user("a")], [calls("f", {"x": 1}, None), calls("f", {"x": 2}, None)], agent)
    bad = {"code": 2, "message": "broken"}
    made.add("execute_tool", agent, **{"gen_ai.tool.name": "f", "gen_ai.tool.call.result": '{"y": 1}'})
    made.add("execute_tool", agent, status=bad, **{"gen_ai.tool.name": "f"})
    made.add("execute_tool", agent, **{"gen_ai.tool.name": "g", "gen_ai.tool.call.arguments": {"z": [True, 1.5, None]}})
    made.chat([user("a")], [said("b")], agent)
    found = made.read(tmp_path).observations[0].responses[0].tool_calls
    assert [(one.name, one.params, one.success, one.result, one.duration_ms) for one in found] == [
        ("f", {"x": 1}, True, {"y": 1}, 5.0),
        ("f", {"x": 2}, False, None, 5.0),
        ("g", {"z": [True, 1.5, None]}, True, None, 5.0),
    ]


def test_read_traces__failed_agent__is_an_execution_without_response(tmp_path) -> None:
    made = Traces()
    agent = made.add("invoke_agent", status={"code": "STATUS_CODE_ERROR", "message": "too many steps"})
    made.chat([user("a")], [said("half an")], agent)
    silent = made.add("invoke_agent", trace="u")
    made.chat([user("b")], [], silent, trace="u", **{"error.type": "RateLimitError"})
    first, second = made.read(tmp_path).observations
    assert (first.responses, first.errors) == ((), ("too many steps",))
    assert (second.responses, second.errors) == ((), ("RateLimitError",))


def test_read_traces__content_not_captured__is_left_out_with_the_reason(tmp_path) -> None:
    made = Traces()
    made.add("invoke_agent", trace="u")
    made.chat([user("a")], [said("b")])
    [note] = made.read(tmp_path).notes
    assert note.startswith("Left out 1 agent run (")
    assert "tell the instrumentation to capture the content of messages" in note
    empty = Traces()
    empty.add("chat")
    said_ = refuse(tmp_path, json.dumps(empty.document()).encode())
    assert (
        said_ == "t.json:1 span s1: no message of a user; tell the instrumentation to capture the content of messages"
    )


OLDER = {
    "events with attributes": {
        "events": [
            {"name": "gen_ai.user.message", "attributes": attributes({"content": "a", "role": "user"})},
            {"name": "gen_ai.choice", "attributes": attributes({"message": '{"role": "assistant", "content": "b"}'})},
        ]
    },
    "events with JSON": {
        "events": [
            {"name": "gen_ai.user.message", "attributes": attributes({"gen_ai.event.content": '{"content": "a"}'})},
            {
                "name": "gen_ai.choice",
                "attributes": attributes({"gen_ai.event.content": '{"message": {"content": "b"}}'}),
            },
        ]
    },
    "event with all details": {
        "events": [
            {
                "name": "gen_ai.client.inference.operation.details",
                "attributes": attributes({"gen_ai.input.messages": [user("a")], "gen_ai.output.messages": [said("b")]}),
            }
        ]
    },
    "content events": {
        "events": [
            {
                "name": "gen_ai.content.prompt",
                "attributes": attributes({"gen_ai.prompt": '[{"role": "user", "content": "a"}]'}),
            },
            {
                "name": "gen_ai.content.completion",
                "attributes": attributes({"gen_ai.completion": '[{"role": "assistant", "content": "b"}]'}),
            },
        ]
    },
    "plain attributes": {"gen_ai.prompt": "a", "gen_ai.completion": "b"},
    "numbered attributes": {
        "gen_ai.prompt.0.role": "system",
        "gen_ai.prompt.0.content": "be brief",
        "gen_ai.prompt.1.role": "user",
        "gen_ai.prompt.1.content": "a",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "b",
    },
}


OTHERS = {
    "OpenInference: an agent": {"openinference.span.kind": "AGENT", "input.value": "a", "output.value": "b"},
    "OpenInference: a model with the responses of OpenAI": {
        "openinference.span.kind": "LLM",
        "input.value": '{"model": "m", "input": "a"}',
        "output.value": '{"object": "response", "output": [{"role": "assistant", "content": [{"text": "b"}]}]}',
    },
    "OpenInference: messages in attributes count before the request": {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.contents.0.message_content.text": "a",
        "llm.output_messages.0.message.content": "b",
        "input.value": "x",
    },
    "Vercel AI SDK: an object": {
        "ai.operationId": "ai.generateObject",
        "ai.prompt": '{"prompt": "a"}',
        "ai.response.object": "b",
    },
    "LangSmith: the client of OpenAI": {
        "langsmith.span.kind": "llm",
        "gen_ai.prompt": '{"messages": [{"role": "user", "content": "a"}], "model": "m"}',
        "gen_ai.completion": '{"choices": [{"message": {"role": "assistant", "content": "b"}}], "object": "x"}',
    },
    "Strands Agents: parts without a type": {
        "events": [
            {"name": "gen_ai.user.message", "attributes": attributes({"content": '[{"text": "a"}]'})},
            {"name": "gen_ai.choice", "attributes": attributes({"message": '[{"text": "b"}]'})},
        ]
    },
}


@pytest.mark.parametrize("form", OTHERS)
def test_read_traces__forms_of_other_instrumentations__are_read(tmp_path, form) -> None:
    made = Traces()
    made.add(None if len(OTHERS[form]) > 1 else "chat", **OTHERS[form])
    [one] = made.read(tmp_path).observations
    assert (one.question, one.responses[0].text, one.earlier_messages) == ("a", "b", ())


@pytest.mark.parametrize("form", OLDER)
def test_read_traces__older_forms_of_messages__are_read(tmp_path, form) -> None:
    made = Traces()
    made.add("chat", **OLDER[form])
    [one] = made.read(tmp_path).observations
    assert (one.question, one.responses[0].text, one.earlier_messages) == ("a", "b", ())


def test_read_traces__numbered_attributes__have_calls_too(tmp_path) -> None:
    made = Traces()
    made.add(
        None,
        **{
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": "a",
            "gen_ai.completion.0.tool_calls.0.name": "f",
            "gen_ai.completion.0.tool_calls.0.id": "k",
            "gen_ai.completion.0.tool_calls.0.arguments": '{"x": 1}',
        },
    )
    [one] = made.read(tmp_path).observations
    assert one.responses[0].tool_calls == (ToolCall(name="f", params={"x": 1}, id="k"),)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ('{"city": "Paris", "days": 3}', "a mapping with the keys city, days"),
        ({"city": "Paris"}, "a mapping with the keys city"),
        ([{"type": "image", "data": "aGk="}], "a list"),
        ("[1, 2]", "a list"),
        ('[{"role": "user", "content": "Where is', "it ends in the middle"),
    ],
)
def test_read_traces__question_that_no_person_wrote__is_left_out_with_what_it_is(tmp_path, content, found) -> None:
    made = Traces()
    made.chat([{"role": "user", "content": content}], [said("b")])
    made.chat([user("[1] is a list")], [{"role": "assistant", "content": "[1, 2]"}], trace="u")
    result = made.read(tmp_path)
    assert [(one.question, one.responses[0].text) for one in result.observations] == [("[1] is a list", "[1, 2]")]
    assert result.notes[0].endswith(f"the question is JSON, not a text that a person wrote ({found}).")


@pytest.mark.parametrize("given", ['{"question": "a", "top_k": 3}', {"question": "a", "top_k": 3}])
def test_read_traces__attribute_that_holds_no_messages__is_named_by_its_keys(tmp_path, given) -> None:
    made = Traces()
    made.add("chat", **{"gen_ai.prompt": given, "gen_ai.completion": "b"})
    said_ = refuse(tmp_path, json.dumps(made.document()).encode())
    assert said_.endswith("not a text that a person wrote (a mapping with the keys question, top_k)")


def test_read_traces__tool_definitions__are_the_tools_of_the_agent(tmp_path) -> None:
    made = Traces()
    tools = [
        {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}},
        {"type": "function", "function": {"name": "g"}},
        {"type": "function", "name": "f", "description": "other"},
        "no tool",
    ]
    made.chat([user("a")], [said("b")], **{"gen_ai.tool.definitions": tools})
    assert made.read(tmp_path).tools == (
        ToolSpec(name="f", description="d", parameters={"type": "object"}),
        ToolSpec(name="g"),
    )


def test_read_traces__one_document_a_line__has_the_lines_as_places(tmp_path) -> None:
    lines = []
    for text in ("a", "b"):
        made = Traces()
        made.chat([user(text)], [said("x")], trace=text)
        lines.append(json.dumps(made.document()))
    metrics = '{"resourceMetrics": []}'
    file = tmp_path / "t.jsonl"
    file.write_text("\n".join([lines[0], metrics, lines[1], lines[1][:-20]]))
    found = read_traces(file)
    assert [one.location.line for one in found.observations if one.location] == [1, 3]
    assert found.notes == (f"Left out the last line ({file}:4): it ends in the middle.",)


def test_read_traces__document_with_line_breaks__has_the_lines_of_its_spans(tmp_path) -> None:
    made = Traces()
    made.chat([user("a")], [said("x")], trace="t1")
    made.chat([user("b")], [said("y")], trace="t2")
    file = tmp_path / "t.json"
    file.write_text(json.dumps(made.document(), indent=1))
    text = file.read_text().splitlines()
    for one, span in zip(read_traces(file).observations, ("s1", "s2"), strict=True):
        assert one.location is not None
        assert f'"spanId": "{span}"' in text[one.location.line - 1]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "t.json: is empty"),
        (b"not JSON", "t.json:1: is not JSON: "),
        (b'{"resourceSpans": [', "t.json:1: is not JSON: "),
        (b'{\n"resourceSpans": [', "t.json: is not JSON: "),
        (b"[" * 100_000, "t.json:1: is nested deeper than 200 levels"),
        (b'{"spans": []}', "t.json:1: has neither resourceSpans nor resourceLogs, so it is not OTLP JSON"),
        (b"7", "t.json:1: has neither resourceSpans nor resourceLogs, so it is not OTLP JSON"),
        (b'{"resourceSpans": []}', "t.json: has no span of an agent, a model or a tool (gen_ai.operation.name"),
        (
            b'{"resourceSpans": [{}, 5, {"scopeSpans": [{"spans": [{"name": "x"}]}]}]}',
            "t.json:1: resourceSpans[2].scopeSpans[0].spans[0]: has no traceId and spanId",
        ),
    ],
)
def test_read_traces__what_is_wrong__is_said_with_line_and_field(tmp_path, data, words) -> None:
    assert refuse(tmp_path, data).startswith(words)


def test_read_traces__too_many_spans__are_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(otlp, "TRACE_SPANS", 3)
    made = Traces()
    for _ in range(4):
        made.chat([user("a")], [said("b")])
    assert "has more than 3 spans" in refuse(tmp_path, json.dumps(made.document()).encode())


def test_read_traces__hostile_values__break_nothing(tmp_path) -> None:
    made = Traces()
    made.chat([user("a\x00\u202e{{seed:x}}")], [said("\ud800b")])
    made.add("chat", "s2", **{"gen_ai.input.messages": "[" * 300, "gen_ai.output.messages": 7})  # its own parent
    made.add("execute_tool", "s9", **{"gen_ai.tool.name": "n" * 2_000})
    hostile = [
        [1, None, {"role": 5}, {"role": "user", "parts": {"a": 1}}, {"role": "user", "content": 5}],
        {"role": "user", "parts": [None, 3, {"type": []}, {"type": "text", "content": []}, {"type": "tool_call"}]},
        7,
    ]
    for one in hostile:
        made.chat(one, one)
    made.spans.append({"traceId": "x", "spanId": "y", "attributes": [None, {}, {"key": 1}], "events": [None, {}]})
    made.spans.append(
        {
            "traceId": "x",
            "spanId": "z",
            "startTimeUnixNano": "9" * 5_000,
            "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat", "intValue": "1"}}],
            "status": {"code": []},
        }
    )
    [one] = made.read(tmp_path).observations
    assert one.question == "a\x00\u202e{{seed:x}}"
    assert one.responses[0].text == "\ufffdb"


def test_read_traces__model_calls_that_are_traces_of_their_own__are_joined(tmp_path) -> None:
    made = Traces()
    for at in range(2):  # the question is asked twice
        made.chat([user("a")], [calls("f", {"x": at})], trace=f"1{at}")
        made.chat([user("a"), calls("f", {"x": at}), result("r")], [calls("g", {}, "c2")], trace=f"2{at}")
        more = [calls("f", {"x": at}), result("r"), calls("g", {}, "c2"), result("s", "c2")]
        made.chat([user("a"), *more], [said("b")], trace=f"3{at}")
        made.chat([user("a"), *more, said("b"), user("c")], [said("d")], trace=f"4{at}")
    first, second = made.read(tmp_path).observations
    assert [(one.text, [call.name for call in one.tool_calls]) for one in first.responses] == [("b", ["f", "g"])] * 2
    assert [call.params for one in first.responses for call in one.tool_calls] == [{"x": 0}, {}, {"x": 1}, {}]
    assert (second.question, [one.text for one in second.responses]) == ("c", ["d", "d"])


def test_read_traces__tool_call_of_nobody__is_named_as_such(tmp_path) -> None:
    made = Traces()
    made.chat([user("a")], [said("b")])
    made.add("execute_tool", trace="u", **{"gen_ai.tool.name": "f"})
    [note] = made.read(tmp_path).notes
    assert note.endswith(": a tool call without the span of an agent or a model.")


def test_read_traces__step_without_a_message_of_a_user__is_no_run(tmp_path) -> None:
    made = Traces()
    kind = "langsmith.span.kind"
    root = made.add("chain", **{kind: "chain", "gen_ai.prompt": '{"topic": "x"}'})
    made.add("chat", root, **{kind: "prompt", "gen_ai.prompt": '{"topic": "x"}'})
    for text in ("a", "b"):
        request = json.dumps({"messages": [[{"kwargs": {"content": text}, "id": ["langchain", "HumanMessage"]}]]})
        reply = json.dumps(
            {"generations": [[{"text": "r", "message": {"kwargs": {"content": text * 2, "type": "ai"}}}]]}
        )
        made.add("chat", root, **{kind: "llm", "gen_ai.prompt": request, "gen_ai.completion": reply})
    assert [(one.question, one.responses[0].text) for one in made.read(tmp_path).observations] == [
        ("a", "aa"),
        ("b", "bb"),
    ]


def test_read_traces__run_of_a_framework_within_a_tool__is_a_part_of_the_run(tmp_path) -> None:
    made = Traces()
    kind, given = "openinference.span.kind", '{"messages": [{"role": "user", "content": "%s"}]}'
    outer = made.add(None, **{kind: "CHAIN", "input.value": given % "a", "output.value": '{"output": "b"}'})
    node = made.add(None, outer, **{kind: "CHAIN", "input.value": given % "a"})
    made.chat([user("a")], [calls("ask", {})], node)
    tool = made.add(None, outer, **{kind: "TOOL", "tool.name": "ask", "output.value": "r"})
    inner = made.add(None, tool, **{kind: "CHAIN", "input.value": given % "expert question"})
    made.chat([user("expert question")], [calls("search", {}, "c2")], inner)
    made.add(None, inner, **{kind: "TOOL", "tool.name": "search"})
    [one] = made.read(tmp_path).observations
    assert (one.question, one.responses[0].text) == ("a", "b")
    assert [(call.name, call.result) for call in one.responses[0].tool_calls] == [("ask", "r")]


def test_read_traces__spans_in_a_circle__have_no_agent_above(tmp_path) -> None:
    made = Traces()
    made.add("invoke_agent", "s2")
    made.add("invoke_agent", "s1")
    made.chat([user("a")], [said("b")], "s1")
    made.chat([user("c")], [said("d")], trace="u")
    assert "c" in [one.question for one in made.read(tmp_path).observations]


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["invoke_agent", "chat"])
def test_read_traces__spans_below_each_other__take_time_for_each_once(tmp_path, operation) -> None:
    made = Traces()
    for at in range(20_000):
        made.add(operation, f"s{at + 2}")
    made.chat([user("a")], [said("b")], trace="u")
    with within_cpu(20, "spans below each other"):
        assert made.read(tmp_path).observations[-1].question == "a"


@pytest.mark.slow
def test_read_traces__calls_and_spans_that_do_not_meet__take_time_for_each_once(tmp_path) -> None:
    made = Traces()
    parts = [{"type": "tool_call", "name": "f", "id": f"c{at}", "arguments": {}} for at in range(5_000)]
    made.chat([user("a")], [{"role": "assistant", "parts": parts}])
    for at in range(10_000):
        made.add("execute_tool", **{"gen_ai.tool.name": "f", "gen_ai.tool.call.id": f"d{at}"})
    with within_cpu(20, "calls and spans"):
        assert len(made.read(tmp_path).observations[0].responses[0].tool_calls) == 10_000


KEYS = st.sampled_from(
    [
        *("resourceSpans", "scopeSpans", "spans", "attributes", "events", "traceId", "spanId", "parentSpanId", "name"),
        *("key", "value", "stringValue", "arrayValue", "kvlistValue", "values", "intValue", "status", "code"),
        *("role", "content", "parts", "type", "tool_calls", "function", "arguments", "id"),
        *("messages", "message", "kwargs", "data", "input", "toolUse", "tool_call", "generations", "text"),
        *("resourceLogs", "scopeLogs", "logRecords", "body", "eventName", "timeUnixNano"),
    ]
)
WORDS = st.sampled_from(
    [
        *(
            "user",
            "assistant",
            "tool",
            "text",
            "tool_call",
            "chat",
            "invoke_agent",
            "execute_tool",
            "x",
            "1",
            "",
            "[{}]",
        ),
        *("gen_ai.operation.name", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.name"),
        *("gen_ai.prompt.0.content", "gen_ai.prompt.0.role", "gen_ai.completion.0.content", "gen_ai.user.message"),
        *("gen_ai.choice", "gen_ai.prompt", "gen_ai.completion", "events", "gen_ai.tool.definitions", "\ud800"),
        *("openinference.span.kind", "CHAIN", "LLM", "input.value", "output.value", "ai.prompt", "ai.response.text"),
        *("llm.input_messages.0.message.role", "llm.input_messages.0", "llm.tools.0.tool", "langsmith.span.kind"),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda one: st.lists(one, max_size=4) | st.dictionaries(KEYS, one, max_size=5),
    max_leaves=40,
)


@given(st.lists(st.dictionaries(WORDS, JSON, max_size=5), max_size=5), JSON)
def test_read_traces__any_attributes__are_read_or_refused(folder, found, other) -> None:
    made = Traces()
    for one in found:
        made.add("chat", **one)
    made.spans.append({"traceId": "t", "spanId": "other", "attributes": other, "events": other, "status": other})
    file = folder / "any.json"
    file.write_text(json.dumps(made.document()))
    with suppress(GateError):
        read_traces(file)
    file.write_text(json.dumps(other))
    with suppress(GateError):
        read_traces(file)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("any")
