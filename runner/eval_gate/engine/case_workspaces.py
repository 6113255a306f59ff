"""Workspaces of cases: fresh copies of a template in which targets work and graders look, with their hooks.

Source: AgentV 4.42.4 (`workspace`, `executeWorkspaceScript`, `file_changes`). A case's own workspace is removed when
its execution is scored, a shared one at the end of the run. Hooks run as graders that are programs do: without
secrets, as the same user. git compares copies in a separate repository: otherwise the agent could choose the changes.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final, Self

from eval_gate.engine.run_plan import RunPlan
from eval_gate.evaluators.base import EvaluatorError, WorkspaceState
from eval_gate.files.file_paths import format_relative_path
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseWorkspace, EvalCase, HookName, WorkspaceHook, WorkspaceHooks
from eval_gate.model.limits import WORKSPACE_CHANGES
from eval_gate.process.captured_output import Mask
from eval_gate.process.environment import WithheldVariables
from eval_gate.process.git import compare_commits
from eval_gate.process.identity import Identity, find_identity
from eval_gate.process.misplaced_files import find_path_hint
from eval_gate.process.run import Command, ProcessError, run
from eval_gate.sandbox.paths import SandboxError
from eval_gate.sandbox.sandbox import InitialFile, Sandbox
from eval_gate.sandbox.sandbox_setup import compute_template_digest, read_template, read_workspace
from eval_gate.struct import FrozenStruct, Struct, field, replace
from eval_gate.text.untrusted.surrogates import to_well_formed

_MAX_QUOTED: Final = 300
_VARIABLE: Final = re.compile(r"\{\{(\w+)\}\}")


class HookError(Exception):
    """A hook that failed, did not end in time or could not be started: an evaluation error."""


class HookRunner(FrozenStruct):
    """Runner of the hooks of one run."""

    environment: Mapping[str, str] = field(default_factory=dict)
    """All the variables that a hook gets."""
    withheld: WithheldVariables = field(default_factory=WithheldVariables)
    mask: Mask | None = None
    run_id: str = ""

    @classmethod
    def from_plan(cls, plan: RunPlan) -> Self:
        """Build the runner of a planned run."""
        return cls(plan.environment, plan.withheld, plan.redactor.mask_bytes, plan.run_id)

    async def run(self, name: HookName, hook: WorkspaceHook, workspace: Path, case: EvalCase | None) -> None:
        """Run a hook in the workspace of `case`; with None, in one that is shared. Raises HookError."""
        hook_input = _build_input(name, workspace, self.run_id, case)
        usual_s = limits.HOOK_CLEANUP_S if name.startswith("after") else limits.HOOK_PREPARATION_S
        limit_s = usual_s if hook.timeout_ms is None else hook.timeout_ms / 1000
        command = Command(
            tuple(_fill_in(word, hook_input) for word in hook.command),
            Path(hook.cwd),
            self.environment,
            stdin=json.dumps(hook_input).encode(),
            timeout_s=limit_s,
            max_output=limits.HOOK_BYTES,
            max_errors=limits.HOOK_BYTES,
            mask=self.mask,
        )
        try:
            finished = await run(command)
        except ProcessError as error:
            hint = find_path_hint(command.line, command.cwd)
            raise HookError(
                f"the {name} hook could not be run: {error.message}{f'; {hint}' if hint else ''}"
            ) from error
        words = finished.stderr.format_last_line(_MAX_QUOTED)
        quote = f": {words}" if words else ""
        if finished.timed_out:
            raise HookError(f"the {name} hook did not end within {limit_s:g} s{quote}")
        if finished.code:
            hint = self.withheld.find_hint(" ".join(hook.command), quote) or find_path_hint(command.line, command.cwd)
            raise HookError(f"the {name} hook {finished.ending}{quote}{f'; {hint}' if hint else ''}")


def _build_input(name: str, workspace: Path, run_id: str, case: EvalCase | None) -> dict[str, JsonValue]:
    """Build the input of a hook: its standard input, and the values for its command."""
    brief = None if case is None else case.brief
    return {
        "workspace_path": str(workspace),
        "test_id": f"__{name}__" if case is None else case.id,
        "eval_run_id": run_id,
        "case_input": None if brief is None else brief.question,
        "case_metadata": None if brief is None else brief.metadata,
    }


def _fill_in(word: str, values: Mapping[str, JsonValue]) -> str:
    """Fill in the variables of a word; unknown ones stay."""

    def replace_variable(match: re.Match[str]) -> str:
        if match[1] not in values:
            return match[0]
        value = values[match[1]]
        return value if isinstance(value, str) else "" if value is None else json.dumps(value, separators=(",", ":"))

    return to_well_formed(_VARIABLE.sub(replace_variable, word))


class WorkspaceError(Exception):
    """A workspace that cannot be made or prepared: an evaluation error, never an agent error."""


class OpenWorkspace:
    """One workspace on disk. `close` removes it with all that is in it."""

    def __init__(self, settings: CaseWorkspace, hooks: HookRunner) -> None:
        """Copy the template into a fresh folder. Raises WorkspaceError."""
        self._settings = settings
        self._hooks = hooks
        self._start: Sequence[InitialFile] | str | None = None
        """Files when the case began, or why they are unknown; None before."""
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
        """Read the state for graders, and run the case's `after_each`. Raises EvaluatorError if that fails."""
        state = await self.read_state()
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
    """Why the workspace could not be prepared; applies to all its cases."""


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
