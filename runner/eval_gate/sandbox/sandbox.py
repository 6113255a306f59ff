"""Sandbox: a temporary folder in which files are read, written and deleted, within limits."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeAlias

from eval_gate.model import limits
from eval_gate.model.conversation import FileEntry
from eval_gate.sandbox import handles
from eval_gate.sandbox.paths import MAX_DEPTH, SandboxError, split_file_path, split_path
from eval_gate.struct import FrozenStruct

EntryFilter: TypeAlias = Callable[[Collection[str], str], bool]
"""Of the names of one folder and one of them: whether that one belongs to another program and is passed over."""


class FolderLimits(FrozenStruct):
    """Limits of a sandbox: bytes per file, bytes in all, and number of entries."""

    file_bytes: int = limits.SANDBOX_FILE_BYTES
    total_bytes: int = limits.SANDBOX_BYTES
    entries: int = limits.SANDBOX_ENTRIES
    listed_entries: int = limits.SANDBOX_LISTED
    """Entries of one folder, where more than `list_entries` may lie there: in a user's folder."""


class ListedEntry(FrozenStruct):
    """One entry of a folder."""

    name: str
    kind: Literal["file", "folder", "other"]


class InitialFile(FrozenStruct):
    """A file (or folder, where `data` is None) that a new sandbox starts with."""

    path: str
    data: bytes | None
    executable: bool = False


class WalkedEntry(FrozenStruct):
    """A file or folder found while walking a sandbox, with its open parent folder."""

    path: str
    folder: int
    name: str
    facts: os.stat_result

    @property
    def size(self) -> int:
        """Bytes of a file or another entry that is no folder."""
        return 0 if stat.S_ISDIR(self.facts.st_mode) else self.facts.st_size


