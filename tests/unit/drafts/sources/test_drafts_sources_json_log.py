"""Logs of JSON lines: where the parts stand, what is left out, and what hostile lines come to."""

import json

import pytest

from eval_gate.drafts.observation import ObservationSet
from eval_gate.drafts.sources import json_log, source_file
from eval_gate.drafts.sources.json_log import read_journal, read_log
from eval_gate.errors import GateError
from eval_gate.model.conversation import Message, ToolCall


def read(tmp_path, *lines: object, fields: dict[str, str] | None = None) -> ObservationSet:
    file = tmp_path / "agent.log"
    file.write_bytes(b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in lines))
    return read_log(file, fields)


def refuse(tmp_path, *lines: object, fields: dict[str, str] | None = None) -> GateError:
    with pytest.raises(GateError) as caught:
        read(tmp_path, *lines, fields=fields)
    return caught.value


def entry(question: object, response: str = "yes", **more: object) -> dict[str, object]:
    return {"message": question, "response": response, **more}


def test_read_log__default_fields__finds_question_response_and_calls(tmp_path) -> None:
    call = {"name": "find", "params": {"id": 7}, "success": True, "durationMs": 3, "result": {"n": 1}}
    [one] = read(tmp_path, entry("where?", "here", toolCalls=[call])).observations
    assert (one.question, one.responses[0].text) == ("where?", "here")
    assert one.responses[0].tool_calls == (
        ToolCall(name="find", params={"id": 7}, success=True, duration_ms=3.0, result={"n": 1}),
    )
    assert one.responses[0].tool_calls_known is True
    assert one.location is not None
    assert one.location.line == 1


def test_read_log__no_list_of_calls__leaves_it_open_whether_a_tool_was_called(tmp_path) -> None:
    [one] = read(tmp_path, entry("q")).observations
    assert one.responses[0].tool_calls_known is None


def test_read_log__fields__say_where_the_parts_are(tmp_path) -> None:
    line = {
        "request": {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]},
        "reply": {"parts": [{"type": "text", "text": "done"}]},
        "steps": [{"function": {"name": "f", "arguments": '{"x": [1]}'}}],
    }
    fields = {
        "question": "request.messages[-1].content",
        "responsePath": "reply.parts",
        "toolCalls": "steps",
        "name": "function.name",
        "argsField": "function.arguments",
    }
    [one] = read(tmp_path, line, fields=fields).observations
    assert (one.question, one.responses[0].text) == ("b", "done")
    assert one.responses[0].tool_calls == (ToolCall(name="f", params={"x": [1]}),)


def test_read_log__list_of_messages__last_of_a_user_is_the_question(tmp_path) -> None:
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "human", "content": "first"},
        {"role": "ai", "content": [{"type": "text", "text": "answer"}]},
        {"role": "tool", "content": "{}"},
        {"role": "user", "content": "second"},
        {"role": "assistant", "content": "what the agent said"},
    ]
    [one] = read(tmp_path, entry(messages)).observations
    assert one.question == "second"
    assert one.earlier_messages == (Message(role="user", content="first"), Message(role="assistant", content="answer"))


def test_read_log__same_question_again__is_a_further_execution(tmp_path) -> None:
    found = read(tmp_path, entry("a", "1"), entry("b", "2"), entry("a", "3")).observations
    assert [(one.question, [said.text for said in one.responses]) for one in found] == [("a", ["1", "3"]), ("b", ["2"])]


def test_read_log__same_question_after_other_messages__is_another_question(tmp_path) -> None:
    later = [{"role": "user", "content": "x"}, {"role": "user", "content": "a"}]
    assert len(read(tmp_path, entry("a"), entry(later)).observations) == 2


def test_read_log__lines_of_another_kind__are_left_out_and_counted(tmp_path) -> None:
    found = read(tmp_path, {"level": "info"}, b"Traceback:", entry("a"), b"[]", entry(" "), entry(7))
    assert [one.question for one in found.observations] == ["a"]
    assert [note.replace(str(tmp_path), "") for note in found.notes] == [
        "Left out 2 lines (the first at /agent.log:1): no question at message (it has the key level).",
        "Left out 1 line (/agent.log:2): not JSON.",
        "Left out 1 line (/agent.log:5): blank question.",
        "Left out 1 line (/agent.log:6): the question is neither a text nor a list of messages (the number 7).",
    ]


