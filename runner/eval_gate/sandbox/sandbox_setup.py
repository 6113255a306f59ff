"""Set up an agent's folder: a fresh sandbox with initial files, an existing folder, or a copy of a template."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

from eval_gate.model.conversation import FileEntry
from eval_gate.sandbox import handles
from eval_gate.sandbox.paths import LINK, MISSING, NO_FOLDER, RESERVED, SandboxError, split_file_path, split_path
from eval_gate.sandbox.sandbox import (
    EntryFilter,
    FolderLimits,
    InitialFile,
    Sandbox,
    WalkedEntry,
    get_folder_identity,
    is_nameable,
    require_handles,
)
from eval_gate.struct import FrozenStruct, field

_DIGEST_DIGITS: Final = 16
_GIT: Final = ".git"
_GENERATED_FOLDERS: Final = frozenset({_GIT, "node_modules", ".agentv", "__pycache__"})
"""Folders that are no part of what changed: AgentV leaves them out where it compares folders without git."""


class ExistingFolder(Sandbox):
    """A sandbox over an existing folder, which stays with everything written to it.

    Whatever it contains, only new files count for the limits, and only requested files are inspected.
    """

    def __init__(self, path: Path, limits: FolderLimits | None = None, reserved: ReservedNames | None = None) -> None:
        """`reserved_names` are names that tools must not write to. Raises OSError without such a folder."""
        require_handles()
        self._limits = limits or FolderLimits()
        self.path = path
        self._self = get_folder_identity(os.lstat(path))
        self._given = {}
        self._written: dict[str, int] = {}
        self._reserved = reserved

    def close(self) -> None:
        """Leave the folder as it is."""

    def write(self, path: str, text: str) -> int:
        """Do as in an own folder, but refuse reserved names."""
        self._refuse_reserved(path)
        return super().write(path, text)

    def delete(self, path: str) -> None:
        """Do as in an own folder, but refuse reserved names."""
        self._refuse_reserved(path)
        super().delete(path)
        self._written.pop("/".join(split_path(path)), None)

    def collect_entries(self, paths: Iterable[str]) -> tuple[FileEntry, ...]:
        """Collect the entries at `paths` that a file could have, and the folders above them, sorted by path."""
        by_path: dict[str, FileEntry] = {}
        for path in paths:
            with contextlib.suppress(SandboxError):
                for entry in self._iter_path_entries(split_file_path(path)):
                    by_path[entry.path] = entry
        return tuple(sorted(by_path.values(), key=lambda entry: entry.path))

    def collect_initial_files(self, passed_over: EntryFilter) -> tuple[list[InitialFile], list[tuple[str, str]]]:
        """Collect all entries, and those left out with the reason. Raises SandboxError for too much."""
        files: list[InitialFile] = []
        left_out: list[tuple[str, str]] = []
        total = 0
        for walked in self._walk_entries(passed_over):
            total += walked.size
            self._check_total(total)
            if not is_nameable(walked.path):
                left_out.append((walked.path, "Its name is none that a path could have."))
                continue
            try:
                folder = stat.S_ISDIR(walked.facts.st_mode)
                data = None if folder else self._read_data(walked.folder, walked.name)
                files.append(
                    InitialFile(walked.path, data, executable=not folder and bool(walked.facts.st_mode & stat.S_IXUSR))
                )
            except SandboxError as error:
                left_out.append((walked.path, str(error)))
        return files, left_out

    def collect_files_at(self, paths: Iterable[str]) -> tuple[list[InitialFile], list[tuple[str, str]]]:
        """Read the files at `paths` that exist; those left out with the reason. Raises SandboxError for too many."""
        files: list[InitialFile] = []
        left_out: list[tuple[str, str]] = []
        total, entries = 0, set[str]()
        for path in sorted(paths):
            try:
                names = split_file_path(path)
                *above, name = names
                with self._open_folder(above) as folder:
                    data = self._read_data(folder, name)
                files.append(InitialFile(path, data))
                total += len(data)
                entries.update("/".join(names[: count + 1]) for count in range(len(names)))
            except SandboxError as error:
                if str(error) != MISSING:
                    left_out.append((path, str(error)))
            if len(entries) > self._limits.entries:
                raise SandboxError(f"There are more than {self._limits.entries} files and folders.")
            self._check_total(total)
        return files, left_out

    def _iter_path_entries(self, names: tuple[str, ...]) -> Iterator[FileEntry]:
        """Yield each folder on the way to `names` and the entry at the end, up to the first that is no folder."""
        for count in range(1, len(names) + 1):
            with self._open_folder(names[: count - 1]) as folder:
                facts = handles.stat_entry(folder, names[count - 1])
                yield self._build_file_entry(WalkedEntry("/".join(names[:count]), folder, names[count - 1], facts))
            if not stat.S_ISDIR(facts.st_mode):
                return

    def _refuse_reserved(self, path: str) -> None:
        if self._reserved is not None and self._reserved.contains(split_path(path)):
            raise SandboxError(RESERVED)

    @property
    def _max_listed(self) -> int:
        return self._limits.listed_entries

    def _note_written(self, names: tuple[str, ...], size: int) -> None:
        self._written["/".join(names)] = size

    def _measure_sizes(self) -> dict[str, int]:
        return self._written


class ReservedNames(FrozenStruct):
    """Names in one folder that tools must not write to."""

    folder: tuple[str, ...]
    matches: Callable[[str], bool]

    def contains(self, names: tuple[str, ...]) -> bool:
        """Whether a path leads to or through one of them, also on a disk that ignores case."""
        above = tuple(map(_fold_case, self.folder))
        count = len(above)
        return (
            len(names) > count
            and tuple(map(_fold_case, names[:count])) == above
            and self.matches(_fold_case(names[count]))
        )


def _fold_case(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


class SandboxSetup(FrozenStruct):
    """Settings from which an agent's sandbox is opened."""

    initial_files: tuple[InitialFile, ...] = ()
    existing_folder: Path | None = None
    """An existing folder that agents work in; None if each gets a new one, which is removed."""
    reserved_names: ReservedNames | None = None
    """Names in it that belong to Eval Gate."""
    parent: Path | None = None
    """Parent of new folders; None for the system's default."""
    limits: FolderLimits = field(default_factory=FolderLimits)

    def open_sandbox(self) -> Sandbox:
        """Open the existing folder as a sandbox, or create a new sandbox with the initial files. Raises OSError."""
        if self.existing_folder is not None:
            return ExistingFolder(self.existing_folder, self.limits, self.reserved_names)
        return Sandbox(self.parent, self.limits, self.initial_files)


