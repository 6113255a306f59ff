"""Initial content of the project's `tmp/`, with which every suite with file tools starts.

Source: agent-evals behaviour 3.4, B-08. It is read once, so that all suites and trials begin with the same files. Of a
checkout only the files count that git tracks: files of earlier runs would make later ones pass.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final

from eval_gate.errors import GateError
from eval_gate.model.case import EvalSuite
from eval_gate.process.git import find_checkout, run_git
from eval_gate.results.result_names import LATEST_NAME
from eval_gate.sandbox import handles
from eval_gate.sandbox.paths import LINK, NO_FOLDER, SandboxError
from eval_gate.sandbox.sandbox_setup import ExistingFolder, ReservedNames, SandboxSetup
from eval_gate.struct import FrozenStruct
from eval_gate.targets.model.recording import RECORDING_NAME
from eval_gate.text.digest import compute_digest, digest_file_content
from eval_gate.text.untrusted.surrogates import to_well_formed

REPORTS_FOLDER: Final = "reports"
_OWN_NAMES: Final = frozenset({LATEST_NAME, RECORDING_NAME, REPORTS_FOLDER})
_RUN_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MAX_SHOWN: Final = 10
"""Paths that are named; of more their number has to do."""


class ProjectTmp(FrozenStruct):
    """The folder used as a suite's `tmp/`, relative to the root of the run."""

    folder: Path = Path("tmp")
    in_place: bool = False
    """Agents work in the folder itself; else each suite and trial in a fresh copy of it."""
    checked_in: bool = True
    """Of a checkout, only files that git tracks are copied."""
    output: tuple[str, ...] = ()
    """In place: the names on the path to our results, which no tool overwrites."""


def build_home(suites: Iterable[EvalSuite], root: Path, tmp: ProjectTmp) -> tuple[SandboxSetup, tuple[str, ...]]:
    """Build the folder of agents, and notices. Raises GateError `tmp-folder-too-large`."""
    folder = root / tmp.folder
    if tmp.in_place:
        return SandboxSetup(existing_folder=folder, reserved_names=ReservedNames(tmp.output, _is_own_name)), ()
    needed = any(case.uses_files and case.skip_reason is None for suite in suites for case in suite.cases)
    if not needed or not handles.SUPPORTED or not (folder.exists() or folder.is_symlink()):
        return SandboxSetup(), ()
    if folder.is_symlink() or not folder.is_dir():
        return SandboxSetup(), (f"{tmp.folder} is not copied for agents: {LINK if folder.is_symlink() else NO_FOLDER}",)
    try:
        tracked = _list_git_paths(folder, "--cached") if tmp.checked_in else None
        owners = ExistingFolder(folder)
        files, left_out = (
            owners.collect_initial_files(_is_output) if tracked is None else owners.collect_files_at(tracked)
        )
    except (SandboxError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise GateError(
            "tmp-folder-too-large",
            f"{tmp.folder} cannot be copied for agents of suites: {why}",
            f"keep only files that suites need in {tmp.folder}",
        ) from error
    untracked_names = () if tracked is None else _list_untracked(folder)
    what = f"files that git does not track in {tmp.folder} are not copied for agents, such as"
    untracked = [f"{what} {tmp.folder / to_well_formed(one[:200])}" for one in untracked_names[:1]]
    return SandboxSetup(tuple(files)), (*_format_notices(tmp.folder, left_out), *untracked)


def digest_contents(home: SandboxSetup) -> str | None:
    """Compute a digest of the initial files of fresh folders, from paths and contents; None without files."""
    files = sorted((one.path, digest_file_content(one.data)) for one in home.initial_files if one.data is not None)
    return compute_digest([list(file) for file in files]) if files else None


def _list_untracked(folder: Path) -> tuple[str, ...]:
    """List files that git does not track, without result folders; an untracked folder is one entry."""
    listed = _list_git_paths(folder, "--others", "--directory", "--no-empty-directory") or ()
    return tuple(one for one in listed if not (folder / one / LATEST_NAME).is_file())


def _list_git_paths(folder: Path, *arguments: str) -> tuple[str, ...] | None:
    """List the paths below the folder that `git ls-files` reports, relative to it; None without git or a checkout."""
    top, folder = find_checkout(folder), folder.resolve()
    if top is None:
        return None
    subfolder = folder.relative_to(top).as_posix()
    listed = run_git(folder, "ls-files", "-z", *arguments, "--", f":(literal){subfolder}")
    if listed is None:
        return None
    prefix = "" if subfolder == "." else f"{subfolder}/"
    return tuple(os.fsdecode(path).removeprefix(prefix) for path in listed.split(b"\0") if path)


def _is_output(siblings: Collection[str], name: str) -> bool:
    return LATEST_NAME in siblings and _is_own_name(name)


def _is_own_name(name: str) -> bool:
    return name in _OWN_NAMES or _RUN_ID.fullmatch(name) is not None


def _format_notices(folder: Path, left_out: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    lines = [
        f"{folder / to_well_formed(path[:200])} is not copied for agents: {why}" for path, why in left_out[:_MAX_SHOWN]
    ]
    more = len(left_out) - len(lines)
    return (*lines, f"{more:,} more of {folder} are not copied") if more > 0 else tuple(lines)
