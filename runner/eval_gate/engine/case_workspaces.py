"""Opens the workspaces of cases: fresh copies of a template in which targets work and graders look.

Source: AgentV 4.42.4 (`workspace`). A workspace of its own is removed when its execution is scored, a shared one at the
end of the run.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from eval_gate.engine.folder_changes import format_changes
from eval_gate.engine.workspace_hooks import HookError, HookRunner
from eval_gate.evaluators.base import EvaluatorError, WorkspaceState
from eval_gate.files.file_paths import format_relative_path
from eval_gate.model.case import CaseWorkspace, EvalCase, HookName, WorkspaceHooks
from eval_gate.process.identity import Identity, find_identity
from eval_gate.sandbox.paths import SandboxError
from eval_gate.sandbox.sandbox import InitialFile, Sandbox
from eval_gate.sandbox.sandbox_setup import compute_template_digest, read_template, read_workspace
from eval_gate.struct import Struct, field, replace


class WorkspaceError(Exception):
    """A workspace that cannot be made or prepared: an evaluation error, never an agent error."""


class OpenWorkspace:
    """One workspace on disk. `close` removes it with all that is in it."""

    def __init__(self, settings: CaseWorkspace, hooks: HookRunner) -> None:
        """Copy the template into a fresh folder. Raises WorkspaceError."""
        self._settings = settings
        self._hooks = hooks
        self._start: Sequence[InitialFile] | str | None = None
        """What was there when the case began, or why that is not known; None before."""
        with _report_errors():
            self._sandbox = Sandbox(initial_files=_read_unchanged_template(settings))
        try:
            with _report_errors():
                identity = find_identity(Path(settings.folder))
                if identity is not None:
                    _give_away(self.path, identity)
        except WorkspaceError:
            self.close()
            raise

    @property
    def path(self) -> Path:
        """The folder."""
        return self._sandbox.path

    async def prepare(self, case: EvalCase | None) -> None:
        """Run `before_all`, for `case` or with None for all cases that share the workspace. Raises WorkspaceError."""
        await self._run_hook("before_all", self._settings.hooks, case)
        if case is None:
            self._mark_start()

    async def begin_case(self, case: EvalCase) -> None:
        """Run the case's `before_each`. Changes count from here on, if it has one. Raises WorkspaceError."""
        hooks = case.workspace.hooks if case.workspace is not None else WorkspaceHooks()
        await self._run_hook("before_each", hooks, case)
        if hooks.before_each is not None or self._start is None:
            self._mark_start()

    async def end_case(self, case: EvalCase) -> WorkspaceState:
        """Read what graders get, and run the case's `after_each`. Raises EvaluatorError if that fails."""
        state = await self._read_state()
        hook = None if case.workspace is None else case.workspace.hooks.after_each
        if hook is not None:
            try:
                await self._hooks.run("after_each", hook, self.path, case)
            except HookError as error:
                raise EvaluatorError(str(error)) from error
        return state

    async def clean_up(self) -> str | None:
        """Run `after_all` of a shared workspace; why that failed."""
        hook = self._settings.hooks.after_all
        try:
            if hook is not None:
                await self._hooks.run("after_all", hook, self.path, None)
        except HookError as error:
            return str(error)
        return None

    async def _run_hook(self, name: HookName, hooks: WorkspaceHooks, case: EvalCase | None) -> None:
        hook = hooks.before_all if name == "before_all" else hooks.before_each
        try:
            if hook is not None:
                await self._hooks.run(name, hook, self.path, case)
        except HookError as error:
            raise WorkspaceError(str(error)) from error

    def _mark_start(self) -> None:
        """Remember what is there now. A hook may put more there than can be compared, which only some graders need."""
        try:
            self._start = read_workspace(self.path)
        except (SandboxError, OSError) as error:
            self._start = _describe_error(error)

    async def _read_state(self) -> WorkspaceState:
        """Read what graders get: the folder, and what changed in it."""
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
        if self._hooks.mask is None:
            return file
        path = self._hooks.mask(file.path.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
        return replace(file, path=path, data=file.data and self._hooks.mask(file.data))

    def close(self) -> None:
        """Remove the folder."""
        self._sandbox.close()


class _SharedPlace(Struct):
    """Shared workspace of a suite, opened on first use, and the lock for its turns."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    workspace: OpenWorkspace | None = None
    problem: str | None = None
    """Why it could not be prepared, which holds for all its cases."""


class CaseWorkspaces:
    """Workspaces of one run. `notices` are hooks that failed after all cases of a workspace."""

    def __init__(self, hooks: HookRunner | None = None) -> None:
        self._hooks = hooks or HookRunner()
        self.notices: list[str] = []
        self._places: dict[tuple[str, int], _SharedPlace] = {}

    @asynccontextmanager
    async def open_workspace(self, case: EvalCase, trial: int) -> AsyncIterator[OpenWorkspace | None]:
        """Open the workspace of this execution; None for a case without one. Raises WorkspaceError.

        The cases of a suite that share one use it one at a time, in the order in which they ask for it.
        """
        settings = case.workspace
        if settings is None:
            yield None
        elif settings.shared:
            place = self._places.setdefault((case.suite, trial), _SharedPlace())
            async with place.lock:
                workspace = await self._open_shared(place, settings)
                await workspace.begin_case(case)
                yield workspace
        else:
            workspace = OpenWorkspace(settings, self._hooks)
            try:
                await workspace.prepare(case)
                await workspace.begin_case(case)
                yield workspace
            finally:
                workspace.close()

    async def _open_shared(self, place: _SharedPlace, settings: CaseWorkspace) -> OpenWorkspace:
        """Open and prepare a shared workspace, if that is not done yet. Raises WorkspaceError, each time the same."""
        if place.problem is not None:
            raise WorkspaceError(place.problem)
        if place.workspace is None:
            workspace = OpenWorkspace(settings, self._hooks)
            try:
                await workspace.prepare(None)
            except BaseException as error:
                workspace.close()
                place.problem = str(error) if isinstance(error, WorkspaceError) else None
                raise
            place.workspace = workspace
        return place.workspace

    async def aclose(self) -> None:
        """Run the last hooks of the shared workspaces, and remove these."""
        opened = [(suite, place.workspace) for (suite, _), place in self._places.items() if place.workspace is not None]
        self._places.clear()
        try:
            for suite, workspace in opened:
                if problem := await workspace.clean_up():
                    self.notices.append(f"{suite}: {problem}")
        finally:
            for _, workspace in opened:
                workspace.close()


def _read_unchanged_template(settings: CaseWorkspace) -> tuple[InitialFile, ...]:
    """Read the template as it was when the eval file was loaded. Raises WorkspaceError if it changed since."""
    if settings.template is None:
        return ()
    files = read_template(Path(settings.template))
    if compute_template_digest(files) != settings.digest:
        name = format_relative_path(Path(settings.template))
        raise WorkspaceError(f"the workspace template {name} changed while the run was under way")
    return files


@contextmanager
def _report_errors() -> Iterator[None]:
    try:
        yield
    except (SandboxError, OSError) as error:
        raise WorkspaceError(f"the workspace cannot be made: {_describe_error(error)}") from error


def _give_away(folder: Path, identity: Identity) -> None:
    """Make the fresh folder and all in it the property of the user that programs run as. Raises OSError."""
    for above, folders, files in os.walk(folder):
        for name in (*folders, *files):
            identity.take_ownership(Path(above) / name)
    identity.take_ownership(folder)


def _describe_error(error: SandboxError | OSError) -> str:
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error)
