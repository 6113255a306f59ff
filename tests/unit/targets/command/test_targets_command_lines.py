"""One process for a conversation: a line of JSON for each turn, time limits, and every way in which it breaks."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.model.conversation import Message, Response
from eval_gate.model.execution import ErrorCause, ErrorKind
from eval_gate.process import run as run_module
from eval_gate.targets.base import Request, TargetError, TargetFault
from eval_gate.targets.command import lines
from eval_gate.targets.command.settings import CliSettings
from eval_gate.targets.command.target import CliTarget
from eval_gate.targets.conversation_session import ConversationSession
from eval_gate.targets.deadline import track_case_limit
from eval_gate.text.redaction import Redactor
from tests.support.processes import gone, pid_in

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}
PYTHON = f"exec {shlex.quote(sys.executable)} -S -E -u -c"
ECHO = "import sys,json\nfor line in sys.stdin: print(json.dumps({'text': json.loads(line)['message'].upper()}))"
MEMORY = """
import json, sys
said = []
for line in sys.stdin:
    event = json.loads(line)
    said.append(event["message"])
    print(json.dumps({"text": " | ".join(said), "model": event["session"]}))
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch) -> None:
    monkeypatch.setattr(lines, "_SECOND_LINE_S", 0.02)
    monkeypatch.setattr(run_module, "GRACE_S", 0.3)


def python(code: str) -> str:
    return f"{PYTHON} {shlex.quote(code)}"


def build(command: str, root: Path, *, secrets=(), **settings) -> CliTarget:
    described = {"name": "desk", "command": command, "conversation": "lines", **settings}
    return CliTarget(
        CliSettings.model_validate(described), root=root, environment=ENVIRONMENT, redact=Redactor(secrets)
    )


async def take_turns(desk: CliTarget, session: ConversationSession, *texts: str) -> list[Response]:
    """The responses to a user who says these texts, one turn each."""
    history: list[Message] = []
    responses: list[Response] = []
    for turn, text in enumerate(texts, 1):
        history.append(Message(role="user", content=text))
        responses.append(await desk.respond(Request("c", tuple(history), turn=turn, open_session=session)))
        history.append(Message(role="assistant", content=responses[-1].text))
    return responses


def talk(command: str, root: Path, *texts: str, **settings) -> list[Response]:
    async def lead_turns() -> list[Response]:
        session = ConversationSession()
        try:
            return await take_turns(build(command, root, **settings), session, *texts)
        finally:
            await session.aclose()

    return asyncio.run(lead_turns())


def refused(command: str, root: Path, *texts: str, **settings) -> TargetError:
    with pytest.raises(TargetError) as caught:
        talk(command, root, *texts, **settings)
    return caught.value


def in_session(use: Callable[[ConversationSession], Awaitable[None]]) -> None:
    async def lead_turns() -> None:
        session = ConversationSession()
        try:
            await use(session)
        finally:
            await session.aclose()

    asyncio.run(lead_turns())


def test_lines__conversation__is_one_process_that_gets_each_new_message_and_the_session(tmp_path) -> None:
    first, second = talk(python(MEMORY), tmp_path, "My order is 4711.", "It is\nbroken: é")
    assert (first.text, second.text) == ("My order is 4711.", "My order is 4711. | It is\nbroken: é")
    assert first.model == second.model  # the session
    assert first.duration_ms > second.duration_ms > 0  # the start counts in the first turn


def test_lines__messages_before_the_first_turn__come_with_it(tmp_path) -> None:
    async def ask(session: ConversationSession) -> None:
        history = (Message(role="system", content="Be brief."), Message(role="user", content="Hi"))
        response = await build(python(MEMORY), tmp_path).respond(Request("c", history, turn=1, open_session=session))
        assert response.text == "@[System]:\nBe brief.\n\n@[User]:\nHi"

    in_session(ask)


def test_lines__two_conversations__have_their_own_processes_and_sessions(tmp_path) -> None:
    async def both() -> None:
        desk, sessions = build(python(MEMORY), tmp_path), (ConversationSession(), ConversationSession())
        one, other = await asyncio.gather(*(take_turns(desk, session, "a", "b") for session in sessions))
        assert [response.text for response in (*one, *other)] == ["a", "a | b"] * 2
        assert [one[0].model, other[0].model] == [session.id for session in sessions]
        for session in sessions:
            await session.aclose()

    asyncio.run(both())


