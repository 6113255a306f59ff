"""Content of the repository files that a command runs, for the fingerprint of graders.

A command is shell text, so its files cannot be known for certain. A file counts if its name occurs in the command in
any form: as a word, within `sh -c '…'`, after `cd`, or as the module of `-m`. It also counts if the name of its folder
occurs, unless the command only changes to that folder or searches it; and if a file that counts imports it.
Interpreters and other programs outside the repository never count, because they differ on every machine. Neither do
results of earlier runs.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from eval_gate.files.file_paths import RESULT_FILES
from eval_gate.files.reading import read_limited_or_pointer
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.text.digest import digest_file_content

MAX_FILE_BYTES: Final = limits.SCRIPT_BYTES
"""Maximum hashed bytes of a file; of a longer file the beginning and the size count."""
MAX_FILES: Final = limits.SCRIPT_FILES
"""Maximum files read for one command."""
MAX_LISTED: Final = limits.SCRIPTS_LISTED
"""Maximum entries of a folder and its subfolders that are searched for names."""
MAX_DEPTH: Final = limits.SCRIPTS_DEPTH
MAX_TEXT: Final = 20_000
"""Maximum searched characters of a command."""
MAX_PROGRAM: Final = 200_000
"""Maximum bytes of a program that are searched for imports."""
_SKIPPED_FOLDERS: Final = frozenset({"__pycache__", "node_modules"})
_PROGRAM_SUFFIXES: Final = frozenset(
    {".bash", ".cjs", ".go", ".java", ".js", ".jsx", ".lua", ".mjs", ".php", ".pl", ".ps1", ".py", ".r", ".rb", ".rs"}
    | {".sh", ".ts", ".tsx", ".zsh"}
)
"""Suffixes that a file name may omit: of modules, and of scripts on a path."""
_FOLDER_PROGRAMS: Final = ("__init__.py", "__main__.py", "index.js", "index.mjs", "index.ts", "main.go")
"""Files that run or are imported if only their folder is named."""
_WORD: Final = re.compile(r"[\w.@+/~-]+")
_IMPORT: Final = re.compile(
    r"(?:^|[;:&|{]|\b(?:then|do|else)\b)[^\S\n]*"
    r"(?:(?:from|import|export|require|include|load|source|use)\b|\.\s)[^\n(;]*(?:\([^)]{0,2000}\))?"
    r"|\b(?:import_module|__import__|require|import)\s*\(\s*[\"'][^\"'\n]{1,200}",
    re.MULTILINE,
)
"""Name of a module in a program: in a statement, also over several lines with brackets, or in a call."""
_CHANGED_FOLDER: Final = re.compile(r"\b(?:cd|pushd)\s+[\"']?([^\s\"';&|)]{1,1000})")
_SEARCH_PATH: Final = re.compile(r"\b[A-Z_]{0,40}PATH=[\"']?([^\s\"';&|)]{0,1000})")
"""Places that name folders for the lookup of programs or modules."""
_QUOTED: Final = re.compile(r"[\"']([^\"'\n]{1,200})[\"']")
"""Text that may name a file."""


class ProgramFiles:
    """Files that commands name, each read once. `root` is the folder of the run."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._folders: dict[Path, _FolderIndex] = {}
        self._read_already: dict[Path, bytes | None] = {}
        self._known: dict[tuple[str, Path], tuple[tuple[str, str], ...]] = {}
        self.unknown: dict[str, None] = {}
        """Commands of which no file was found."""

    def collect_command_content(self, command: str | Sequence[str], folder: Path) -> list[JsonValue]:
        """Collect a command and the content digests of the files that it names, for a fingerprint.

        A command without such files is added to `unknown`.
        """
        text = command if isinstance(command, str) else " ".join(command)
        files = self.find_files(text, folder)
        if not files and text.strip():
            self.unknown[text] = None
        return [text, [[name, content] for name, content in files]]

    def format_relative_folder(self, folder: Path) -> str:
        """Format a path relative to the folder of the run, so that it is the same in every checkout."""
        return Path(os.path.relpath(folder, self.root)).as_posix()

    def find_files(self, text: str, folder: Path) -> tuple[tuple[str, str], ...]:
        """Find the files that a text names and the files that these import, sorted by name.

        The result has the name and a digest of the content of each file. `folder` is the working folder of the command.
        Files outside of it and of the folder of the run are left out.
        """
        key = text, folder
        if key not in self._known:
            self._known[key] = tuple(self._iter_digests(text[:MAX_TEXT], folder.absolute()))
        return self._known[key]

    def _iter_digests(self, text: str, folder: Path) -> Iterator[tuple[str, str]]:
        others = self._find_other_folders(text, folder)
        waiting = list(
            dict.fromkeys(
                [*self._iter_candidates(text, folder, others), *self._iter_folder_files(text, folder, others)]
            )
        )
        found: dict[Path, str] = {}
        while waiting and len(found) < MAX_FILES:
            file = Path(os.path.normpath(waiting.pop(0)))
            data = self._get_content(file, folder)
            if file in found or data is None:
                continue
            size = file.stat().st_size
            found[file] = f"{digest_file_content(data)}{f' of {size}' if size > MAX_FILE_BYTES else ''}"
            if file.suffix in _PROGRAM_SUFFIXES or data.startswith(b"#!"):
                program = data[:MAX_PROGRAM].decode("utf-8", "replace")
                # before what only lies in a folder that is named: of that there may be too many
                waiting[:0] = dict.fromkeys(self._iter_imported(program, file.parent, folder, others))
        yield from sorted((self.format_relative_folder(file), content) for file, content in found.items())

    def _iter_imported(self, program: str, beside: Path, folder: Path, others: Iterable[Path]) -> Iterator[Path]:
        """Yield the files that a program in the folder `beside`, run in `folder`, may import or open.

        A module counts if it is in one of these folders, in one above the program, in one that the command (`others`)
        or the program names, or in a package that the program names too. A module of the same name elsewhere below
        these folders is a different one. Any other file counts if its name is in quotation marks.
        """
        above = [place for place in beside.parents if self._is_folder_within(place, folder)]
        quoted = dict.fromkeys(_QUOTED.findall(program))
        for named in quoted:
            name = named.rpartition("/")[2]
            if Path(name).suffix:
                yield from (place / named for place in (beside, folder, *above))
                yield from (
                    file for place in (beside, folder) for file in self._get_folder_index(place).find_by_name(name)
                )
        named_folders = self._find_folders(
            (*quoted, *_CHANGED_FOLDER.findall(program)), (beside, folder, *above), folder
        )
        places = dict.fromkeys((beside, folder, *above, *others, *named_folders))
        words = dict.fromkeys(
            part for one in _IMPORT.findall(program) for word in _WORD.findall(one) for part in re.split(r"[./]", word)
        )
        for word in words:
            for file in (file for place in places for file in self._get_folder_index(place).find_by_module(word)):
                package = file.parent.parent if file.name in _FOLDER_PROGRAMS else file.parent
                if package in places or package == self.root or package.name in words:
                    yield file

    def _find_other_folders(self, text: str, folder: Path) -> list[Path]:
        """Find the folders that a command names, except the one that it runs in."""
        words = (word.rpartition("=")[2] for word in _WORD.findall(text))
        return self._find_folders(words, (folder,), folder)

    def _find_folders(self, names: Iterable[str], places: Iterable[Path], folder: Path) -> list[Path]:
        """Find the folders of these names in `places`, without duplicates.

        `folder` itself, and folders outside of it and of the folder of the run, are left out.
        """
        found = dict.fromkeys(Path(os.path.normpath(place / name)) for name in names if name for place in places)
        return [place for place in found if place != folder and self._is_folder_within(place, folder)]

    def _iter_folder_files(self, text: str, folder: Path, others: Sequence[Path]) -> Iterator[Path]:
        """Yield the files in the folders that a command gets as arguments.

        Folders that the command only changes to or searches do not count, nor do hidden files.
        """
        given = _SEARCH_PATH.sub(" ", _CHANGED_FOLDER.sub(" ", text))
        words = (word.rpartition("=")[2] for word in _WORD.findall(given))
        for place in self._find_folders(words, (folder, *others), folder):
            if not folder.is_relative_to(place):
                yield from (file for file in self._get_folder_index(place).files if not file.name.startswith("."))

    def _iter_candidates(self, text: str, folder: Path, others: Sequence[Path]) -> Iterator[Path]:
        """Yield the paths that a text may name, without a check that they exist."""
        for word in dict.fromkeys(_WORD.findall(text)):
            name = word.rpartition("=")[2].strip("/") if "=" in word else word
            for place in (folder, self.root):
                yield place / name
            within, file = self._get_folder_index(folder), name.rstrip("/").rpartition("/")[2]
            named = within.find_by_name(file)
            if not named and Path(file).suffix in _PROGRAM_SUFFIXES:
                named = self._get_folder_index(self.root).find_by_name(file)
            yield from named
            for part in re.split(r"[./]", name):
                yield from within.find_by_module(part)
                yield from (file for place in others for file in self._get_folder_index(place).find_by_module(part))

    def _get_folder_index(self, folder: Path) -> _FolderIndex:
        if folder not in self._folders:
            self._folders[folder] = _FolderIndex(folder)
        return self._folders[folder]

    def _get_content(self, file: Path, folder: Path) -> bytes | None:
        """Return the beginning of the file, read once, or None if the file does not count.

        A file does not count if it cannot be read, or is outside of `folder` and the folder of the run.
        """
        if file not in self._read_already:
            self._read_already[file] = self._read_content(file, folder)
        return self._read_already[file]

    def _is_within(self, real: Path, folder: Path) -> bool:
        """Whether this place without links lies in the folder of the run, or in the one that the command runs in."""
        return any(real.is_relative_to(one.resolve()) for one in (self.root, folder))

    def _is_folder_within(self, place: Path, folder: Path) -> bool:
        try:
            return place.is_dir() and self._is_within(place.resolve(), folder)
        except (OSError, ValueError):
            return False

    def _read_content(self, file: Path, folder: Path) -> bytes | None:
        try:
            real = file.resolve(strict=True)
            if not real.is_file() or not self._is_within(real, folder):
                return None
            return read_limited_or_pointer(real, MAX_FILE_BYTES, made=True)[:MAX_FILE_BYTES]
        except (OSError, ValueError):  # what cannot be read is said by whoever runs it
            return None


