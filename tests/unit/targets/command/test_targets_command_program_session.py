"""A conversation in which a program runs once for each turn: what it gets, and the session that it reports."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.model.case import CaseBrief
from eval_gate.model.conversation import Message, Response
from eval_gate.model.usage import Usage
from eval_gate.targets.base import Request, TargetError, TargetFault
from eval_gate.targets.command.program_session import adopt_session
from eval_gate.targets.command.programs import ProgramName, read_stream
from eval_gate.targets.command.settings import CliSettings
from eval_gate.targets.command.target import CliTarget
from eval_gate.targets.conversation_session import ConversationSession
from eval_gate.text.redaction import Redactor

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}
TEXTS = ("Order 4711 is broken.", "The 'lamp'.", "So how much?")


def build(command: str, root: Path, **settings) -> CliTarget:
    described = CliSettings.model_validate({"name": "desk", "command": command, **settings})
    return CliTarget(described, root=root, environment=ENVIRONMENT, redact=Redactor())


def talk(command: str, root: Path, *texts: str, session: ConversationSession | None = None, **settings) -> list[str]:
    """The responses to a user who says these texts, one process for each."""

    async def lead_turns() -> list[str]:
        desk, opened = build(command, root, **settings), session or ConversationSession()
        history: list[Message] = []
        responses: list[str] = []
        for turn, text in enumerate(texts, 1):
            history.append(Message(role="user", content=text))
            response = await desk.respond(Request("c", tuple(history), turn=turn, open_session=opened))
            responses.append(response.text)
            history.append(Message(role="assistant", content=f"answer {turn}"))
        await opened.aclose()
        return responses

    return asyncio.run(lead_turns())


def test_prompt__without_a_session__has_all_messages_in_every_turn(tmp_path) -> None:
    first, second, _ = talk("printf %s {PROMPT}", tmp_path, *TEXTS)
    assert first == TEXTS[0]
    assert second == f"@[User]:\n{TEXTS[0]}\n\n@[Assistant]:\nanswer 1\n\n@[User]:\n{TEXTS[1]}"


def test_prompt__with_a_session__has_the_new_message_only(tmp_path) -> None:
    session = ConversationSession()
    shown = talk("printf '%s %s %s' {SESSION} {PROMPT} \"$(cat {PROMPT_FILE})\"", tmp_path, *TEXTS, session=session)
    assert shown == [f"{session.id} {text} {text}" for text in TEXTS]


def test_prompt__messages_before_the_first_turn__are_sent_once(tmp_path) -> None:
    async def respond(*messages: Message, turn: int) -> str:
        request = Request("c", messages, turn=turn, open_session=ConversationSession())
        return (await build("printf %s {PROMPT}; : {SESSION}", tmp_path).respond(request)).text

    system, user = Message(role="system", content="Be brief."), Message(role="user", content="Hi")
    said = Message(role="assistant", content="Hi.")
    assert asyncio.run(respond(system, user, turn=1)) == "@[System]:\nBe brief.\n\n@[User]:\nHi"
    assert asyncio.run(respond(system, user, said, user, turn=2)) == "Hi"


@pytest.mark.parametrize("command", ["cat {CONVERSATION_FILE}", "cat {CONVERSATION_FILE}; : {SESSION}"])
def test_call__conversation_file__has_all_messages_with_their_roles_in_every_turn(tmp_path, command) -> None:
    first, second, third = map(json.loads, talk(command, tmp_path, *TEXTS))
    assert first == [{"role": "user", "content": TEXTS[0]}]
    assert second == [*first, {"role": "assistant", "content": "answer 1"}, {"role": "user", "content": TEXTS[1]}]
    assert third[:3] == second
    assert len(third) == 5


def test_call__conversation_file_of_a_case_with_one_message__has_it(tmp_path) -> None:
    request = Request("c", (Message(role="user", content="né\ud800"),))
    response = asyncio.run(build("cat {CONVERSATION_FILE}", tmp_path).respond(request))
    assert json.loads(response.text) == [{"role": "user", "content": "né\ud800"}]


def test_prompt__case_with_a_brief__is_that_of_the_turn_in_a_conversation(tmp_path) -> None:
    brief = CaseBrief(question="the brief", linked_question="", guidelines="Be kind.")
    messages = (Message(role="user", content="the message"),)
    desk = build("printf '%s %s' {PROMPT} {GUIDELINES}", tmp_path)
    asked = Request("c", messages, brief=brief, turn=1, open_session=ConversationSession())
    assert asyncio.run(desk.respond(asked)).text == "the message Be kind."
    assert asyncio.run(desk.respond(Request("c", messages, brief=brief))).text == "the brief Be kind."


def test_call__resume_command__runs_from_the_second_turn_on(tmp_path) -> None:
    session = ConversationSession()
    resume = "printf 'again %s %s' {SESSION} {PROMPT}"
    shown = talk("printf 'new %s %s' {SESSION} {PROMPT}", tmp_path, *TEXTS, session=session, resume_command=resume)
    words = ("new", "again", "again")
    assert shown == [f"{word} {session.id} {text}" for word, text in zip(words, TEXTS, strict=True)]


def test_identity__resume_command__is_part_of_it_and_changes_nothing_where_it_is_missing(tmp_path) -> None:
    one = build("a {SESSION} {PROMPT}", tmp_path).identity
    other = build("a {SESSION} {PROMPT}", tmp_path, resume_command="b {SESSION} {PROMPT}").identity
    assert one.identity == "cli:desk#0cf867ac"
    assert other != one


def test_session__case_with_one_message__is_new_in_each_execution(tmp_path) -> None:
    desk, request = build("echo {SESSION} {PROMPT}", tmp_path), Request("c", (Message(role="user", content="x"),))
    assert asyncio.run(desk.respond(request)).text != asyncio.run(desk.respond(request)).text


# ---- the id that a program reports -------------------------------------------------------------------------------

STREAMS = {
    ProgramName.CLAUDE_CODE: '{"type": "result", "subtype": "success", "result": "ok", "session_id": %s}',
    ProgramName.GEMINI_CLI: '{"type": "init", "session_id": %s}\n{"type": "result", "status": "success"}',
    ProgramName.CODEX: '{"type": "thread.started", "thread_id": %s}\n'
    '{"type": "item.completed", "item": {"type": "agent_message", "text": "ok"}}',
}
RESUME = 'printf %s \'{"type": "result", "subtype": "success", "result": "\'{SESSION}\'"}\' ; : {PROMPT}'


@pytest.mark.rows_each("program")
@pytest.mark.parametrize("program", STREAMS)
def test_session__that_a_program_reports__is_read(program) -> None:
    assert read_stream(program, STREAMS[program] % '"abc-1"').session_id == "abc-1"
    for other in ("null", '""', "7", '["a"]'):
        assert read_stream(program, STREAMS[program] % other).session_id is None


def test_session__gemini_object__is_read() -> None:
    assert read_stream(ProgramName.GEMINI_CLI, '{"session_id": "abc", "response": "ok"}').session_id == "abc"


def test_session__that_claude_reports__is_that_of_the_next_turn(tmp_path) -> None:
    (tmp_path / "first").write_text(STREAMS[ProgramName.CLAUDE_CODE] % '"own-id:1"')
    settings = {"agent_protocol": "claude-code", "resume_command": RESUME}
    assert talk("cat first; : {PROMPT}", tmp_path, "a", "b", **settings) == ["ok", "own-id:1"]


def test_session__that_is_needed_and_not_reported__is_an_agent_error(tmp_path) -> None:
    (tmp_path / "first").write_text(STREAMS[ProgramName.CLAUDE_CODE] % "null")
    settings = {"agent_protocol": "claude-code", "resume_command": RESUME}
    with pytest.raises(TargetError, match="reported no session id, so it cannot go on") as caught:
        talk("cat first; : {PROMPT}", tmp_path, "a", "b", **settings)
    assert caught.value.fault is TargetFault.MALFORMED
    # with {SESSION} in the first command the program knows ours
    assert len(talk("cat first; : {SESSION} {PROMPT}", tmp_path, "a", "b", **settings)[1]) == 36


BAD_IDS = (
    "a b",
    "$(touch owned)",
    "`touch owned`",
    "a;touch owned",
    "-x",
    "--help",
    "a\n",
    "../x",
    "a" * 201,
    "é",
    "a'b",
    "",
)


@pytest.mark.parametrize("bad", [one for one in BAD_IDS if one])
def test_session__id_that_a_shell_could_read__never_reaches_a_command(tmp_path, bad) -> None:
    (tmp_path / "first").write_text(STREAMS[ProgramName.CLAUDE_CODE] % json.dumps(bad))
    settings = {"agent_protocol": "claude-code", "resume_command": RESUME}
    with pytest.raises(TargetError, match="cannot be part of a command") as caught:
        talk("cat first; : {PROMPT}", tmp_path, "a", "b", **settings)
    assert caught.value.fault is TargetFault.MALFORMED
    assert not (tmp_path / "owned").exists()
    # of a case with one message, and where nothing is resumed, no id is used, so none is refused
    desk = build("cat first; : {PROMPT}", tmp_path, **settings)
    assert asyncio.run(desk.respond(Request("c", (Message(role="user", content="x"),)))).text == "ok"
    assert talk("cat first; : {PROMPT}", tmp_path, "a", "b", agent_protocol="claude-code") == ["ok", "ok"]


@given(st.text(max_size=220))
def test_adopt_session__any_text__is_one_plain_word_or_refused(text: str) -> None:
    session = ConversationSession()
    before = session.id
    try:
        adopt_session(session, Response(text="", session_id=text), ProgramName.GEMINI_CLI)
    except TargetError:
        assert session.id == before
    else:
        assert session.id == text
        assert shlex.split(text) == [text] or not text
        assert not text.startswith("-")


@pytest.mark.parametrize(
    ("reports", "own"),
    [
        ([("t", 100, 7), ("t", 250, 9)], [(100, 7), (150, 2)]),
        ([("t", 100, 7), ("u", 250, 9)], [(100, 7), (250, 9)]),  # another thread
        ([("t", 100, 7), ("t", 90, 9)], [(100, 7), (None, 2)]),  # which is no total
        ([("t", 100, 7), ("t", None, 9), ("t", 300, 10)], [(100, 7), (None, 2), (200, 1)]),
    ],
)
def test_adopt_session__tokens_of_a_codex_thread__are_those_of_each_turn(reports, own) -> None:
    session, found = ConversationSession(), []
    for thread, read, written in reports:
        usage = Usage(input_tokens=read, output_tokens=written)
        response = adopt_session(session, Response(text="", usage=usage, session_id=thread), ProgramName.CODEX)
        found.append((response.usage.input_tokens, response.usage.output_tokens))
    assert found == own


# ---- who can hold a conversation, and what is retried ------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "settings", "remembers"),
    [
        ("a {PROMPT}", {}, False),
        ("a {PROMPT_FILE}", {"agent_protocol": "codex"}, False),
        ("a {CONVERSATION_FILE}", {}, False),
        ("a {PROMPT} {SESSION}", {}, True),
        ("a {PROMPT}", {"agent_protocol": "codex", "resume_command": "a {SESSION} {PROMPT}"}, True),
        ("a", {"conversation": "lines"}, True),
    ],
)
def test_remembers_turns__who_gets_a_session__may_remember(tmp_path, command, settings, remembers) -> None:
    desk = build(command, tmp_path, **settings)
    assert (desk.conversation_problem, desk.remembers_turns) == (None, remembers)


@pytest.mark.parametrize(
    ("command", "settings", "problem"),
    [
        ("a {EVAL_ID}", {}, "its command does not get the messages: it has no {PROMPT}, {PROMPT_FILE} or"),
        ("a {PROMPT}", {"provider_batching": True}, "it runs many cases in one call (providerBatching)"),
    ],
)
def test_conversation_problem__says_why_it_cannot(tmp_path, command, settings, problem) -> None:
    assert build(command, tmp_path, **settings).conversation_problem.startswith(problem)


@pytest.mark.parametrize(("session", "tries"), [("", 2), (" {SESSION}", 1)])
def test_respond__late_turn__is_repeated_only_where_nothing_is_remembered(tmp_path, session, tries) -> None:
    command = f"echo x >> tries; sleep 60; : {{PROMPT}}{session}"
    with pytest.raises(TargetError) as caught:
        talk(command, tmp_path, "a", timeoutSeconds=0.2, maxRetries=1)
    assert (caught.value.fault, caught.value.retryable) == (TargetFault.LATE, True)
    assert (tmp_path / "tries").read_text() == "x\n" * tries
    assert build(command, tmp_path, maxRetries=1).retry_policy.max_retries == 1  # of a conversation with a session