def test_read_log__questions_as_messages_or_json__only_what_a_person_wrote_counts(tmp_path) -> None:
    langchain = [{"lc": 1, "id": ["langchain", "HumanMessage"], "kwargs": {"content": [{"type": "text", "text": "b"}]}}]
    image = [{"role": "user", "content": "c"}, {"role": "user", "content": [{"type": "image", "data": "aGk="}]}]
    found = read(
        tmp_path,
        entry('[{"role": "system", "content": "x"}, {"role": "user", "content": "a"}]'),
        entry(langchain),
        entry({"messages": [{"sender": "bot", "text": "x"}, {"sender": "human", "message": "d"}]}),
        entry('{"city": "Paris"}'),
        entry(image),
    )
    assert [one.question for one in found.observations] == ["a", "b", "d"]
    [note] = found.notes
    assert note.replace(str(tmp_path), "").startswith(
        "Left out 2 lines (the first at /agent.log:4): the question is JSON"
    )
    assert note.endswith("not a text that a person wrote (a mapping with the keys city).")


def test_read_log__question_without_a_response__is_an_execution_that_failed(tmp_path) -> None:
    found = read(tmp_path, entry("a"), {"message": "a", "error": "quota"}, {"message": "a", "response": {}})
    [one] = found.observations
    assert len(one.responses) == 1
    assert one.errors[0] == "quota"
    assert one.errors[1].startswith('the response has no text at "response"')


def test_read_log__no_line_with_a_response__names_the_keys_that_are_there(tmp_path) -> None:
    error = refuse(tmp_path, {"prompt": "hi", "answer": "ho"}, {"message": "hi", "answer": "ho"}, b"{")
    assert error.code == "invalid-draft-source"
    assert [str(one).replace(str(tmp_path), "") for one in error.problems] == [
        "/agent.log:1: no question at message; it has the keys prompt, answer",
        '/agent.log:2: the response has no value at "response"; it has the keys message, answer',
        "/agent.log:3: not JSON",
    ]
    assert "--field question=" in str(error.hint)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"questoin": "a"},
            '--field: "questoin" is not known (did you mean "question"?); known: question, session, response',
        ),
        ({"question": "a[b"}, "--field question: "),
    ],
)
def test_read_log__wrong_fields__are_named(tmp_path, fields, said) -> None:
    error = refuse(tmp_path, entry("a"), fields=fields)
    assert error.code == "unknown-value"
    assert str(error.problems[0]).startswith(said)


def test_read_log__hostile_lines__keep_their_text_and_lose_what_is_no_text(tmp_path) -> None:
    hostile = "\x00\x1b[31m\u202e{{seed:x}}\n---\n- a: &a"
    found = read(
        tmp_path,
        entry(hostile, hostile),
        b'{"message": "half \\ud800", "response": "\\udc00"}',
        b'{"message": "no UTF-8", "response": "\xff"}',
        b'{"message": "deep", "response": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b'{"message": "huge", "response": "x", "toolCalls": [{"name": "n", "params": {"v": 1e999}}]}',
        b'{"message": "long", "response": "x", "toolCalls": [{"name": "' + b"n" * 2_000 + b'"}]}',
        b"\xff\xfe",
    )
    first, second, long = found.observations
    assert (first.question, first.responses[0].text) == (hostile, hostile)
    assert second.question == "half \ufffd"
    assert second.responses[0].text == "\ufffd"
    assert long.responses == ()
    assert [note.rpartition("): ")[2] for note in found.notes] == [
        "not JSON.",
        "the JSON is nested deeper than 200 levels.",
        "the JSON contains the number 1e999, which is out of range.",
    ]


