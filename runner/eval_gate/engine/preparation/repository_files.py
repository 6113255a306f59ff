"""Files of a repository without generated caches and without what git ignores.

Files that git tracks always count, even if a rule ignores them or they are in a cache.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from eval_gate.files.file_paths import RESULT_FILES, VIRTUAL_ENVIRONMENT, find_repository
from eval_gate.files.git_folder import find_git_folder
from eval_gate.files.reading import read_limited_raw
from eval_gate.model import limits
from eval_gate.process.git import read_tracked_names
from eval_gate.text.globs import covers_file, matches_glob

_GENERATED: Final = frozenset(
    {"__pycache__", "node_modules", ".venv", ".tox", ".nox", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
    | {".hypothesis", ".coverage", ".cache", ".nyc_output", ".eslintcache", ".ipynb_checkpoints", ".DS_Store"}
)
"""Names of caches and installed packages, which programs and package managers make themselves."""
_MAX_RULES_BYTES: Final = limits.IGNORE_RULES_BYTES


class RepositoryFiles:
    """Files of the repository that contains `folder`, or of `folder` itself outside of a repository."""

    def __init__(self, folder: Path) -> None:
        folder = folder.absolute()
        self.root = find_repository(folder) or folder
        git = find_git_folder(self.root)
        tracked = os.fsdecode(b"\0".join((read_tracked_names(git) if git else None) or ()))
        self._tracked = frozenset(f"{self.root}/{name}" for name in tracked.split("\0") if name)
        self._tracked_folders = _list_folders(self._tracked)
        self._rules: dict[str, tuple[_IgnoreRule, ...]] = {}
        self._results: set[str] = set()
        self._environments: dict[str, bool] = {}
        self._keeps_rules = False

    def keep_rules(self) -> None:
        """Read no more rules and marks: a new file must not be hidden by another new one."""
        self._keeps_rules = True

    def iter_files(self, folder: str, *, deep: bool = True) -> Iterator[str]:
        """Yield the files in or below a folder, sorted by name; a link is one, and to a folder is followed once."""
        return self._walk(folder, deep=deep, ignored=self.is_ignored(folder, is_folder=True), visited=set())

    def has_file(self, file: str) -> bool:
        """Whether this file exists and counts."""
        if not os.path.lexists(file) or Path(file).is_dir():
            return False
        return file in self._tracked or not self.is_ignored(file)

    def is_inside(self, path: str) -> bool:
        """Whether a path lies in the repository, links followed."""
        real, root = os.path.realpath(path), os.path.realpath(self.root)
        return real == root or real.startswith(f"{root}/")

    def tracks(self, path: str) -> bool:
        """Whether git tracks this file, link or submodule, or a file below this folder; or this is in a submodule."""
        parents = map(str, Path(path).parents)
        return path in self._tracked or path in self._tracked_folders or not self._tracked.isdisjoint(parents)

    def iter_tracked(self, folder: str) -> Iterator[str]:
        """Yield what git tracks below a folder, relative to it, whether it is on disk or not."""
        start = f"{folder}/"
        return (path.removeprefix(start) for path in self._tracked if path.startswith(start))

    def is_generated(self, path: str, *, is_folder: bool) -> bool:
        """Whether this is a cache or a virtual environment, which programs make themselves."""
        return path.rpartition("/")[2] in _GENERATED or (is_folder and self._is_environment(path))

    def is_ignored(self, path: str, *, is_folder: bool = False) -> bool:
        """Whether rules leave out this path of the repository, or a folder that leads to it. It need not exist."""
        inside = Path(path).relative_to(self.root).parts if Path(path).is_relative_to(self.root) else ()
        places = ("/".join((str(self.root), *inside[: count + 1])) for count in range(len(inside)))
        return any(self._is_ignored(place, is_folder=is_folder or place != path) for place in places)

    def _walk(self, folder: str, *, deep: bool, ignored: bool, visited: set[str]) -> Iterator[str]:
        visited.add(os.path.realpath(folder))
        try:
            with os.scandir(folder) as listed:
                entries = sorted((entry.name, entry.is_dir(), entry.is_symlink()) for entry in listed)
        except OSError:  # its reader reports it
            return
        if folder not in self._tracked_folders and any(name in RESULT_FILES for name, *_ in entries):
            if not self._keeps_rules:
                self._results.add(folder)
            if folder in self._results:
                return
        for name, is_folder, is_link in entries:
            path = f"{folder}/{name}"
            tracked = path in (self._tracked_folders if is_folder and not is_link else self._tracked)
            left_out = ignored or self._is_ignored(path, is_folder=is_folder)
            if (left_out and not tracked) or name == ".git":
                continue
            if not is_folder or is_link:
                yield path
            if is_folder and deep and self.is_inside(path) and os.path.realpath(path) not in visited:
                yield from self._walk(path, deep=True, ignored=left_out, visited=visited)

    def _is_ignored(self, path: str, *, is_folder: bool) -> bool:
        """Whether a rule leaves out this path itself: the last one of the nearest folder that says something."""
        if self.is_generated(path, is_folder=is_folder):
            return True
        place, name = os.path.split(path)
        root = str(self.root)
        while place == root or place.startswith(f"{root}/"):
            for rule in self._get_rules(place):
                if rule.matches(path[len(place) + 1 :], name, is_folder=is_folder):
                    return not rule.is_exception
            place = os.path.dirname(place)  # noqa: PTH120 (a Path for each file of a large folder takes seconds)
        return False

    def _is_environment(self, folder: str) -> bool:
        if folder not in self._environments and not self._keeps_rules:
            self._environments[folder] = os.path.lexists(f"{folder}/{VIRTUAL_ENVIRONMENT}")
        return self._environments.get(folder, False)

    def _get_rules(self, folder: str) -> tuple[_IgnoreRule, ...]:
        """Return the rules of a folder, those that count first."""
        if folder not in self._rules and not self._keeps_rules:
            files = [Path(folder, ".gitignore")]
            git = find_git_folder(self.root) if folder == str(self.root) else None
            files += [git / "info" / "exclude"] if git else []
            self._rules[folder] = tuple(rule for file in files for rule in reversed(_read_rules(file)))
        return self._rules.get(folder, ())


def _list_folders(files: Iterable[str]) -> frozenset[str]:
    """List all folders above these files, each once: a Path for each file of a large repository takes seconds."""
    folders, nearest = set[str](), set(files)
    while nearest := {name.rpartition("/")[0] for name in nearest} - folders:
        folders |= nearest
    return frozenset(folders)


class _IgnoreRule(NamedTuple):
    """One line of a `.gitignore` (git-scm.com/docs/gitignore)."""

    pattern: str
    is_exception: bool
    folders_only: bool
    is_path: bool

    def matches(self, path: str, name: str, *, is_folder: bool) -> bool:
        if self.folders_only and not is_folder:
            return False
        if not self.is_path:
            return matches_glob(self.pattern, name)
        above = path.rpartition("/")[0]  # a rule about a folder is no rule about what is in it
        return covers_file(self.pattern, path) and not (above and covers_file(self.pattern, above))


def _read_rules(file: Path) -> list[_IgnoreRule]:
    try:
        text = read_limited_raw(file, _MAX_RULES_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return []
    lines = map(_strip_blanks, text.splitlines())
    return [_parse_rule(line) for line in lines if line.strip("!/") and not line.startswith("#")]


def _strip_blanks(line: str) -> str:
    """Remove the blanks at the end of a line, but for one that is escaped."""
    stripped = line.rstrip(" \t")
    return f"{stripped} " if stripped.endswith("\\") and stripped != line else stripped


def _parse_rule(line: str) -> _IgnoreRule:
    is_exception = line.startswith("!")
    line = line[is_exception:].removeprefix("\\")
    pattern = line.rstrip("/")
    if pattern.endswith("/**"):  # all that is in a folder, but not the folder
        pattern = pattern.removesuffix("*")
    return _IgnoreRule(pattern.lstrip("/"), is_exception, line.endswith("/"), "/" in pattern)
