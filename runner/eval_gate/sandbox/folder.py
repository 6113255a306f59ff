"""A folder of its own on disk, in which files are read, written, listed and deleted, within limits."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from eval_gate.model.conversation import FileEntry
from eval_gate.sandbox import handles
from eval_gate.sandbox.paths import MAX_DEPTH, SandboxError, file_names, names_of


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may lie in the folder: bytes of a file and of all, and how many files and folders."""

    file_bytes: int = 1_000_000
    total_bytes: int = 10_000_000
    entries: int = 500


@dataclass(frozen=True, slots=True)
class Listed:
    """One entry of a folder."""

    name: str
    kind: Literal["file", "folder", "other"]


@dataclass(frozen=True, slots=True)
class _Found:
    """An entry met on a walk: where it is, in which open folder, and what it is."""

    path: str
    folder: int
    name: str
    facts: os.stat_result

    @property
    def size(self) -> int:
        """Bytes of a file, or of what else is no folder."""
        return 0 if stat.S_ISDIR(self.facts.st_mode) else self.facts.st_size


class Sandbox:
    """The folder, made when this is made and removed by `close`. Use as a context manager.

    Paths are relative to it. What a path must not do raises SandboxError, whose message a model may read; a system
    that breaks raises OSError. Everything is done at once and not in a thread: what was cancelled writes no more.
    """

    def __init__(self, parent: Path | None = None, limits: Limits | None = None) -> None:
        """Make a fresh folder below `parent`, or where the system keeps temporary files. Raises OSError."""
        if not handles.SUPPORTED:
            raise OSError(errno.ENOTSUP, "file tools need a system that opens files relative to a folder")
        self._limits = limits or Limits()
        self.path = Path(tempfile.mkdtemp(prefix="eval-gate-", dir=parent))
        self._self = _identity(os.lstat(self.path))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder with all that is in it. Links in it are removed, not followed."""
        with contextlib.suppress(FileNotFoundError):
            if _identity(os.lstat(self.path)) == self._self:
                # a rest that cannot be removed is the system's to clean: nobody's result depends on it
                shutil.rmtree(self.path, ignore_errors=True)

    def read(self, path: str) -> str:
        """The file as text. Raises SandboxError for a path that is refused and a file that is no text, or too large."""
        *above, name = file_names(path)
        with self._folder(above) as folder:
            return self._text(folder, name)

    def write(self, path: str, text: str) -> int:
        """Make the file, and the folders above it, or replace what it holds; the bytes that were written."""
        names = file_names(path)
        data = self._encoded(text)
        self._make_room(names, len(data))
        with self._folder(names[:-1], create=True) as folder:
            handles.write_bytes(folder, names[-1], data)
        return len(data)

    def delete(self, path: str) -> None:
        """Remove the file; folders stay."""
        *above, name = file_names(path)
        with self._folder(above) as folder:
            handles.unlink(folder, name)

    def entries(self, path: str = ".") -> tuple[Listed, ...]:
        """What lies in a folder, by name."""
        with self._folder(names_of(path)) as folder:
            names = handles.names_in(folder, self._limits.entries)
            return tuple(Listed(name, _kind(handles.look_at(folder, name))) for name in names)

    def snapshot(self) -> tuple[FileEntry, ...]:
        """All that lies in the folder, with the text of every file, by path.

        What no path may name is left out. Raises SandboxError when there is more than the limits allow, which tools
        alone cannot bring about.
        """
        taken: list[FileEntry] = []
        total = 0
        for found in self._walk():
            total += found.size
            if total > self._limits.total_bytes:
                raise SandboxError(f"There are more than {self._limits.total_bytes:,} bytes.")
            if _nameable(found.path):
                taken.append(self._taken(found))
        return tuple(sorted(taken, key=lambda entry: entry.path))

    def _taken(self, found: _Found) -> FileEntry:
        kind = _kind(found.facts)
        if kind != "file":
            return FileEntry(path=found.path, kind=kind, problem=handles.why_no_file(found.facts))
        try:
            return FileEntry(path=found.path, kind=kind, text=self._text(found.folder, found.name))
        except SandboxError as error:
            return FileEntry(path=found.path, kind=kind, problem=str(error))

    def _text(self, folder: int, name: str) -> str:
        limit = self._limits.file_bytes
        data = handles.read_bytes(folder, name, limit)
        if len(data) > limit:
            raise SandboxError(f"File is larger than {limit:,} bytes.")
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise SandboxError("File is not UTF-8 text.") from None

    def _encoded(self, text: str) -> bytes:
        try:
            data = text.encode()
        except UnicodeEncodeError:
            raise SandboxError("Content is not valid Unicode text.") from None
        if len(data) > self._limits.file_bytes:
            raise SandboxError(f"Content is larger than {self._limits.file_bytes:,} bytes.")
        return data

    def _make_room(self, names: tuple[str, ...], size: int) -> None:
        """Refuse what would be too much. Counted on disk each time: somebody else may have put things there."""
        sizes = {found.path: found.size for found in self._walk()}
        needed = {"/".join(names[: count + 1]) for count in range(len(names))}
        if len(sizes.keys() | needed) > self._limits.entries:
            raise SandboxError(f"There is no room for more than {self._limits.entries} files and folders.")
        total = sum(sizes.values()) - sizes.get("/".join(names), 0) + size
        if total > self._limits.total_bytes:
            raise SandboxError(f"There is no room for more than {self._limits.total_bytes:,} bytes in all.")

    @contextmanager
    def _folder(self, names: tuple[str, ...] | list[str], *, create: bool = False) -> Iterator[int]:
        """The handle of the folder these names lead to, one after the other."""
        here = self._root()
        try:
            for name in names:
                below = handles.enter(here, name, create=create)
                os.close(here)
                here = below
            yield here
        finally:
            os.close(here)

    def _root(self) -> int:
        """The handle of our own folder, and of no other that may have taken its place."""
        root = handles.open_root(str(self.path))
        if _identity(os.fstat(root)) != self._self:
            os.close(root)
            raise OSError(errno.ESTALE, "the folder of the run was replaced by another")
        return root

    def _walk(self) -> Iterator[_Found]:
        """Everything below the folder, each folder before what is in it. Links are met and not followed."""
        left = self._limits.entries
        root = self._root()
        try:
            for found in self._walk_below(root, "", MAX_DEPTH):
                left -= 1
                if left < 0:
                    raise SandboxError(f"There are more than {self._limits.entries} files and folders.")
                yield found
        finally:
            os.close(root)

    def _walk_below(self, folder: int, above: str, depth: int) -> Iterator[_Found]:
        if depth < 0:
            raise SandboxError(f"There are folders deeper than {MAX_DEPTH}.")
        for name in handles.names_in(folder, self._limits.entries):
            try:
                facts = handles.look_at(folder, name)
            except SandboxError:
                continue  # gone since it was listed
            yield _Found(f"{above}{name}", folder, name, facts)
            if stat.S_ISDIR(facts.st_mode):
                below = handles.enter(folder, name)
                try:
                    yield from self._walk_below(below, f"{above}{name}/", depth - 1)
                finally:
                    os.close(below)


def _identity(facts: os.stat_result) -> tuple[int, int]:
    return facts.st_dev, facts.st_ino


def _kind(facts: os.stat_result) -> Literal["file", "folder", "other"]:
    if stat.S_ISDIR(facts.st_mode):
        return "folder"
    return "other" if handles.why_no_file(facts) else "file"


def _nameable(path: str) -> bool:
    """Whether a path could ever name this: what others put there may be called anything."""
    try:
        return "/".join(names_of(path)) == path
    except SandboxError:
        return False
