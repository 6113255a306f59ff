"""Opens the workspaces of cases: fresh copies of a template in which targets work and graders look.

Source: AgentV 4.42.4 (`workspace`). A workspace of its own is removed when its execution is scored, a shared one at the
end of the run.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from eval_gate.evaluators.base import WorkspaceState
from eval_gate.model.case import CaseWorkspace, EvalCase
from eval_gate.process.captured_output import Mask
from eval_gate.process.identity import Identity, find_identity
from eval_gate.sandbox.folder_changes import format_changes
from eval_gate.sandbox.paths import SandboxError
from eval_gate.sandbox.sandbox import InitialFile, Sandbox
from eval_gate.sandbox.workspace_template import compute_template_digest, read_template, read_workspace
from eval_gate.struct import Struct, field


class WorkspaceError(Exception):
    """A workspace that cannot be made or read: an evaluation error, never an agent error."""


class OpenWorkspace:
    """One workspace on disk. `close` removes it with all that is in it."""

    def __init__(self, settings: CaseWorkspace) -> None:
        """Copy the template into a fresh folder. Raises WorkspaceError."""
        try:
            self._sandbox = Sandbox(initial_files=_read_unchanged_template(settings))
            identity = find_identity(Path(settings.folder))
            if identity is not None:
                _give_away(self.path, identity)
            self._before: Sequence[InitialFile] = read_workspace(self.path)
        except (SandboxError, OSError) as error:
            raise WorkspaceError(f"the workspace cannot be made: {_describe_error(error)}") from error

    @property
    def path(self) -> Path:
        """The folder."""
        return self._sandbox.path

    async def read_state(self, mask: Mask | None) -> WorkspaceState:
        """Read what graders get: the folder, and what changed in it since it was made."""
        try:
            changes = await asyncio.to_thread(self._compare)
        except (SandboxError, OSError) as error:
            return WorkspaceState(str(self.path), problem=_describe_error(error))
        if mask is not None:
            changes = mask(changes.encode("utf-8", "surrogateescape")).decode("utf-8", "replace")
        return WorkspaceState(str(self.path), changes=changes.strip() or None)

    def _compare(self) -> str:
        return format_changes(self._before, read_workspace(self.path))

    def close(self) -> None:
        """Remove the folder."""
        self._sandbox.close()


class _SharedPlace(Struct):
    """Shared workspace of a suite, opened on first use, and the lock for its turns."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    workspace: OpenWorkspace | None = None


class CaseWorkspaces:
    """Workspaces of one run."""

    def __init__(self) -> None:
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
                place.workspace = place.workspace or OpenWorkspace(settings)
                yield place.workspace
        else:
            workspace = OpenWorkspace(settings)
            try:
                yield workspace
            finally:
                workspace.close()

    async def aclose(self) -> None:
        """Remove the shared workspaces."""
        for place in self._places.values():
            if place.workspace is not None:
                place.workspace.close()
        self._places.clear()


def _read_unchanged_template(settings: CaseWorkspace) -> tuple[InitialFile, ...]:
    """Read the template as it was when the eval file was loaded. Raises WorkspaceError if it changed since."""
    if settings.template is None:
        return ()
    files = read_template(Path(settings.template))
    if compute_template_digest(files) != settings.digest:
        raise WorkspaceError("the template of the workspace changed after the eval file was read")
    return files


def _give_away(folder: Path, identity: Identity) -> None:
    """Make the fresh folder and all in it the property of the user that programs run as. Raises OSError."""
    for above, folders, files in os.walk(folder):
        for name in (*folders, *files):
            identity.take_ownership(Path(above) / name)
    identity.take_ownership(folder)


def _describe_error(error: SandboxError | OSError) -> str:
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error)
