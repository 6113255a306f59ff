"""What lies in the `tmp/` of a project when a run begins: every suite whose agent has file tools begins with it.

Source: agent-evals behaviour 3.4, B-08. It is read once, so that all suites and trials begin alike whatever happens to
it meanwhile. Results that this program left there are no part of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from eval_gate.errors import GateError
from eval_gate.model.case import EvalSuite
from eval_gate.results.names import LATEST_NAME
from eval_gate.sandbox import handles
from eval_gate.sandbox.folder import OwnersFolder, Reserved
from eval_gate.sandbox.home import Home
from eval_gate.sandbox.paths import LINK, NO_FOLDER, SandboxError
from eval_gate.targets.model.recording import RECORDING_NAME

REPORTS: Final = "reports"
_OURS: Final = frozenset({LATEST_NAME, RECORDING_NAME, REPORTS})
_RUN: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SHOWN: Final = 10
"""Paths that are named; of more their number has to do."""


@dataclass(frozen=True, slots=True)
class Tmp:
    """The folder that is a suite's `tmp/`, relative to the root of the run."""

    folder: Path = Path("tmp")
    in_place: bool = False
    """Agents work in the folder itself; else each suite and trial in a fresh copy of it."""
    output: tuple[str, ...] = ()
    """In place: the names that lead from it to our results, over which no tool writes."""


def home_for(suites: Iterable[EvalSuite], root: Path, tmp: Tmp) -> tuple[Home, tuple[str, ...]]:
    """Where the agents of these suites work, and what is worth a line in the result.

    Raises GateError `bad-tmp` when there is more to be copied than an agent's folder may hold.
    """
    folder = root / tmp.folder
    if tmp.in_place:
        return Home(in_place=folder, reserved=Reserved(tmp.output, _is_ours)), ()
    needed = any(case.dependent and case.skip_reason is None for suite in suites for case in suite.cases)
    if not needed or not handles.SUPPORTED or not (folder.exists() or folder.is_symlink()):
        return Home(), ()
    if folder.is_symlink() or not folder.is_dir():
        return Home(), (f"{tmp.folder} is not copied for agents: {LINK if folder.is_symlink() else NO_FOLDER}",)
    try:
        given, left_out = OwnersFolder(folder).given(_is_output)
    except (SandboxError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise GateError(
            "bad-tmp",
            f"{tmp.folder} cannot be copied for agents of suites: {why}",
            f"keep in {tmp.folder} only what suites need",
        ) from error
    return Home(tuple(given)), _notices(tmp.folder, left_out)


def _is_output(beside: Collection[str], name: str) -> bool:
    """Whether this is a result that we left in a folder of results."""
    return LATEST_NAME in beside and _is_ours(name)


def _is_ours(name: str) -> bool:
    return name in _OURS or _RUN.fullmatch(name) is not None


def _notices(folder: Path, left_out: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    lines = [f"{folder / path[:200]} is not copied for agents: {why}" for path, why in left_out[:_SHOWN]]
    more = len(left_out) - len(lines)
    return (*lines, f"{more:,} more of {folder} are not copied") if more > 0 else tuple(lines)
