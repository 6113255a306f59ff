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

from eval_gate.config.measures import MeasuredPattern, parse_measured_pattern
from eval_gate.engine.preparation.program_files import read_file_state
from eval_gate.engine.preparation.repository_files import RepositoryFiles
from eval_gate.files.file_paths import RESULT_FILES
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.model.reuse import MeasuredSuite
from eval_gate.struct import replace
from eval_gate.text.digest import compute_digest, compute_fingerprint
from eval_gate.text.escape import to_one_line
from eval_gate.text.globs import covers_file, is_glob


class MeasuredFiles:
    """Files of the repository that contains `root`, each digested once. `root` is the folder of the run."""

    def __init__(
        self,
        root: Path,
        environment: Mapping[str, str],
        *,
        repository: RepositoryFiles | None = None,
        results: str | Path | None = None,
    ) -> None:
        """`results` is the folder of results."""
        self._root = os.path.normpath(root.absolute())
        self._environment = environment
        self._repository = repository or RepositoryFiles(root)
        self._results = None if results is None else os.path.normpath(root.absolute() / results)
        self._searches: dict[tuple[str, ...], _Search] = {}
        self._digests: dict[str, JsonValue] = {}
        self._states: dict[str, tuple[int, ...]] = {}
        """Each file and link as it was before it was read."""
        self._places: list[frozenset[str]] = []
        """Files and links of each suite."""
        self._bytes = 0

    def list_files(self, patterns: Sequence[str]) -> tuple[str, ...]:
        """List the files that the patterns name, relative to the root, sorted; with a problem those up to it."""
        return tuple(sorted(self._search(patterns).places))

    def measure(
        self, suite: str, patterns: Sequence[str], agent_files: Iterable[str] = (), read_files: Iterable[str] = ()
    ) -> MeasuredSuite:
        """Digest the files and variables of a suite, and the `read_files`, which are relative to the root.

        The `agent_files` are absolute, and have to be among those that the patterns name.
        """
        if not patterns:
            self._places.append(frozenset())
            return MeasuredSuite(suite=suite)
        search = self._search(patterns)
        unnamed_places = (f"{self._root}/{path}" for path in (*search.links, *read_files))
        self._places.append(frozenset((*search.places.values(), *unnamed_places)))
        for place in self._places[-1] - self._states.keys():
            self._states[place] = read_file_state(place)
        result = MeasuredSuite(suite=suite, patterns=tuple(sorted(patterns)), files=len(search.places))
        try:
            search.check(agent_files, self._root)
            return replace(result, digest=compute_fingerprint([*self._iter_digests(search, read_files)]))
        except _UnmeasuredError as error:
            return replace(result, problem=str(error))

    def check_again(self, suites: Iterable[MeasuredSuite]) -> tuple[MeasuredSuite, ...]:
        """Return the suites, in the order of measuring, without digests whose files changed since, or were set back."""
        changed = {place for place, state in self._states.items() if read_file_state(place) != state}
        checked = []
        for suite, places in zip(suites, self._places, strict=True):
            problem = None
            if place := min(places & changed, default=None):
                problem = str(_UnmeasuredError(os.path.relpath(place, self._root), "was changed during the run"))
            checked.append(replace(suite, digest=None, problem=problem) if problem else suite)
        return tuple(checked)

    def _iter_digests(self, search: _Search, read_files: Iterable[str]) -> Iterator[JsonValue]:
        """Yield targets of links, digests of files and variables, and of the files that count without a pattern."""
        yield dict(search.links)
        yield {path: self._digest(path, place) for path, place in search.places.items()}
        for name in sorted(one.variable for one in search.patterns if one.variable):
            if not (value := self._environment.get(name)):  # as without its step, or by a misspelt name
                raise _UnmeasuredError(f"env:{name}", "is not set")
            yield ["env", name, compute_digest(value)]
        for path in sorted(read_files):
            place = f"{self._root}/{path}"
            yield [path, self._digest(path, place) if Path(place).is_file() else None]

    def _search(self, patterns: Sequence[str]) -> _Search:
        key = tuple(sorted(patterns))
        if key not in self._searches:
            self._searches[key] = search = _Search([parse_measured_pattern(one) for one in key])
            try:
                if search.starts:
                    self._walk("", self._root, frozenset(), search, is_left_out=False)
                    self._check_checkout(search)
            except _UnmeasuredError as error:
                search.problem = error
        return self._searches[key]

    def _check_checkout(self, search: _Search) -> None:
        """Check that all that git tracks of the patterns is on disk. Raises _UnmeasuredError."""
        for path in sorted(search.find_missed(self._repository.iter_tracked(self._root))):
            if not os.path.lexists(f"{self._root}/{path}"):
                raise _UnmeasuredError(path, "is tracked by git, but not checked out")

    def _walk(self, folder: str, place: str, parents: frozenset[str], search: _Search, *, is_left_out: bool) -> None:
        """Find the files of the patterns below a folder, with the places of those that led to it as its `parents`.

        If it `is_left_out`, only files count that git tracks. Raises _UnmeasuredError.
        """
        if place in parents:
            raise _UnmeasuredError(folder, "is a link that leads to a folder above it")
        try:
            with os.scandir(place) as listed:
                entries = sorted((entry for entry in listed if entry.name != ".git"), key=lambda one: one.name)
        except OSError as error:
            raise _UnmeasuredError(folder or ".", f"cannot be read: {error.strerror}") from error
        if not entries and self._repository.tracks(place):
            raise _UnmeasuredError(folder, "is empty, but git tracks it: the submodule is not checked out")
        search.entries += len(entries)
        if search.entries > limits.MEASURED_ENTRIES or len(search.places) > limits.MEASURED_FILES:
            raise _UnmeasuredError("measures", "leads to more files than the limit")
        is_left_out = is_left_out or self._holds_results(place, entries)
        for entry in entries:
            path, is_link = f"{folder}/{entry.name}".lstrip("/"), entry.is_symlink()
            is_folder = Path(entry.path).is_dir() if is_link else entry.is_dir()
            leaves_out = is_left_out or self._repository.is_generated(entry.path, is_folder=is_folder)
            if (leaves_out and not self._repository.tracks(entry.path)) or not search.covers(path, is_folder=is_folder):
                continue
            target = self._follow(path, entry.path, search) if is_link else entry.path
            if is_folder:
                self._walk(path, target, parents | {place}, search, is_left_out=leaves_out)
            else:
                search.places[path] = target

    def _follow(self, path: str, link: str, search: _Search) -> str:
        """Follow a link, and name its target as git's index does, whatever links lead to the repository."""
        if not self._repository.is_inside(link):
            raise _UnmeasuredError(path, "is a link that leads out of the repository")
        if not Path(link).exists():
            raise _UnmeasuredError(path, "is a link to nothing")
        search.links[path] = str(Path(link).readlink())
        root = self._repository.root
        return os.path.normpath(root / os.path.relpath(os.path.realpath(link), os.path.realpath(root)))

    def _holds_results(self, place: str, entries: Iterable[os.DirEntry[str]]) -> bool:
        """Whether this is the folder of results, or one in it, unless git tracks what is in it."""
        is_inside = self._results is not None and f"{place}/".startswith(f"{self._results}/")
        has_results = is_inside and any(entry.name in RESULT_FILES for entry in entries)
        return has_results and not self._repository.tracks(place)

    def _digest(self, path: str, place: str) -> JsonValue:
        """Digest a file: whether it is executable, and its bytes. Raises _UnmeasuredError.

        The checks on untrusted reads do not apply: equal digests say that the bytes are those of a trusted run.
        """
        if place not in self._digests:
            try:
                state = os.stat(place)  # noqa: PTH116 (a Path for each file of a large folder takes seconds)
                if not stat.S_ISREG(state.st_mode):
                    raise _UnmeasuredError(path, "is not a regular file")
                self._bytes += state.st_size
                if self._bytes > limits.MEASURED_BYTES:
                    raise _UnmeasuredError(path, f"is beyond the limit of {limits.MEASURED_BYTES:,} bytes")
                with open(place, "rb", buffering=0) as stream:  # noqa: PTH123 (as for os.stat above)
                    content = hashlib.file_digest(stream, "sha256")
            except OSError as error:
                raise _UnmeasuredError(path, f"cannot be read: {error.strerror}") from error
            self._digests[place] = [bool(state.st_mode & 0o111), content.hexdigest()]
        return self._digests[place]


