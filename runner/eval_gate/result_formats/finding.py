"""Finds the files of results that somebody names: as they are, by globs, and of a folder all that may be results."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from glob import has_magic
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from eval_gate.config.settings import ResultsFormat
from eval_gate.model.limits import BROUGHT_DEPTH, BROUGHT_FILES
from eval_gate.result_formats.agentv import INDEX
from eval_gate.result_formats.recognise import SUFFIXES, tool_of
from eval_gate.result_formats.rows import RowPlace, broken_off, unreadable

_BESIDE: Final = {
    "eval-set.json": "Inspect",
    "logs.json": "Inspect",
    "listing.json": "Inspect",
    "failsafe-summary.xml": "Maven",
    "testng-failed.xml": "TestNG",
    "testng-results.xml": "TestNG",
}
"""Files that tools write beside results and that hold none, by name; they are passed over in folders, and named."""


class ResultsFile(NamedTuple):
    """A file to be read, or one that is passed over; `shown` is the file as messages name it."""

    path: Path
    shown: str
    passed_over: str | None = None
    """Whose file beside results it is; None where it is read."""


def find_files(paths: Sequence[str]) -> Iterator[ResultsFile]:
    """The files, in order. Raises GateError for one that is not there, and for a folder without results."""
    found = 0
    for given in (one for path in paths for one in _meant_by(path)):
        for file in _at(given):
            found += 1
            if found > BROUGHT_FILES:
                raise unreadable(RowPlace(given), f"holds more than {BROUGHT_FILES:,} files")
            yield file


def _meant_by(given: str) -> list[str]:
    """The paths that a glob matches; any other path is itself."""
    if not has_magic(given) or os.path.lexists(given):
        return [given]
    pattern = Path(given)
    found = Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor)))
    matched = sorted(str(path) for path in islice(found, BROUGHT_FILES + 1))
    if not matched:
        raise broken_off(RowPlace(given), "matches no file: the tool did not write it, or wrote it somewhere else")
    below = {path for path in matched if any(parent in matched for parent in map(str, Path(path).parents))}
    return [path for path in matched if path not in below]


def _at(given: str) -> Iterator[ResultsFile]:
    path = Path(given)
    if path.is_file():
        yield ResultsFile(path, given)
        return
    if not path.is_dir():
        raise broken_off(RowPlace(given), "is not there: the tool did not write it, or wrote it somewhere else")
    if not any(path.iterdir()):
        raise broken_off(RowPlace(given), "is empty: the tool made the folder and wrote no results")
    inside = list(islice(_inside(path, BROUGHT_DEPTH), BROUGHT_FILES + 1))
    if len(inside) > BROUGHT_FILES:  # what is wrong in each of them is not looked for
        raise unreadable(RowPlace(given), f"holds more than {BROUGHT_FILES:,} files")
    if all(file.passed_over for file in inside):
        raise unreadable(RowPlace(given), f"holds no {', '.join(SUFFIXES)}")
    yield from inside


def _inside(folder: Path, depth: int) -> Iterator[ResultsFile]:
    """Of AgentV's run its index, of DeepEval's past the newest; else every file, and those of the folders within."""
    if tool_of(folder / INDEX) is ResultsFormat.AGENTV:
        yield ResultsFile(folder / INDEX, str(folder / INDEX))
        return
    entries = sorted(folder.iterdir())
    files = [file for file in entries if file.is_file() and file.suffix.lower() in SUFFIXES]
    runs = [file for file in files if file.name.startswith("test_run_") and file.suffix == ".json"]
    # DeepEval keeps a file for every run of the past
    for file in [runs[-1]] if runs and len(runs) == len(files) else files:
        whose = _BESIDE.get(file.name)
        is_results = file.suffix != ".xml" and tool_of(file) is not None
        yield ResultsFile(file, str(file), None if is_results else whose)
    folders = [one for one in entries if one.is_dir() and not one.is_symlink() and not one.name.startswith(".")]
    if folders and not depth:
        raise unreadable(RowPlace(str(folder)), f"holds folders within each other, {BROUGHT_DEPTH} of them")
    for one in folders:
        yield from _inside(one, depth - 1)
