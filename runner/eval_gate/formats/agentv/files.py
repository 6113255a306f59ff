"""The files an AgentV eval file names: where they are looked for, and what of them is never read.

Source: agentv behaviour 1.3. An eval file may come with a stranger's pull request: nothing outside the repository is
read, wherever a path or a link leads, and nothing of Git's own folder, which may hold a token.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeVar

from eval_gate.errors import did_you_mean
from eval_gate.files.place import repository_of
from eval_gate.files.reading import read_up_to
from eval_gate.formats.base import Source
from eval_gate.model import limits
from eval_gate.struct import FrozenStruct

MAX_FILE: Final = limits.ATTACHED_BYTES
"""Bytes of one attached file."""
MAX_PATH: Final = 1_000
MAX_NAMES: Final = 500
"""Names of a folder among which the nearest to a misspelt one is looked for."""
MAX_HINTS: Final = 20
_GIT: Final = ".git"
Known = TypeVar("Known")


class FileError(Exception):
    """A file cannot be used; the message is a sentence for people."""


class NoSuchFileError(FileError):
    """There is no file of this name."""


class FoundFile(FrozenStruct):
    """A file that is there. `path` is absolute; `inside` is its way from the repository's root, POSIX style."""

    path: Path
    inside: str


class EvalRepository:
    """The repository around one eval file, and the files in it that were read."""

    def __init__(self, source: Source) -> None:
        self.eval_file = tidy(source.path.absolute())
        self.folder = self.eval_file.parent
        self._working = tidy(source.root.absolute())
        self.root = self._find_root()
        self._real_root = self.root.resolve()
        self._found: dict[str, FoundFile | FileError] = {}
        self._texts: dict[Path, str | FileError] = {}
        self._hints = MAX_HINTS

    def _find_root(self) -> Path:
        """The nearest folder with `.git`, else the root of the run, else the eval file's own folder."""
        outside = self._working if self.folder.is_relative_to(self._working) else self.folder
        return repository_of(self.folder) or outside

    def upward(self) -> Iterator[Path]:
        """The eval file's folder and every one above it, up to the root."""
        for place in (self.folder, *self.folder.parents):
            yield place
            if place == self.root:
                return

    def inside(self, path: Path) -> str:
        """The way from the root to `path`, POSIX style: the same in every checkout."""
        return path.relative_to(self.root).as_posix()

    def shown(self, path: Path) -> str:
        """The path as people see it: from the root of the run, where it lies below."""
        return (path.relative_to(self._working) if path.is_relative_to(self._working) else path).as_posix()

    def find(self, written: str) -> FoundFile:
        """The file that this path means. Raises FileError when it is not there or may not be read.

        It is looked for in the eval file's folder, in each above it, and in the folder of the run.
        """
        if written not in self._found:
            try:
                self._found[written] = self._find(written)
            except FileError as error:
                self._found[written] = error
        return _given(self._found[written])

    def _find(self, written: str) -> FoundFile:
        if not _may_be_a_path(written):
            raise FileError("is not the path of a file")
        relative = written.lstrip("/")
        absolute = [tidy(Path(written))] if written.startswith("/") else []
        places = dict.fromkeys((*self.upward(), self._working))
        candidates = [*absolute, *(tidy(place / relative) for place in places)]
        for candidate in candidates:
            found = self.at(candidate)
            if found is not None:
                return found
        beside = candidates[len(absolute)]
        if not beside.is_relative_to(self.root):
            raise FileError("leads out of the repository: only files inside are read")
        raise NoSuchFileError(f"there is no such file in the repository{self._hint(beside)}")

    def at(self, path: Path) -> FoundFile | None:
        """The file at exactly this place, None where there is none. Raises FileError for a link that leads away."""
        if not path.is_relative_to(self.root) or not _is_file(path):
            return None
        self._refuse_elsewhere(path)
        return FoundFile(path, self.inside(path))

    def _refuse_elsewhere(self, path: Path) -> None:
        """Raise FileError for what a link leads out of the repository, or into Git's own folder."""
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError) as error:
            raise FileError("cannot be read") from error
        if not real.is_relative_to(self._real_root):
            raise FileError("is a link out of the repository: only files inside are read")
        if any(step.casefold() == _GIT for step in real.relative_to(self._real_root).parts):
            raise FileError("is one of Git's own files: they are not read")

    def _hint(self, path: Path) -> str:
        """The nearest name in the same folder. Only for the first files of many: it takes its time."""
        self._hints -= 1
        if self._hints < 0:
            return ""
        try:
            with os.scandir(path.parent) as entries:
                names = [
                    entry.name for entry, _ in zip(entries, range(MAX_NAMES), strict=False) if entry.name != path.name
                ]
        except OSError:
            return ""
        return did_you_mean(path.name, sorted(names))

    def read(self, found: FoundFile) -> str:
        """The text of a file, with LF for every end of line. Raises FileError for what is no text, or too much of it.

        Each file is read once.
        """
        if found.path not in self._texts:
            try:
                self._texts[found.path] = _read_text(found.path)
            except FileError as error:
                self._texts[found.path] = error
        return _given(self._texts[found.path])

    def find_folder(self, written: str) -> Path:
        """A folder, relative to the eval file's own. Raises FileError when it is not there or lies elsewhere."""
        if not _may_be_a_path(written):
            raise FileError("is not the path of a folder")
        path = tidy(self.folder / written)
        if not path.is_relative_to(self.root):
            raise FileError("leads out of the repository: only folders inside are worked in")
        if not is_folder(path):
            raise FileError(f"there is no such folder{self._hint(path)}")
        self._refuse_elsewhere(path)
        return path


def _given(known: Known | FileError) -> Known:
    """What is known, or the same error once more: a new one, because each keeps where it was raised."""
    if isinstance(known, FileError):
        raise type(known)(str(known))
    return known


def unix_lines(text: str) -> str:
    """The text with LF for every end of line, as an eval file means it on any machine."""
    return text.replace("\r\n", "\n") if "\r" in text else text


def _may_be_a_path(written: str) -> bool:
    try:
        os.fsencode(written)
    except UnicodeEncodeError:
        return False
    return bool(written.strip()) and len(written) <= MAX_PATH and not any(sign < " " for sign in written)


def tidy(path: Path) -> Path:
    """The path without `..`, as it is written: where links lead is looked at later."""
    return Path(os.path.normpath(path))


def is_folder(path: Path) -> bool:
    """Whether there is a folder of this name, however long that is."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long, a folder that must not be entered
        return False


def _read_text(path: Path) -> str:
    try:
        data = read_up_to(path, MAX_FILE)
    except OSError as error:
        raise FileError(f"cannot be read: {error.strerror}") from error
    if len(data) > MAX_FILE:
        raise FileError(f"is larger than {MAX_FILE:,} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError("is no text in UTF-8") from error
    if "\0" in text:
        raise FileError("is no text: it holds zero bytes")
    return unix_lines(text)
