"""The Codex target against a program that stands in for Codex: real processes, files and logs."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from eval_gate.model.case import CaseBrief
from eval_gate.model.conversation import Message
from eval_gate.struct import replace
from eval_gate.targets.base import BatchTarget, Request, TargetError, TargetFault
from eval_gate.targets.command import codex as codex_module
from eval_gate.targets.command.codex import CodexSettings, CodexTarget
from eval_gate.targets.conversation_session import ConversationSession
from eval_gate.targets.secret_masking import mask_target
from eval_gate.text.redaction import Redactor
from tests.support.processes import gone
from tests.support.programs.agent_cli import calls, install

SECRET = "sk-very-secret-value"
STARTED = {"type": "thread.started", "thread_id": "t"}
DONE = {"type": "item.completed", "item": {"id": "m", "type": "agent_message", "text": "Use hold 3."}}
COMMAND = {
    "type": "item.completed",
    "item": {"id": "c", "type": "command_execution", "command": "ls", "exit_code": 0, "status": "completed"},
}
USAGE = {"type": "turn.completed", "usage": {"input_tokens": 100, "output_tokens": 7}}
FIXED = ["--ask-for-approval", "never", "exec", "--json", "--color", "never", "--skip-git-repo-check"]


@pytest.fixture
def program(tmp_path):
    """`program(events=[...])` puts a Codex into `bin`."""
    return lambda **script: install(tmp_path / "bin", "codex", script)


def target(root: Path, environment=None, **settings) -> CodexTarget:
    described = {"name": "coder", "executable": "./bin/codex", **settings}
    return CodexTarget(
        CodexSettings.model_validate(described),
        root=root,
        environment={"PATH": os.environ["PATH"], "HOME": str(root), **(environment or {})},
        redact=Redactor([SECRET]),
    )


def case(case_id="cargo", files=(), trial=0) -> Request:
    brief = CaseBrief(question="no", linked_question="Plan the stow.", input_files=tuple(files))
    return Request(case_id, (Message(role="user", content="no"),), trial, brief=brief)


def respond(root: Path, request: Request | None = None, **settings):
    return asyncio.run(target(root, **settings).respond(request or case()))


def broken(root: Path, **settings) -> TargetError:
    with pytest.raises(TargetError) as caught:
        respond(root, **settings)
    return caught.value


def logs(root: Path) -> list[Path]:
    return sorted((root / ".agentv/logs/codex").glob("*.log"))


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if holds():
            return
        await asyncio.sleep(0.02)
    pytest.fail("it did not happen within 20 s")


# how it is run


@pytest.mark.contract("agentv.provider-integration.codex-cli-provider")
def test_codex__codex_cli_provider__command_prompt_and_answer(tmp_path, program) -> None:
    codex = program(events=[STARTED, COMMAND, DONE, USAGE])
    response = respond(tmp_path, case(files=["/evals/manifest.csv"]), args=["--model", "o4; rm -rf ."])
    (call,) = calls(codex)
    assert call["argv"] == [*FIXED, "--model", "o4; rm -rf .", "-"]
    assert call["stdin"] == call["prompt"]
    assert "* [manifest.csv](file:///evals/manifest.csv)" in str(call["stdin"])
    assert str(call["stdin"]).endswith("[[ ## user_query ## ]]\nPlan the stow.\n")
    assert response.text == "Use hold 3."
    assert response.duration_ms > 0


@pytest.mark.contract("codex.tool-calls")
def test_codex__work_on_the_way__is_reported_as_messages_calls_and_tokens(tmp_path, program) -> None:
    program(events=[STARTED, COMMAND, DONE, USAGE])
    response = respond(tmp_path)
    assert response.tool_calls_known
    assert response.messages is not None
    (message,) = response.messages
    assert (message.role, message.content) == ("assistant", "Use hold 3.")
    assert [call.tool for call in message.tool_calls] == ["command_execution"]
    assert [(call.name, call.success) for call in response.tool_calls] == [("command_execution", True)]
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (100, 7)


def test_codex__form_without_events__leaves_the_calls_unknown(tmp_path, program) -> None:
    program(raw='{"output": "Use hold 3."}')
    response = respond(tmp_path)
    assert (response.text, response.messages, response.tool_calls_known) == ("Use hold 3.", None, False)


@pytest.mark.contract("agentv.provider-integration.codex-cli-provider")
def test_codex__single_line_of_json__is_read_by_the_rule_of_events(tmp_path, program) -> None:
    program(events=[DONE])
    assert respond(tmp_path).text == "Use hold 3."


@pytest.mark.slow
def test_codex__folder__is_fresh_for_each_case_and_gone_afterwards(tmp_path, program) -> None:
    codex = program(events=[DONE])
    respond(tmp_path)
    respond(tmp_path)
    places = [str(call["cwd"]) for call in calls(codex)]
    assert len(set(places)) == 2
    assert not any(Path(place).exists() for place in places)
    assert all(Path(place).name.startswith("eval-gate-codex-") for place in places)


def test_codex__workspace_of_the_case__is_worked_in_instead_of_its_own_folder(tmp_path, program) -> None:
    codex = program(events=[DONE])
    for name in ("work", "workspace"):
        (tmp_path / name).mkdir()
    respond(tmp_path, replace(case(), workspace=tmp_path / "workspace"), cwd="work")
    (call,) = calls(codex)
    assert call["cwd"] == str(tmp_path / "workspace")


def test_codex__own_folder__is_worked_in_and_kept(tmp_path, program) -> None:
    codex = program(events=[DONE])
    (tmp_path / "work").mkdir()
    respond(tmp_path, cwd="work")
    (call,) = calls(codex)
    assert (call["cwd"], call["prompt"]) == (str(tmp_path / "work"), None)
    assert "Plan the stow." in str(call["stdin"])
    assert list((tmp_path / "work").iterdir()) == []


def test_codex__own_system_prompt__replaces_ours(tmp_path, program) -> None:
    codex = program(events=[DONE])
    respond(tmp_path, system_prompt="You are a stevedore.")
    assert str(calls(codex)[0]["stdin"]) == "You are a stevedore.\n\n[[ ## user_query ## ]]\nPlan the stow.\n"


def test_codex__environment__holds_what_was_named_and_no_secret(tmp_path, program) -> None:
    codex = program(events=[DONE])
    around = {"GITHUB_TOKEN": "t", "OPENAI_API_KEY": "not-for-it", "CODEX_HOME": "/login"}
    respond(tmp_path, environment=around, env={"CODEX_API_KEY": SECRET})
    seen = calls(codex)[0]["environment"]
    assert isinstance(seen, dict)
    assert (seen["CODEX_API_KEY"], seen["CODEX_HOME"]) == (SECRET, "/login")
    assert not {"GITHUB_TOKEN", "OPENAI_API_KEY"} & set(seen)


@pytest.mark.slow
def test_codex__long_prompt__is_no_argument(tmp_path, program) -> None:
    codex = program(events=[DONE])
    brief = CaseBrief(question="", linked_question="x" * 3_000_000)
    respond(tmp_path, Request("long", (), brief=brief))
    assert len(str(calls(codex)[0]["stdin"])) > 3_000_000


@pytest.mark.slow
def test_codex__several_at_once__do_not_meet(tmp_path, program) -> None:
    program(events=[STARTED, DONE], pause=0.1)
    one = target(tmp_path)

    async def all_of_them():
        return await asyncio.gather(*(one.respond(case(f"c{number}")) for number in range(4)))

    assert [response.text for response in asyncio.run(all_of_them())] == ["Use hold 3."] * 4
    assert len(logs(tmp_path)) == 4


# finding it


@pytest.mark.contract("agentv.provider-integration.codex-cli-provider")
def test_codex__name_without_slash__is_looked_up_on_path(tmp_path, program) -> None:
    codex = program(events=[DONE])
    found = {"PATH": f"{codex.parent}:{os.environ['PATH']}"}
    assert respond(tmp_path, environment=found, executable="codex").text == "Use hold 3."
    missing = target(tmp_path, executable="no-such-codex")
    for ask in (missing.check_health, lambda: missing.respond(case())):
        with pytest.raises(TargetError, match="Codex executable 'no-such-codex' was not found on PATH") as caught:
            asyncio.run(ask())
        assert caught.value.fault is TargetFault.UNREACHABLE


def test_codex__path_of_the_targets_own_environment__counts(tmp_path, program) -> None:
    codex = program(events=[DONE])
    own = {"PATH": f"{codex.parent}:{os.environ['PATH']}"}
    assert respond(tmp_path, environment={"PATH": "/nowhere"}, env=own, executable="codex").text == "Use hold 3."


@pytest.mark.parametrize(
    ("executable", "words"),
    [("./bin/none", "does not exist"), ("./plain", "is not executable"), ("./bin", "not exist")],
)
def test_codex__path__has_to_be_an_executable_file(tmp_path, program, executable, words) -> None:
    program()
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    with pytest.raises(TargetError, match=words):
        asyncio.run(target(tmp_path, executable=executable).check_health())


def test_codex__name_from_a_variable__is_masked_like_a_secret(tmp_path) -> None:
    with pytest.raises(TargetError, match=r"Codex executable '\./\*\*\*' does not exist"):
        asyncio.run(mask_target(target(tmp_path, executable=f"./{SECRET}"), Redactor([SECRET])).check_health())


def test_codex__folder_to_work_in_is_missing__is_told_early(tmp_path, program) -> None:
    program()
    with pytest.raises(TargetError, match="does not exist: nowhere") as caught:
        asyncio.run(target(tmp_path, cwd="nowhere").check_health())
    assert caught.value.fault is TargetFault.UNREACHABLE


def test_codex__program_that_cannot_be_started__is_unreachable(tmp_path) -> None:
    (tmp_path / "bin").mkdir()
    broken_program = tmp_path / "bin" / "codex"
    broken_program.write_text("#!/no/such/interpreter\n")
    broken_program.chmod(0o755)
    error = broken(tmp_path)
    assert error.fault is TargetFault.UNREACHABLE
    assert "could not be run" in error.message


def test_codex__found_once__is_not_looked_for_again(tmp_path, program) -> None:
    codex = program(events=[DONE])
    one = target(tmp_path)
    asyncio.run(one.check_health())
    shutil.move(codex, codex.with_name("other"))
    with pytest.raises(TargetError, match="could not be run"):
        asyncio.run(one.respond(case()))


# what goes wrong


@pytest.mark.contract("agentv.provider-integration.codex-cli-provider")
def test_codex__exit_code__is_an_error_with_both_outputs_and_the_log(tmp_path, program) -> None:
    program(raw="half an answer", stderr=f"no login for {SECRET}", exit=3)
    error = broken(tmp_path)
    (log,) = logs(tmp_path)
    assert error.fault is TargetFault.REFUSED
    assert error.message == (
        "Codex CLI exited with code 3; stderr: no login for ***; stdout: half an answer;"
        f" log: {log.relative_to(tmp_path)}"
    )


def test_codex__exit_code_after_a_failed_turn__says_why(tmp_path, program) -> None:
    program(events=[STARTED, {"type": "turn.failed", "error": {"message": "quota exceeded"}}], exit=1)
    assert broken(tmp_path).message.startswith("Codex CLI exited with code 1: quota exceeded; ")


def test_codex__failed_turn_without_exit_code__is_an_error_too(tmp_path, program) -> None:
    program(events=[STARTED, DONE, {"type": "turn.failed", "error": {"message": "quota exceeded"}}])
    assert broken(tmp_path).message.startswith("Codex CLI reports a failure: quota exceeded; ")


@pytest.mark.contract("codex.output-forms")
def test_codex__no_json__shows_the_beginning_and_masks_before_cutting(tmp_path, program) -> None:
    program(raw="x" * 190 + SECRET + "y" * 100_000)
    error = broken(tmp_path)
    assert error.fault is TargetFault.MALFORMED
    assert error.message.startswith(f"Codex CLI emitted invalid JSON: {'x' * 190}***yyyyyy…; stdout: …")
    assert "secret" not in error.message
    assert len(error.message) < 1_500


@pytest.mark.slow
@pytest.mark.contract("codex.timeout")
def test_codex__takes_too_long__is_ended_with_everything_it_started(tmp_path, program) -> None:
    codex = program(events=[STARTED], hang=300)
    began = time.monotonic()
    error = broken(tmp_path, timeout_seconds=2)
    assert time.monotonic() - began < 30
    assert error.message.startswith("Codex CLI timed out after 2 s; stdout: ")
    pids = calls(codex)[0]["pids"]
    assert isinstance(pids, list)
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)
    assert "timed out" in logs(tmp_path)[0].read_text()


def test_codex__cancelled__leaves_no_process_and_no_folder(tmp_path, program) -> None:
    codex = program(events=[STARTED], hang=300)

    async def cancel() -> None:
        asking = asyncio.ensure_future(target(tmp_path).respond(case()))
        await until(lambda: bool(calls(codex)))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(cancel())
    (call,) = calls(codex)
    assert isinstance(call["pids"], list)
    assert all(gone(pid) for pid in call["pids"])
    assert not Path(str(call["cwd"])).exists()
    assert "ended before it was done" in logs(tmp_path)[0].read_text()


@pytest.mark.slow
def test_codex__flood__is_ended_and_bounded(tmp_path, program, monkeypatch) -> None:
    monkeypatch.setattr(codex_module, "MAX_OUTPUT", 1_000_000)
    codex = program(flood=True)
    error = broken(tmp_path)
    assert error.message.startswith("Codex CLI printed more than 1,000,000 bytes; stdout: ")
    assert len(error.message) < 1_500
    assert all(gone(pid) for pid in calls(codex)[0]["pids"])  # type: ignore[attr-defined]


@pytest.mark.contract("agents.missing-file")
def test_codex__a_file_it_could_not_read__is_an_error(tmp_path, program) -> None:
    said = {"type": "item.completed", "item": {"type": "agent_message", "text": "ERROR: missing-file manifest.csv"}}
    program(events=[said])
    with pytest.raises(TargetError, match=r"could not read a file of the case: manifest\.csv"):
        respond(tmp_path, case(files=["/evals/manifest.csv"]))


# logs


@pytest.mark.contract("agentv.provider-integration.codex-cli-provider")
def test_codex__log__tells_what_was_done(tmp_path, program) -> None:
    program(events=[STARTED, COMMAND, DONE, USAGE], stderr=f"token {SECRET}")
    respond(tmp_path, case("../fog/1", trial=1))
    (log,) = logs(tmp_path)
    assert log.name.split("_", 1)[1].startswith("coder_fog-1_attempt-2_")
    text = log.read_text()
    assert "--skip-git-repo-check -\n" in text
    assert "item.completed command_execution ls (status completed) (exit_code 0)" in text
    assert "item.completed agent_message Use hold 3." in text
    assert "turn.completed input_tokens 100, output_tokens 7" in text
    assert "# stderr:\ntoken ***\n" in text
    assert text.splitlines()[-1].startswith("# exit code 0 after ")


def test_codex__log_as_json__holds_the_events(tmp_path, program) -> None:
    program(events=[STARTED, DONE], raw="")
    respond(tmp_path, log_format="json", log_dir="out/logs")
    (log,) = (tmp_path / "out/logs").glob("*.log")
    events = [json.loads(line) for line in log.read_text().splitlines() if not line.startswith("#")]
    assert events == [STARTED, DONE]


@pytest.mark.contract("agentv.provider-integration.codex-cli-provider")
def test_codex__while_it_works__its_log_grows(tmp_path, program) -> None:
    program(events=[STARTED, COMMAND], hang=300)

    async def watch() -> None:
        asking = asyncio.ensure_future(target(tmp_path).respond(case()))
        await until(lambda: any("command_execution ls" in log.read_text() for log in logs(tmp_path)))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(watch())


@pytest.mark.contract("agentv.provider-integration.codex-cli-provider")
def test_codex__logs_turned_off__writes_none(tmp_path, program) -> None:
    program(raw="no", exit=1)
    error = broken(tmp_path, environment={"AGENTV_CODEX_STREAM_LOGS": "false"})
    assert not (tmp_path / ".agentv").exists()
    assert "log:" not in error.message


def test_codex__log_that_cannot_be_written__breaks_no_case(tmp_path, program) -> None:
    program(events=[DONE])
    (tmp_path / ".agentv").write_text("a file")
    one = target(tmp_path)
    assert asyncio.run(one.respond(case())).text == "Use hold 3."
    assert any("is not writable" in notice for notice in one.notices)


# what it says of itself


@pytest.mark.contract("codex.no-batch")
def test_codex__fallback_when_provider_cannot_batch__each_case_is_asked_by_itself(tmp_path, program) -> None:
    program(events=[DONE])
    one = target(tmp_path, provider_batching=True)
    assert not isinstance(one, BatchTarget)
    assert asyncio.run(one.respond(case())).text == "Use hold 3."


def test_codex__identity__names_program_and_arguments_and_no_secret(tmp_path) -> None:
    one = target(tmp_path, args=["--model", "o4", "--key", SECRET], timeout_seconds=90, workers=3)
    assert {name: getattr(one.identity, name) for name in ("name", "provider", "identity", "model")} == {
        "name": "coder",
        "provider": "codex",
        "identity": "codex:./bin/codex --model o4 --key ***",
        "model": None,
    }
    assert (one.workers, one.timeout_ms, one.takes_stubs) == (3, 90_000, False)
    asyncio.run(one.aclose())


# conversations


def turn(number: int, session: ConversationSession, *texts: str, **fields) -> Request:
    roles = ("user", "assistant")
    history = tuple(Message(role=roles[place % 2], content=text) for place, text in enumerate(texts))
    return Request("cargo", history, turn=number, open_session=session, **fields)


def is_there(codex: Path) -> bool:
    return Path(str(calls(codex)[0]["cwd"])).is_dir()


def totals(read: int, written: int) -> dict[str, object]:
    return {"type": "turn.completed", "usage": {"input_tokens": read, "output_tokens": written}}


def test_codex__conversation__resumes_its_thread_in_the_same_folder_with_the_new_message(tmp_path, program) -> None:
    thread = "01a225e7-f7dd-75f3-beeb-399b9121b8c8"
    codex = program(events=[{"type": "thread.started", "thread_id": thread}, DONE, totals(100, 7)])

    async def talk() -> None:
        agent, session = target(tmp_path, args=["--model", "o4"]), ConversationSession()
        first = await agent.respond(turn(1, session, "Plan the stow."))
        program(events=[{"type": "thread.started", "thread_id": thread}, DONE, totals(260, 18)])
        second = await agent.respond(turn(2, session, "Plan the stow.", first.text, "And hold 4?"))
        # the program reports the tokens of the whole thread
        assert [(one.usage.input_tokens, one.usage.output_tokens) for one in (first, second)] == [(100, 7), (160, 11)]
        assert is_there(codex)
        await session.aclose()

    asyncio.run(talk())
    one, other = calls(codex)
    assert one["argv"] == [*FIXED, "--model", "o4", "-"]
    assert other["argv"] == [*FIXED, "--model", "o4", "resume", thread, "-"]
    assert str(one["stdin"]).startswith(codex_module.PREAMBLE)
    assert "[[ ## user_query ## ]]\nPlan the stow.\n" in str(one["stdin"])
    assert other["stdin"] == "And hold 4?\n"
    assert one["cwd"] == other["cwd"]
    assert not is_there(codex)  # closed with the session


@pytest.mark.parametrize("thread", ["", None, 5])
def test_codex__conversation_without_a_thread_id__cannot_go_on(tmp_path, program, thread) -> None:
    codex = program(events=[{"type": "thread.started", "thread_id": thread}, DONE, USAGE])

    async def talk() -> None:
        agent, session = target(tmp_path), ConversationSession()
        await agent.respond(turn(1, session, "a"))
        with pytest.raises(TargetError, match="reported no session id"):
            await agent.respond(turn(2, session, "a", "b", "c"))
        await session.aclose()

    asyncio.run(talk())
    assert len(calls(codex)) == 1


def test_codex__thread_id_that_is_an_option__is_refused(tmp_path, program) -> None:
    program(events=[{"type": "thread.started", "thread_id": "--dangerously-bypass"}, DONE, USAGE])
    with pytest.raises(
        TargetError, match="the session id «--dangerously-bypass» cannot be part of a command"
    ) as caught:
        respond(tmp_path, turn(1, ConversationSession(), "a"))
    assert caught.value.fault is TargetFault.MALFORMED
    assert respond(tmp_path).text == "Use hold 3."  # a case with one message needs none


def test_codex__conversation__can_be_held_and_is_remembered(tmp_path) -> None:
    agent = target(tmp_path)
    assert (agent.conversation_problem, agent.remembers_turns, agent.retry_policy.max_retries) == (None, True, 0)