def test_lines__case_with_one_message__is_one_line_of_a_process_that_ends(tmp_path) -> None:
    async def ask() -> None:
        desk = build(f"echo $$ > pid; {python(ECHO)}", tmp_path)
        response = await desk.respond(Request("c", (Message(role="user", content="hi"),)))
        assert response.text == "HI"
        assert gone(tmp_path / "pid")

    asyncio.run(ask())


def test_lines__record_or_described_response__is_read(tmp_path) -> None:
    record = {"output_messages": [{"role": "assistant", "content": "ok", "tool_calls": [{"tool": "find"}]}]}
    code = f"import sys\nfor _ in sys.stdin: print({json.dumps(json.dumps(record))})"
    (response,) = talk(python(code), tmp_path, "hi")
    assert (response.text, [call.name for call in response.tool_calls]) == ("ok", ["find"])
    own = {"data": {"reply": "yes"}, "steps": [{"name": "pay", "params": {}}]}
    code = f"import sys\nfor _ in sys.stdin: print({json.dumps(json.dumps(own))})"
    (response,) = talk(python(code), tmp_path, "hi", responsePath="data.reply", toolCallsPath="steps")
    assert (response.text, [call.name for call in response.tool_calls]) == ("yes", ["pay"])


def test_lines__secret_in_a_line__is_masked(tmp_path) -> None:
    (response,) = talk(
        python(ECHO.replace(".upper()", "")), tmp_path, "key-abcdef-123456", secrets=["key-abcdef-123456"]
    )
    assert response.text == "***"


def test_lines__verbose__reports_the_command(tmp_path) -> None:
    (response,) = talk(python(ECHO), tmp_path, "hi", verbose=True)
    assert response.warnings[0].startswith("ran: ")


def test_lines__placeholders_of_the_case__are_filled_once(tmp_path) -> None:
    code = "import sys\nfor _ in sys.stdin: print('{\"text\": \"' + ' '.join(sys.argv[1:]) + '\"}')"

    async def ask(session: ConversationSession) -> None:
        desk = build(f"{python(code)} {{EVAL_ID}} {{SESSION}} {{ATTEMPT}}", tmp_path)
        responses = await take_turns(desk, session, "a", "b")
        assert [response.text for response in responses] == [f"c {session.id} 0"] * 2

    in_session(ask)


# ---- what breaks -------------------------------------------------------------------------------------------------

DIES = (
    "import sys,os,time\nfor n, line in enumerate(sys.stdin):\n"
    "    if n: print('no memory', file=sys.stderr); sys.exit(3)\n    print('{\"text\": \"ok\"}')"
)
ONE = 'import sys\nfor n, line in enumerate(sys.stdin):\n    print(\'{"text": "ok"}\')\n    '
BROKEN = {
    "dies in turn 2": (DIES, "the command exited with code 3 before it printed a response: no memory", True),
    "ends in turn 2": (ONE + "break", "the command exited with code 0 before it printed a response", True),
    "dies at once": ("raise SystemExit(1)", "the command exited with code 1 before it printed a response", True),
    "killed": ("import os; os.kill(os.getpid(), 9)", "the command was ended by signal 9 before it printed", True),
    "cut line": (
        'import sys; sys.stdin.readline(); sys.stdout.write(\'{"text": "The wh\'); sys.exit(0)',
        'the command exited with code 0 in the middle of a line, which begins «{"text": "The wh»',
        True,
    ),
    "whole line without an end": (
        'import sys; sys.stdin.readline(); sys.stdout.write(\'{"text": "The whole"}\')',
        "in the middle of a line",
        True,
    ),
    "closes its output": (
        "import sys,os,time; sys.stdin.readline(); os.close(1); time.sleep(60)",
        "the command closed its output before it printed a response",
        True,
    ),
    "two lines at once": (
        'import sys\nfor _ in sys.stdin: print(\'{"text": "a"}\\n{"text": "b"}\')',
        'the command printed more than one line for one message: the second begins «{"text": "b"}»',
        False,
    ),
    "two lines, one after the other": (
        "import sys\nfor _ in sys.stdin:\n    print('{\"text\": \"a\"}')\n    print('log: done')",
        "more than one line for one message: the second begins «log: done»",
        False,
    ),
    "no JSON": ("import sys\nfor _ in sys.stdin: print('Hello!')", "the line is not a JSON object with `text`", False),
    "JSON, but no object": ("import sys\nfor _ in sys.stdin: print('[1]')", "it begins «[1]»", False),
    "another object": (
        'import sys\nfor _ in sys.stdin: print(\'{"answer": "a"}\')',
        "the line is not a JSON object with `text` or `output_messages`: it begins «",
        False,
    ),
    "greets first": ("print('Ready.')\nimport sys\nfor _ in sys.stdin: pass", "it begins «Ready.»", False),
}