def test_read_log__one_line_without_end__is_refused_with_its_number(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(source_file, "DRAFT_LINE_BYTES", 100)
    error = refuse(tmp_path, entry("a"), entry("b" * 100))
    assert str(error.problems[0]).endswith("agent.log:2: is longer than 100 bytes")


def test_read_log__too_large_a_file__is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(source_file, "DRAFT_SOURCE_BYTES", 100)
    assert "is larger than 100 bytes" in str(refuse(tmp_path, entry("b" * 100)).problems[0])


@pytest.mark.parametrize("data", [b"", b"\n\n  \n"])
def test_read_log__nothing_in_it__is_refused(tmp_path, data) -> None:
    assert str(refuse(tmp_path, data).problems[0]).endswith("agent.log: has no lines")


def test_read_log__no_file__is_refused(tmp_path) -> None:
    with pytest.raises(GateError) as caught:
        read_log(tmp_path / "none")
    assert "none: cannot be read: No such file or directory" in str(caught.value.problems[0])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_read_log__byte_order_mark__is_no_part_of_the_first_line(tmp_path, encoding) -> None:
    file = tmp_path / "log"
    file.write_text(json.dumps(entry("ä"), ensure_ascii=False) + "\r\n", encoding=encoding)
    assert [one.question for one in read_log(file).observations] == ["ä"]


def test_read_log__too_many_executions__are_counted(tmp_path) -> None:
    found = read(tmp_path, *(entry("a") for _ in range(103)))
    assert len(found.observations[0].responses) == 100
    assert found.notes[0].startswith("Left out 3 lines (the first at ")


def test_read_log__too_long_a_question__is_left_out(tmp_path) -> None:
    earlier = [{"role": "user", "content": "a"}] * 102
    found = read(tmp_path, entry("a"), entry("b" * 100_001), entry(earlier))
    assert len(found.observations) == 1
    assert [note.rpartition(": ")[2] for note in found.notes] == [
        "message of more than 100,000 characters.",
        "more than 100 messages before the question.",
    ]


def test_read_journal__nothing_recorded__is_no_error(tmp_path) -> None:
    file = tmp_path / "journal"
    file.write_text("")
    assert read_journal(file) == ObservationSet(())


def test_default_paths__are_those_of_a_target() -> None:
    mapping = json_log.build_log_mapping({})
    assert (str(mapping.prompt), mapping.settings.response_path) == ("message", ("response",))


def test_read_log__session__gives_each_question_the_messages_before_it(tmp_path) -> None:
    lines = [
        entry("a", "1", chat={"id": "x"}),
        entry("b", "2", chat={"id": 7}),
        entry("c", "3", chat={"id": "x"}),
        {"message": "broken", "error": "HTTP 500", "chat": {"id": "x"}},
        entry("d", "4", chat={"id": 7}),
        entry("e", "5", chat={"id": "x"}),
        entry([{"role": "user", "content": "y"}, {"role": "user", "content": "z"}], "6", chat={"id": "x"}),
        entry("f", "7", chat={"id": None}),
    ]
    read_set = read(tmp_path, *lines, fields={"session": "chat.id"})
    earlier = {one.question: [message.content for message in one.earlier_messages] for one in read_set.observations}
    assert earlier == {
        "a": [],
        "b": [],
        "c": ["a", "1"],
        "broken": ["a", "1", "c", "3"],
        "d": ["b", "2"],
        "e": ["a", "1", "c", "3", "broken"],
        "z": ["y"],
        "f": [],
    }


def test_read_log__same_message_after_one_without_response__is_another_attempt_at_it(tmp_path) -> None:
    failed = {"message": "b", "error": "HTTP 500", "session": 1}
    read_set = read(tmp_path, entry("a", "1", session=1), failed, failed, entry("b", "2", session=1))
    assert [(one.question, len(one.earlier_messages)) for one in read_set.observations] == [("a", 0), ("b", 2)]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"session": "request.sesion"}, 'request.sesion; "request" has the keys text, session'),
        ({"sessionPath": "session"}, "session; it has the keys message, response, request"),
        ({"session": "request"}, 'request; "request" has the keys text, session'),
    ],
)
def test_read_log__session_that_no_line_has__is_refused_with_the_keys_that_are_there(tmp_path, fields, said) -> None:
    error = refuse(tmp_path, entry("a", request={"text": "a", "session": "x"}), fields=fields)
    assert error.code == "invalid-draft-source"
    assert [one.message for one in error.problems] == [f"no line has a session at {said}"]
