"""Reading what Codex prints: forms of output, rules for the answer, calls and tokens."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.targets.base import TargetError
from eval_gate.targets.command.programs import ProgramName, find_codex_error, read_stream

STARTED = {"type": "thread.started", "thread_id": "t"}


def read_output(text: str):
    return read_stream(ProgramName.CODEX, text)


def lines(*events) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def said(text, kind="agent_message", key="text"):
    return {"type": "item.completed", "item": {"id": "m", "type": kind, key: text}}


def item(kind, identity="i", stage="completed", **fields):
    return {"type": f"item.{stage}", "item": {"id": identity, "type": kind, **fields}}


# forms


@pytest.mark.contract("codex.output-forms")
@pytest.mark.parametrize(
    "text",
    [
        lines(STARTED, said("42")),
        json.dumps(said("42")),
        json.dumps(said("42"), indent=2),
        json.dumps([STARTED, said("42")]),
        "\r\n".join([json.dumps(STARTED), "", json.dumps(said("42"))]),
        'warming up\n{"output": "42"}',
        'not { json\n{"output": "42"}',
    ],
)
def test_read_output__each_form__gives_the_answer(text) -> None:
    assert read_output(text).text == "42"


@pytest.mark.contract("codex.output-forms")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "printed nothing"),
        ("sorry, no", "emitted invalid JSON"),
        ('{"output": NaN}', "emitted invalid JSON"),
        (lines(STARTED) + "oops\n" + lines(said("42")), "emitted invalid JSON"),
        ("[" * 100_000, "nested"),
        (lines(STARTED), "printed no message of the assistant"),
        ("42", "emitted invalid JSON"),
    ],
)
def test_read_output__anything_else__is_an_error(text, words) -> None:
    with pytest.raises(TargetError, match=words):
        read_output(text)


def test_read_output__line_separators_within_a_text__split_no_line() -> None:
    text = json.dumps(STARTED) + "\n" + json.dumps(said("a\u2028b\x85c"), ensure_ascii=False)
    assert read_output(text).text == "a\u2028b\x85c"


def test_read_output__half_a_surrogate_pair__becomes_text_that_files_can_hold() -> None:
    assert read_output('{"output": "a\\ud800b"}').text == "a\ufffdb"


@pytest.mark.slow
@given(st.text())
def test_read_output__any_text__is_an_answer_or_an_output_error(text) -> None:
    with suppress(TargetError):
        read_output(text)


# the answer


@pytest.mark.contract("codex.answer-rules")
@pytest.mark.parametrize("kind", ["agent_message", "response", "output"])
@pytest.mark.parametrize("key", ["text", "content", "output"])
def test_read_output__completed_item__is_the_answer(kind, key) -> None:
    assert read_output(lines(STARTED, said("first"), said("last", kind, key))).text == "last"


@pytest.mark.contract("codex.answer-rules")
def test_read_output__rules__hold_in_their_order() -> None:
    document = {"output": "4", "response": {"content": "3"}}
    assert read_output(json.dumps({"output": "4"})).text == "4"
    assert read_output(json.dumps(document)).text == "3"
    document["messages"] = [{"role": "assistant", "content": "2"}, {"role": "user", "content": "no"}]
    assert read_output(json.dumps(document)).text == "2"
    assert read_output(lines(said("1"), document)).text == "1"


def test_read_output__content_in_parts__is_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, "b"]
    assert read_output(json.dumps({"response": {"content": parts}})).text == "a\nb"


def test_read_output__other_items_and_stages__are_no_answer() -> None:
    with pytest.raises(TargetError):
        read_output(lines(item("reasoning", text="hm"), item("agent_message", stage="started", text="hm")))


def test_read_output__empty_message__is_an_empty_answer() -> None:
    assert read_output(lines(STARTED, said(""))).text == ""


def test_read_output__last_turn_failed__has_no_answer() -> None:
    failed = {"type": "turn.failed", "error": {"message": "quota\nexceeded"}}
    with pytest.raises(TargetError, match="Codex CLI reports a failure: quota exceeded"):
        read_output(lines(STARTED, said("half done"), failed))
    assert read_output(lines(failed, said("done"), {"type": "turn.completed"})).text == "done"


def test_failure_of__connection_errors_and_failed_turns__are_quoted() -> None:
    error = {"type": "error", "message": "no network"}
    assert find_codex_error(lines(STARTED, error)) == "no network"
    assert find_codex_error(lines(error, {"type": "turn.failed", "error": {"message": "gave up"}})) == "gave up"
    assert find_codex_error(lines(STARTED, said("x"))) is None
    assert find_codex_error("no json") is None


# calls and tokens


def calls(*events):
    found = read_output(lines(STARTED, *events, said("done")))
    assert found.tool_calls_known
    return found.tool_calls


@pytest.mark.contract("codex.tool-calls")
def test_read_output__command__is_a_call() -> None:
    (call,) = calls(
        item("command_execution", command="ls", aggregated_output="", status="in_progress", stage="started"),
        item("command_execution", command="ls", aggregated_output="a\n", exit_code=0, status="completed"),
    )
    assert (call.name, call.params) == ("command_execution", {"command": "ls"})
    assert call.result == {"aggregated_output": "a\n", "exit_code": 0}
    assert call.success is True


@pytest.mark.contract("codex.tool-calls")
def test_read_output__tool_of_a_server__keeps_its_name_and_arguments() -> None:
    (good, bad) = calls(
        item("mcp_tool_call", "a", server="tides", tool="tideTable", arguments={"port": "X"}, result={"content": []}),
        item("mcp_tool_call", "b", server="tides", tool="tideTable", arguments=[1], error={"message": "no such port"}),
    )
    assert (good.name, good.params, good.result) == ("tideTable", {"port": "X"}, {"content": []})
    assert good.success is None
    assert (bad.params, bad.success) == ({"arguments": [1]}, False)
    assert bad.result == {"error": {"message": "no such port"}}


@pytest.mark.contract("codex.tool-calls")
def test_read_output__file_changes_and_searches__are_calls() -> None:
    (change, search) = calls(
        item("file_change", "a", changes=[{"path": "a.py", "kind": "add"}], status="completed"),
        item("web_search", "b", query="tides"),
        item("todo_list", "c", items=[]),
        item("reasoning", "d", text="hm"),
    )
    assert (change.name, change.params["changes"]) == (
        "file_change",
        [{"path": "a.py", "kind": "add"}],
    )
    assert change.success is True
    assert (search.name, search.params, search.success) == (
        "web_search",
        {"query": "tides"},
        None,
    )


@pytest.mark.parametrize(
    ("fields", "success"),
    [
        ({"exit_code": 1, "status": "completed"}, False),
        ({"status": "failed"}, False),
        ({"status": "declined"}, False),
        ({"status": "in_progress"}, None),
        ({"exit_code": True}, None),
    ],
)
def test_read_output__success__is_what_the_item_says(fields, success) -> None:
    (call,) = calls(item("command_execution", command="x", **fields))
    assert call.success is success


def test_read_output__calls__stand_in_the_order_they_began() -> None:
    found = calls(
        item("command_execution", "a", "started", command="slow"),
        item("command_execution", "b", "started", command="quick"),
        item("command_execution", "b", command="quick"),
        item("command_execution", "a", command="slow"),
    )
    assert [call.params["command"] for call in found] == ["slow", "quick"]


def test_read_output__items_without_id__are_calls_of_their_own() -> None:
    bare = {"type": "item.completed", "item": {"type": "web_search", "query": "q"}}
    assert len(calls(bare, bare)) == 2


@pytest.mark.contract("codex.tool-calls")
def test_read_output__usage__is_summed_over_turns() -> None:
    turns = [{"type": "turn.completed", "usage": {"input_tokens": 1200, "output_tokens": 30}}] * 2
    usage = read_output(lines(STARTED, said("x"), *turns, {"type": "turn.completed"})).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (2400, 60)
    assert read_output(lines(STARTED, said("x"))).usage is None


@pytest.mark.parametrize("before", [[], [{"type": "turn.started"}, {"type": "turn.completed"}]])
def test_read_output__turn_that_was_not_completed__is_no_answer(before) -> None:
    begun = [*before, {"type": "turn.started"}, said("I shall look at")]
    with pytest.raises(TargetError, match="ended before its turn was completed"):
        read_output(lines(STARTED, *begun))
    assert read_output(lines(STARTED, *begun, {"type": "turn.completed"})).text == "I shall look at"


def test_read_output__counts_that_are_none__are_left_out() -> None:
    turn = {"type": "turn.completed", "usage": {"input_tokens": -1, "output_tokens": "many"}}
    assert read_output(lines(STARTED, said("x"), turn)).usage is None


def test_read_output__forms_that_tell_of_no_calls__leave_them_unknown() -> None:
    assert not read_output('{"output": "x"}').tool_calls_known
    assert not read_output('noise {"type": "turn.note", "output": "x"}').tool_calls_known
    found = read_output(lines(STARTED, said("x")))
    assert (found.tool_calls_known, found.tool_calls) == (True, ())
