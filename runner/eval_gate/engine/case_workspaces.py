"""Workspaces of cases: fresh copies of a template in which targets work and graders look, and hooks with or without.

Source: AgentV 4.42.4 (`workspace`, `executeWorkspaceScript`, `file_changes`). A case's own workspace is removed when
its execution is scored, a shared one at the end of the run. git compares copies in a separate repository: otherwise
the agent could choose the changes.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path

from eval_gate.engine.hooks import HookError, HookRunner, PreparationError
from eval_gate.evaluators.base import WorkspaceState
from eval_gate.files.file_paths import format_relative_path
from eval_gate.model.case import CaseWorkspace, EvalCase, HookName, WorkspaceHooks
from eval_gate.model.limits import WORKSPACE_CHANGES
from eval_gate.process.git import compare_commits
from eval_gate.process.identity import Identity, find_identity
from eval_gate.sandbox.paths import SandboxError
from eval_gate.sandbox.sandbox import InitialFile, Sandbox
from eval_gate.sandbox.sandbox_setup import compute_template_digest, read_template, read_workspace
from eval_gate.struct import Struct, field, replace
from eval_gate.targets.base import Target


class OpenHooks:
    """Hooks of cases that share an agent or a workspace, while these cases run."""

    def __init__(self, case: EvalCase, hooks: HookRunner, target: Target | None = None) -> None:
        """`case` is one of the cases, which have the same hooks for all of them."""
        self._hooks, self._target, self._common = hooks, target, case.hooks
        self._begun: EvalCase | None = None
        """Case with hooks of its own that is not cleaned up."""
        self._cleanup: asyncio.Task[str | None] | None = None

    @property
    def path(self) -> Path | None:
        """The folder; None without one."""
        return None

    async def prepare(self, case: EvalCase | None) -> None:
        """Run `before_all`, for `case` or with None for all cases. Raises PreparationError."""
        await self._hooks.run("before_all", self._common, case, self.path, self._target)

    async def begin_case(self, case: EvalCase) -> None:
        """Run the case's `before_each`. Raises PreparationError."""
        if case.hooks.after_each:
            self._begun = case
        await self._hooks.run("before_each", case.hooks, case, self.path, self._target)

    async def end_case(self, case: EvalCase) -> WorkspaceState | None:
        """Read the state for graders, and run the case's `after_each`. Raises HookError if that fails."""
        state = await self.read_state()
        if problem := await self.clean_up_case(case):
            raise HookError(problem)
        return state

    async def clean_up_case(self, case: EvalCase) -> str | None:
        """Run the case's `after_each` unless that is done, even if this is cancelled; why it failed."""
        if self._begun is not case:
            return None
        self._begun = None
        self._cleanup = asyncio.create_task(self._run_after("after_each", case.hooks, case))
        await asyncio.wait([self._cleanup])
        problem, self._cleanup = self._cleanup.result(), None
        return problem

    async def clean_up(self) -> str | None:
        """Run `after_all`, after what still cleans up after a case; why that failed."""
        problem = None if self._cleanup is None else await self._cleanup
        return await self._run_after("after_all", self._common, None) or problem

    async def _run_after(self, name: HookName, hooks: WorkspaceHooks, case: EvalCase | None) -> str | None:
        try:
            await self._hooks.run(name, hooks, case, self.path, self._target)
        except HookError as error:
            return str(error)
        return None

    async def read_state(self) -> WorkspaceState | None:
        """Read the state for graders; None without a folder."""
        return None

    def close(self) -> None:
        """Remove the folder, if there is one."""