def read_template(folder: Path) -> tuple[InitialFile, ...]:
    """Read a template, except `.git`. Raises SandboxError for what cannot be copied or is too much, and OSError."""
    if folder.is_symlink() or not folder.is_dir():
        raise SandboxError(LINK if folder.is_symlink() else NO_FOLDER)
    files, left_out = ExistingFolder(folder).collect_initial_files(lambda _, name: name == _GIT)
    if left_out:
        path, why = left_out[0]
        raise SandboxError(f"{path[:200]}: {why}")
    return tuple(files)


def read_workspace(folder: Path) -> tuple[InitialFile, ...]:
    """Read the state of a workspace, without generated folders.

    A link, a pipe and a file that is too large have a short text in place of their content. Raises SandboxError for
    more than a sandbox may hold; and OSError.
    """
    files, left_out = ExistingFolder(folder).collect_initial_files(lambda _, name: name in _GENERATED_FOLDERS)
    return (*files, *(InitialFile(path, f"\0{why}".encode()) for path, why in left_out))


def compute_template_digest(files: Collection[InitialFile]) -> str:
    """Compute 16 hex digits of a SHA-256 over paths, contents without line endings of Windows, and executable bits."""
    whole = hashlib.sha256()
    for one in sorted(files, key=lambda one: one.path):
        content = "" if one.data is None else hashlib.sha256(one.data.replace(b"\r\n", b"\n")).hexdigest()
        whole.update(f"{one.path}\0{content}\0{one.executable}\0".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()[:_DIGEST_DIGITS]
