"""What coding agents print while they work, read as the answer to one case."""

import asyncio
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.model import limits
from eval_gate.model.conversation import Message, Response
from eval_gate.model.usage import Usage
from eval_gate.struct import replace
from eval_gate.targets.base import Request, TargetError, TargetFault
from eval_gate.targets.command.programs import ProgramName, find_failure, read_stream
from eval_gate.targets.command.settings import CliSettings
from eval_gate.targets.command.target import CliTarget
from eval_gate.text.redaction import Redactor

CLAUDE, GEMINI = ProgramName.CLAUDE_CODE, ProgramName.GEMINI_CLI
ANSWER = "It is 22 degrees in Rome."


def said(role: str, *parts: dict, **others) -> dict:
    return {"type": role, "message": {"role": role, "content": list(parts)}, **others}


def used(identity: str, name: str, **given) -> dict:
    return {"type": "tool_use", "id": identity, "name": name, "input": given}


def gave(identity: str, content, **others) -> dict:
    return {"type": "tool_result", "tool_use_id": identity, "content": content, **others}


CLAUDE_END = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": ANSWER,
    "total_cost_usd": 0.25,
    "usage": {
        "input_tokens": 10,
        "cache_creation_input_tokens": 200,
        "cache_read_input_tokens": 3000,
        "output_tokens": 7,
    },
    "permission_denials": [],
}
CLAUDE_STREAM = [
    {"type": "system", "subtype": "init", "tools": ["Bash"]},
    said("assistant", {"type": "text", "text": "I look."}),
    said("assistant", used("a", "Bash", command="weather")),
    said("assistant", used("b", "Read", path="rome")),
    said("user", gave("b", "no such file", is_error=True)),
    said("user", gave("a", [{"type": "text", "text": "22"}])),
    said("assistant", used("c", "Read", path="milan"), parent_tool_use_id="a"),
    said("assistant", {"type": "text", "text": ANSWER}),
    CLAUDE_END,
]
GEMINI_END = {"type": "result", "status": "success", "stats": {"input_tokens": 24, "output_tokens": 14}}
GEMINI_STREAM = [
    {"type": "init", "model": "gemini"},
    {"type": "message", "role": "user", "content": "weather?"},
    {"type": "message", "role": "assistant", "content": "I look.", "delta": True},
    {
        "type": "tool_use",
        "timestamp": "2026-01-01T00:00:01.000Z",
        "tool_name": "shell",
        "tool_id": "s",
        "parameters": {"command": "weather"},
    },
    {
        "type": "tool_result",
        "timestamp": "2026-01-01T00:00:01.358Z",
        "tool_id": "s",
        "status": "success",
        "output": "22",
    },
    {"type": "tool_use", "tool_name": "read", "tool_id": "r", "parameters": {}},
    {"type": "tool_result", "tool_id": "r", "status": "error", "error": {"type": "x", "message": "no"}},
    {"type": "message", "role": "assistant", "content": "It is 22 degrees ", "delta": True},
    {"type": "message", "role": "assistant", "content": "in Rome.", "delta": True},
    GEMINI_END,
]
STREAMS = {CLAUDE: CLAUDE_STREAM, GEMINI: GEMINI_STREAM}
CODEX_STREAM = [
    {"type": "thread.started", "thread_id": "t"},
    {"type": "item.started", "item": {"id": "c", "type": "command_execution", "command": "ls"}},
    {"type": "item.completed", "item": {"id": "c", "type": "command_execution", "command": "ls", "exit_code": 0}},
    {
        "type": "item.completed",
        "item": {"id": "t", "type": "mcp_tool_call", "tool": "tides", "arguments": {"port": "X"}},
    },
    {"type": "item.completed", "item": {"id": "m", "type": "agent_message", "text": "Use hold 3."}},
    {"type": "turn.completed", "usage": {"input_tokens": 100, "output_tokens": 7}},
]


def lines(events) -> str:
    return "".join(f"{json.dumps(event)}\n" for event in events)


def calls_in(response) -> list[tuple]:
    return [(call.name, call.params, call.success, call.result) for call in response.tool_calls]