class _UnmeasuredError(Exception):
    """Why a file, folder or pattern is no measure of a suite, as a clause."""

    def __init__(self, name: str, what: str) -> None:
        name = to_one_line(name).replace("`", "'")
        super().__init__(f"`{name}` {what}")


class _Search:
    """Patterns to search for, and what was found, by path relative to the root of the run."""

    def __init__(self, patterns: Sequence[MeasuredPattern]) -> None:
        self.patterns = patterns
        self._covering = [one for one in patterns if one.path and not one.is_exclusion]
        self._leaving_out = [one.path for one in patterns if one.is_exclusion]
        steps = (
            takewhile(lambda step: step != "." and not is_glob(step), one.path.split("/")) for one in self._covering
        )
        self.starts = ["/".join(one) for one in steps]
        """Of each pattern what stands before its first sign that stands for something else."""
        self.entries = 0
        self.places: dict[str, str] = {}
        """Each file as it is on disk, with links followed."""
        self.links: dict[str, str] = {}
        """The target of each link, as it is written."""
        self.problem: _UnmeasuredError | None = None

    def covers(self, path: str, *, is_folder: bool) -> bool:
        """Whether the patterns name this file, or may name a file below this folder."""
        if any(covers_file(one, path) for one in self._leaving_out):
            return False
        if not is_folder:
            return any(covers_file(one.path, path) for one in self._covering)
        return any(not one or f"{one}/".startswith(f"{path}/") or path.startswith(f"{one}/") for one in self.starts)

    def find_missed(self, paths: Iterable[str]) -> list[str]:
        """Find those paths that the patterns name and the search did not find."""
        near = (path for path in paths if path.startswith(tuple(self.starts)) and path not in self.places)
        return [path for path in near if self.covers(path, is_folder=False)]

    def check(self, agent_files: Iterable[str], root: str) -> None:
        """Check that every pattern names a file, and that the files of the agent are found. Raises _UnmeasuredError."""
        if self.problem is not None:
            raise self.problem
        for one in self._covering:
            if not any(covers_file(one.path, path) for path in self.places):
                raise _UnmeasuredError(one.text, "matches no file")
        if all(one.is_exclusion for one in self.patterns):
            raise _UnmeasuredError(self.patterns[0].text, "only leaves files out, and no other pattern names one")
        places = {*self.places.values(), *(f"{root}/{path}" for path in self.places)}
        for file in agent_files:
            if file not in places:
                raise _UnmeasuredError(os.path.relpath(file, root), "is run by the target, but not measured")
