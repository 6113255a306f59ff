"""What lies in the `tmp/` of a project when a run begins: every suite whose agent has file tools begins with it.

Source: agent-evals behaviour 3.4, B-08. It is read once, so that all suites and trials begin alike whatever happens to
it meanwhile. Of a checkout it is what git tracks: what somebody's earlier runs left there would make later ones pass.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final

from eval_gate.errors import GateError
from eval_gate.model.case import EvalSuite
from eval_gate.process.git import ask_git, checkout_of
from eval_gate.results.names import LATEST_NAME
from eval_gate.sandbox import handles
from eval_gate.sandbox.home import Home, OwnersFolder, ReservedNames
from eval_gate.sandbox.paths import LINK, NO_FOLDER, SandboxError
from eval_gate.struct import FrozenStruct
from eval_gate.targets.model.recording import RECORDING_NAME
from eval_gate.text.digest import digest, file_digest
from eval_gate.text.foreign.well_formed import well_formed

REPORTS: Final = "reports"
_OURS: Final = frozenset({LATEST_NAME, RECORDING_NAME, REPORTS})
_RUN: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SHOWN: Final = 10
"""Paths that are named; of more their number has to do."""


class ProjectTmp(FrozenStruct):
    """The folder that is a suite's `tmp/`, relative to the root of the run."""

    folder: Path = Path("tmp")
    in_place: bool = False
    """Agents work in the folder itself; else each suite and trial in a fresh copy of it."""
    checked_in: bool = True
    """What is copied of a checkout is only what git tracks."""
    output: tuple[str, ...] = ()
    """In place: the names that lead from it to our results, over which no tool writes."""


def home_for(suites: Iterable[EvalSuite], root: Path, tmp: ProjectTmp) -> tuple[Home, tuple[str, ...]]:
    """Where the agents of these suites work, and what is worth a line in the result.

    Raises GateError `bad-tmp` when there is more to be copied than an agent's folder may hold.
    """
    folder = root / tmp.folder
    if tmp.in_place:
        return Home(in_place=folder, reserved=ReservedNames(tmp.output, _is_ours)), ()
    needed = any(case.uses_files and case.skip_reason is None for suite in suites for case in suite.cases)
    if not needed or not handles.SUPPORTED or not (folder.exists() or folder.is_symlink()):
        return Home(), ()
    if folder.is_symlink() or not folder.is_dir():
        return Home(), (f"{tmp.folder} is not copied for agents: {LINK if folder.is_symlink() else NO_FOLDER}",)
    try:
        tracked = _tracked(folder) if tmp.checked_in else None
        owners = OwnersFolder(folder)
        given, left_out = owners.initial_files(_is_output) if tracked is None else owners.given_at(tracked)
    except (SandboxError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise GateError(
            "bad-tmp",
            f"{tmp.folder} cannot be copied for agents of suites: {why}",
            f"keep in {tmp.folder} only what suites need",
        ) from error
    others = () if tracked is None else _others(folder)
    what = f"what git does not track in {tmp.folder} is not copied for agents, such as"
    untracked = [f"{what} {tmp.folder / well_formed(one[:200])}" for one in others[:1]]
    return Home(tuple(given)), (*_notices(tmp.folder, left_out), *untracked)


def contents(home: Home) -> str | None:
    """The name of all files that fresh folders begin with, by path and content; None where there are none."""
    files = sorted((one.path, file_digest(one.data)) for one in home.initial_files if one.data is not None)
    return digest([list(file) for file in files]) if files else None


def _tracked(folder: Path) -> tuple[str, ...] | None:
    """Paths below the folder that git tracks; None where there is no git, or no checkout."""
    return _git(folder, "--cached")


def _others(folder: Path) -> tuple[str, ...]:
    """What else lies there, folders as a whole; without our results."""
    listed = _git(folder, "--others", "--directory", "--no-empty-directory") or ()
    return tuple(one for one in listed if not (folder / one / LATEST_NAME).is_file())


def _git(folder: Path, *arguments: str) -> tuple[str, ...] | None:
    """The paths below the folder that git lists."""
    top, folder = checkout_of(folder), folder.resolve()
    if top is None:
        return None
    below = folder.relative_to(top).as_posix()
    listed = ask_git(folder, "ls-files", "-z", *arguments, "--", f":(literal){below}")
    if listed is None:
        return None
    prefix = "" if below == "." else f"{below}/"
    return tuple(os.fsdecode(path).removeprefix(prefix) for path in listed.split(b"\0") if path)


def _is_output(beside: Collection[str], name: str) -> bool:
    """Whether this is a result that we left in a folder of results."""
    return LATEST_NAME in beside and _is_ours(name)


def _is_ours(name: str) -> bool:
    return name in _OURS or _RUN.fullmatch(name) is not None


def _notices(folder: Path, left_out: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    lines = [f"{folder / well_formed(path[:200])} is not copied for agents: {why}" for path, why in left_out[:_SHOWN]]
    more = len(left_out) - len(lines)
    return (*lines, f"{more:,} more of {folder} are not copied") if more > 0 else tuple(lines)