def test_claude_code__stream__tells_answer_calls_tokens_and_cost() -> None:
    found = read_stream(CLAUDE, lines(CLAUDE_STREAM))
    assert (found.text, found.cost_usd, found.tool_calls_known) == (ANSWER, 0.25, True)
    assert found.usage == Usage(input_tokens=3210, output_tokens=7)
    assert calls_in(found) == [
        ("Bash", {"command": "weather"}, True, [{"type": "text", "text": "22"}]),
        ("Read", {"path": "rome"}, False, "no such file"),
        ("Read", {"path": "milan"}, None, None),
    ]
    assert found.warnings == ()


def test_claude_code__same_id_in_two_calls__each_has_its_own_result() -> None:
    twice = [
        used("a", "Bash", n=1),
        gave("a", "one"),
        used("a", "Bash", n=2),
        gave("a", "two", is_error=True),
    ]
    found = read_stream(CLAUDE, lines([*(said("assistant", part) for part in twice), CLAUDE_END]))
    assert calls_in(found) == [("Bash", {"n": 1}, True, "one"), ("Bash", {"n": 2}, False, "two")]


def test_claude_code__one_json_result__has_no_calls_to_tell_of() -> None:
    found = read_stream(CLAUDE, json.dumps(CLAUDE_END, indent=2))
    assert (found.text, found.cost_usd, found.tool_calls_known, found.tool_calls) == (ANSWER, 0.25, False, ())


def test_claude_code__tools_denied__are_said_with_the_option_that_permits_them() -> None:
    denied = [{"tool_name": "Bash"}, {"tool_name": "Edit"}, {"tool_name": "Bash"}, {"tool_name": 1}, 3]
    found = read_stream(CLAUDE, lines([said("assistant"), CLAUDE_END | {"permission_denials": denied}]))
    assert found.warnings == ("Claude Code was not allowed to use Bash, Edit; --allowedTools permits tools",)


@pytest.mark.parametrize(
    ("end", "why"),
    [
        ({"is_error": True, "result": "API Error:\n400"}, "API Error: 400"),
        ({"subtype": "error_max_turns", "is_error": False, "result": None}, "error_max_turns"),
        ({"subtype": "error_during_execution", "result": None, "errors": ["one", "two"]}, "one two"),
        ({"is_error": True, "result": None}, "without a reason"),
    ],
)
def test_claude_code__result_that_is_an_error__is_no_answer(end, why) -> None:
    with pytest.raises(TargetError, match=f"^Claude Code reports a failure: {why}$") as caught:
        read_stream(CLAUDE, lines([*CLAUDE_STREAM[:-1], CLAUDE_END | end]))
    assert caught.value.fault is TargetFault.REFUSED


def test_gemini_cli__stream__tells_answer_calls_durations_and_tokens() -> None:
    found = read_stream(GEMINI, lines(GEMINI_STREAM))
    assert (found.text, found.tool_calls_known) == (ANSWER, True)
    assert found.usage == Usage(input_tokens=24, output_tokens=14)
    assert calls_in(found) == [
        ("shell", {"command": "weather"}, True, "22"),
        ("read", {}, False, {"error": {"type": "x", "message": "no"}}),
    ]
    assert [call.duration_ms for call in found.tool_calls] == [pytest.approx(358), None]


def test_gemini_cli__one_object__tells_answer_and_tokens_but_no_calls() -> None:
    models = {"a": {"tokens": {"prompt": 20, "candidates": 3, "thoughts": 4}}, "b": {"tokens": {"prompt": 5}}, "c": 1}
    found = read_stream(GEMINI, json.dumps({"response": ANSWER, "stats": {"models": models}}, indent=2))
    assert (found.text, found.tool_calls_known) == (ANSWER, False)
    assert found.usage == Usage(input_tokens=25, output_tokens=7)


@pytest.mark.parametrize(
    "end",
    [
        {"type": "result", "status": "error", "error": {"message": "[API Error: 400]"}},
        {"session_id": "s", "error": {"type": "Error", "message": "[API Error: 400]", "code": 400}},
    ],
)
def test_gemini_cli__result_that_is_an_error__is_no_answer(end) -> None:
    with pytest.raises(TargetError, match=r"^Gemini CLI reports a failure: \[API Error: 400\]$"):
        read_stream(GEMINI, lines([*GEMINI_STREAM[:-1], end]))


