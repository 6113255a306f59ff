"""Find eval files and load their suites, in any dialect."""

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

from eval_gate.errors import GateError, Problem, format_suggestion
from eval_gate.files.file_paths import RESULT_FILES, format_path
from eval_gate.formats.base import Dialect, EvalSource, ReadOptions
from eval_gate.formats.dialect_names import DIALECT_NAMES as NAMES
from eval_gate.formats.documents import parse_document, read_bytes
from eval_gate.model.case import EvalSuite, Tier
from eval_gate.model.limits import FINDINGS
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text import globs
from eval_gate.text.quoting import quote_name
from eval_gate.text.untrusted.surrogates import is_well_formed
from eval_gate.text.untrusted.unsupported_files import ADK, AGENTV_5, describe_content, identify_document, identify_text

DIALECTS: Final[Mapping[str, Dialect]] = {
    name: import_module(f"eval_gate.formats.{name.replace('-', '_')}.dialect").DIALECT for name in NAMES
}
SUFFIXES: Final = frozenset(suffix for dialect in DIALECTS.values() for suffix in dialect.notations)

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__"})
NON_EVAL_FILES = frozenset(
    {
        *("seed-manifest.json", "package.json", "package-lock.json", "tsconfig.json", "pnpm-lock.yaml"),
        *("targets.yaml", "targets.yml", "eval-gate.yaml", "eval-gate.yml", "eval-gate.json"),
    }
)
EXPECTED_SHAPE: Final = "a list `cases` (or such a list alone), or AgentV's `evalcases`"
_LISTED_SUFFIXES: Final = ", ".join(sorted(SUFFIXES))
_EXPLAINED_FILES: Final = 5
_HEAD_BYTES: Final = 1 << 16
_STARS: Final = re.compile(r"\*+")


class EvalFile(FrozenStruct):
    """A file to load. `explicit` files must be evals; files found in a folder may be something else."""

    path: Path
    explicit: bool


def find_eval_files(patterns: Sequence[str], root: Path) -> tuple[EvalFile, ...]:
    """Find the files that these paths, folders and globs (relative to `root`) name, sorted and each once.

    Raises GateError `eval-files-not-found` for a pattern that matches nothing: a typing error must not make a gate
    smaller.
    """
    found: dict[Path, EvalFile] = {}
    problems: list[Problem] = []
    for pattern in patterns:
        if len(problems) >= FINDINGS:
            break
        files = list(_iter_matches(pattern, root))
        if not files:
            problems.append(Problem(_explain_no_match(pattern, root)))
        for file in files:
            known = found.get(file.path)
            found[file.path] = EvalFile(file.path, explicit=file.explicit or (known is not None and known.explicit))
    if problems:
        raise GateError(
            "eval-files-not-found",
            "no eval files were found",
            "name files, folders or globs: `eval-gate run evals/ more/**/*.golden.json`, or create some with "
            "`eval-gate init`",
            problems=problems,
        )
    return tuple(found[path] for path in sorted(found))


def find_partial_selection(patterns: Sequence[str], usual: Sequence[str], root: Path) -> tuple[str, ...]:
    """Return these paths, in the form of results, if they leave out an eval file of the `usual` ones.

    Otherwise return nothing. A file that cannot be read counts as an eval file. Raises GateError
    `eval-files-not-found`.
    """
    taken = {os.path.realpath(file.path) for file in find_eval_files(patterns, root)}
    others = (
        file for pattern in usual for file in _iter_matches(pattern, root) if os.path.realpath(file.path) not in taken
    )
    if not any(has_evals(file, root) for file in others):
        return ()
    return tuple(sorted({format_path(root / pattern, root) for pattern in patterns}))


def has_evals(file: EvalFile, root: Path) -> bool:
    """Whether a file holds evals; one that cannot be read counts as if it did."""
    try:
        return _load_suite(file, root, ReadOptions(), []) is not None
    except GateError:
        return True


def may_be_eval_file(file: str, patterns: Sequence[str]) -> bool:
    """Whether a run of these paths, folders and globs may have read this file; nothing is looked at.

    `file` is relative to the root of the run. Hidden files and configuration never are evals.
    """
    path = PurePosixPath(file)
    if path.is_absolute() or path.suffix not in SUFFIXES or path.name in NON_EVAL_FILES:
        return False
    if any(part.startswith(".") or part in SKIPPED_FOLDERS for part in path.parts):
        return False
    return any(path.is_relative_to(_get_fixed_prefix(pattern)) for pattern in patterns)


