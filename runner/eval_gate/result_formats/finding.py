"""Finds the files of results that somebody names: as they are, by globs, and of a folder all that may be results."""

from __future__ import annotations

import os
import re
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
    "eval-set.json": "Inspect's",
    "logs.json": "Inspect's",
    "listing.json": "Inspect's",
    "failsafe-summary.xml": "Maven's",
    "testng-failed.xml": "TestNG's",
    "testng-results.xml": "TestNG's",
    "coverage.xml": "a coverage report",
    "coverage-final.json": "Istanbul's",
    ".last-run.json": "Playwright's",
    ".eval-set-id": "Inspect's",
}
"""Files that tools write beside results and that hold none, by name; they are passed over in folders, and named."""
_UNSAID: Final = frozenset(
    {".DS_Store", ".git", ".gitignore", ".gitkeep", ".pytest_cache", "Thumbs.db", "__pycache__", "desktop.ini"}
)
"""Files and folders of systems, of git and of Python, of which nobody needs to hear."""
_PACKED: Final = (".gz", ".bz2", ".xz", ".zst", ".zip", ".tar", ".tgz", ".7z")
_SUITES: Final = re.compile(rb"<(?:[\w.-]{1,40}:)?testsuites?[\s>/]")
_HEAD: Final = 1 << 12
_NAMED: Final = 3
_OTHER: Final = "is of another kind"


class ResultsFile(NamedTuple):
    """A file to be read, or one that is passed over; `shown` is the file as messages name it."""

    path: Path
    shown: str
    passed_over: str | None = None
    """Why it is not read, as a sentence goes on behind its name; None where it is read."""


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
    inside, others = list[ResultsFile](), list[str]()
    for file in _inside(path, path.resolve(), BROUGHT_DEPTH):
        if file.passed_over == _OTHER:
            others.append(file.shown)
        else:
            inside.append(file)
        if len(inside) > BROUGHT_FILES:  # what is wrong in each of them is not looked for
            raise unreadable(RowPlace(given), f"holds more than {BROUGHT_FILES:,} files")
    if all(file.passed_over for file in inside):
        raise unreadable(RowPlace(given), f"holds no {', '.join(SUFFIXES)}{_in_short(others, '; only ')}")
    yield from inside
    if others:
        are = "files that are" if len(others) > 1 else "file that is"
        said = f"holds {len(others):,} {are} none of {', '.join(SUFFIXES)}, and not read{_in_short(others, ': ')}"
        yield ResultsFile(path, given, said)


def _in_short(names: Sequence[str], before: str) -> str:
    """The first names of a list, and how many follow; empty of an empty one."""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{before}{', '.join(names[:_NAMED])}{more}" if names else ""


def _inside(folder: Path, root: Path, depth: int) -> Iterator[ResultsFile]:
    """Of AgentV's run its index, of DeepEval's past the newest; else every file, and those of the folders within.

    What is left out is passed over with the reason, or refused, and never left unsaid.
    """
    if not depth:
        raise unreadable(RowPlace(str(folder)), f"is one of folders within each other, {BROUGHT_DEPTH} of them")
    entries = [one for one in sorted(folder.iterdir()) if one.name not in _UNSAID]
    if tool_of(folder / INDEX) is ResultsFormat.AGENTV:
        yield from _run_of_agentv(folder, entries)
        return
    files = [one for one in entries if not one.is_dir() and _is_called_results(one)]
    runs = [one for one in files if one.name.startswith("test_run_") and one.suffix == ".json"]
    # DeepEval keeps a file for every run of the past
    past = runs[:-1] if len(runs) == len(files) else []
    if past:
        said = f"holds {len(past):,} past runs of DeepEval, of which none was read: the newest is {runs[-1].name}"
        yield ResultsFile(folder, str(folder), said)
    for one in entries:
        if one in past:
            continue
        if _is_read_itself(one, root):
            yield ResultsFile(one, str(one), f"is a link to {one.resolve().relative_to(root)}, which is read itself")
        elif one.is_dir():
            yield from _inside(one, root, depth - 1)
        else:
            yield ResultsFile(one, str(one), _why_not(one))


def _run_of_agentv(folder: Path, entries: Sequence[Path]) -> Iterator[ResultsFile]:
    """The index, which names the files of the run, and what is beside it and of no run of AgentV's."""
    yield ResultsFile(folder / INDEX, str(folder / INDEX))
    for one in entries:
        if one.is_file() and one.name != INDEX and _is_called_results(one) and tool_of(one) is not None:
            yield ResultsFile(one, str(one))
    for other in folder.rglob(INDEX):
        if other.parent != folder:
            yield ResultsFile(other, str(other))


def _is_read_itself(link: Path, root: Path) -> bool:
    """Whether this is a link to what is read under its own name: below the root, and a folder or called results."""
    if not link.is_symlink() or not link.exists():
        return False
    target = link.resolve()
    return target.is_relative_to(root) and (target.is_dir() or _is_called_results(target))


def _is_called_results(file: Path) -> bool:
    return file.suffix.lower() in SUFFIXES


def _why_not(file: Path) -> str | None:
    """Why a file of a folder is not read; None where it is. Raises GateError where it has to be read, and cannot."""
    name, suffix = file.name.lower(), file.suffix.lower()
    if (whose := _BESIDE.get(file.name)) and not _holds_results(file):
        return f"is {whose} and holds no results: it was not read"
    if suffix in _PACKED and Path(name.removesuffix(suffix)).suffix in SUFFIXES:
        raise unreadable(RowPlace(str(file)), "is packed: unpack it, or name the files beside it one by one")
    if not _is_called_results(file):
        return _OTHER
    if not file.exists():
        raise broken_off(RowPlace(str(file)), "is a link to nothing: what it should hold is missing")
    return None


def _holds_results(file: Path) -> bool:
    """Whether a file that is called like one beside results holds some all the same."""
    if file.suffix != ".xml":
        return tool_of(file) is not None
    try:
        with file.open("rb") as stream:
            return _SUITES.search(stream.read(_HEAD)) is not None
    except OSError:
        return True  # reading it says what is wrong