class Sandbox:
    """A temporary folder for one agent, removed by `close`; a context manager.

    Paths are relative to it. A forbidden path raises SandboxError, whose message a model may read; a failing system
    raises OSError. All operations are synchronous and not in a thread, so that a canceled task writes nothing more.
    """

    def __init__(
        self, parent: Path | None = None, limits: FolderLimits | None = None, initial_files: Iterable[InitialFile] = ()
    ) -> None:
        """Create a folder with these files below `parent`, by default the system's temporary one. Raises OSError."""
        require_handles()
        self._limits = limits or FolderLimits()
        self.path = Path(tempfile.mkdtemp(prefix="eval-gate-", dir=parent))
        self._self = get_folder_identity(os.lstat(self.path))
        self._given = {one.path: one.data for one in initial_files if one.data is not None}
        try:
            self._write_initial_files(initial_files)
        except BaseException:
            self.close()
            raise

    def _write_initial_files(self, files: Iterable[InitialFile]) -> None:
        for one in files:
            names = one.path.split("/")
            with self._open_folder(names if one.data is None else names[:-1], create=True) as folder:
                if one.data is not None:
                    handles.write_bytes(folder, names[-1], one.data, executable=one.executable)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder with all that is in it. Links in it are removed, not followed."""
        with contextlib.suppress(FileNotFoundError):
            if get_folder_identity(os.lstat(self.path)) == self._self:
                # a rest that cannot be removed is the system's to clean: no result depends on it
                shutil.rmtree(self.path, ignore_errors=True)

    def read(self, path: str) -> str:
        """Read a file as text. Raises SandboxError for a refused path, a large file, or one that is no text."""
        *above, name = split_file_path(path)
        with self._open_folder(above) as folder:
            return self._read_text(folder, name)

    def write(self, path: str, text: str) -> int:
        """Create the file, with missing folders, or replace its content; return the number of bytes."""
        names = split_file_path(path)
        data = self._encode_text(text)
        self._check_room(names, len(data))
        with self._open_folder(names[:-1], create=True) as folder:
            handles.write_bytes(folder, names[-1], data)
        self._note_written(names, len(data))
        return len(data)

    def delete(self, path: str) -> None:
        """Remove the file; folders stay."""
        *above, name = split_file_path(path)
        with self._open_folder(above) as folder:
            handles.remove_file(folder, name)

    def list_entries(self, path: str = ".") -> tuple[ListedEntry, ...]:
        """List the entries of the folder at `path`, sorted by name."""
        with self._open_folder(split_path(path)) as folder:
            names = handles.list_names(folder, self._max_listed)
            return tuple(ListedEntry(name, _classify_entry(handles.stat_entry(folder, name))) for name in names)

    def collect_entries(self, paths: Iterable[str]) -> tuple[FileEntry, ...]:
        """Collect all entries, with the text of every file, sorted by path; `paths` are not used here.

        What no path may name is left out. Raises SandboxError when there is more than the limits allow, which tools
        alone cannot bring about.
        """
        entries: list[FileEntry] = []
        total = 0
        for walked in self._walk_entries():
            total += walked.size
            self._check_total(total)
            if is_nameable(walked.path):
                entries.append(self._build_file_entry(walked))
        return tuple(sorted(entries, key=lambda entry: entry.path))

    def _check_total(self, size: int) -> None:
        if size > self._limits.total_bytes:
            raise SandboxError(f"There are more than {self._limits.total_bytes:,} bytes.")

    def _build_file_entry(self, walked: WalkedEntry) -> FileEntry:
        kind = _classify_entry(walked.facts)
        if kind != "file":
            return FileEntry(path=walked.path, kind=kind, problem=handles.find_file_problem(walked.facts))
        unchanged = False
        try:
            data = self._read_data(walked.folder, walked.name)
            unchanged = self._given.get(walked.path) == data
            return FileEntry(path=walked.path, kind=kind, text=_decode_text(data), unchanged=unchanged)
        except SandboxError as error:
            return FileEntry(path=walked.path, kind=kind, problem=str(error), unchanged=unchanged)

    def _read_data(self, folder: int, name: str) -> bytes:
        limit = self._limits.file_bytes
        data = handles.read_bytes(folder, name, limit)
        if len(data) > limit:
            raise SandboxError(f"File is larger than {limit:,} bytes.")
        return data

    def _read_text(self, folder: int, name: str) -> str:
        return _decode_text(self._read_data(folder, name))

    def _encode_text(self, text: str) -> bytes:
        try:
            data = text.encode()
        except UnicodeEncodeError:
            raise SandboxError("Content is not valid Unicode text.") from None
        if len(data) > self._limits.file_bytes:
            raise SandboxError(f"Content is larger than {self._limits.file_bytes:,} bytes.")
        return data

    def _measure_sizes(self) -> dict[str, int]:
        """Measure the bytes of all entries by path, on disk each time: other programs may write there."""
        return {walked.path: walked.size for walked in self._walk_entries()}

    def _note_written(self, names: tuple[str, ...], size: int) -> None:
        """Do nothing: an own folder is measured on disk."""

    @property
    def _max_listed(self) -> int:
        return self._limits.entries

    def _check_room(self, names: tuple[str, ...], size: int) -> None:
        sizes = self._measure_sizes()
        needed = {"/".join(names[: count + 1]) for count in range(len(names))}
        if len(sizes.keys() | needed) > self._limits.entries:
            raise SandboxError(f"There is no room for more than {self._limits.entries} files and folders.")
        total = sum(sizes.values()) - sizes.get("/".join(names), 0) + size
        if total > self._limits.total_bytes:
            raise SandboxError(f"There is no room for more than {self._limits.total_bytes:,} bytes in all.")

    @contextmanager
    def _open_folder(self, names: tuple[str, ...] | list[str], *, create: bool = False) -> Iterator[int]:
        """Open a nested folder, each part relative to the one above it, and yield its file descriptor."""
        parent = self._open_root()
        try:
            for name in names:
                child = handles.open_folder(parent, name, create=create)
                os.close(parent)
                parent = child
            yield parent
        finally:
            os.close(parent)

    def _open_root(self) -> int:
        """Open the sandbox folder, unless another folder has taken its place, and return its file descriptor."""
        root = handles.open_root(str(self.path))
        if get_folder_identity(os.fstat(root)) != self._self:
            os.close(root)
            raise OSError(errno.ESTALE, "the folder of the run was replaced by another")
        return root

    def _walk_entries(self, passed_over: EntryFilter | None = None) -> Iterator[WalkedEntry]:
        """Yield all entries below the folder, each folder before its entries. Links are yielded, not followed."""
        remaining = self._limits.entries
        root = self._open_root()
        try:
            for walked in self._walk_below(root, "", MAX_DEPTH, passed_over):
                remaining -= 1
                if remaining < 0:
                    raise SandboxError(f"There are more than {self._limits.entries} files and folders.")
                yield walked
        finally:
            os.close(root)

    def _walk_below(
        self, folder: int, above: str, depth: int, passed_over: EntryFilter | None
    ) -> Iterator[WalkedEntry]:
        if depth < 0:
            raise SandboxError(f"There are folders deeper than {MAX_DEPTH}.")
        names = [*handles.list_names(folder, self._max_listed)]
        for name in names:
            if passed_over is not None and passed_over(names, name):
                continue
            try:
                facts = handles.stat_entry(folder, name)
            except SandboxError:
                continue  # gone since it was listed
            yield WalkedEntry(f"{above}{name}", folder, name, facts)
            if stat.S_ISDIR(facts.st_mode):
                child = handles.open_folder(folder, name)
                try:
                    yield from self._walk_below(child, f"{above}{name}/", depth - 1, passed_over)
                finally:
                    os.close(child)


def require_handles() -> None:
    """Check that this system can open files relative to a folder. Raises OSError if it cannot."""
    if not handles.SUPPORTED:
        raise OSError(errno.ENOTSUP, "file tools need a system that opens files relative to a folder")


def _decode_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise SandboxError("File is not UTF-8 text.") from None


def get_folder_identity(facts: os.stat_result) -> tuple[int, int]:
    """Return the device and inode that distinguish a folder from another one of the same name."""
    return facts.st_dev, facts.st_ino


def _classify_entry(facts: os.stat_result) -> Literal["file", "folder", "other"]:
    if stat.S_ISDIR(facts.st_mode):
        return "folder"
    return "other" if handles.find_file_problem(facts) else "file"


def is_nameable(path: str) -> bool:
    """Whether a path can have this name: other programs may use any name."""
    try:
        return "/".join(split_path(path)) == path
    except SandboxError:
        return False
