"""Files and variables that suites measure: found by patterns, digested as they are on disk, never sent.

No rule of git leaves a file out, because an agent reads ignored and generated files, too. Links are followed inside of
the repository. What cannot be measured for sure is a problem, and its suite runs.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from eval_gate.config.measures import MeasuredPattern, parse_measured_pattern
from eval_gate.engine.preparation.repository_files import RepositoryFiles
from eval_gate.files.file_paths import RESULT_FILES
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.model.reuse import MeasuredSuite
from eval_gate.text.digest import compute_digest, compute_fingerprint
from eval_gate.text.escape import to_one_line
from eval_gate.text.globs import covers_file, is_glob


class _Folder(NamedTuple):
    """Folder that is searched. Its `path` is relative to the root of the run, and empty for the root."""

    path: str
    place: str
    """The folder itself, with links followed."""
    parents: frozenset[str] = frozenset()
    """Places of the folders that led to it."""
    is_left_out: bool = False
    """Whether only files count that git tracks."""


class _Entry(NamedTuple):
    """File, link or folder of a folder."""

    name: str
    is_folder: bool
    link: str | None
    """Target of a link, as it is written."""


class _Search:
    """Patterns to search for, and what was found."""

    def __init__(self, patterns: Sequence[MeasuredPattern]) -> None:
        self._covering = tuple(one.path for one in patterns if one.path and not one.is_exclusion)
        self._leaving_out = tuple(one.path for one in patterns if one.is_exclusion)
        self._starts = tuple(map(_find_start, self._covering))
        self._entries = 0
        self.places: dict[str, str] = {}
        """Place of each file, by its path."""
        self.links: dict[str, str] = {}
        """Target of each link, as it is written, by its path."""
        self.problems: list[str] = []

    def covers(self, path: str) -> bool:
        """Whether the patterns name this file."""
        return any(covers_file(one, path) for one in self._covering) and not self._leaves_out(path)

    def leads_below(self, folder: str) -> bool:
        """Whether the patterns may name a file below this folder."""
        return not self._leaves_out(folder) and any(
            folder in {"", start} or not start or start.startswith(f"{folder}/") or folder.startswith(f"{start}/")
            for start in self._starts
        )

    def add_file(self, path: str, place: str) -> None:
        """Add a file that was found. Raises _UnmeasuredError if they are too many."""
        self.places[path] = place
        if len(self.places) > limits.MEASURED_FILES:
            raise _UnmeasuredError(f"more than {limits.MEASURED_FILES:,} files are measured")

    def count_entries(self, number: int) -> None:
        """Count the entries of one more folder. Raises _UnmeasuredError if they are too many."""
        self._entries += number
        if self._entries > limits.MEASURED_ENTRIES:
            raise _UnmeasuredError(f"more than {limits.MEASURED_ENTRIES:,} files and folders are searched")

    def _leaves_out(self, path: str) -> bool:
        return any(covers_file(one, path) for one in self._leaving_out)


class MeasuredFiles:
    """Files of the repository that contains `root`, each digested once. `root` is the folder of the run."""

    def __init__(
        self,
        root: Path,
        environment: Mapping[str, str],
        *,
        repository: RepositoryFiles | None = None,
        results: str | Path | None = None,
        files: Sequence[str] = (),
    ) -> None:
        """`results` is the folder of results, and `files` are measured by every suite that measures anything."""
        self._root = os.path.normpath(root.absolute())
        self._environment = environment
        self._repository = repository or RepositoryFiles(root)
        self._results = None if results is None else os.path.normpath(root.absolute() / results)
        self._files = files
        self._searches: dict[tuple[str, ...], _Search] = {}
        self._listings: dict[str, tuple[_Entry, ...]] = {}
        self._digests: dict[str, JsonValue] = {}
        self._bytes = 0

    def list_files(self, patterns: Sequence[str]) -> tuple[str, ...]:
        """List the files that the patterns name, relative to the root, sorted."""
        return tuple(sorted(self._search(patterns).places))

    def measure(self, suite: str, patterns: Sequence[str], agent_files: Iterable[str] = ()) -> MeasuredSuite:
        """Digest the files and variables of a suite; `agent_files` are absolute, and have to be among them."""
        if not patterns:
            return MeasuredSuite(suite=suite)
        parsed, search = tuple(map(parse_measured_pattern, patterns)), self._search(patterns)
        problem = next(self._iter_problems(parsed, search, agent_files), None)
        digest = None
        if problem is None:
            try:
                digest = compute_fingerprint([*self._iter_files(search), *self._iter_others(parsed)])
            except _UnmeasuredError as error:
                problem = str(error)
        return MeasuredSuite(
            suite=suite, patterns=tuple(sorted(patterns)), digest=digest, files=len(search.places), problem=problem
        )

    def _iter_problems(
        self, patterns: Sequence[MeasuredPattern], search: _Search, agent_files: Iterable[str]
    ) -> Iterator[str]:
        """Yield why these files are no measure of the suite."""
        yield from search.problems
        paths = search.places.keys()
        for one in patterns:
            if one.path and not one.is_exclusion and not any(covers_file(one.path, path) for path in paths):
                yield f"`{_show(one.text)}` matches no file"
        if all(one.is_exclusion for one in patterns):
            yield "every pattern only leaves files out"
        places = set(search.places.values())
        for file in agent_files:
            if file not in places and os.path.relpath(file, self._root) not in paths:
                yield f"`{_show(os.path.relpath(file, self._root))}`, which the target runs, is not measured"

    def _iter_files(self, search: _Search) -> Iterator[JsonValue]:
        """Yield path and digest of all files, and the targets of links, in an order that no checkout changes."""
        for path in sorted(search.places.keys() | search.links.keys()):
            place = search.places.get(path)
            yield [path, search.links.get(path), None if place is None else self._digest(path, place)]

    def _iter_others(self, patterns: Iterable[MeasuredPattern]) -> Iterator[JsonValue]:
        """Yield digests of variables, and of the files that every suite measures."""
        for name in sorted(one.variable for one in patterns if one.variable):
            value = self._environment.get(name)
            yield ["env", name, None if value is None else compute_digest(value)]
        for path in self._files:
            place = os.path.normpath(os.path.join(self._root, path))  # noqa: PTH118
            exists = self._repository.is_inside(place) and Path(place).is_file()
            yield [path, self._digest(path, place) if exists else None]

    def _search(self, patterns: Sequence[str]) -> _Search:
        key = tuple(sorted(patterns))
        if key not in self._searches:
            self._searches[key] = search = _Search([parse_measured_pattern(one) for one in key])
            try:
                if search.leads_below(""):
                    self._walk(_Folder("", self._root), search)
            except _UnmeasuredError as error:
                search.problems.insert(0, str(error))
        return self._searches[key]

    def _walk(self, folder: _Folder, search: _Search) -> None:
        """Find the files below a folder that the patterns name."""
        if folder.place in folder.parents:
            search.problems.append(f"`{_show(folder.path)}` is a link that leads to a folder above it")
            return
        try:
            entries = self._list_entries(folder.place)
        except OSError as error:
            search.problems.append(f"`{_show(folder.path or '.')}` cannot be read: {error.strerror}")
            return
        if not entries and self._repository.tracks(folder.place):
            search.problems.append(f"`{_show(folder.path)}` is a submodule that was not checked out")
        search.count_entries(len(entries))
        folder = folder._replace(
            parents=folder.parents | {folder.place},
            is_left_out=folder.is_left_out or self._holds_results(folder.place, entries),
        )
        for entry in entries:
            self._visit(folder, entry, search)

    def _list_entries(self, place: str) -> tuple[_Entry, ...]:
        """List what is in a folder, sorted by name, without what git keeps for itself. Raises OSError."""
        if place not in self._listings:
            with os.scandir(place) as listed:
                self._listings[place] = tuple(
                    _Entry(
                        entry.name,
                        Path(entry.path).is_dir() if entry.is_symlink() else entry.is_dir(),
                        str(Path(entry.path).readlink()) if entry.is_symlink() else None,
                    )
                    for entry in sorted(listed, key=lambda one: one.name)
                    if entry.name != ".git"
                )
        return self._listings[place]

    def _visit(self, folder: _Folder, entry: _Entry, search: _Search) -> None:
        """Add a file that the patterns name, or search a folder."""
        path, place = f"{folder.path}/{entry.name}".lstrip("/"), f"{folder.place}/{entry.name}"
        is_left_out = folder.is_left_out or self._repository.is_generated(place, is_folder=entry.is_folder)
        counts = not is_left_out or self._repository.tracks(place) or self._repository.tracks_below(place)
        if not counts or not (search.leads_below(path) if entry.is_folder else search.covers(path)):
            return
        if entry.link is not None:
            problem = self._find_link_problem(place)
            if problem is not None:
                search.problems.append(f"`{_show(path)}` is a link that {problem}")
                return
            place = self._resolve(place)
            search.links[path] = entry.link
        if entry.is_folder:
            self._walk(_Folder(path, place, folder.parents, is_left_out), search)
        else:
            search.add_file(path, place)

    def _find_link_problem(self, place: str) -> str | None:
        if not self._repository.is_inside(place):
            return "leads out of the repository"
        return None if Path(place).exists() else "leads nowhere"

    def _resolve(self, place: str) -> str:
        """Follow links, and name the place as git's index does, whatever links lead to the repository."""
        root = self._repository.root
        return os.path.normpath(root / os.path.relpath(os.path.realpath(place), os.path.realpath(root)))

    def _holds_results(self, place: str, entries: Iterable[_Entry]) -> bool:
        """Whether this is the folder of results, or one in it, unless git tracks what is in it."""
        is_inside = self._results is not None and f"{place}/".startswith(f"{self._results}/")
        has_results = any(entry.name in RESULT_FILES for entry in entries)
        return is_inside and has_results and not self._repository.tracks_below(place)

    def _digest(self, path: str, place: str) -> JsonValue:
        """Digest a file: whether it is executable, and its bytes. Raises _UnmeasuredError.

        The checks on untrusted reads do not apply: equal digests say that the bytes are those of a trusted run.
        """
        if place not in self._digests:
            try:
                with open(place, "rb", opener=_open_at_once) as stream:
                    state = os.fstat(stream.fileno())
                    if not stat.S_ISREG(state.st_mode):
                        raise _UnmeasuredError(f"`{_show(path)}` is not a regular file")
                    self._bytes += state.st_size
                    if self._bytes > limits.MEASURED_BYTES:
                        raise _UnmeasuredError(f"more than {limits.MEASURED_BYTES:,} bytes are measured")
                    digest = hashlib.file_digest(stream, "sha256").hexdigest()
            except OSError as error:
                raise _UnmeasuredError(f"`{_show(path)}` cannot be read: {error.strerror}") from error
            self._digests[place] = [bool(state.st_mode & 0o111), digest]
        return self._digests[place]


class _UnmeasuredError(Exception):
    """Why files are no measure of a suite, as a clause."""


def _find_start(pattern: str) -> str:
    """Find the folder or file that a pattern names before its first sign that stands for something else."""
    return "" if pattern == "." else "/".join(takewhile(lambda step: not is_glob(step), pattern.split("/")))


def _open_at_once(file: str, flags: int) -> int:
    """Open a file without waiting for the other end of a pipe."""
    return os.open(file, flags | getattr(os, "O_NONBLOCK", 0))


def _show(name: str) -> str:
    """Format a name for a span of code."""
    return to_one_line(name).replace("`", "'")