@pytest.mark.parametrize("name", BROKEN)
def test_lines__program_that_breaks__is_an_agent_error_in_plain_words(tmp_path, name) -> None:
    code, message, is_ending = BROKEN[name]
    error = refused(python(code), tmp_path, "a", "b")
    assert message in error.message
    assert error.error_kind is ErrorKind.AGENT_ERROR
    assert error.fault is (TargetFault.REFUSED if is_ending else TargetFault.MALFORMED)
    assert error.retryable is False
    if not is_ending:
        assert "print one line of JSON for each line that comes in" in error.hint


def test_lines__line_between_two_turns__is_not_taken_for_a_response(tmp_path) -> None:
    code = 'import sys,time\nfor _ in sys.stdin: print(\'{"text": "a"}\'); time.sleep(0.1); print(\'{"text": "b"}\')'

    async def ask(session: ConversationSession) -> None:
        desk = build(python(code), tmp_path)
        history = (Message(role="user", content="a"),)
        await desk.respond(Request("c", history, turn=1, open_session=session))
        await asyncio.sleep(0.3)
        with pytest.raises(TargetError, match="printed a line before it got the message: it begins") as caught:
            await desk.respond(Request("c", history * 3, turn=2, open_session=session))
        assert caught.value.fault is TargetFault.MALFORMED

    in_session(ask)


def test_lines__program_that_is_not_there__says_so(tmp_path) -> None:
    error = refused("no-such-desk", tmp_path, "a")
    assert error.cause is ErrorCause.PROGRAM_NOT_STARTED
    assert "the shell did not find the program" in error.hint
    assert "cannot be used" in refused("true", tmp_path, "a", cwd="missing").message


def test_lines__line_of_8_mb__is_read_and_a_longer_one_is_refused(tmp_path) -> None:
    code = "import sys\nfor line in sys.stdin: print('{\"text\": \"' + 'x' * int(sys.argv[1]) + '\"}')"
    first, second = talk(f"{python(code)} 7999988", tmp_path, "a", "b")
    assert len(first.text) == len(second.text) == 7_999_988
    error = refused(f"{python(code)} 7999989", tmp_path, "a")
    assert (error.message, error.fault) == (
        "the response is more than 8,000,000 bytes in one line",
        TargetFault.MALFORMED,
    )
    endless = "import sys\nwhile True: sys.stdout.write('x' * 100_000)"
    assert refused(python(endless), tmp_path, "a").message == error.message


def test_lines__message_that_the_program_does_not_read__is_not_waited_for_to_be_written(tmp_path) -> None:
    error = refused("exec sleep 60", tmp_path, "x" * 1_000_000, timeoutSeconds=0.1)
    assert error.fault is TargetFault.LATE


# ---- time limits -------------------------------------------------------------------------------------------------

SLOW = """
import sys, time
for n, line in enumerate(sys.stdin):
    time.sleep(float(sys.argv[1 + n]))
    print('{"text": "ok"}')
"""


def test_lines__slow_turn__ends_at_the_limit_of_a_turn(tmp_path) -> None:
    began = time.perf_counter()
    error = refused(f"{python(SLOW)} 0 60", tmp_path, "a", "b", timeoutSeconds=0.4)
    assert (error.message, error.fault, error.retryable) == (
        "the command printed no line within 0.4 s",
        TargetFault.LATE,
        True,
    )
    assert "flush=True" in error.hint
    assert time.perf_counter() - began < 20


def test_lines__whole_conversation__has_a_limit_of_its_own(tmp_path) -> None:
    slow = f"{python(SLOW)} 0.2 0.2 60"
    error = refused(slow, tmp_path, "a", "b", "c", timeoutSeconds=50, conversationTimeoutSeconds=1)
    assert error.message == "the conversation took longer than 1 s (conversationTimeoutSeconds)"
    assert error.fault is TargetFault.LATE