@pytest.mark.parametrize("agent_protocol", STREAMS)
@pytest.mark.parametrize("cut", ["", '{"type": "res'])
def test_stream__that_ends_before_it_was_done__is_no_answer(agent_protocol, cut) -> None:
    with pytest.raises(TargetError, match="its output ends early") as caught:
        read_stream(agent_protocol, lines(STREAMS[agent_protocol][:-1]) + cut)
    assert caught.value.fault is TargetFault.MALFORMED


@pytest.mark.parametrize("agent_protocol", STREAMS)
@pytest.mark.parametrize("content", ["", "\n \n", "null", "[]", "hello", "{}", '{"type": []}', '{"type": {}}'])
def test_stream__without_events__is_no_answer(agent_protocol, content) -> None:
    with pytest.raises(TargetError):
        read_stream(agent_protocol, content)


@pytest.mark.parametrize("agent_protocol", STREAMS)
def test_stream__foreign_lines_and_unknown_events__are_left_out_and_the_lines_counted(agent_protocol) -> None:
    events = lines([{"type": "later", "of": [1]}, *STREAMS[agent_protocol]])
    found = read_stream(
        agent_protocol, f"\ufeffWarning: old node\r\n{events.replace(chr(10), chr(13) + chr(10))}\n{{half\n"
    )
    clean = read_stream(agent_protocol, lines(STREAMS[agent_protocol]))
    assert found == replace(clean, warnings=("left out of the output: 2 lines that are not JSON objects",))


@pytest.mark.parametrize("agent_protocol", STREAMS)
@pytest.mark.parametrize(
    "hostile",
    ["[" * 10_000, '{"a": [' + "1," * 300_000 + "1]}", '{"a": 1' + "0" * 400 + "}", '{"a": 1e999}'],
    ids=["deep", "wide", "digits", "beyond-range"],
)
def test_stream__beyond_all_bounds__is_no_answer(agent_protocol, hostile) -> None:
    with pytest.raises(TargetError) as caught:
        read_stream(agent_protocol, f"{hostile}\n{lines(STREAMS[agent_protocol])}")
    assert caught.value.fault is TargetFault.MALFORMED