def _get_fixed_prefix(pattern: str) -> PurePosixPath:
    """Return the file or folder that a pattern names, up to its first part with a glob character."""
    parts = PurePosixPath(pattern.removeprefix(f"{Path.cwd().as_posix()}/")).parts
    return PurePosixPath(*takewhile(lambda part: not globs.is_glob(part), parts))


def _iter_matches(pattern: str, root: Path) -> Iterator[EvalFile]:
    path = root / pattern
    if path.is_dir():
        yield from (EvalFile(file, explicit=False) for file in _walk_folder(path))
    elif path.is_file():
        yield EvalFile(path, explicit=True)
    elif globs.is_glob(pattern):
        for match, everything in _iter_glob_matches(PurePosixPath(pattern), root):
            if match.is_dir():
                yield from (EvalFile(file, explicit=False) for file in _walk_folder(match))
            elif not everything:
                yield EvalFile(match, explicit=True)


def _iter_glob_matches(pattern: PurePosixPath, root: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the files and folders that a glob matches, and whether it names everything in them.

    `evals/**` is the folder `evals`. The meaning of `**` as the last step, or as part of a step, differs between
    versions of Python, so this function handles it.
    """
    base = Path(pattern.anchor) if pattern.is_absolute() else root
    steps = [step if step == "**" else _STARS.sub("*", step) for step in pattern.relative_to(pattern.anchor).parts]
    everything = steps[-1] == "**"
    while steps and steps[-1] == "**":
        steps.pop()
    yield from ((match, everything) for match in (base.glob("/".join(steps)) if steps else [base]))


def _walk_folder(folder: Path) -> Iterator[Path]:
    """Files below `folder` that may hold evals, but not hidden ones, results, or what a link leads away to.

    Raises GateError `file-unreadable` for a folder that cannot be looked into: there may be evals in it.
    """
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        problem = Problem(f"cannot be read: {error.strerror}", file=folder.as_posix())
        raise GateError("file-unreadable", f"{folder} cannot be read", problems=[problem]) from error
    if any(entry.name in RESULT_FILES for entry in entries):
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        if entry.is_dir():
            if entry.name not in SKIPPED_FOLDERS:
                yield from _walk_folder(entry)
        elif entry.suffix in SUFFIXES and entry.name not in NON_EVAL_FILES and entry.is_file():
            yield entry


def _explain_no_match(pattern: str, root: Path) -> str:
    path = root / pattern
    if path.is_dir():
        others = sorted(entry.name for entry in path.iterdir() if entry.is_file() and not entry.name.startswith("."))
        seen = f": {quote_name(others[0])} is not read, only names with {_LISTED_SUFFIXES}" if others else ""
        return f"no eval files in the folder {quote_name(pattern)}{seen}"
    if globs.is_glob(pattern):
        return f"nothing matches {quote_name(pattern)}"
    near = format_suggestion(path.name, [entry.name for entry in path.parent.iterdir()]) if path.parent.is_dir() else ""
    return f"there is no {quote_name(pattern)}{near}"


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
            suite = _load_suite(file, root, reading, [] if passed_over is None else passed_over)
        except GateError as error:
            problems += error.problems
        else:
            suites += [suite] if suite else []
    if problems:
        problems = list(dict.fromkeys(problems))  # a file may belong to two suites
        count = len(problems)
        raise GateError(
            "invalid-eval-files",
            f"{count} problem{'s' if count != 1 else ''} in the eval files",
            "correct them; `eval-gate validate` checks without running anything",
            problems=problems,
        )
    if not suites:
        raise GateError(
            "eval-files-not-found",
            "none of the files contains evals",
            f"name a file of JSON, YAML or JSON lines with {EXPECTED_SHAPE}, or create one with `eval-gate init`",
            problems=[problem for file in files[:_EXPLAINED_FILES] for problem in _explain_skip(file, root, reading)],
        )
    return tuple(suites)


def _explain_skip(file: EvalFile, root: Path, reading: ReadOptions) -> Sequence[Problem]:
    """Explain why a file of a folder is no eval file, in the words for one that somebody names."""
    try:
        _load_suite(replace(file, explicit=True), root, reading, [])
    except GateError as error:
        return error.problems
    return ()


def _load_suite(file: EvalFile, root: Path, reading: ReadOptions, passed_over: list[str]) -> EvalSuite | None:
    """Load the suite in a file, or return None for a file that is not an eval file.

    Only a file found by walking a folder, or a companion file, may be something else. Raises GateError for any
    other file, and for one that looks like evals but is invalid.
    """
    shown = format_path(file.path, root)  # by which results identify the suite
    data = read_bytes(file.path, shown)
    suffix = file.path.suffix if file.path.suffix in SUFFIXES else ".json"
    dialects = [dialect for dialect in DIALECTS.values() if suffix in dialect.notations]
    notation = dialects[0].notations[suffix]
    try:
        document = parse_document(notation, data, file.path, shown)
    except GateError as error:
        meant = file.explicit or any(one.mentions_cases(data) for one in dialects)
        if not meant and notation.is_doubtful(error):
            return None
        raise _explain_unreadable_file(file, data, shown) or error from None
    if document.value == [] and not file.explicit and not _has_tier_in_name(file.path):
        return None
    source = EvalSource(shown, data, file.path, root)
    other = identify_document(document.value)
    for one in dialects if other is None or not other.is_certain else ():
        if one.is_suite(document.value):
            _require_utf8_name(shown)
            return one.load(document.value, document.positions, source, reading)
    if _looks_like_evals(file.path, document.value):
        problem = Problem("none of its cases has `input`, `expect` or `rubric`: a misspelt key?", file=shown, line=1)
        raise GateError("unknown-format", f"{shown} is not an eval file", problems=[problem])
    if file.explicit and not is_companion_file(file.path):
        other = other or identify_text(data[:_HEAD_BYTES].decode("utf-8", "replace"))
        raise _build_unknown_format_error(
            shown, other.describe_alternative(shown) if other else _describe_unknown_document(document.value, dialects)
        )
    if other is ADK or other is AGENTV_5:  # who put it among evals may think that it is run
        passed_over.append(f"{shown} {other.describe_alternative(shown)}")
    return None


def _explain_unreadable_file(file: EvalFile, data: bytes, shown_as: str) -> GateError | None:
    """Say what a file is that somebody named and that no parser reads, or return None where its errors say enough."""
    if not file.explicit:
        return None
    text = data[:_HEAD_BYTES].decode("utf-8", "replace")
    other, is_guess = identify_text(text), file.path.suffix not in SUFFIXES  # it was only tried as JSON
    if other is not None and (other.is_certain or is_guess):
        return _build_unknown_format_error(shown_as, other.describe_alternative(shown_as))
    return _build_unknown_format_error(shown_as, _describe_results_file(shown_as, text)) if is_guess else None


def _build_unknown_format_error(shown: str, said: str) -> GateError:
    problem = Problem(said, file=shown, line=1)
    return GateError("unknown-format", f"{shown} is not an eval file", problems=[problem])


def _describe_results_file(shown: str, text: str) -> str:
    """Describe a file that is not in a notation of evals, such as a table, and how to use it."""
    way = f"if it contains results, use `eval-gate check {shlex.quote(shown)}`"
    return f"looks like {describe_content(text)}, not like an eval file: expected {EXPECTED_SHAPE}; {way}"


def _describe_unknown_document(document: JsonValue, dialects: Sequence[Dialect]) -> str:
    """Describe a document that matches no dialect of this notation."""
    named = next((name for name, one in DIALECTS.items() if one not in dialects and one.is_suite(document)), None)
    if named is None:
        return f"not an eval file: expected {EXPECTED_SHAPE}"
    return f"has the shape of {named}, which is written in {', '.join(DIALECTS[named].notations)} only"


def _looks_like_evals(file: Path, document: JsonValue) -> bool:
    """Whether a file has a tier in its name and cases in it, which would otherwise be left out without a word."""
    cases = document.get("cases") if isinstance(document, dict) else document
    return (
        _has_tier_in_name(file)
        and isinstance(cases, list)
        and any(isinstance(one, dict) and "id" in one for one in cases)
    )


def _has_tier_in_name(file: Path) -> bool:
    """Whether a file's name says that it holds evals, such as `weather.golden.json`."""
    return Path(file.stem).suffix.removeprefix(".") in set(Tier)


def _require_utf8_name(shown: str) -> None:
    """Check that the name of a file is UTF-8, because results identify a suite by it.

    Raises GateError otherwise: no result could hold the name.
    """
    if not is_well_formed(shown):
        problem = Problem("its name is not UTF-8: rename it", file=shown)
        raise GateError("file-unreadable", f"{shown} has a name that is not UTF-8", problems=[problem])


def is_companion_file(file: Path) -> bool:
    """Whether this file says more about the evals of a file beside it, and need not hold any itself."""
    return any(one.is_companion(file) for one in DIALECTS.values())
