"""Inspect a folder before writing: repository, configuration and evals."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Final

from eval_gate.config.loader import CONFIG_NAMES
from eval_gate.engine.preparation.program_user import has_commands
from eval_gate.errors import GateError
from eval_gate.formats.base import ReadOptions
from eval_gate.formats.discovery import (
    SKIPPED_FOLDERS,
    EvalFile,
    find_eval_files,
    is_run_folder,
    load_suites,
    may_hold_evals,
)
from eval_gate.model.case import EvalSuite
from eval_gate.process.git import read_git_line
from eval_gate.struct import FrozenStruct, replace

EVALS_FOLDER: Final = "evals"
MAX_FILES: Final = 2_000
"""How many files are looked at when evals are searched for in a whole repository."""
_VIRTUAL_ENVIRONMENT: Final = "pyvenv.cfg"


class FoundEvals(FrozenStruct):
    """Locations and formats of existing evals; `files` are relative to the folder.

    `complete` is False if the search was cut short; `has_commands` is whether evaluators or hooks are commands.
    """

    places: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    formats: frozenset[str] = frozenset()
    complete: bool = True
    has_commands: bool = False


def find_default_branch(folder: Path) -> str:
    """Find the branch whose runs become baselines.

    The order is: the remote's default branch, the usual names if such a branch exists, the branch that is checked
    out.
    """
    remote_head = read_git_line(folder, "symbolic-ref", "--short", "refs/remotes/origin/HEAD")
    if remote_head:
        return remote_head.removeprefix("origin/")
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
    """Find the configuration file of this very folder, even if it is a broken link; None if there is none."""
    return next((folder / name for name in CONFIG_NAMES if os.path.lexists(folder / name)), None)


def find_evals_at(places: Iterable[str], folder: Path) -> FoundEvals:
    """Find the evals at the places that a configuration names, and skip places that do not exist."""
    paths: list[Path] = []
    for place in places:
        try:
            paths += [file.path for file in find_eval_files([place], folder)]
        except (GateError, OSError):
            continue
    evals = _sort_files(paths, folder)
    return replace(evals, places=tuple(places)) if evals.files else evals


def find_all_evals(folder: Path) -> FoundEvals:
    """Find the evals of a repository. Broken files count in the `evals` folder: elsewhere they may be anything."""
    paths = list(islice(_walk_files(folder), MAX_FILES + 1))
    evals = _sort_files(paths[:MAX_FILES], folder)
    above = (PurePosixPath(file) if "/" not in file else PurePosixPath(file).parent for file in evals.files)
    folders = dict.fromkeys(EVALS_FOLDER if place.parts[0] == EVALS_FOLDER else place.as_posix() for place in above)
    places = (one for one in folders if not any(str(parent) in folders for parent in PurePosixPath(one).parents))
    return replace(evals, places=tuple(places), complete=len(paths) <= MAX_FILES)


def _walk_files(top: Path) -> Iterator[Path]:
    """Yield the files that discovery would find, `evals` before other folders, whatever folder is unreadable."""
    for where, folders, names in os.walk(top):
        if _VIRTUAL_ENVIRONMENT in names or is_run_folder(Path(where)):
            folders.clear()
            continue
        subfolders = (name for name in folders if _is_shown(name) and name not in SKIPPED_FOLDERS)
        folders[:] = sorted(subfolders, key=lambda name: (name != EVALS_FOLDER, name))
        for path in (Path(where, name) for name in sorted(names) if _is_shown(name)):
            if may_hold_evals(path) and path.is_file() and not path.is_symlink():
                yield path


def _is_shown(name: str) -> bool:
    """Whether a name is neither hidden nor one that no configuration could hold."""
    return not name.startswith(".") and name.isprintable()


def _sort_files(paths: Iterable[Path], folder: Path) -> FoundEvals:
    """Read which of these files are evals, with their formats; broken files count in the `evals` folder."""
    files: list[str] = []
    suites: list[EvalSuite] = []
    # the target is not chosen here
    lax = ReadOptions(target_override="any")
    for path in paths:
        name = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.as_posix()
        try:
            suites += load_suites([EvalFile(path, explicit=False)], folder, lax)
        except GateError as error:
            if error.code != "invalid-eval-files" or PurePosixPath(name).parts[0] != EVALS_FOLDER:
                continue
        files.append(name)
    runs_commands = any(has_commands(case) for suite in suites for case in suite.cases)
    return FoundEvals((), tuple(files), frozenset(one.format for one in suites), has_commands=runs_commands)
