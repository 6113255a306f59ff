"""The repository of an eval file: which files it may name, and where they are searched.

Source: agentv behaviour 1.3. An eval file may come with an untrusted pull request: no file outside the repository is
read, also through a link, and none of Git's own folder, which may hold a token.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from eval_gate.errors import format_suggestion
from eval_gate.files.file_paths import find_repository
from eval_gate.files.reading import read_limited
from eval_gate.formats.base import EvalSource
from eval_gate.model import limits
from eval_gate.struct import FrozenStruct

MAX_FILE_BYTES: Final = limits.ATTACHED_BYTES
MAX_PATH: Final = 1_000
MAX_COMPARED_NAMES: Final = 500
"""Maximum names of a folder that are compared with a misspelt one."""
MAX_HINTS: Final = 20
_GIT: Final = ".git"
Key = TypeVar("Key", str, Path)
CachedValue = TypeVar("CachedValue")


class FileError(Exception):
    """A file cannot be used; the message says why."""


class NoSuchFileError(FileError):
    """No file of this name exists in the repository."""


class RepositoryFile(FrozenStruct):
    """A file in the repository. `relative_path` is POSIX style, from the repository's root."""

    path: Path
    relative_path: str


class EvalRepository:
    """The repository around one eval file, with a cache of the files that were read."""

    def __init__(self, source: EvalSource) -> None:
        self.eval_file = normalize_path(source.path.absolute())
        self.folder = self.eval_file.parent
        self._working = normalize_path(source.root.absolute())
        self.root = self._find_root()
        self._real_root = self.root.resolve()
        self._found: dict[str, RepositoryFile | FileError] = {}
        self._texts: dict[Path, str | FileError] = {}
        self._hints = MAX_HINTS

    def _find_root(self) -> Path:
        """Return the nearest folder with `.git`, else the run's root if the eval file is below it, else its folder."""
        outside = self._working if self.folder.is_relative_to(self._working) else self.folder
        return find_repository(self.folder) or outside

    def iter_parent_folders(self) -> Iterator[Path]:
        """Yield the folder of the eval file and each folder above it, up to the root."""
        for place in (self.folder, *self.folder.parents):
            yield place
            if place == self.root:
                return

    def to_relative_path(self, path: Path) -> str:
        """Return `path` relative to the root in POSIX style, which is the same in every checkout."""
        return path.relative_to(self.root).as_posix()

    def format_path(self, path: Path) -> str:
        """Format the path for people, relative to the root of the run if it is below that."""
        return (path.relative_to(self._working) if path.is_relative_to(self._working) else path).as_posix()

    def find_file(self, reference: str) -> RepositoryFile:
        """Find a file from the eval file's folder upward, then in the run's. Raises FileError if none can be read."""
        return _load_once(self._found, reference, self._search_file)

    def _search_file(self, reference: str) -> RepositoryFile:
        if not _can_be_path(reference):
            raise FileError("is not the path of a file")
        relative = reference.lstrip("/")
        absolute = [normalize_path(Path(reference))] if reference.startswith("/") else []
        places = dict.fromkeys((*self.iter_parent_folders(), self._working))
        candidates = [*absolute, *(normalize_path(place / relative) for place in places)]
        for candidate in candidates:
            file = self.find_file_at(candidate)
            if file is not None:
                return file
        expected = candidates[len(absolute)]
        if not expected.is_relative_to(self.root):
            raise FileError("is outside of the repository: only files inside are read")
        raise NoSuchFileError(f"the repository has no such file{self._suggest_name(expected)}")

    def find_file_at(self, path: Path) -> RepositoryFile | None:
        """Find the file at exactly this path. Raises FileError for a link that leads out of the repository."""
        if not path.is_relative_to(self.root) or not _is_file(path):
            return None
        self._require_inside(path)
        return RepositoryFile(path, self.to_relative_path(path))

    def _require_inside(self, path: Path) -> None:
        """Raise FileError for a link that leads out of the repository, or into Git's own folder."""
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError) as error:
            raise FileError("cannot be read") from error
        if not real.is_relative_to(self._real_root):
            raise FileError("is a link to a file outside of the repository: only files inside are read")
        if any(step.casefold() == _GIT for step in real.relative_to(self._real_root).parts):
            raise FileError("is a file of Git: such files are not read")

    def _suggest_name(self, path: Path) -> str:
        """Suggest the most similar name in the folder, for the first missing files only: the search is slow."""
        self._hints -= 1
        if self._hints < 0:
            return ""
        try:
            with os.scandir(path.parent) as entries:
                names = [
                    entry.name
                    for entry, _ in zip(entries, range(MAX_COMPARED_NAMES), strict=False)
                    if entry.name != path.name
                ]
        except OSError:
            return ""
        return format_suggestion(path.name, sorted(names))

    def read_text(self, file: RepositoryFile) -> str:
        """Read a file once, with LF for every end of line. Raises FileError if it is no text or too large."""
        return _load_once(self._texts, file.path, _read_text)

    def find_folder(self, reference: str) -> Path:
        """Find a folder from the eval file's. Raises FileError if it is missing or outside of the repository."""
        if not _can_be_path(reference):
            raise FileError("is not the path of a folder")
        path = normalize_path(self.folder / reference)
        if not path.is_relative_to(self.root):
            raise FileError("is outside of the repository: only folders inside can be used")
        if not is_folder(path):
            raise FileError(f"the repository has no such folder{self._suggest_name(path)}")
        self._require_inside(path)
        return path


def _load_once(cache: dict[Key, CachedValue | FileError], key: Key, load: Callable[[Key], CachedValue]) -> CachedValue:
    """Return the cached value, or raise a copy of the cached error: each keeps the place where it was raised."""
    if key not in cache:
        try:
            cache[key] = load(key)
        except FileError as error:
            cache[key] = error
    cached = cache[key]
    if isinstance(cached, FileError):
        raise type(cached)(str(cached))
    return cached


def normalize_newlines(text: str) -> str:
    """Return the text with LF for every end of line, so that an eval file means the same on any machine."""
    return text.replace("\r\n", "\n") if "\r" in text else text


def _can_be_path(reference: str) -> bool:
    try:
        os.fsencode(reference)
    except UnicodeEncodeError:
        return False
    return bool(reference.strip()) and len(reference) <= MAX_PATH and not any(sign < " " for sign in reference)


def normalize_path(path: Path) -> Path:
    """Return the path without `..` steps, without following links. Other code checks the links later."""
    return Path(os.path.normpath(path))


def is_folder(path: Path) -> bool:
    """Whether there is such a folder; False for a name that is too long for the system."""
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
        data = read_limited(path, MAX_FILE_BYTES)
    except OSError as error:
        raise FileError(f"cannot be read: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        raise FileError(f"is larger than {MAX_FILE_BYTES:,} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError("is not UTF-8 text") from error
    if "\0" in text:
        raise FileError("is not text: it contains zero bytes")
    return normalize_newlines(text)
