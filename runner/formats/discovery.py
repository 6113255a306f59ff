"""Finds eval files and reads them, whatever their format."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from runner.errors import GateError, Problem, did_you_mean
from runner.formats import tool_forge
from runner.formats.base import Format, Source
from runner.model.case import EvalSuite
from runner.text.json_source import MAX_BYTES, parse_json

FORMATS: Final[tuple[Format, ...]] = (tool_forge,)
"""Asked in this order; the first that recognises a document reads it."""

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__"})
NOT_EVALS = frozenset({"seed-manifest.json", "package.json", "package-lock.json", "tsconfig.json"})
RESULT_MARKS = ("run.json", "latest.json")
"""A folder that holds one of these holds results."""


@dataclass(frozen=True, slots=True)
class EvalFile:
    """A file to read. `named` ones must be evals; what a walk through a folder found may be something else."""

    path: Path
    named: bool


def discover(patterns: Sequence[str], root: Path) -> tuple[EvalFile, ...]:
    """The files that these paths, folders and globs (relative to `root`) lead to, sorted and each once.

    Raises GateError `no-eval-files` for a pattern that leads nowhere: a typo must not make a gate smaller.
    """
    found: dict[Path, EvalFile] = {}
    problems = []
    for pattern in patterns:
        files = list(_matches(pattern, root))
        if not files:
            problems.append(Problem(_nothing(pattern, root)))
        for file in files:
            known = found.get(file.path)
            found[file.path] = EvalFile(file.path, named=file.named or (known is not None and known.named))
    if problems:
        raise GateError(
            "no-eval-files",
            "there are no eval files where they were looked for",
            "name files, folders or globs: `eval-gate run evals/ more/**/*.golden.json`",
            problems=problems,
        )
    return tuple(found[path] for path in sorted(found))


def _matches(pattern: str, root: Path) -> Iterator[EvalFile]:
    path = root / pattern
    if path.is_dir():
        yield from (EvalFile(file, named=False) for file in _walk(path))
    elif path.is_file():
        yield EvalFile(path, named=True)
    elif any(sign in pattern for sign in "*?["):
        base = Path(Path(pattern).anchor) if Path(pattern).is_absolute() else root
        relative = str(Path(pattern).relative_to(base)) if Path(pattern).is_absolute() else pattern
        for match in base.glob(relative):
            if match.is_dir():
                yield from (EvalFile(file, named=False) for file in _walk(match))
            else:
                yield EvalFile(match, named=True)


def _walk(folder: Path) -> Iterator[Path]:
    """JSON files below `folder`, but not hidden ones, results, or what a link leads away to."""
    entries = sorted(folder.iterdir())
    if any(entry.name in RESULT_MARKS for entry in entries):
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        if entry.is_dir():
            if entry.name not in SKIPPED_FOLDERS:
                yield from _walk(entry)
        elif entry.suffix == ".json" and entry.name not in NOT_EVALS:
            yield entry


def _nothing(pattern: str, root: Path) -> str:
    path = root / pattern
    if path.is_dir():
        return f'no eval files in the folder "{pattern}"'
    if any(sign in pattern for sign in "*?["):
        return f'nothing matches "{pattern}"'
    near = did_you_mean(path.name, [entry.name for entry in path.parent.iterdir()]) if path.parent.is_dir() else ""
    return f'there is no "{pattern}"{near}'


def load_suites(
    files: Sequence[EvalFile], *, strict: bool, tool_names: Collection[str], root: Path
) -> tuple[EvalSuite, ...]:
    """Read every file. Raises one GateError with the problems of all of them, and reads none half."""
    suites: list[EvalSuite] = []
    problems: list[Problem] = []
    for file in files:
        try:
            suite = _load(file, strict=strict, tool_names=tool_names, root=root)
        except GateError as error:
            problems += error.problems
        else:
            suites += [suite] if suite else []
    if problems:
        count = len(problems)
        raise GateError(
            "invalid-eval-files",
            f"{count} problem{'s' if count != 1 else ''} in the eval files: nothing was run",
            "correct them; `eval-gate validate` checks without running anything",
            problems=problems,
        )
    if not suites:
        raise GateError(
            "no-eval-files",
            "none of the files found holds evals",
            "an eval file is JSON with a list `cases` (or such a list alone)",
        )
    return tuple(suites)


def _load(file: EvalFile, *, strict: bool, tool_names: Collection[str], root: Path) -> EvalSuite | None:
    """The suite in a file; None for a file that was only found by walking and holds something else."""
    shown = _shown(file.path, root)
    data = _read(file.path, shown)
    document, positions = parse_json(data, shown)
    for one in FORMATS:
        if one.recognises(document):
            return one.load(
                document, positions, Source(shown, data, file.path, root), strict=strict, tool_names=tool_names
            )
    if file.named:
        problem = Problem("not an eval file: expected a list `cases` (or such a list alone)", file=shown, line=1)
        raise GateError("unknown-format", f"{shown} is not an eval file", problems=[problem])
    return None


def _shown(path: Path, root: Path) -> str:
    """The path as people see it and as results identify the suite: POSIX style, relative to the root if below it."""
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def _read(path: Path, shown: str) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        problem = Problem(f"cannot be read: {error.strerror}", file=shown)
        raise GateError("unreadable", f"{shown} cannot be read", problems=[problem]) from error
