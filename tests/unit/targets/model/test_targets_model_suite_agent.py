"""The agent of a suite: led through turns, with file tools that really work in a folder of the run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from eval_gate.config.settings import RecordingMode
from eval_gate.model.agent import SuiteAgent
from eval_gate.model.conversation import Message, Response, ToolCall, ToolSpec
from eval_gate.model.usage import Usage
from eval_gate.sandbox.sandbox import FolderLimits
from eval_gate.sandbox.sandbox_setup import SandboxSetup
from eval_gate.struct import replace
from eval_gate.targets.base import Request, TargetError, TargetFault
from eval_gate.targets.deadline import track_case_limit
from eval_gate.targets.model.chat import ModelTurn
from eval_gate.targets.model.recording import Recording
from eval_gate.targets.model.target import MAX_CALLS, ModelTarget
from tests.support.chats import TOY, ScriptedChat, limited, make_asker, says

TOOLS = ("readFile", "writeFile", "listFiles", "deleteFile")
AGENT = SuiteAgent(name="ToolTestAgent", model="gpt-5-mini", instructions="use the tools", tools=TOOLS, max_turns=3)


def target_of(chat, folders: Path, **options) -> ModelTarget:
    asker = make_asker(chat, **({"recording": options.pop("recording")} if "recording" in options else {}))
    return ModelTarget(TOY, asker, "the target's own prompt", (), home=SandboxSetup(parent=folders, **options))


def asked(
    case_id: str = "case-1", *, agent: SuiteAgent | None = AGENT, trial: int = 0, suite: str = "s.json"
) -> Request:
    question = Message(role="user", content=f"prompt of {case_id}")
    return Request(case_id, (question,), trial=trial, eval_file=suite, agent=agent)


def respond(chat, folders: Path, *requests: Request, **options) -> list[Response]:
    async def main() -> list[Response]:
        target = target_of(chat, folders, **options)
        try:
            return [await target.respond(request) for request in requests or (asked(),)]
        finally:
            await target.aclose()

    return asyncio.run(main())


def on_disk(folders: Path) -> dict[str, str]:
    """What lies in the folders of a run now, by name."""
    return {path.name: path.read_text() for path in folders.rglob("*") if path.is_file()}


def paths(response: Response) -> dict[str, str | None]:
    return {entry.path: entry.text for entry in response.files if entry.kind == "file"}


@pytest.mark.contract("agent_evals.run.conversation")
def test_agent__calls_tools__are_carried_out_and_answered_until_a_turn_has_none(tmp_path: Path) -> None:
    chat = ScriptedChat(
        says("", "writeFile", path="a/out.txt", content="Hello"),
        says("", "readFile", path="a/out.txt"),
        says("It says Hello."),
    )
    (response,) = respond(chat, tmp_path)
    first, _, third = chat.asked
    assert [(message.role, message.content) for message in first[0]] == [
        ("system", "use the tools"),
        ("user", "prompt of case-1"),
    ]
    assert [tool.name for tool in first[1]] == [*TOOLS]
    assert [(message.role, message.content) for message in third[0][3:]] == [
        ("tool", "Wrote 5 bytes to tmp/a/out.txt"),
        ("assistant", ""),
        ("tool", "Hello"),
    ]
    assert third[0][3].tool_call_id == "call-0"
    assert (response.text, paths(response)) == ("It says Hello.", {"a/out.txt": "Hello"})
    assert [(call.name, call.success, call.duration_ms is not None) for call in response.tool_calls] == [
        ("writeFile", True, True),
        ("readFile", True, True),
    ]
    assert (response.usage, response.tool_calls_known) == (Usage(input_tokens=30, output_tokens=15), True)
    assert [message.role for message in response.conversation] == [
        *("system", "user", "assistant", "tool", "assistant", "tool", "assistant")
    ]


@pytest.mark.contract("agent_evals.run.conversation")
def test_agent__second_case__knows_nothing_of_the_first_but_its_files(tmp_path: Path) -> None:
    chat = ScriptedChat(says("", "writeFile", path="x", content="1"), says("done"), says("new"))
    respond(chat, tmp_path, asked("one"), asked("two"))
    assert [message.content for message in chat.asked[2][0]] == ["use the tools", "prompt of two"]


@pytest.mark.contract("agent_evals.field.tools")
def test_agent__some_tools__is_told_of_these_only(tmp_path: Path) -> None:
    chat = ScriptedChat(says("done"))
    agent = replace(AGENT, tools=("listFiles",))
    respond(chat, tmp_path, asked(agent=agent))
    assert [tool.name for tool in chat.asked[0][1]] == ["listFiles"]


def test_agent__without_tools__needs_no_folder_and_nobody_looks_at_files(tmp_path: Path) -> None:
    chat = ScriptedChat(says("4"))
    (response,) = respond(chat, tmp_path / "not there", asked(agent=replace(AGENT, tools=())))
    assert (response.text, response.files, chat.asked[0][1]) == ("4", None, ())


def test_agent__blank_instructions__is_asked_without_a_system_message(tmp_path: Path) -> None:
    chat = ScriptedChat(says("4"))
    respond(chat, tmp_path, asked(agent=replace(AGENT, instructions=" ")))
    assert [message.role for message in chat.asked[0][0]] == ["user"]


def test_agent__none_in_the_case__is_the_model_targets_affair(tmp_path: Path) -> None:
    chat = ScriptedChat(says("routed"))
    (response,) = respond(chat, tmp_path, asked(agent=None))
    assert (response.text, response.files) == ("routed", None)
    assert chat.asked[0][0][0].content == "the target's own prompt"


def test_target__what_it_is__is_what_the_model_is(tmp_path: Path) -> None:
    target = target_of(ScriptedChat(says("")), tmp_path)
    assert target.identity.identity == "toy:toy"
    assert (target.workers, target.timeout_ms, target.takes_stubs, target.notices) == (None, None, True, ())
    asyncio.run(target.check_health())


TRICKS = {
    "up": {"path": "../secret.txt"},
    "absolute": {"path": "/etc/passwd"},
    "processes": {"path": "/proc/self/environ"},
    "backslashes": {"path": "..\\secret.txt"},
    "nul": {"path": "a\0"},
    "no path": {},
    "no text": {"path": {"$ne": ""}},
}


@pytest.mark.slow
@pytest.mark.contract("agent_evals.run.tool_refused", "agent_evals.files.traversal")
@pytest.mark.parametrize("params", TRICKS.values(), ids=TRICKS)
@pytest.mark.parametrize("tool", ["readFile", "writeFile", "deleteFile"])
def test_agent__tool_refuses__is_told_so_and_goes_on(tmp_path: Path, tool: str, params: dict) -> None:
    (tmp_path / "secret.txt").write_text("the secret")
    folders = tmp_path / "runs"
    folders.mkdir()
    given = params | ({"content": "mine"} if tool == "writeFile" else {})
    chat = ScriptedChat(says("", tool, **given), says("I could not."))
    (response,) = respond(chat, folders)
    answer = chat.asked[1][0][-1].content
    assert answer.startswith("Error: ")
    assert "secret" not in answer
    assert (response.text, response.files, response.tool_calls[0].success) == ("I could not.", (), False)
    assert (tmp_path / "secret.txt").read_text() == "the secret"


@pytest.mark.contract("agent_evals.run.tool_refused", "agent_evals.files.bounded")
def test_agent__writes_too_much__is_told_so(tmp_path: Path) -> None:
    chat = ScriptedChat(says("", "writeFile", path="a", content="x" * 11), says("too much"))
    (response,) = respond(chat, tmp_path, limits=FolderLimits(file_bytes=10))
    assert chat.asked[1][0][-1].content == "Error: Content is larger than 10 bytes."
    assert response.files == ()


@pytest.mark.contract("agent_evals.files.bounded")
def test_agent__calls_very_often_in_one_turn__is_answered_but_not_obeyed(tmp_path: Path) -> None:
    calls = tuple(
        ToolCall(name="writeFile", params={"path": f"{number}", "content": ""}, id=str(number))
        for number in range(MAX_CALLS + 2)
    )
    chat = ScriptedChat(ModelTurn(text="", tool_calls=calls), says("done"))
    (response,) = respond(chat, tmp_path)
    answers = chat.asked[1][0][3:]
    assert [message.tool_call_id for message in answers] == [call.id for call in calls]
    assert len(response.files) == MAX_CALLS
    assert [call.success for call in response.tool_calls[-3:]] == [True, False, False]
    assert "no more than 64 calls" in answers[-1].content


@pytest.mark.contract("agent_evals.run.max_turns")
def test_agent__turns_used_up__is_an_error_after_as_many_requests(tmp_path: Path) -> None:
    chat = ScriptedChat(says("again", "listFiles", path=""))
    with pytest.raises(TargetError) as broken:
        respond(chat, tmp_path)
    assert (broken.value.message, broken.value.fault) == ("Max turns (3) exceeded", TargetFault.REFUSED)
    assert not broken.value.retryable
    assert len(chat.asked) == 3


@pytest.mark.contract("agent_evals.run.max_turns", "agent_evals.field.max_turns")
def test_agent__last_turn_calls_nothing__is_in_time(tmp_path: Path) -> None:
    agent = SuiteAgent(name="A", model="gpt-5-mini", instructions="", tools=TOOLS)
    chat = ScriptedChat(*(says("", "listFiles", path="") for _ in range(4)), says("done"))
    (response,) = respond(chat, tmp_path, asked(agent=agent))
    assert (response.text, len(chat.asked)) == ("done", 5)


@pytest.mark.contract("agent_evals.run.unknown_tool")
@pytest.mark.parametrize("tools", [("readFile",), ()])
@pytest.mark.parametrize("name", ["writeFile", "exec", "x" * 500])
def test_agent__calls_a_tool_it_does_not_have__is_an_error(tmp_path: Path, name: str, tools) -> None:
    chat = ScriptedChat(says("", name, path="a", content="b"), says("done"))
    with pytest.raises(TargetError) as broken:
        respond(chat, tmp_path, asked(agent=replace(AGENT, tools=tools)))
    assert broken.value.message == f"Tool {name[:80]} not found in agent ToolTestAgent."


def test_agent__model_breaks__is_retried_and_then_an_error(tmp_path: Path) -> None:
    chat = ScriptedChat(limited(), says("", "writeFile", path="a", content="b"), limited(), says("done"))
    (response,) = respond(chat, tmp_path)
    assert (response.text, response.attempts) == ("done", 4)
    with pytest.raises(TargetError):
        respond(ScriptedChat(limited()), tmp_path)
    assert list(tmp_path.iterdir()) == []


def writes_once_then_lists() -> ScriptedChat:
    return ScriptedChat(
        says("", "writeFile", path="kept.txt", content="1"), says("written"), says("", "listFiles", path=""), says("ok")
    )


@pytest.mark.contract("agent_evals.files.folder")
def test_folder__cases_of_a_suite__see_what_was_written_before(tmp_path: Path) -> None:
    one, two = respond(writes_once_then_lists(), tmp_path, asked("write"), asked("list"))
    assert paths(one) == paths(two) == {"kept.txt": "1"}
    assert two.conversation[-2].content == "Contents of tmp:\n[file] kept.txt"


@pytest.mark.contract("agent_evals.files.folder")
@pytest.mark.parametrize("other", [{"trial": 1}, {"suite": "other.json"}], ids=str)
def test_folder__another_trial_or_suite__begins_with_an_empty_one(tmp_path: Path, other: dict) -> None:
    one, two = respond(writes_once_then_lists(), tmp_path, asked("write"), asked("list", **other))
    assert (paths(one), paths(two)) == ({"kept.txt": "1"}, {})
    assert two.conversation[-2].content == "tmp is empty"


@pytest.mark.contract("agent_evals.files.folder")
def test_folder__at_the_end__is_removed(tmp_path: Path) -> None:
    async def main() -> None:
        target = target_of(writes_once_then_lists(), tmp_path)
        await target.respond(asked())
        assert on_disk(tmp_path) == {"kept.txt": "1"}
        await target.aclose()

    asyncio.run(main())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.contract("agent_evals.files.folder")
def test_folder__later_cases__do_not_change_what_an_earlier_one_is_judged_by(tmp_path: Path) -> None:
    chat = ScriptedChat(
        *(says("", "writeFile", path="a", content="1"), says("written")),
        *(says("", "deleteFile", path="a"), says("Deleted")),
    )
    one, two = respond(chat, tmp_path, asked("write"), asked("delete"))
    assert (paths(one), paths(two)) == ({"a": "1"}, {})


def test_folder__cannot_be_made__is_an_error_of_the_case(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="the agent's folder cannot be used: No such file or directory"):
        respond(ScriptedChat(says("x")), tmp_path / "not there")


def test_folder__filled_by_somebody_else__is_an_error_and_no_half_snapshot(tmp_path: Path) -> None:
    def fill() -> None:
        (folder,) = tmp_path.iterdir()
        for number in range(4):
            (folder / str(number)).touch()

    class Filling(ScriptedChat):
        async def ask(
            self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), schema: object = None
        ) -> ModelTurn:
            fill()
            return await super().ask(messages, tools)

    with pytest.raises(TargetError, match="the agent's folder cannot be used: There are more than 3"):
        respond(Filling(says("x")), tmp_path, limits=FolderLimits(entries=3))


class Gated(ScriptedChat):
    """Waits within each request until it is let go, and tells when it is asked."""

    def __init__(self, *turns: ModelTurn) -> None:
        super().__init__(*turns)
        self.reached = asyncio.Semaphore(0)
        self.go = asyncio.Event()
        self.requests = 0

    async def ask(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), schema: object = None
    ) -> ModelTurn:
        self.requests += 1
        self.reached.release()
        await self.go.wait()
        return await super().ask(messages, tools)


@pytest.mark.slow
@pytest.mark.contract("agent_evals.files.folder")
def test_folder__cases_at_once__take_turns_in_order_and_do_not_wait_on_their_own_time(tmp_path: Path) -> None:
    async def main() -> None:
        chat = Gated(says("ok"))
        target = target_of(chat, tmp_path)
        limits: list[asyncio.Timeout] = []

        async def limited_to_a_minute(request: Request) -> tuple[float, Response]:
            async with asyncio.timeout(60) as limit:
                limits.append(limit)
                with track_case_limit(limit):
                    started = time.perf_counter()
                    response = await target.respond(request)
                    return (time.perf_counter() - started) * 1000, response

        first = asyncio.create_task(target.respond(asked("one")))
        await chat.reached.acquire()
        others = [asyncio.create_task(limited_to_a_minute(asked(name))) for name in ("two", "three")]
        await asyncio.sleep(0.3)
        assert chat.requests == 1
        assert [limit.when() for limit in limits] == [None, None]  # their clocks stand still
        chat.go.set()
        await first
        for wall_ms, response in await asyncio.gather(*others):
            assert wall_ms - response.duration_ms > 200
        prompts = [messages[-1].content for messages, _ in chat.asked]
        assert prompts == [f"prompt of {name}" for name in ("one", "two", "three")]
        await target.aclose()

    asyncio.run(main())


@pytest.mark.contract("agent_evals.files.folder")
def test_folder__trials_and_suites_at_once__do_not_wait_for_each_other(tmp_path: Path) -> None:
    async def main() -> None:
        chat = Gated(says("ok"))
        target = target_of(chat, tmp_path)
        plain = replace(AGENT, tools=())
        requests = [asked(), asked(trial=1), asked(suite="b"), asked(agent=plain)]
        tasks = [asyncio.create_task(target.respond(request)) for request in requests]
        async with asyncio.timeout(10):
            for _ in tasks:
                await chat.reached.acquire()
        chat.go.set()
        await asyncio.gather(*tasks)
        await target.aclose()

    asyncio.run(main())


@pytest.mark.contract("agent_evals.run.cancelled")
def test_agent__cancelled__writes_no_more_and_lets_the_next_case_begin(tmp_path: Path) -> None:
    async def main() -> None:
        chat = Gated(says("", "writeFile", path="late.txt", content="late"), says("next"))
        target = target_of(chat, tmp_path)
        slow = asyncio.create_task(target.respond(asked("slow")))
        await chat.reached.acquire()
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        chat._turns.pop(0)
        chat.go.set()
        following = await target.respond(asked("next"))
        assert (following.text, following.files) == ("next", ())
        await target.aclose()

    asyncio.run(main())


@pytest.mark.contract("agent_evals.run.cancelled")
def test_agent__cancelled_between_two_tools__does_not_begin_the_second(tmp_path: Path) -> None:
    async def main() -> None:
        calls = tuple(ToolCall(name="writeFile", params={"path": name, "content": ""}, id=name) for name in "ab")
        target = target_of(ScriptedChat(ModelTurn(text="", tool_calls=calls), says("done")), tmp_path)
        task = asyncio.create_task(target.respond(asked()))
        for _ in range(1_000):
            if on_disk(tmp_path):
                break
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert on_disk(tmp_path) == {"a": ""}
        await target.aclose()

    asyncio.run(main())


def test_agent__answers_recorded__are_replayed_with_tools_that_work_again(tmp_path: Path) -> None:
    runs, folders = tmp_path / "run", tmp_path / "folders"
    runs.mkdir()
    folders.mkdir()
    recording = Recording(RecordingMode.AUTO)
    recording.set_run_folder(runs)
    chat = writes_once_then_lists()
    live = respond(chat, folders, asked("write"), asked("list"), recording=recording)
    again = respond(ScriptedChat(limited()), folders, asked("write"), asked("list"), recording=recording)
    assert [paths(response) for response in again] == [paths(response) for response in live]
    assert [(response.text, response.replayed) for response in again] == [("written", True), ("ok", True)]