class OpenWorkspace(OpenHooks):
    """One workspace on disk, with its hooks. `close` removes it with all that is in it."""

    def __init__(self, case: EvalCase, settings: CaseWorkspace, hooks: HookRunner) -> None:
        """Copy the template into a fresh folder. Raises PreparationError."""
        super().__init__(case, hooks)
        self._start: Sequence[InitialFile] | str | None = None
        """Files when the case began, or why they are unknown; None before."""
        with _report_errors():
            self._sandbox = Sandbox(initial_files=_read_unchanged_template(settings))
        try:
            with _report_errors():
                identity = find_identity(Path(settings.folder))
                if identity is not None:
                    _give_away(self.path, identity)
        except PreparationError:
            self.close()
            raise

    @property
    def path(self) -> Path:
        """The folder."""
        return self._sandbox.path

    async def prepare(self, case: EvalCase | None) -> None:
        """Run `before_all`. The changes of cases that share the workspace count from here on."""
        await super().prepare(case)
        if case is None:
            self._mark_start()

    async def begin_case(self, case: EvalCase) -> None:
        """Run the case's `before_each`. Changes count from here on, if it has one."""
        await super().begin_case(case)
        if case.hooks.before_each or self._start is None:
            self._mark_start()

    def _mark_start(self) -> None:
        """Remember the present files, or why they cannot be compared: only some graders need them."""
        try:
            self._start = read_workspace(self.path)
        except (SandboxError, OSError) as error:
            self._start = _describe_error(error)

    async def read_state(self) -> WorkspaceState:
        """Read the state for graders: the folder and its changes."""
        try:
            changes = await asyncio.to_thread(self._compare)
        except (SandboxError, OSError) as error:
            return WorkspaceState(str(self.path), problem=_describe_error(error))
        return WorkspaceState(str(self.path), changes=changes.strip() or None)

    def _compare(self) -> str:
        if isinstance(self._start, str):
            raise SandboxError(self._start)
        start, end = self._start or (), read_workspace(self.path)
        same = frozenset(start) & frozenset(end)
        # masked before each line gets its sign, behind which a key of several lines would not be found
        old, new = ([self._mask_file(one) for one in files if one not in same] for files in (start, end))
        return format_changes(old, new)

    def _mask_file(self, file: InitialFile) -> InitialFile:
        mask = self._hooks.redactor.mask_bytes
        path = mask(file.path.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
        return replace(file, path=path, data=file.data and mask(file.data))

    def close(self) -> None:
        """Remove the folder."""
        self._sandbox.close()


class _SharedPlace(Struct):
    """Workspace or agent that the cases of a suite share, opened on first use, and the lock for that."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    opened: OpenHooks | None = None
    problem: PreparationError | None = None
    """Why it could not be prepared; applies to all its cases."""


class CaseWorkspaces:
    """Workspaces and hooks of one run. `notices` are hooks that failed and decide no case."""

    def __init__(self, hooks: HookRunner | None = None) -> None:
        self._hooks = hooks or HookRunner()
        self.notices: list[str] = []
        self._places: dict[tuple[str, int], _SharedPlace] = {}
        self._turns: dict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Turns of executions with hooks, by the `id` of the agent, whose state they change."""

    @asynccontextmanager
    async def open_workspace(self, case: EvalCase, trial: int, target: Target) -> AsyncIterator[OpenHooks | None]:
        """Open the workspace of this execution, or prepare its agent; None for a case without either.

        The cases of a suite that share a workspace use it one at a time, in the order in which they ask for it.
        Raises PreparationError.
        """
        settings = case.workspace
        if settings is None:
            async with self._prepare_agent(case, target) as agent:
                yield agent
        elif settings.shared:
            place = self._places.setdefault((case.suite, trial), _SharedPlace())
            async with place.lock:
                workspace = await self._open_shared(place, lambda: OpenWorkspace(case, settings, self._hooks))
                await workspace.begin_case(case)
                yield workspace
        else:
            workspace = OpenWorkspace(case, settings, self._hooks)
            try:
                await workspace.prepare(case)
                await workspace.begin_case(case)
                yield workspace
            finally:
                workspace.close()

    @asynccontextmanager
    async def _prepare_agent(self, case: EvalCase, target: Target) -> AsyncIterator[OpenHooks | None]:
        """Prepare the agent if the case has hooks, and clean up, also after a failure or where the run is stopped."""
        if not case.hooks.list_hooks():
            yield None
            return
        place = self._places.setdefault((case.suite, id(target)), _SharedPlace())
        async with place.lock:
            agent = await self._open_shared(place, lambda: OpenHooks(case, self._hooks, target))
        has_turn = bool(case.hooks.before_each or case.hooks.after_each)
        async with self._turns[id(target)] if has_turn else nullcontext():
            try:
                await agent.begin_case(case)
                yield agent
            finally:
                self._add_notice(case.suite, await agent.clean_up_case(case))

    async def _open_shared(self, place: _SharedPlace, open_hooks: Callable[[], OpenHooks]) -> OpenHooks:
        """Open and prepare what cases share, if that is not done yet. Raises PreparationError, each time the same."""
        if place.problem is not None:
            raise place.problem
        if place.opened is None:
            place.opened = open_hooks()
            try:
                await place.opened.prepare(None)
            except BaseException as error:
                place.problem = error if isinstance(error, PreparationError) else None
                if place.opened.path is not None:  # a half-prepared agent is cleaned up, and a folder is gone
                    place.opened.close()
                    place.opened = None
                raise
        return place.opened

    def _add_notice(self, suite: str, problem: str | None) -> None:
        notice = f"{suite}: {problem}"
        if problem and notice not in self.notices:
            self.notices.append(notice)

    async def aclose(self) -> None:
        """Run the last hooks of suites and shared workspaces, and remove these."""
        opened = [(suite, place.opened) for (suite, _), place in self._places.items() if place.opened is not None]
        self._places.clear()
        try:
            for suite, one in opened:
                self._add_notice(suite, await one.clean_up())
        finally:
            for _, one in opened:
                one.close()


def _read_unchanged_template(settings: CaseWorkspace) -> tuple[InitialFile, ...]:
    """Read the template as it was when the eval file was loaded. Raises PreparationError if it changed since."""
    if settings.template is None:
        return ()
    files = read_template(Path(settings.template))
    if compute_template_digest(files) != settings.digest:
        name = format_relative_path(Path(settings.template))
        raise PreparationError(f"the workspace template {name} changed while the run was under way")
    return files


@contextmanager
def _report_errors() -> Iterator[None]:
    try:
        yield
    except (SandboxError, OSError) as error:
        raise PreparationError(f"the workspace cannot be made: {_describe_error(error)}") from error


def _give_away(folder: Path, identity: Identity) -> None:
    """Make the fresh folder and all in it the property of the user that programs run as. Raises OSError."""
    for above, folders, files in os.walk(folder):
        for name in (*folders, *files):
            identity.take_ownership(Path(above) / name)
    identity.take_ownership(folder)


def _describe_error(error: SandboxError | OSError) -> str:
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error)