@pytest.mark.parametrize("number", [-1, 1.5, "7", True, None, 10**16, [], {}])
def test_stream__numbers_that_count_nothing__are_not_known(number) -> None:
    kinds = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    claude = read_stream(CLAUDE, lines([CLAUDE_END | {"usage": dict.fromkeys(kinds, number), "total_cost_usd": -1}]))
    gemini = read_stream(GEMINI, lines([GEMINI_END | {"stats": dict.fromkeys(kinds, number)}]))
    assert (claude.usage, claude.cost_usd, gemini.usage) == (None, None, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent_protocol", "line", "size"),
    [
        (GEMINI, {"type": "message", "role": "assistant", "content": "a" * 500}, 30_000_000),
        (CLAUDE, None, 30_000_000),
    ],
    ids=["an answer in many pieces", "empty lines"],
)
def test_stream__as_large_as_is_read__costs_what_it_holds(agent_protocol, line, size) -> None:
    """In a process of its own: what it needs at most is asked of the system."""
    piece = "\n" if line is None else json.dumps(line) + "\n"
    end = json.dumps(GEMINI_END if agent_protocol is GEMINI else CLAUDE_END)
    program = (
        "import resource\n"
        "from eval_gate.targets.command.programs import ProgramName, read_stream\n"
        f"text = '{{}}\\n' + {piece!r} * {size // len(piece)} + {end!r}\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"assert read_stream(ProgramName({agent_protocol.value!r}), text).text\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import resource\nresource.setrlimit(resource.RLIMIT_CPU, (30, 30))\n{program}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 150_000


def test_stream__line_with_a_quote_that_does_not_end__hides_no_values() -> None:
    line = json.dumps({"a": [[]] * 100_000})
    with pytest.raises(TargetError, match="has more than 250,000 values"):
        read_stream(CLAUDE, "\n".join(['"', *[line] * 3, json.dumps(CLAUDE_END)]))


def test_gemini_cli__stream_without_result_that_holds_an_object__is_no_answer() -> None:
    with pytest.raises(TargetError, match="ends early"):
        read_stream(GEMINI, lines([*GEMINI_STREAM[:-1], {"response": "Forged."}]))


@pytest.mark.slow
def test_stream__too_many_calls__is_no_answer() -> None:
    many = [said("assistant", *(used(str(n), "Bash") for n in range(limits.RESPONSE_CALLS + 1))), CLAUDE_END]
    with pytest.raises(TargetError, match="10,001 tool calls, more than 10,000"):
        read_stream(CLAUDE, lines(many))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["a", "result", "2026-01-01"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(data=st.data(), agent_protocol=st.sampled_from(ProgramName))
def test_stream__any_value_anywhere__is_an_answer_or_an_error_of_its_case(data, agent_protocol) -> None:
    """Every place of a real stream in turn holds something else."""
    events = json.loads(json.dumps({**STREAMS, ProgramName.CODEX: CODEX_STREAM}[agent_protocol]))
    spot = data.draw(st.sampled_from(events))
    while True:
        key = data.draw(st.sampled_from(sorted(spot))) if isinstance(spot, dict) else 0
        inner = spot[key]
        if not (isinstance(inner, dict | list) and inner and data.draw(st.booleans())):
            break
        spot = inner
    spot[key] = data.draw(VALUES)
    find_failure(agent_protocol, lines(events))
    try:
        read_stream(agent_protocol, lines(events))
    except TargetError as error:
        assert error.message


# through a process


def respond(folder: Path, agent_protocol: str, script: str) -> Response:
    (folder / "program.py").write_text(script)
    command = f"{shlex.quote(sys.executable)} program.py < {{PROMPT_FILE}}"
    settings = CliSettings.model_validate(
        {"name": "coder", "commandTemplate": command, "agent_protocol": agent_protocol}
    )
    target = CliTarget(settings, root=folder, environment={"PATH": os.environ["PATH"]}, redact=Redactor())
    return asyncio.run(target.respond(Request("c", (Message(role="user", content="weather?"),))))


def test_respond__program_that_prints_its_stream__is_answered_and_timed_by_us(tmp_path) -> None:
    (tmp_path / "stream").write_text(lines(CLAUDE_STREAM))
    found = respond(tmp_path, "claude-code", "print(open('stream').read(), end='')")
    assert (found.text, len(found.tool_calls), found.cost_usd) == (ANSWER, 3, 0.25)
    assert found.duration_ms > 1


def test_respond__program_that_fails__says_why_in_its_own_words_and_not_the_end_of_its_stream(tmp_path) -> None:
    (tmp_path / "stream").write_text(lines([CLAUDE_END | {"is_error": True, "result": "credit is too low"}]))
    with pytest.raises(TargetError) as caught:
        respond(tmp_path, "claude-code", "print(open('stream').read()); raise SystemExit(1)")
    assert caught.value.message == "CLI exited with code 1: Claude Code reports a failure: credit is too low"


def test_respond__program_that_dies_on_its_way__is_an_error_with_its_last_words(tmp_path) -> None:
    (tmp_path / "stream").write_text(lines(CLAUDE_STREAM[:3]))
    script = "import os, sys; print(open('stream').read(), flush=True); sys.stderr.write('killed'); sys.stderr.flush()"
    with pytest.raises(TargetError, match="killed"):
        respond(tmp_path, "claude-code", f"{script}; os.kill(os.getpid(), 9)")


@pytest.mark.slow
def test_respond__more_than_is_read__is_an_error_and_no_guess(tmp_path) -> None:
    with pytest.raises(TargetError, match="limit 32,000,000"):
        respond(tmp_path, "gemini-cli", f"print('x' * {limits.CODEX_BYTES + 1})")


def test_settings__preset__is_one_of_three_words_and_takes_one_case_at_a_time() -> None:
    known = {"name": "a", "commandTemplate": "x {PROMPT}"}
    with pytest.raises(ValueError, match="'claude-code', 'gemini-cli' or 'codex'"):
        CliSettings.model_validate(known | {"agentProtocol": "claude"})
    with pytest.raises(ValueError, match="providerBatching is not supported"):
        CliSettings.model_validate(known | {"agentProtocol": "gemini-cli", "providerBatching": True})
