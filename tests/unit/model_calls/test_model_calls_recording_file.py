"""The file of recorded model calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eval_gate.errors import GateError
from eval_gate.model.model_recording import CallMode
from eval_gate.model_calls.misses import describe_miss
from eval_gate.model_calls.recording_file import CallRecording, ModelCall
from eval_gate.text.redaction import Redactor

PATH = "/openai/v1/chat/completions"


def make_call(body: object, query: str = "") -> ModelCall:
    return ModelCall("POST", PATH, query, body if isinstance(body, bytes) else json.dumps(body).encode())


@pytest.fixture
def recording(tmp_path, monkeypatch) -> CallRecording:
    monkeypatch.chdir(tmp_path)
    return CallRecording(tmp_path / "calls.jsonl", CallMode.RECORD, "c0ffee")


def add(recording: CallRecording, body: object, number: int = 0, content: bytes = b"{}") -> str | None:
    return recording.add(make_call(body), number, (200, "application/json", content), Redactor())


def read(folder: Path) -> CallRecording:
    return CallRecording(folder / "calls.jsonl", CallMode.REPLAY)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (b'{"a": 1, "b": [1, 2]}', b'{"b":[1,2],"a":1}', True),
        (b'{"b": [1, 2]}', b'{"b": [2, 1]}', False),
        (b"--x\r\nraw", b"--x\r\nraw", True),
        (b"--x\r\nraw", b"--y\r\nraw", False),
        (b"", b"{}", False),
    ],
)
def test_key__same_request__is_the_same(one, other, is_same) -> None:
    assert (make_call(one).key == make_call(other).key) is is_same
    assert make_call(one).key != make_call(one, "alt=sse").key
    assert make_call(one, "alt=sse").key == make_call(one, "key=1&alt=sse").key


def test_record__first_call__replaces_an_earlier_recording_and_not_before(tmp_path) -> None:
    file = tmp_path / "calls.jsonl"
    file.write_text("earlier\n")
    recording = CallRecording(file, CallMode.RECORD)
    assert add(recording, 1, content=b"\xff") is not None
    assert file.read_text() == "earlier\n"
    assert [add(recording, 1), add(recording, 1, 1), add(recording, 1)] == [None] * 3
    assert "an earlier call" in (add(recording, 1, 5) or "")
    assert [json.loads(line)["number"] if "number" in line else 0 for line in file.read_text().splitlines()] == [0, 1]


def test_request__with_credentials__is_stored_masked_and_found_by_its_whole_text(recording, tmp_path) -> None:
    """By their form, by their name, as those of MCP servers that models get in the body, and of the headers."""
    secret, key = "super-secret-0815-value", "ghp_" + "a1B2c3D4e5F6" * 3
    server = {"authorization": "correct horse", "headers": {"X-Api-Key": "battery"}}
    body = json.dumps({"tools": [server], "max_tokens": 5, "input": f"use {key} as battery"}).encode()
    call = ModelCall("POST", f"{PATH}/{secret}", f"alt=sse&other={key}", body)
    assert recording.add(call, 0, (200, "application/json", b"{}"), Redactor([secret])) is None
    line = json.loads((tmp_path / "calls.jsonl").read_text())
    masked = {"authorization": "***", "headers": {"X-Api-Key": "***"}}
    assert line["request"] == {"tools": [masked], "max_tokens": 5, "input": "use *** as ***"}
    assert line["path"] == f"{PATH}/***?alt=sse&other=***"
    assert read(tmp_path).list_calls(call.key)
    assert not read(tmp_path).list_calls(make_call(line["request"]).key)


def test_response__that_is_no_text__is_not_stored(recording, tmp_path) -> None:
    assert add(recording, "audio", content=b"\xff") == "its response is no text"
    assert not (tmp_path / "calls.jsonl").exists()


def test_description__names_the_oldest_call_and_what_is_replayed_alone(recording, tmp_path) -> None:
    add(recording, 1)
    add(recording, 2)
    file = tmp_path / "calls.jsonl"
    first = read(tmp_path).description
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[1] |= {"recordedAt": "2026-01-02T03:04:05+00:00", "commit": "0ld"}
    file.write_text("\n".join(map(json.dumps, [*reversed(lines), lines[0]])))
    second = read(tmp_path).description
    assert (second.recorded_at, second.commit, second.providers) == ("2026-01-02T03:04:05+00:00", "0ld", ("openai",))
    assert first.digest == second.digest  # neither its time nor its place, nor a line that a merge left twice
    for change in ({"response": "[]"}, {"contentType": "text/event-stream"}):
        file.write_text("\n".join(map(json.dumps, [lines[0] | change, lines[1]])))
        assert read(tmp_path).description.digest != first.digest


@pytest.mark.parametrize(
    ("text", "change"),
    [("{", "<<<<<<< HEAD\n{"), ('"key":"', '"key":"g'), ('"status":200', '"status":500'), ("/json", r"/json\r\nX: 1")],
)
def test_line__that_is_no_call__is_named(recording, tmp_path, text, change) -> None:
    add(recording, 1)
    file = tmp_path / "calls.jsonl"
    file.write_text(file.read_text() + file.read_text().replace(text, change, 1))
    with pytest.raises(GateError) as caught:
        read(tmp_path)
    assert (caught.value.code, caught.value.problems[0].line) == ("invalid-recording", 2)


MESSAGES = {"model": "m", "messages": [{"role": "system", "content": "be good"}, {"role": "user", "content": "hi"}]}


def change(**values: object) -> dict:
    return {**MESSAGES, **values}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (change(model="n"), "`model` differs (recorded `m`, now `n`)"),
        (change(temperature=0), "`temperature` differs (recorded nothing, now `0`)"),
        (
            {"model": "m", "messages": MESSAGES["messages"][:1]},
            "`messages[1].role` differs (recorded `user`, now nothing)",
        ),
        (change(model="n", temperature=0), "(recorded `m`, now `n`), and 1 more difference"),
        (change(model="`n`\n<b>"), "(recorded `m`, now `'n' ⏎ <b>`)"),
        (change(model="x" * 500), "now `" + "x" * 79 + "…`)"),
    ],
)
def test_describe_miss__nearest_request__is_compared_with_bounded_text(recording, body, words) -> None:
    add(recording, {"model": "far", "messages": []})
    add(recording, MESSAGES)
    assert words in describe_miss(make_call(body), recording, Redactor())


def test_describe_miss__long_texts__begin_near_their_difference(recording) -> None:
    add(recording, "a" * 300 + " red " + "b" * 300)
    miss = describe_miss(make_call("a" * 300 + " blue " + "b" * 300), recording, Redactor())
    assert f"`body` differs (recorded `…{'a' * 19} red b" in miss


def test_describe_miss__secret__is_masked(recording) -> None:
    add(recording, {"q": "x"})
    assert "s3cr3t-value" not in describe_miss(make_call({"q": "s3cr3t-value"}), recording, Redactor(["s3cr3t-value"]))
    one, other = ("ghp_" + piece * 3 for piece in ("a1B2c3D4e5F6", "z9Y8x7W6v5U4"))
    add(recording, {"q": one})
    assert "only in masked text" in describe_miss(make_call({"q": other}), recording, Redactor())


def test_describe_miss__other_path__says_so(recording) -> None:
    add(recording, 1)
    call = ModelCall("GET", "/openai/v1/models", "", b"")
    assert describe_miss(call, recording, Redactor()) == (
        "`GET /openai/v1/models` is not in the recording, and no other request to this path is"
    )