def format_changes(
    old_files: Iterable[InitialFile], new_files: Iterable[InitialFile], limit: int = WORKSPACE_CHANGES
) -> str:
    """Format the changes from `old_files` to `new_files` as a unified diff; the result is empty without any.

    Folders, and a repository in the folder, are of no interest. A file that only moved is a rename. A file that moved
    and changed is a removed and an added one. Raises SandboxError if the changes have more than `limit` characters, or
    if git is missing.
    """
    stream = b"".join((*_iter_commit("old", old_files), *_iter_commit("new", new_files)))
    changes = compare_commits(stream)
    if changes is None:
        raise SandboxError("The changes cannot be shown: git is missing or failed.")
    diff = changes.decode("utf-8", "replace")
    if len(diff) > limit:
        raise SandboxError("The changes are too long to be shown.")
    return diff


def _iter_commit(branch: str, files: Iterable[InitialFile]) -> Iterator[bytes]:
    """Yield the commands of `git fast-import` for a branch with these files."""
    yield f"commit refs/heads/{branch}\ncommitter <> 0 +0000\ndata 0\n".encode()
    for file in files:
        if file.data is not None and ".git" not in file.path.lower().split("/"):
            mode = "100755" if file.executable else "100644"
            yield f"M {mode} inline ".encode() + _quote_path(file.path) + b"\ndata %d\n" % len(file.data)
            yield file.data + b"\n"


def _quote_path(path: str) -> bytes:
    data = path.encode("utf-8", "surrogateescape")
    return b'"' + data.replace(b"\\", rb"\\").replace(b'"', rb"\"").replace(b"\n", rb"\n") + b'"'
