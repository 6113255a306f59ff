"""Folders of VS Code subagents: lock, workspace and messages (agentv behaviour 5.5).

Other programs use the same folders, so their content is not trusted: links are neither followed nor written through,
and only files of the messages folder are ever removed.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from eval_gate.files.reading import read_limited
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.process.captured_output import CapturedOutput
from eval_gate.process.identity import find_identity
from eval_gate.process.private_folder import PrivateFolder
from eval_gate.targets.base import TargetError
from eval_gate.targets.coding_agent import build_program_error

LOCK_NAME: Final = "subagent.lock"
ALIVE_NAME: Final = ".alive"
MAX_TEMPLATE: Final = limits.SUBAGENT_BYTES
_NAME_PATTERN: Final = re.compile(r"subagent-(\d{1,9})")
_WAKEUP_MODE: Final = "---\ndescription: Shows that this workspace is ready\n---\n"
_EMPTY_WORKSPACE: Final[dict[str, JsonValue]] = {"folders": [{"path": "."}]}


class Subagent:
    """Subagent with our lock. Methods raise OSError, for example for a link instead of a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self.workspace = path / f"{path.name}.code-workspace"
        self.messages = path / "messages"

    def prepare(self, workspace: JsonValue) -> None:
        """Write the workspace file, and remove what earlier requests left in the messages folder."""
        self._write_file((), self.workspace.name, json.dumps(workspace, indent=2))
        with _open_folder(self.path, ("messages",)) as (_, descriptor), os.scandir(descriptor) as entries:
            for entry in list(entries):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.name, dir_fd=descriptor)

    def prepare_wakeup(self) -> None:
        """Write the chat mode that wakes it up, and remove its `.alive` file."""
        self._write_file((".github", "agents"), "wakeup.md", _WAKEUP_MODE)
        (self.path / ALIVE_NAME).unlink(missing_ok=True)

    @property
    def awake(self) -> bool:
        """Whether it has created its `.alive` file."""
        return os.path.lexists(self.path / ALIVE_NAME)

    def write_message(self, name: str, text: str) -> Path:
        """Write a file to its messages folder."""
        return self._write_file(("messages",), name, text)

    def read_message(self, name: str, limit: int) -> CapturedOutput | None:
        """Read head and tail of a message of the agent; None if it is missing. Raises ProcessError for a link."""
        with _open_folder(self.path, ("messages",)) as (folder, _):
            return folder.read(name, limit)

    def _write_file(self, folders: tuple[str, ...], name: str, text: str) -> Path:
        with _open_folder(self.path, folders) as (folder, descriptor):
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=descriptor)
            return folder.write(name, text.encode("utf-8", "replace"))


def list_subagents(root: Path) -> list[Path]:
    """List the folders of all subagents, sorted by number."""
    try:
        with os.scandir(root) as entries:
            folders = [
                (int(match[1]), root / entry.name)
                for entry in entries
                if (match := _NAME_PATTERN.fullmatch(entry.name)) and entry.is_dir(follow_symlinks=False)
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [path for _, path in sorted(folders)]


def get_unlocked_subagent(root: Path) -> Path:
    """Return the folder of the first subagent that is not locked. Raises TargetError (unreachable) without one."""
    for path in list_subagents(root):
        if not os.path.lexists(path / LOCK_NAME):
            return path
    raise _build_no_subagent_error(root)


@contextmanager
def claim_subagent(root: Path) -> Iterator[Subagent]:
    """Lock the first free subagent for the time inside this context.

    Raises TargetError (unreachable) if none is free, and OSError.

    The lock is removed in every case, unless it now belongs to another program: the agent may have removed it, and
    another program may have locked the subagent since.
    """
    token = f"eval-gate {secrets.token_hex(8)}\n".encode()
    for path in list_subagents(root):
        try:
            with _open_folder(path, ()) as (folder, _):
                folder.write(LOCK_NAME, token)
        except FileExistsError:
            continue
        try:
            yield Subagent(path)
        finally:
            _remove_lock(path, token)
        return
    raise _build_no_subagent_error(root)


def build_workspace(template: Path | None) -> JsonValue:
    """Build the workspace to open from the template, or an empty one, with the subagent's folder first.

    Relative folders of a template are relative to the folder of the template. Raises TargetError (unreachable) if
    the template is not a workspace.
    """
    if template is None:
        return _EMPTY_WORKSPACE
    try:
        data = read_limited(template, MAX_TEMPLATE)
        workspace = json.loads(data) if len(data) <= MAX_TEMPLATE else None
    except OSError as error:
        raise _build_template_error(template, f"cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise _build_template_error(template, "is not JSON (comments are not supported)") from error
    folders = workspace.get("folders", []) if isinstance(workspace, dict) else None
    if not isinstance(workspace, dict) or not isinstance(folders, list):
        raise _build_template_error(template, f"is not a workspace, or is larger than {MAX_TEMPLATE:,} bytes")
    return workspace | {
        "folders": [{"path": "."}, *(_resolve_folder(folder, template.absolute().parent) for folder in folders)]
    }


def _resolve_folder(folder: JsonValue, template_folder: Path) -> JsonValue:
    """Make the path of a workspace folder absolute; `template_folder` is that of the template."""
    path = folder.get("path") if isinstance(folder, dict) else None
    if not isinstance(folder, dict) or not isinstance(path, str):
        return folder
    return folder | {"path": os.path.normpath(template_folder / path)}


@contextmanager
def _open_folder(path: Path, folders: tuple[str, ...]) -> Iterator[tuple[PrivateFolder, int]]:
    """Create and open a folder below a subagent's folder; a link on the way raises OSError."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    identity = find_identity(path)
    descriptor = os.open(path, flags)
    try:
        for name in folders:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=descriptor)
                if identity:
                    os.chown(name, identity.uid, identity.gid, dir_fd=descriptor, follow_symlinks=False)
            child = os.open(name, flags, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = child
        yield PrivateFolder(path.joinpath(*folders), descriptor, identity), descriptor
    finally:
        os.close(descriptor)


def _remove_lock(path: Path, token: bytes) -> None:
    with suppress(OSError), _open_folder(path, ()) as (folder, descriptor):
        held = folder.read(LOCK_NAME, len(token))
        if held is not None and held.data == token and not held.is_truncated:
            os.unlink(LOCK_NAME, dir_fd=descriptor)


def _build_no_subagent_error(root: Path) -> TargetError:
    count = len(list_subagents(root))
    what = f"all {count} subagents in {root} are locked" if count else f"{root} has no subagent"
    free = f"remove {LOCK_NAME} in a folder that is not in use"
    hint = free if count else f"create the empty folder {root / 'subagent-1'}"
    return build_program_error(what, hint)


def _build_template_error(template: Path, why: str) -> TargetError:
    return build_program_error(f"the workspace template {template} {why}")