class _FolderIndex:
    """Files and subfolders of a folder by name, without hidden ones."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def find_by_name(self, name: str) -> Sequence[Path]:
        """Find the files with this name."""
        return self._by_name.get(name, ())

    def find_by_module(self, word: str) -> Sequence[Path]:
        """Find the programs with this name without suffix, and the entry files of a folder with this name."""
        return self._by_stem.get(word, ())

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """All of them, in order."""
        found: list[Path] = []
        for place, folders, files in os.walk(self._path):
            depth = len(Path(place).relative_to(self._path).parts)
            kept = [name for name in sorted(folders) if not name.startswith(".") and name not in _SKIPPED_FOLDERS]
            of_results = not set(RESULT_FILES).isdisjoint(files)
            folders[:] = kept if depth < MAX_DEPTH and not of_results else []
            found += [Path(place, name) for name in sorted(files) if not of_results]
            if len(found) > MAX_LISTED:
                break
        return tuple(found[:MAX_LISTED])

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[Path]]:
        found: dict[str, list[Path]] = defaultdict(list)
        for file in self.files:
            found[file.name].append(file)
        return found

    @cached_property
    def _by_stem(self) -> Mapping[str, Sequence[Path]]:
        found: dict[str, list[Path]] = defaultdict(list)
        for file in self.files:
            if file.suffix in _PROGRAM_SUFFIXES:
                found[file.stem].append(file)
            if file.name in _FOLDER_PROGRAMS and file.parent != self._path:
                found[file.parent.name].append(file)
        return found
