"""Workspaces of executions: fresh copies, turns in a shared one, and what is left when they end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from eval_gate.engine.case_workspaces import CaseWorkspaces
from eval_gate.engine.hooks import HookRunner, PreparationError
from eval_gate.evaluators.base import WorkspaceState
from eval_gate.model.case import CaseWorkspace, EvalCase, WorkspaceHook, WorkspaceHooks
from eval_gate.sandbox.sandbox_setup import compute_template_digest, read_template
from eval_gate.struct import replace
from eval_gate.text.redaction import Redactor
from tests.support.cases import ScriptedTarget, make_case


@pytest.fixture
def workspace(tmp_path: Path) -> CaseWorkspace:
    template = tmp_path / "template"
    template.mkdir()
    (template / "a.txt").write_text("one\n")
    digest = compute_template_digest(read_template(template))
    return CaseWorkspace(folder=str(tmp_path), template=str(template), digest=digest)


def case(settings: CaseWorkspace, name: str = "a") -> EvalCase:
    return make_case(name, workspace=settings)


async def write(workspaces: CaseWorkspaces, one: EvalCase, text: str, trial: int = 0) -> tuple[Path, WorkspaceState]:
    """Run a case that adds a line; its folder, and what graders are told of it."""
    async with workspaces.open_workspace(one, trial, ScriptedTarget()) as opened:
        assert opened is not None
        await asyncio.sleep(0)
        with (opened.path / "a.txt").open("a") as file:
            file.write(text)
        return opened.path, await opened.end_case(one)


def test_open__two_executions__each_has_a_fresh_copy_that_is_removed(workspace) -> None:
    async def run() -> list[tuple[Path, WorkspaceState]]:
        workspaces = CaseWorkspaces()
        return [await write(workspaces, case(workspace), "two\n") for _ in range(2)]

    (path, state), (other, second) = asyncio.run(run())
    assert path != other
    assert not path.exists()
    assert not other.exists()
    assert state.changes == second.changes
    assert (state.changes or "").endswith("@@ -1 +1,2 @@\n one\n+two")


def test_open__shared__cases_take_turns_and_the_folder_goes_at_the_end(workspace) -> None:
    shared = replace(workspace, shared=True)

    async def run() -> list[tuple[Path, WorkspaceState]]:
        workspaces = CaseWorkspaces()
        both = await asyncio.gather(*(write(workspaces, case(shared, name), f"{name}\n") for name in "xy"))
        other, _ = await write(workspaces, case(shared), "z\n", trial=1)
        assert both[0][0].exists()
        assert other != both[0][0]
        await workspaces.aclose()
        return both

    (path, first), (same, second) = asyncio.run(run())
    assert path == same
    assert not path.exists()
    assert ((first.changes or "")[-2:], (second.changes or "")[-5:]) == ("+x", "+x\n+y")


def test_open__template_that_changed_since_the_file_was_read__is_an_error(workspace) -> None:
    (Path(workspace.template) / "a.txt").write_text("other\n")
    with pytest.raises(PreparationError, match="changed while the run was under way"):
        asyncio.run(write(CaseWorkspaces(), case(workspace), "x"))


def test_end__folder_that_was_replaced_by_a_link__is_not_followed(workspace, tmp_path) -> None:
    async def run() -> WorkspaceState:
        one = case(workspace)
        async with CaseWorkspaces().open_workspace(one, 0, ScriptedTarget()) as opened:
            assert opened is not None
            opened.path.rename(tmp_path / "moved")
            opened.path.symlink_to(tmp_path)
            try:
                return await opened.end_case(one)
            finally:
                opened.path.unlink()

    state = asyncio.run(run())
    assert state.changes is None
    assert state.problem


def test_end__secret_in_a_file__is_masked(workspace) -> None:
    hooks = HookRunner(redactor=Redactor(["s3cret-of-shop"]))
    _, state = asyncio.run(write(CaseWorkspaces(hooks), case(workspace), "s3cret-of-shop\n"))
    assert (state.changes or "").endswith("+***")


@pytest.mark.parametrize("width", [8, 20, 45])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_end__key_over_several_lines_of_a_file__is_masked_before_each_line_has_its_sign(workspace, width, end) -> None:
    key = "sk-live-A9b8C7d6E5f4G3h2I1j0K9l8M7n6O5p4Q3r2S1t0U9v8W7x6Y5z4A3b2C1d"
    lines = [key[at : at + width] for at in range(0, len(key), width)]
    hooks = HookRunner(redactor=Redactor([key]))
    text = f"before\n{end.join(lines)}{end}after\n"
    _, state = asyncio.run(write(CaseWorkspaces(hooks), case(workspace), text))
    changes = state.changes or ""
    assert "+before\n" in changes
    assert changes.endswith("+after")
    assert [line for line in lines if line in changes] == []


def test_prepare__hook_of_a_shared_workspace_that_fails__fails_each_case_and_runs_once(workspace, tmp_path) -> None:
    """Would it run again, it would say another time."""
    hook = WorkspaceHook(command=("sh", "-c", "date +%s%N >&2; exit 4"), cwd=str(tmp_path))
    shared = replace(workspace, shared=True, hooks=WorkspaceHooks(before_all=(hook,)))

    async def run() -> list[str]:
        workspaces = CaseWorkspaces(HookRunner({"PATH": "/usr/bin:/bin"}))
        said = []
        for name in "ab":
            with pytest.raises(PreparationError) as caught:
                await write(workspaces, case(shared, name), "x")
            said.append(str(caught.value))
        return said

    first, second = asyncio.run(run())
    assert first.startswith("the before_all hook exited with code 4: ")
    assert first == second


def test_agent__case_without_hooks_beside_one_with_them__is_no_reason_not_to_clean_up(tmp_path) -> None:
    def write_line(word: str) -> tuple[WorkspaceHook, ...]:
        return (WorkspaceHook(command=("sh", "-c", f"echo {word} >> log"), cwd=str(tmp_path)),)

    common = WorkspaceHooks(before_all=write_line("begin"), after_all=write_line("end"))
    own = make_case("a", agent_hooks=replace(common, after_each=write_line("{{test_id}}")))
    target = ScriptedTarget()
    tmp_path.chmod(0o777)

    async def run() -> None:
        workspaces = CaseWorkspaces(HookRunner({"PATH": "/usr/bin:/bin"}))
        async with workspaces.open_workspace(own, 0, target):
            async with workspaces.open_workspace(make_case("b", agent_hooks=common), 0, target):
                pass
        await workspaces.aclose()

    asyncio.run(run())
    assert (tmp_path / "log").read_text().split() == ["begin", "a", "end"]