def test_lines__time_between_turns__does_not_count(tmp_path) -> None:
    async def ask(session: ConversationSession) -> None:
        desk = build(python(ECHO), tmp_path, conversationTimeoutSeconds=5)
        await take_turns(desk, session, "a")
        program = await session.enter("program", lambda: pytest.fail("it is open"))
        program._spent_s = 0.0
        await asyncio.sleep(0.1)  # a judge, or a simulated user
        await take_turns(desk, session, "b")
        assert program._spent_s < 0.1

    in_session(ask)


# ---- the end -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rest",
    ["exec cat > /dev/null", "trap '' TERM; while :; do sleep 60; done"],
    ids=["ends with its input", "ignores both"],
)
def test_lines__end_of_the_conversation__ends_the_program_and_its_children(tmp_path, rest) -> None:
    line = 'sleep 300 & echo $! > child; echo $$ > pid; read -r _; echo \'{"text": "ok"}\'; ' + rest

    async def ask(session: ConversationSession) -> None:
        (response,) = await take_turns(build(line, tmp_path), session, "a")
        assert response.text == "ok"
        for name in ("child", "pid"):
            os.kill(int((tmp_path / name).read_text()), 0)  # both run

    in_session(ask)
    assert all(gone(tmp_path / name) for name in ("child", "pid"))


def test_lines__cancelled_in_a_turn__ends_with_the_session(tmp_path) -> None:
    async def ask(session: ConversationSession) -> None:
        task = asyncio.create_task(take_turns(build("echo $$ > pid; exec sleep 300", tmp_path), session, "a"))
        await asyncio.to_thread(pid_in, tmp_path / "pid")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    in_session(ask)
    assert gone(tmp_path / "pid")


def test_lines__time_of_a_case_with_one_message_is_over__ends_the_program(tmp_path) -> None:
    async def ask() -> None:
        desk = build("echo $$ > pid; exec sleep 300", tmp_path)
        async with asyncio.timeout(None) as limit:
            with track_case_limit(limit):
                task = asyncio.create_task(asyncio.to_thread(pid_in, tmp_path / "pid"))
                task.add_done_callback(lambda _: limit.reschedule(0))
                await desk.respond(Request("c", (Message(role="user", content="hi"),)))

    with pytest.raises(TimeoutError):
        asyncio.run(ask())
    assert gone(tmp_path / "pid")


# ---- retries -----------------------------------------------------------------------------------------------------


def test_lines__late_turn__is_not_sent_again_in_the_same_session(tmp_path) -> None:
    code = "import sys\nfor line in sys.stdin: open('sent', 'a').write(line)"
    error = refused(python(code), tmp_path, "a", timeoutSeconds=0.5, maxRetries=2)
    assert error.retryable
    assert len((tmp_path / "sent").read_text().splitlines()) == 1
    assert build("x", tmp_path, maxRetries=2).retry_policy.max_retries == 2  # of the conversation


def test_lines__late_case_with_one_message__is_sent_again_to_a_new_process(tmp_path) -> None:
    code = (
        "import os,sys\nfor line in sys.stdin:\n"
        "  if os.path.exists('once'): print('{\"text\": \"ok\"}')\n  open('once', 'w')"
    )

    async def ask() -> Response:
        desk = build(python(code), tmp_path, timeoutSeconds=0.5, maxRetries=1)
        return await desk.respond(Request("c", (Message(role="user", content="hi"),)))

    response = asyncio.run(ask())
    assert (response.text, response.attempts) == ("ok", 2)


@given(st.lists(st.binary(max_size=8), max_size=6), st.data())
def test_reader__output_in_any_pieces__has_the_same_lines(parts, data) -> None:
    output = b"\n".join(parts)
    places = sorted(data.draw(st.lists(st.integers(0, len(output)), max_size=5)))

    async def receive() -> tuple[list[bytes], bytes, bool]:
        reader = lines.LineProgram(None, None)
        for begin, end in pairwise((0, *places, len(output))):
            reader.receive(output[begin:end])
        return reader._lines, bytes(reader._rest), reader._has_news.is_set()

    *whole, rest = output.split(b"\n")
    expected = [line for line in whole if line.strip()][:2]  # the response, and one too many
    assert asyncio.run(receive()) == (expected, rest, bool(expected))
