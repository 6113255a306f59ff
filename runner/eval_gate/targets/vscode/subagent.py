"""Subagents of VS Code on disk: `subagent-N` folders with a lock, a workspace and messages (agentv behaviour 5.5).

Other programs work with the same folders, so what lies in them is not trusted: links are neither followed nor written
through, and only files of the messages folder are ever removed.
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

from eval_gate.files.reading import read_up_to
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.process.captured import Captured
from eval_gate.process.folder import PrivateFolder
from eval_gate.process.identity import identity_for
from eval_gate.targets.base import TargetError, TargetFault

LOCK: Final = "subagent.lock"
ALIVE: Final = ".alive"
MAX_TEMPLATE: Final = limits.SUBAGENT_BYTES
_NAME: Final = re.compile(r"subagent-(\d{1,9})")
_WAKEUP: Final = "---\ndescription: Shows that this workspace is ready\n---\n"
_EMPTY: Final[dict[str, JsonValue]] = {"folders": [{"path": "."}]}


class Subagent:
    """One subagent whose lock is ours. Methods raise OSError, as when a link is in the place of a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self.workspace = path / f"{path.name}.code-workspace"
        self.messages = path / "messages"

    def prepare(self, workspace: JsonValue) -> None:
        """Write the workspace file, and remove what earlier requests left in the messages folder."""
        self._write((), self.workspace.name, json.dumps(workspace, indent=2))
        with _opened(self.path, ("messages",)) as (_, descriptor), os.scandir(descriptor) as entries:
            for entry in list(entries):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.name, dir_fd=descriptor)

    def prepare_wakeup(self) -> None:
        """Write the chat mode that is used to wake it up, and forget that it ever was awake."""
        self._write((".github", "agents"), "wakeup.md", _WAKEUP)
        (self.path / ALIVE).unlink(missing_ok=True)

    @property
    def awake(self) -> bool:
        """Whether it has shown that it works."""
        return os.path.lexists(self.path / ALIVE)

    def write_message(self, name: str, text: str) -> Path:
        """Put a file into its messages folder."""
        return self._write(("messages",), name, text)

    def has_message(self, name: str) -> bool:
        """Whether there is such a file."""
        return os.path.lexists(self.messages / name)

    def read_message(self, name: str, limit: int) -> Captured | None:
        """What the agent wrote. Raises ProcessError for what is no ordinary file."""
        with _opened(self.path, ("messages",)) as (folder, _):
            return folder.read(name, limit)

    def _write(self, folders: tuple[str, ...], name: str, text: str) -> Path:
        """A new file in the place of an old one."""
        with _opened(self.path, folders) as (folder, descriptor):
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=descriptor)
            return folder.write(name, text.encode("utf-8", "replace"))


def provision_subagents(root: Path) -> list[Path]:
    """The folders of all subagents, by number."""
    try:
        with os.scandir(root) as entries:
            found = [
                (int(match[1]), root / entry.name)
                for entry in entries
                if (match := _NAME.fullmatch(entry.name)) and entry.is_dir(follow_symlinks=False)
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [path for _, path in sorted(found)]


def first_unlocked(root: Path) -> Path:
    """The first subagent that nobody holds. Raises TargetError (unreachable) when there is none."""
    for path in provision_subagents(root):
        if not os.path.lexists(path / LOCK):
            return path
    raise _nobody(root)


@contextmanager
def claim_subagent(root: Path) -> Iterator[Subagent]:
    """The first subagent that nobody holds, ours until the end. Raises TargetError (unreachable), OSError.

    The lock is removed in every case, unless it is no longer ours: the agent may have removed it, and another program
    may have taken it since.
    """
    token = f"eval-gate {secrets.token_hex(8)}\n".encode()
    for path in provision_subagents(root):
        try:
            with _opened(path, ()) as (folder, _):
                folder.write(LOCK, token)
        except FileExistsError:
            continue
        try:
            yield Subagent(path)
        finally:
            _unlock(path, token)
        return
    raise _nobody(root)


def workspace_from(template: Path | None) -> JsonValue:
    """The workspace to open: the template's, or an empty one, with the subagent's own folder first.

    Relative folders of a template mean what they mean beside it. Raises TargetError (unreachable) for what is none.
    """
    if template is None:
        return _EMPTY
    try:
        data = read_up_to(template, MAX_TEMPLATE)
        found = json.loads(data) if len(data) <= MAX_TEMPLATE else None
    except OSError as error:
        raise _no_template(template, f"cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise _no_template(template, "is not JSON (comments are not read)") from error
    folders = found.get("folders", []) if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(folders, list):
        raise _no_template(template, f"is no workspace, or larger than {MAX_TEMPLATE:,} bytes")
    return found | {"folders": [{"path": "."}, *(_placed(folder, template.absolute().parent) for folder in folders)]}


def _placed(folder: JsonValue, beside: Path) -> JsonValue:
    """A folder of a workspace, its path absolute."""
    path = folder.get("path") if isinstance(folder, dict) else None
    if not isinstance(folder, dict) or not isinstance(path, str):
        return folder
    return folder | {"path": os.path.normpath(beside / path)}


@contextmanager
def _opened(path: Path, folders: tuple[str, ...]) -> Iterator[tuple[PrivateFolder, int]]:
    """A folder below a subagent's, made where it is missing, and its descriptor. A link on the way is an OSError."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    identity = identity_for(path)
    descriptor = os.open(path, flags)
    try:
        for name in folders:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=descriptor)
                if identity:
                    os.chown(name, identity.uid, identity.gid, dir_fd=descriptor, follow_symlinks=False)
            below = os.open(name, flags, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield PrivateFolder(path.joinpath(*folders), descriptor, identity), descriptor
    finally:
        os.close(descriptor)


def _unlock(path: Path, token: bytes) -> None:
    with suppress(OSError), _opened(path, ()) as (folder, descriptor):
        held = folder.read(LOCK, len(token))
        if held is not None and held.data == token and not held.cut:
            os.unlink(LOCK, dir_fd=descriptor)


def _nobody(root: Path) -> TargetError:
    count = len(provision_subagents(root))
    what = f"all {count} subagents in {root} are locked" if count else f"there is no subagent in {root}"
    free = f"remove {LOCK} in a folder that nobody uses"
    hint = free if count else f"make the folder {root / 'subagent-1'}; it needs nothing in it"
    return TargetError(what, fault=TargetFault.UNREACHABLE, hint=hint)


def _no_template(template: Path, why: str) -> TargetError:
    return TargetError(f"the workspace template {template} {why}", fault=TargetFault.UNREACHABLE)
