"""The VS Code target against a program and an agent that work by files, as the real ones do."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from eval_gate.model.case import CaseBrief
from eval_gate.model.conversation import Message
from eval_gate.targets.base import BatchTarget, Request, TargetError, TargetFault
from eval_gate.targets.vscode.target import VscodeSettings, VscodeTarget
from eval_gate.text.redaction import Redactor
from tests.support.programs.agent_cli import calls, install

SECRET = "sk-very-secret-value"


@pytest.fixture
def subagents(tmp_path) -> Path:
    """A home with two subagents."""
    folder = tmp_path / "home/.subagent/vscode-agents"
    for name in ("subagent-2", "subagent-10", "subagent-x", "other"):
        (folder / name).mkdir(parents=True)
    return folder


@pytest.fixture
def program(tmp_path, subagents):
    """`program(answers={...})` puts a VS Code into `bin`."""
    return lambda **script: install(tmp_path / "bin", "code", script)


def target(root: Path, environment=None, **settings) -> VscodeTarget:
    return VscodeTarget(
        VscodeSettings.model_validate({"name": "editor", "command": "./bin/code", "timeout_seconds": 20, **settings}),
        root=root,
        environment={"PATH": os.environ["PATH"], "HOME": str(root / "home"), **(environment or {})},
        redact=Redactor([SECRET]),
    )


def case(case_id="cargo", question="Plan the stow.", guidelines=(), files=()) -> Request:
    brief = CaseBrief(
        question="no", linked_question=question, guideline_files=tuple(guidelines), input_files=tuple(files)
    )
    return Request(case_id, (Message(role="user", content="no"),), brief=brief)


def respond(root: Path, request: Request | None = None, **settings):
    return asyncio.run(target(root, **settings).respond(request or case()))


def broken(root: Path, request: Request | None = None, **settings) -> TargetError:
    with pytest.raises(TargetError) as caught:
        respond(root, request, **settings)
    return caught.value


def locks(subagents: Path) -> list[Path]:
    return list(subagents.glob("*/subagent.lock"))


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if holds():
            return
        await asyncio.sleep(0.02)
    pytest.fail("it did not happen within 20 s")


# one case


@pytest.mark.slow
@pytest.mark.contract("agentv.provider-integration.vs-code-provider")
def test_vscode__vs_code_provider__document_dispatch_and_response(tmp_path, program, subagents) -> None:
    code = program(answers={"stow": "Use hold 3."})
    response = respond(tmp_path, case(guidelines=["/evals/a.instructions.md"], files=["/evals/manifest.csv"]))
    assert (response.text, response.tool_calls_known, response.dry_run) == ("Use hold 3.", False, False)
    assert response.duration_ms > 0
    (request,) = (subagents / "subagent-2/messages").glob("*_req.md")
    text = request.read_text()
    for part in (
        "* [a.instructions.md](file:///evals/a.instructions.md)",
        "attachment files",
        "* [manifest.csv](file:///evals/manifest.csv)",
        "[[ ## user_query ## ]]\nPlan the stow.",
    ):
        assert part in text
    workspace = str(subagents / "subagent-2/subagent-2.code-workspace")
    attached = ["-a", "/evals/a.instructions.md", "-a", "/evals/manifest.csv", "-a", str(request)]
    assert [call["argv"] for call in calls(code)] == [
        ["--status"],
        [workspace],
        ["-r", "chat", "-m", "wakeup", "create a file named .alive in the subagent-2 folder"],
        ["-r", "chat", "-m", "agent", *attached, f"Follow instructions in {request.name}"],
    ]


@pytest.mark.slow
@pytest.mark.contract("vscode.file-protocol")
def test_vscode__while_asking__the_subagent_is_locked_and_free_afterwards(tmp_path, program, subagents) -> None:
    code = program()
    respond(tmp_path)
    assert all(call["locked"] for call in calls(code))
    assert locks(subagents) == []


@pytest.mark.slow
@pytest.mark.contract("vscode.file-protocol")
def test_vscode__open_already__is_not_woken_up(tmp_path, program) -> None:
    code = program(status="Window (plan.md - subagent-2 (Workspace))")
    respond(tmp_path)
    assert not any("wakeup" in call["argv"] for call in calls(code))  # type: ignore[operator]


@pytest.mark.slow
def test_vscode__another_number_is_open__this_one_is_woken_up(tmp_path, program) -> None:
    code = program(status="Window (plan.md - subagent-20 (Workspace))")
    respond(tmp_path)
    assert any("wakeup" in call["argv"] for call in calls(code))  # type: ignore[operator]


@pytest.mark.slow
@pytest.mark.contract("vscode.file-protocol")
def test_vscode__first_is_locked__the_next_by_number_is_taken(tmp_path, program, subagents) -> None:
    program()
    (subagents / "subagent-2/subagent.lock").touch()
    respond(tmp_path)
    assert list((subagents / "subagent-10/messages").glob("*_res.md"))
    assert locks(subagents) == [subagents / "subagent-2/subagent.lock"]


@pytest.mark.slow
@pytest.mark.contract("vscode.file-protocol")
def test_vscode__messages__are_cleared_without_leaving_the_folder(tmp_path, program, subagents) -> None:
    program()
    messages = subagents / "subagent-2/messages"
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").touch()
    (messages / "kept").mkdir(parents=True)
    (messages / "kept/file").touch()
    (messages / "old_res.md").touch()
    (messages / "link").symlink_to(tmp_path / "precious")
    respond(tmp_path)
    assert (tmp_path / "precious/file").exists()
    assert (messages / "kept/file").exists()
    assert {path.name for path in messages.iterdir() if not path.name.startswith("2")} == {"kept"}


@pytest.mark.slow
@pytest.mark.parametrize("place", ["messages", ".github", "subagent-2.code-workspace"])
def test_vscode__link_in_the_place_of_a_folder__is_not_followed(tmp_path, program, subagents, place) -> None:
    program()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "old_res.md").touch()
    (subagents / "subagent-2" / place).symlink_to(outside)
    if place == "subagent-2.code-workspace":
        respond(tmp_path)
    else:
        error = broken(tmp_path)
        assert error.fault is TargetFault.UNREACHABLE
        assert error.message.startswith("the subagent's folder cannot be used: ")
    assert [path.name for path in outside.iterdir()] == ["old_res.md"]
    assert locks(subagents) == []


@pytest.mark.slow
def test_vscode__subagent_that_is_a_link__is_none(tmp_path, program, subagents) -> None:
    program()
    (tmp_path / "outside").mkdir()
    (subagents / "subagent-1").symlink_to(tmp_path / "outside")
    respond(tmp_path)
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.slow
def test_vscode__workspace__has_the_subagent_first_and_the_templates_folders(tmp_path, program, subagents) -> None:
    program()
    template = tmp_path / "templates/dev.code-workspace"
    template.parent.mkdir()
    folders = [{"path": "../lib"}, {"path": "/abs", "name": "a"}, {"uri": "vscode-remote://x"}]
    template.write_text(json.dumps({"folders": folders, "settings": {"a": 1}}))
    respond(tmp_path, workspace_template="templates/dev.code-workspace")
    assert json.loads((subagents / "subagent-2/subagent-2.code-workspace").read_text()) == {
        "folders": [{"path": "."}, {"path": str(tmp_path / "lib")}, *folders[1:]],
        "settings": {"a": 1},
    }


@pytest.mark.slow
def test_vscode__environment__has_the_desktop_and_no_secret(tmp_path, program) -> None:
    code = program()
    around = {"DISPLAY": ":1", "GITHUB_TOKEN": "t"}
    respond(tmp_path, environment=around, env={"EXTRA": "x"})
    seen = calls(code)[0]["environment"]
    assert isinstance(seen, dict)
    assert (seen["DISPLAY"], seen["EXTRA"]) == (":1", "x")
    assert "GITHUB_TOKEN" not in seen


@pytest.mark.slow
def test_vscode__insiders__have_a_program_and_folder_of_their_own(tmp_path, program) -> None:
    code = install(tmp_path / "bin", "code-insiders", {})
    (tmp_path / "home/.subagent/vscode-insiders-agents/subagent-1").mkdir(parents=True)
    found = {"PATH": f"{code.parent}:{os.environ['PATH']}"}
    settings = VscodeSettings.model_validate({"name": "i", "provider": "vscode-insiders"})
    around = {"HOME": str(tmp_path / "home"), **found}
    one = VscodeTarget(settings, root=tmp_path, environment=around, redact=Redactor())
    assert asyncio.run(one.respond(case())).text.startswith("read ")
    assert one.identity.identity == "vscode-insiders:code-insiders"


@pytest.mark.slow
def test_vscode__several_at_once__take_turns(tmp_path, program, subagents) -> None:
    program()
    one = target(tmp_path)

    async def both():
        return await asyncio.gather(one.respond(case("a")), one.respond(case("b")))

    assert len(asyncio.run(both())) == 2
    assert not (subagents / "subagent-10/messages").exists()


# what goes wrong


def test_vscode__program_is_missing__is_told_early(tmp_path, subagents) -> None:
    one = target(tmp_path, command="no-such-code")
    for ask in (one.check_health, lambda: one.respond(case())):
        with pytest.raises(TargetError, match="VS Code command 'no-such-code' was not found on PATH") as caught:
            asyncio.run(ask())
        assert caught.value.fault is TargetFault.UNREACHABLE
        assert "dry_run" in str(caught.value.hint)


def test_vscode__no_subagents__is_told_early(tmp_path, program) -> None:
    program()
    one = target(tmp_path, subagent_root="empty")
    with pytest.raises(TargetError, match=f"{tmp_path}/empty") as caught:
        asyncio.run(one.check_health())
    assert "subagent-1" in str(caught.value.hint)


def test_vscode__all_is_there__is_well(tmp_path, program, subagents) -> None:
    program()
    (subagents / "subagent-2/subagent.lock").touch()
    (subagents / "subagent-10/subagent.lock").touch()
    asyncio.run(target(tmp_path).check_health())


@pytest.mark.contract("vscode.file-protocol")
def test_vscode__all_are_locked__says_so(tmp_path, program, subagents) -> None:
    code = program()
    (subagents / "subagent-2/subagent.lock").touch()
    (subagents / "subagent-10/subagent.lock").touch()
    error = broken(tmp_path)
    assert error.message == f"all 2 subagents in {subagents} are locked"
    assert error.fault is TargetFault.UNREACHABLE
    assert calls(code) == []


@pytest.mark.slow
@pytest.mark.contract("vscode.file-protocol")
def test_vscode__response_never_comes__ends_with_the_time_and_frees_the_subagent(tmp_path, program, subagents) -> None:
    program(answers={"stow": None})
    error = broken(tmp_path, timeout_seconds=0.5)
    assert error.message.startswith(f"no response within 0.5 s: missing {subagents}/subagent-2/messages/")
    assert error.fault is TargetFault.LATE
    assert locks(subagents) == []


@pytest.mark.slow
@pytest.mark.contract("vscode.file-protocol")
def test_vscode__cancelled__frees_the_subagent(tmp_path, program, subagents) -> None:
    code = program(answers={"stow": None})

    async def cancel() -> None:
        asking = asyncio.ensure_future(target(tmp_path).respond(case()))
        await until(lambda: len(calls(code)) == 4)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(cancel())
    assert locks(subagents) == []


@pytest.mark.slow
def test_vscode__never_wakes_up__is_unreachable(tmp_path, program, subagents) -> None:
    from eval_gate.targets.vscode.dispatcher import Dispatcher, Editor, VscodeLimits

    program(alive=False)
    (subagents / "subagent-2/.alive").touch()
    editor = Editor("./bin/code", tmp_path, {"PATH": os.environ["PATH"]})
    one = VscodeTarget(
        VscodeSettings(name="editor"),
        root=tmp_path,
        environment={},
        redact=Redactor(),
        dispatcher=Dispatcher(editor, subagents, None, VscodeLimits(20, alive_s=0.3)),
    )
    with pytest.raises(TargetError, match=r"did not respond in .*subagent-2 within 0\.3 s") as caught:
        asyncio.run(one.respond(case()))
    assert caught.value.fault is TargetFault.UNREACHABLE
    assert locks(subagents) == []


@pytest.mark.slow
def test_vscode__chat_that_fails__quotes_it_without_secrets(tmp_path, program, subagents) -> None:
    program(exit=2, stderr=f"no chat for {SECRET}")
    error = broken(tmp_path)
    assert error.message == "VS Code's program exited with code 2: no chat for ***"
    assert locks(subagents) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "words"), [("link", "is a link"), ("folder", "not a regular file"), ("large", "larger than 4,000,000")]
)
def test_vscode__response_that_is_none__is_an_error(tmp_path, program, subagents, kind, words) -> None:
    program(kind=kind)
    assert words in broken(tmp_path).message
    assert locks(subagents) == []


@pytest.mark.slow
@pytest.mark.contract("agents.missing-file")
def test_vscode__a_file_it_could_not_read__is_an_error(tmp_path, program) -> None:
    program(answers={"stow": "ERROR: missing-file manifest.csv"})
    assert "could not read a file" in broken(tmp_path, case(files=["/evals/manifest.csv"])).message


@pytest.mark.slow
@pytest.mark.parametrize(("lock", "left"), [("removes", None), ("replaces", "somebody else's")])
def test_vscode__lock_that_is_no_longer_ours__is_left_alone(tmp_path, program, subagents, lock, left) -> None:
    program(lock=lock)
    respond(tmp_path)
    held = subagents / "subagent-2/subagent.lock"
    assert (held.read_text() if held.exists() else None) == left


@pytest.mark.parametrize(
    ("text", "words"),
    [(None, "cannot be read"), ("{ // no", "is not JSON"), ("[]", "not a workspace"), ("1", "not a work")],
)
def test_vscode__template_that_is_none__is_told_early(tmp_path, program, text, words) -> None:
    program()
    if text is not None:
        (tmp_path / "dev.code-workspace").write_text(text)
    one = target(tmp_path, workspace_template="dev.code-workspace")
    with pytest.raises(TargetError, match=words):
        asyncio.run(one.check_health())


# batches


def batch(root: Path, requests, **settings):
    one = target(root, provider_batching=True, **settings)
    assert isinstance(one, BatchTarget)
    assert one.batches
    return one, asyncio.run(one.respond_batch(requests))


@pytest.mark.slow
@pytest.mark.contract("vscode.batch", "agentv.provider-integration.vs-code-provider")
def test_vscode__enabled_for_batching_capable_provider__all_cases_are_one_chat(tmp_path, program, subagents) -> None:
    code = program(answers={"stow": "Use hold 3.", "fog": "None."})
    requests = [case("a", "Plan the stow.", files=["/e/x.csv"]), case("b", "Any fog?", files=["/e/x.csv", "/e/y.csv"])]
    _, answers = batch(tmp_path, requests)
    assert {case_id: answer.text for case_id, answer in answers.items()} == {"a": "Use hold 3.", "b": "None."}
    chats = [call["argv"] for call in calls(code) if "agent" in call["argv"]]  # type: ignore[operator]
    (orchestrator,) = (subagents / "subagent-2/messages").glob("*_orchestrator.md")
    stamp = orchestrator.name.removesuffix("_orchestrator.md")
    attached = ["-a", "/e/x.csv", "-a", "/e/y.csv", "-a", str(orchestrator)]
    assert chats == [["-r", "chat", "-m", "agent", *attached, f"Follow instructions in {orchestrator.name}"]]
    text = orchestrator.read_text()
    for number in range(2):
        assert f"`messages/{stamp}_{number}_req.md`" in text
        assert f"`messages/{stamp}_{number}_res.md`" in text
    assert locks(subagents) == []


@pytest.mark.slow
@pytest.mark.contract("vscode.batch")
def test_vscode__case_without_a_response__is_missing_from_the_batch(tmp_path, program) -> None:
    program(answers={"stow": "Use hold 3.", "fog": None})
    requests = [case("a"), case("b", "Any fog?")]
    one, answers = batch(tmp_path, requests, timeout_seconds=2)
    assert set(answers) == {"a"}
    assert any(notice.startswith("case b within a batch: no response within 4 s") for notice in one.notices)


@pytest.mark.slow
@pytest.mark.contract("vscode.batch")
def test_vscode__batch_without_any_response__is_an_error(tmp_path, program, subagents) -> None:
    program(answers={"stow": None})
    with pytest.raises(TargetError, match="no response within"):
        batch(tmp_path, [case("a"), case("b")], timeout_seconds=0.3)
    assert locks(subagents) == []


def test_vscode__more_cases_than_a_chat_takes__are_refused(tmp_path, program) -> None:
    code = program()
    with pytest.raises(TargetError, match="at most 200 cases, not 201"):
        batch(tmp_path, [case(str(number)) for number in range(201)])
    assert calls(code) == []


@pytest.mark.slow
@pytest.mark.contract("vscode.batch")
def test_vscode__batch_of_one__is_a_request_like_others(tmp_path, program) -> None:
    program(answers={"stow": "Use hold 3."})
    _, answers = batch(tmp_path, [case("a")])
    assert answers["a"].text == "Use hold 3."


# dry run, and what it says of itself


@pytest.mark.contract("vscode.dry-run", "agentv.provider-integration.vs-code-provider")
def test_vscode__dry_run__takes_no_lock_starts_nothing_and_shows_the_prompt(tmp_path, subagents) -> None:
    one = target(tmp_path, dry_run=True, command="no-such-code")
    response = asyncio.run(one.respond(case("../fog", files=["/e/x.csv"])))
    assert (response.text, response.dry_run, response.tool_calls_known) == ("", True, False)
    (warning,) = response.warnings
    written = tmp_path / warning.removeprefix("the prompt is in ")
    assert written.parent == tmp_path / ".agentv/logs/vscode"
    assert "* [x.csv](file:///e/x.csv)" in written.read_text()
    assert sorted(path.name for path in (subagents / "subagent-2").iterdir()) == []
    batched = asyncio.run(one.respond_batch([case("a"), case("b")]))
    assert [answer.dry_run for answer in batched.values()] == [True, True]
    assert any("VS Code is not called" in notice for notice in one.notices)


@pytest.mark.contract("vscode.dry-run")
def test_vscode__dry_run_without_a_free_subagent__is_an_error(tmp_path, subagents) -> None:
    for path in subagents.glob("subagent-*"):
        (path / "subagent.lock").touch()
    one = target(tmp_path, dry_run=True)
    for ask in (one.check_health, lambda: one.respond(case())):
        with pytest.raises(TargetError, match="are locked") as caught:
            asyncio.run(ask())
        assert caught.value.hint
    with pytest.raises(TargetError, match="has no subagent"):
        asyncio.run(target(tmp_path, dry_run=True, subagent_root="none").check_health())


def test_vscode__dry_run_that_cannot_write__is_an_error(tmp_path, subagents) -> None:
    (tmp_path / ".agentv").touch()
    with pytest.raises(TargetError, match="the prompt cannot be written"):
        asyncio.run(target(tmp_path, dry_run=True).respond(case()))


@pytest.mark.contract("vscode.one-worker")
def test_vscode__more_workers__are_one_and_said(tmp_path) -> None:
    one = target(tmp_path, workers=4)
    assert one.workers == 1
    assert one.notices == ("workers: 4 is not possible with vscode: one case is sent at a time",)
    assert target(tmp_path, workers=1).notices == ()


def test_vscode__identity_and_limits__are_those_of_its_description(tmp_path) -> None:
    one = target(tmp_path, timeout_seconds=5)
    assert {name: getattr(one.identity, name) for name in ("name", "provider", "identity", "model")} == {
        "name": "editor",
        "provider": "vscode",
        "identity": "vscode:./bin/code",
        "model": None,
    }
    assert (one.timeout_ms, one.takes_stubs, one.batches) == (5_000, False, False)
    asyncio.run(one.aclose())


def test_conversation__chat__cannot_be_continued(tmp_path) -> None:
    assert "a chat cannot be continued (VS Code)" in target(tmp_path).conversation_problem
