"""Recorded answers: what decides a key, what each mode does, and what a file may be."""

from __future__ import annotations

import asyncio

import pytest

from eval_gate.config.settings import RecordingMode
from eval_gate.errors import GateError
from eval_gate.model.conversation import Message, ToolSpec
from eval_gate.struct import replace
from eval_gate.targets.base import TargetError
from eval_gate.targets.model.recording import RECORDING_NAME, Recording, compute_recording_key, read_recording
from tests.support.chats import ScriptedChat, make_asker, says

QUESTION = (Message(role="user", content="weather?"),)


def ask(chat: ScriptedChat, recording: Recording, messages=QUESTION, sample: int = 0):
    return asyncio.run(make_asker(chat, recording).ask(messages, (), sample))


def test_auto__asked_again__costs_nothing_and_is_marked(tmp_path) -> None:
    chat = ScriptedChat(says("21"))
    first = Recording(RecordingMode.AUTO, tmp_path / RECORDING_NAME)
    (tmp_path / "run-1").mkdir()
    first.set_run_folder(tmp_path / "run-1")
    assert not ask(chat, first).replayed
    again = ask(
        ScriptedChat(says("other")), Recording(RecordingMode.AUTO, None, read_recording(tmp_path / RECORDING_NAME))
    )
    assert (again.turn.text, again.replayed, again.cost_usd, again.attempts) == ("21", True, 0.0, 0)
    assert again.turn == read_recording(tmp_path / "run-1" / RECORDING_NAME).entries[0].turn


def test_replay__unknown_question__is_an_error_and_nobody_is_asked(tmp_path) -> None:
    chat = ScriptedChat(says("21"))
    with pytest.raises(TargetError, match="no response is recorded"):
        ask(chat, Recording(RecordingMode.REPLAY))
    assert chat.asked == []


def test_record__asks_even_what_is_known(tmp_path) -> None:
    shared = tmp_path / RECORDING_NAME
    ask(ScriptedChat(says("old")), Recording(RecordingMode.RECORD, shared))
    chat = ScriptedChat(says("new"))
    assert ask(chat, Recording(RecordingMode.RECORD, shared, read_recording(shared))).turn.text == "new"
    assert [entry.turn.text for entry in read_recording(shared).entries] == ["old", "new"]


def test_off__writes_nothing(tmp_path) -> None:
    recording = Recording(RecordingMode.OFF, tmp_path / RECORDING_NAME)
    recording.set_run_folder(tmp_path)
    ask(ScriptedChat(says("21")), recording)
    assert list(tmp_path.iterdir()) == []


def test_replayed__is_kept_in_the_runs_own_folder_once(tmp_path) -> None:
    shared = tmp_path / RECORDING_NAME
    ask(ScriptedChat(says("21")), Recording(RecordingMode.AUTO, shared))
    (tmp_path / "run").mkdir()
    recording = Recording(RecordingMode.AUTO, shared, read_recording(shared))
    recording.set_run_folder(tmp_path / "run")
    for _ in range(2):
        ask(ScriptedChat(says("other")), recording)
    assert len(read_recording(tmp_path / "run" / RECORDING_NAME).entries) == 1
    assert len(read_recording(shared).entries) == 1


def test_key__anything_that_decides_the_answer__changes_it() -> None:
    chat, tool = ScriptedChat(says()), ToolSpec(name="t")
    base = compute_recording_key(None, chat, QUESTION, (), 0)
    others = [
        compute_recording_key(None, ScriptedChat(says(), temperature=1.0), QUESTION, (), 0),
        compute_recording_key(None, chat, (Message(role="user", content="other?"),), (), 0),
        compute_recording_key(None, chat, (Message(role="system", content="weather?"),), (), 0),
        compute_recording_key(None, chat, QUESTION, (tool,), 0),
        compute_recording_key(None, chat, QUESTION, (), 1),
        compute_recording_key("0123456789abcdef", chat, QUESTION, (), 0),
    ]
    assert len({base, *others}) == 7


def test_key__names_of_calls__are_the_providers_and_do_not_count() -> None:
    chat = ScriptedChat(says())
    keys = []
    for name in ("a", "b"):
        call = replace(says("", "get_weather").tool_calls[0], id=name)
        talk = (*QUESTION, Message(role="assistant", tool_calls=(call,)), Message(role="tool", tool_call_id=name))
        keys.append(compute_recording_key(None, chat, talk, (), 0))
    assert keys[0] == keys[1]


DAMAGE = {
    "unfinished": (b"", b'{"key": "x", "tu'),
    "glued": (b"", b'{"key": "x", "tu{"key": "y", "turn": {"text": "?"}}\n'),
    "of a newer version": (b'{"v": 2, "request": "x", "said": ["21"]}\n', b""),
    "no text": (b"\xff\xfe\x00\n", b""),
    "too deep": (b'{"key": ' + b"[" * 5_000 + b"\n", b""),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("mode", [RecordingMode.AUTO, RecordingMode.RECORD])
def test_file__with_damage__is_used_but_for_that_and_healed_by_the_next_response(tmp_path, damage, mode) -> None:
    shared = tmp_path / RECORDING_NAME
    ask(ScriptedChat(says("21")), Recording(RecordingMode.AUTO, shared))
    before, after = DAMAGE[damage]
    shared.write_bytes(before + shared.read_bytes() + after)
    damaged = shared.read_bytes()
    found = read_recording(shared)
    assert ([entry.turn.text for entry in found.entries], found.unreadable) == (["21"], 1)
    recording = Recording(mode, shared, found if mode is RecordingMode.AUTO else None)
    if mode is RecordingMode.AUTO:
        assert ask(ScriptedChat(says("other")), recording).turn.text == "21"
        assert shared.read_bytes() == damaged, "nothing was asked: nothing is written"
        (said,) = recording.warnings
        assert said.startswith(f"1 line of {shared} cannot be read: ")
        assert said.endswith("the model is called again")
    ask(ScriptedChat(says("22")), recording, sample=1)
    ask(ScriptedChat(says("23")), recording, sample=2)
    healed = read_recording(shared)
    assert [entry.turn.text for entry in healed.entries] == ["21", "22", "23"]
    assert healed.unreadable == (mode is RecordingMode.RECORD)


def test_file__unfinished_line_of_the_runs_own_folder__is_not_glued_to_the_next(tmp_path) -> None:
    (tmp_path / RECORDING_NAME).write_bytes(b'{"key": "x", "tu')
    recording = Recording(RecordingMode.RECORD)
    recording.set_run_folder(tmp_path)
    ask(ScriptedChat(says("21")), recording)
    assert [entry.turn.text for entry in read_recording(tmp_path / RECORDING_NAME).entries] == ["21"]


def test_file__that_holds_no_response__is_one_that_nothing_is_taken_from(tmp_path) -> None:
    (tmp_path / "x.jsonl").write_text('{"key": 1}\n\n[]\n')
    found = read_recording(tmp_path / "x.jsonl")
    assert (found.entries, found.unreadable) == ((), 2)
    assert Recording(RecordingMode.REPLAY, tmp_path / "x.jsonl", found).warnings[0].endswith("(recording: replay)")
    assert read_recording(tmp_path / "absent.jsonl").entries == ()


def test_file__that_cannot_be_read__is_refused(tmp_path) -> None:
    with pytest.raises(GateError, match="directory"):
        read_recording(tmp_path)
