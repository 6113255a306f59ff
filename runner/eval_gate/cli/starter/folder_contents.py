"""Inspects a folder before writing: repository, configuration, evals, tool registry, snapshot."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import Final

from eval_gate.config.loader import CONFIG_NAMES
from eval_gate.engine.preparation.program_user import has_commands
from eval_gate.errors import GateError
from eval_gate.files.file_paths import VIRTUAL_ENVIRONMENT
from eval_gate.formats.base import ReadOptions
from eval_gate.formats.discovery import (
    SKIPPED_FOLDERS,
    EvalFile,
    find_eval_files,
    is_run_folder,
    load_suites,
    may_hold_evals,
)
from eval_gate.process.git import read_git_line
from eval_gate.process.signals import run_async
from eval_gate.staleness.registry_loader import find_server_file, load_registry
from eval_gate.struct import FrozenStruct, Struct, field

EVALS_FOLDER: Final = "evals"
"""Where evals are unless somebody says otherwise."""
MAX_FILES: Final = 2_000
MAX_FOLDERS: Final = 20_000
MAX_FILE_BYTES: Final = 1_000_000
MAX_BYTES: Final = 20_000_000
"""What is looked at when evals are searched for in a whole repository. Files in `to_found_evals` may be larger, one by
one."""
_REGISTRIES: Final = ("tools.json", "tool-registry.json", "tool-registry", "tools", "src/tools", "src/tool-registry")
_SNAPSHOT: Final = "snapshot.json"
_MAX_TOOLS_BYTES: Final = 10_000_000


class FoundEvals(FrozenStruct):
    """Locations and formats of existing evals; `files` are relative to the folder.

    `complete` is False if the search was cut short; `has_commands` is whether evaluators or hooks are commands;
    `unchecked_files` are files with parts that nothing checks, such as a misspelled key.
    """

    places: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    formats: frozenset[str] = frozenset()
    complete: bool = True
    has_commands: bool = False
    unchecked_files: tuple[str, ...] = ()


def find_default_branch(folder: Path) -> str:
    """Find the branch whose runs become baselines.

    The order is: the remote's default branch, the usual names if such a branch exists, the branch that is checked
    out.
    """
    told = read_git_line(folder, "symbolic-ref", "--short", "refs/remotes/origin/HEAD")
    if told:
        return told.removeprefix("origin/")
    configured = read_git_line(folder, "config", "--get", "init.defaultBranch")
    for name in (configured, "main", "master"):
        if name and read_git_line(folder, "rev-parse", "--verify", "--quiet", f"refs/heads/{name}"):
            return name
    return read_git_line(folder, "symbolic-ref", "--short", "HEAD") or configured or "main"


def is_ignored(folder: Path, name: str) -> bool:
    """Whether git would leave this path out: by its own rules, or by a plain line where there is no git."""
    if read_git_line(folder, "check-ignore", "--", f"{folder.resolve()}/{name}"):
        return True
    try:
        lines = (folder / ".gitignore").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    return name.strip("/") in {line.strip().strip("/") for line in lines}


def find_config_file(folder: Path) -> Path | None:
    """Find the configuration file of this very folder, even if it is a broken link.

    Return None if there is none.
    """
    return next((folder / name for name in CONFIG_NAMES if os.path.lexists(folder / name)), None)


def find_evals_at(places: Iterable[str], folder: Path) -> FoundEvals:
    """Find the evals at the places that a configuration names, and skip places that do not exist."""
    found: list[Path] = []
    for place in places:
        try:
            found += [file.path for file in find_eval_files([place], folder)]
        except (GateError, OSError):
            continue
    sorted_out = _sort_files(found[:MAX_FILES], folder)
    if not (sorted_out.valid or sorted_out.broken):
        return FoundEvals()
    return sorted_out.to_found_evals(places, (*sorted_out.valid, *sorted_out.broken), complete=len(found) <= MAX_FILES)


def find_all_evals(folder: Path) -> FoundEvals:
    """Find the evals of a repository, wherever they are.

    In the `evals` folder, broken files count as well. Elsewhere, a broken file may be anything.
    """
    paths, complete = _list_candidates(folder)
    sorted_out = _sort_files(paths, folder)
    own = [file for file in (*sorted_out.valid, *sorted_out.broken) if PurePosixPath(file).parts[0] == EVALS_FOLDER]
    rest = [file for file in sorted_out.valid if PurePosixPath(file).parts[0] != EVALS_FOLDER]
    places = ((EVALS_FOLDER,) if own else ()) + _list_folders(rest, sorted_out.broken)
    return sorted_out.to_found_evals(places, (*own, *rest), complete=complete)


def _list_candidates(folder: Path) -> tuple[list[Path], bool]:
    """Files that may hold evals, those in `to_found_evals` first, and whether these are all."""
    found: list[Path] = []
    total = 0
    for path in chain(_walk_files(folder / EVALS_FOLDER, without=None), _walk_files(folder, without=EVALS_FOLDER)):
        size = path.stat().st_size
        if size > MAX_FILE_BYTES and not path.is_relative_to(folder / EVALS_FOLDER):
            continue
        total += size
        if len(found) == MAX_FILES or total > MAX_BYTES:
            return found, False
        found.append(path)
    return found, True


def _walk_files(top: Path, without: str | None) -> Iterator[Path]:
    """Yield the files that discovery would find, within limits and without failing on unreadable folders."""
    for where, folders, names in islice(os.walk(top), MAX_FOLDERS):
        if VIRTUAL_ENVIRONMENT in names or is_run_folder(Path(where)):
            folders.clear()
            continue
        skipped = SKIPPED_FOLDERS | ({without} if Path(where) == top else set())
        folders[:] = sorted(name for name in folders if _is_shown(name) and name not in skipped)
        for name in sorted(names):
            path = Path(where, name)
            if _is_shown(name) and may_hold_evals(path) and _is_plain(path):
                yield path


def _is_shown(name: str) -> bool:
    """Whether a name is neither hidden nor one that no configuration could hold."""
    return not name.startswith(".") and name.isprintable()


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


class _SortedEvals(Struct):
    """Eval files, invalid eval files, and the content of the first one."""

    valid: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    unchecked_files: list[str] = field(default_factory=list)
    formats: set[str] = field(default_factory=set)
    has_commands: bool = False

    def to_found_evals(self, places: Iterable[str], files: Iterable[str], *, complete: bool) -> FoundEvals:
        """All of it, in these places."""
        return FoundEvals(
            tuple(places),
            tuple(files),
            frozenset(self.formats),
            complete,
            self.has_commands,
            tuple(self.unchecked_files),
        )


def _sort_files(paths: Iterable[Path], folder: Path) -> _SortedEvals:
    found = _SortedEvals()
    # somebody will be asked, whatever the files say of models
    lax, strict = ReadOptions(target_override="somebody"), ReadOptions(target_override="somebody", strict=True)
    for path in paths:
        shown = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.as_posix()
        file = [EvalFile(path, explicit=False)]
        try:
            [suite] = load_suites(file, folder, lax)
        except GateError as error:
            if error.code == "invalid-eval-files":
                found.broken.append(shown)
            continue
        found.valid.append(shown)
        found.formats.add(suite.format)
        found.has_commands |= any(map(has_commands, suite.cases))
        try:
            load_suites(file, folder, strict)
        except GateError:
            found.unchecked_files.append(shown)
    return found


def _list_folders(files: Iterable[str], broken: Iterable[str]) -> tuple[str, ...]:
    """List the folders of these files; a file itself at the root, or with a broken file in or below its folder."""
    unclean = {above for file in broken for above in PurePosixPath(file).parents} | {PurePosixPath()}
    found: dict[str, None] = {}
    for file in files:
        above = PurePosixPath(file).parent
        found[file if above in unclean else above.as_posix()] = None
    return tuple(place for place in found if not any(str(above) in found for above in PurePosixPath(place).parents))


class FoundTools(FrozenStruct):
    """Tool registry and snapshot, relative to the repository; None if missing."""

    registry: str | None = None
    snapshot: str | None = None


def find_tools(folder: Path) -> FoundTools:
    """Find the tool registry and the snapshot of the repository."""
    registry = next((path for path in _REGISTRIES if _has_tools(folder, path)), None)
    return FoundTools(registry, _SNAPSHOT if _is_json_object(folder / _SNAPSHOT) else None)


def _has_tools(folder: Path, path: str) -> bool:
    if not (folder / path).exists():
        return False
    try:
        if find_server_file(path, folder) is not None:  # programs that would be started: nothing is run here
            return False
        return run_async(load_registry(path, folder)).size > 0
    except (GateError, OSError):
        return False


def _is_json_object(file: Path) -> bool:
    try:
        if not file.is_file() or file.stat().st_size > _MAX_TOOLS_BYTES:
            return False
        return isinstance(json.loads(file.read_bytes()), dict)
    except (OSError, ValueError, RecursionError):
        return False
