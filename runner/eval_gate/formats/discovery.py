"""Finds eval files and reads them, whatever their format."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import JsonValue

from eval_gate.errors import GateError, Problem, did_you_mean
from eval_gate.files.place import RESULT_MARKS, shown_as
from eval_gate.formats.base import Dialect, ReadOptions, Source
from eval_gate.formats.documents import parse_document, read_bytes
from eval_gate.formats.names import DIALECTS as NAMES
from eval_gate.model.case import EvalSuite, Tier
from eval_gate.model.limits import FINDINGS
from eval_gate.struct import FrozenStruct
from eval_gate.text import globs
from eval_gate.text.foreign.other_tools import ADK, AGENTV_5, looks_like, other_file, other_text
from eval_gate.text.foreign.well_formed import is_well_formed
from eval_gate.text.quoting import quoted_name

DIALECTS: Final[Mapping[str, Dialect]] = {
    name: import_module(f"eval_gate.formats.{name.replace('-', '_')}.format").DIALECT for name in NAMES
}
SUFFIXES: Final = frozenset(suffix for dialect in DIALECTS.values() for suffix in dialect.notations)

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__"})
NOT_EVALS = frozenset(
    {
        *("seed-manifest.json", "package.json", "package-lock.json", "tsconfig.json", "pnpm-lock.yaml"),
        *("targets.yaml", "targets.yml", "eval-gate.yaml", "eval-gate.yml", "eval-gate.json"),
    }
)
EXPECTED: Final = "a list `cases` (or such a list alone), or AgentV's `evalcases`"
_HEAD: Final = 1 << 16
_STARS: Final = re.compile(r"\*+")


class EvalFile(FrozenStruct):
    """A file to read. `explicit` ones must be evals; what a walk through a folder found may be something else."""

    path: Path
    explicit: bool


def discover(patterns: Sequence[str], root: Path) -> tuple[EvalFile, ...]:
    """The files that these paths, folders and globs (relative to `root`) lead to, sorted and each once.

    Raises GateError `no-eval-files` for a pattern that leads nowhere: a typo must not make a gate smaller.
    """
    found: dict[Path, EvalFile] = {}
    problems: list[Problem] = []
    for pattern in patterns:
        if len(problems) >= FINDINGS:
            break
        files = list(_matches(pattern, root))
        if not files:
            problems.append(Problem(_nothing(pattern, root)))
        for file in files:
            known = found.get(file.path)
            found[file.path] = EvalFile(file.path, explicit=file.explicit or (known is not None and known.explicit))
    if problems:
        raise GateError(
            "no-eval-files",
            "there are no eval files where they were looked for",
            "name files, folders or globs: `eval-gate run evals/ more/**/*.golden.json`, or write first ones with "
            "`eval-gate init`",
            problems=problems,
        )
    return tuple(found[path] for path in sorted(found))


def chosen_paths(patterns: Sequence[str], usual: Sequence[str], root: Path) -> tuple[str, ...]:
    """These paths, as results name files, where they leave out an eval file that the `usual` ones lead to; else none.

    What cannot be read may hold evals. Raises GateError `no-eval-files`.
    """
    taken = {os.path.realpath(file.path) for file in discover(patterns, root)}
    others = (file for pattern in usual for file in _matches(pattern, root) if os.path.realpath(file.path) not in taken)
    if not any(_holds_evals(file, root) for file in others):
        return ()
    return tuple(sorted({shown_as(root / pattern, root) for pattern in patterns}))


def _holds_evals(file: EvalFile, root: Path) -> bool:
    try:
        return _load(file, root, ReadOptions(), []) is not None
    except GateError:
        return True


def may_be_evals(file: str, patterns: Sequence[str]) -> bool:
    """Whether a run of these paths, folders and globs may have read this file; nothing is looked at.

    `file` is relative to the root of the run. Hidden files and configuration never are evals.
    """
    path = PurePosixPath(file)
    if path.is_absolute() or path.suffix not in SUFFIXES or path.name in NOT_EVALS:
        return False
    if any(part.startswith(".") or part in SKIPPED_FOLDERS for part in path.parts):
        return False
    return any(path.is_relative_to(_beginning(pattern)) for pattern in patterns)


def _beginning(pattern: str) -> PurePosixPath:
    """The file or folder that a pattern names, up to its first part with a sign of globs."""
    parts = PurePosixPath(pattern.removeprefix(f"{Path.cwd().as_posix()}/")).parts
    return PurePosixPath(*takewhile(lambda part: not globs.is_glob(part), parts))


def _matches(pattern: str, root: Path) -> Iterator[EvalFile]:
    path = root / pattern
    if path.is_dir():
        yield from (EvalFile(file, explicit=False) for file in _walk(path))
    elif path.is_file():
        yield EvalFile(path, explicit=True)
    elif globs.is_glob(pattern):
        for match, everything in _globbed(PurePosixPath(pattern), root):
            if match.is_dir():
                yield from (EvalFile(file, explicit=False) for file in _walk(match))
            elif not everything:
                yield EvalFile(match, explicit=True)


def _globbed(pattern: PurePosixPath, root: Path) -> Iterator[tuple[Path, bool]]:
    """The files and folders of a glob, and whether it asks for everything in them: `evals/**` is the folder `evals`.

    What `**` means differs between versions of Python where it is the last step, or only a part of one.
    """
    base = Path(pattern.anchor) if pattern.is_absolute() else root
    steps = [step if step == "**" else _STARS.sub("*", step) for step in pattern.relative_to(pattern.anchor).parts]
    everything = steps[-1] == "**"
    while steps and steps[-1] == "**":
        steps.pop()
    yield from ((match, everything) for match in (base.glob("/".join(steps)) if steps else [base]))


def _walk(folder: Path) -> Iterator[Path]:
    """Files below `folder` that may hold evals, but not hidden ones, results, or what a link leads away to.

    Raises GateError `unreadable` for a folder that cannot be looked into: there may be evals in it.
    """
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        problem = Problem(f"cannot be read: {error.strerror}", file=folder.as_posix())
        raise GateError("unreadable", f"{folder} cannot be read", problems=[problem]) from error
    if any(entry.name in RESULT_MARKS for entry in entries):
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        if entry.is_dir():
            if entry.name not in SKIPPED_FOLDERS:
                yield from _walk(entry)
        elif entry.suffix in SUFFIXES and entry.name not in NOT_EVALS and entry.is_file():
            yield entry


def _nothing(pattern: str, root: Path) -> str:
    path = root / pattern
    if path.is_dir():
        return f"no eval files in the folder {quoted_name(pattern)}"
    if globs.is_glob(pattern):
        return f"nothing matches {quoted_name(pattern)}"
    near = did_you_mean(path.name, [entry.name for entry in path.parent.iterdir()]) if path.parent.is_dir() else ""
    return f"there is no {quoted_name(pattern)}{near}"


def load_suites(
    files: Sequence[EvalFile], root: Path, reading: ReadOptions, passed_over: list[str] | None = None
) -> tuple[EvalSuite, ...]:
    """Read every file. Raises one GateError with the problems of all of them, and reads none half.

    To `passed_over` come sentences about evals of other tools that were found in folders.
    """
    suites: list[EvalSuite] = []
    problems: list[Problem] = []
    for file in files:
        try:
            suite = _load(file, root, reading, [] if passed_over is None else passed_over)
        except GateError as error:
            problems += error.problems
        else:
            suites += [suite] if suite else []
    if problems:
        problems = list(dict.fromkeys(problems))  # a file may belong to two suites
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
            f"an eval file is JSON, YAML or JSON lines with {EXPECTED}",
        )
    return tuple(suites)


def _load(file: EvalFile, root: Path, reading: ReadOptions, passed_over: list[str]) -> EvalSuite | None:
    """The suite in a file; None for a file that was only found by walking and holds something else."""
    shown = shown_as(file.path, root)  # by which results identify the suite
    data = read_bytes(file.path, shown)
    suffix = file.path.suffix if file.path.suffix in SUFFIXES else ".json"
    dialects = [dialect for dialect in DIALECTS.values() if suffix in dialect.notations]
    notation = dialects[0].notations[suffix]
    try:
        document = parse_document(notation, data, file.path, shown)
    except GateError as error:
        meant = file.explicit or any(one.speaks_of_cases(data) for one in dialects)
        if not meant and notation.is_doubtful(error):
            return None
        if file.explicit and file.path.suffix not in SUFFIXES:  # it was only tried as JSON
            text = data[:_HEAD].decode("utf-8", "replace")
            other = other_text(text)
            raise _unknown_format(shown, other.instead(shown) if other else _results_instead(shown, text)) from None
        raise
    if document.value == [] and not file.explicit and not _names_tier(file.path):
        return None
    source = Source(shown, data, file.path, root)
    other = other_file(document.value)
    for one in dialects if other is None or not other.certain else ():
        if one.recognises(document.value):
            _refuse_no_text(shown)
            return one.load(document.value, document.positions, source, reading)
    if _meant_as_evals(file.path, document.value):
        problem = Problem("none of its cases has `input`, `expect` or `rubric`: a misspelt key?", file=shown, line=1)
        raise GateError("unknown-format", f"{shown} is not an eval file", problems=[problem])
    if file.explicit and not belongs_to_another(file.path):
        other = other or other_text(data[:_HEAD].decode("utf-8", "replace"))
        raise _unknown_format(shown, other.instead(shown) if other else _unknown(document.value, dialects))
    if other is ADK or other is AGENTV_5:  # who put it among evals may think that it is run
        passed_over.append(f"{shown} {other.instead(shown)}")
    return None


def _unknown_format(shown: str, said: str) -> GateError:
    problem = Problem(said, file=shown, line=1)
    return GateError("unknown-format", f"{shown} is not an eval file", problems=[problem])


def _results_instead(shown: str, text: str) -> str:
    """What is said of a file in another notation than evals are written in, such as a table."""
    way = f"if it holds results, `eval-gate judge {shlex.quote(shown)}` judges them"
    return f"looks like {looks_like(text)}, and is not an eval file: expected {EXPECTED}; {way}"


def _unknown(document: JsonValue, dialects: Sequence[Dialect]) -> str:
    """What is said of a document of no dialect that is written like this."""
    named = next((name for name, one in DIALECTS.items() if one not in dialects and one.recognises(document)), None)
    if named is None:
        return f"not an eval file: expected {EXPECTED}"
    return f"is in the shape of {named}, which is written in {', '.join(DIALECTS[named].notations)} only"


def _meant_as_evals(file: Path, document: JsonValue) -> bool:
    """Whether a file has a tier in its name and cases in it, which would otherwise be left out without a word."""
    cases = document.get("cases") if isinstance(document, dict) else document
    return _names_tier(file) and isinstance(cases, list) and any(isinstance(one, dict) and "id" in one for one in cases)


def _names_tier(file: Path) -> bool:
    """Whether a file's name says that it holds evals, such as `weather.golden.json`."""
    return Path(file.stem).suffix.removeprefix(".") in set(Tier)


def _refuse_no_text(shown: str) -> None:
    """A suite is identified by the name of its file, which no result could hold."""
    if not is_well_formed(shown):
        problem = Problem("its name is not UTF-8: rename it", file=shown)
        raise GateError("unreadable", f"{shown} has a name that is not UTF-8", problems=[problem])


def belongs_to_another(file: Path) -> bool:
    """Whether this file says more about the evals of a file beside it, and need not hold any itself."""
    return any(one.accompanies(file) for one in DIALECTS.values())
