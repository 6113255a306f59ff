"""Find eval files and load their suites, in any dialect."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import JsonValue

from eval_gate.errors import GateError, Problem, format_suggestion
from eval_gate.files.file_paths import RESULT_FILES, format_path
from eval_gate.files.reading import read_limited_raw
from eval_gate.formats.base import Broken, Dialect, Document, EvalSource, Mine, Notation, ReadOptions
from eval_gate.formats.dialect_names import DIALECT_NAMES as NAMES
from eval_gate.formats.documents import JSON, is_too_large, parse_document, read_bytes
from eval_gate.formats.outlines import Outline, outline_json, outline_lines
from eval_gate.model.case import EvalSuite
from eval_gate.model.limits import FINDINGS
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text import globs
from eval_gate.text.escape import format_count
from eval_gate.text.quoting import quote_name
from eval_gate.text.untrusted.surrogates import is_well_formed
from eval_gate.text.untrusted.unsupported_files import (
    ADK,
    AGENTV_5,
    UnsupportedFile,
    describe_content,
    identify_document,
    identify_text,
)

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
UNREAD_NOTATIONS: Final[Mapping[str, Callable[[bytes], Outline]]] = {
    ".json5": outline_json,
    ".jsonc": outline_json,
    ".ndjson": outline_lines,
    ".toml": lambda _: Outline(()),
}
"""Notations of data that no dialect has: evals in them are an error."""
_LISTED_SUFFIXES: Final = ", ".join(sorted(SUFFIXES))
_EXPLAINED_FILES: Final = 5
_HEAD_BYTES: Final = 1 << 16
_RUN_ID: Final = re.compile(rb'"runId": ?"([\w.-]+)"')
_POINTER_KEYS: Final = {"runId", "timestamp", "path"}
_STARS: Final = re.compile(r"\*+")


class EvalFile(FrozenStruct):
    """A file to load. `explicit` files must be evals; files found in a folder may be something else."""

    path: Path
    explicit: bool


class EvalDocument(FrozenStruct):
    """The document of an eval file, with the dialect that reads it."""

    dialect: Dialect
    document: Document
    source: EvalSource


class LeftOut(FrozenStruct):
    """A file of a folder that is no eval file, with a note for people if it looks like one."""

    file: str
    note: str = ""
    problem: Problem | None = None
    """Problem of the file, unless a suite names it as a part."""


def find_eval_files(patterns: Sequence[str], root: Path) -> tuple[EvalFile, ...]:
    """Find the files that paths, folders and globs name, sorted. Raises GateError for one that matches nothing."""
    by_path: dict[Path, EvalFile] = {}
    problems: list[Problem] = []
    for pattern in patterns:
        if len(problems) >= FINDINGS:
            break
        files = list(_iter_matches(pattern, root))
        if not files:
            problems.append(Problem(_explain_no_match(pattern, root)))
        for file in files:
            other = by_path.get(file.path)
            by_path[file.path] = EvalFile(file.path, explicit=file.explicit or (other is not None and other.explicit))
    if problems:
        raise GateError(
            "eval-files-not-found",
            "no eval files were found",
            "name files, folders or globs: `eval-gate run evals/ more/**/*.golden.json`, or create some with "
            "`eval-gate init`",
            problems=problems,
        )
    return tuple(by_path[path] for path in sorted(by_path))


def find_partial_selection(patterns: Sequence[str], usual: Sequence[str], root: Path) -> tuple[str, ...]:
    """Return these paths, as results name them, if they leave out an eval file of `usual`. Raises GateError."""
    paths = {os.path.realpath(file.path) for file in find_eval_files(patterns, root)}
    rest = (
        file for pattern in usual for file in _iter_matches(pattern, root) if os.path.realpath(file.path) not in paths
    )
    if not any(has_evals(file, root) for file in rest):
        return ()
    return tuple(sorted({format_path(root / pattern, root) for pattern in patterns}))


def has_evals(file: EvalFile, root: Path) -> bool:
    """Whether a file holds evals; one that cannot be read counts as if it did."""
    try:
        return isinstance(read_eval_document(file, root), EvalDocument)
    except GateError:
        return True


def may_be_eval_file(file: str, patterns: Sequence[str]) -> bool:
    """Whether a run of these paths may have read this file, relative to its root, without looking at the disk."""
    path = PurePosixPath(file)
    if path.is_absolute() or path.suffix.lower() not in SUFFIXES or path.name in NON_EVAL_FILES:
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
    """Yield the files and folders that a glob matches, and whether it names everything in them."""
    base = Path(pattern.anchor) if pattern.is_absolute() else root
    # versions of Python differ on `**` as the last step or in one; here `evals/**` is the folder `evals`
    steps = [step if step == "**" else _STARS.sub("*", step) for step in pattern.relative_to(pattern.anchor).parts]
    everything = steps[-1] == "**"
    while steps and steps[-1] == "**":
        steps.pop()
    yield from ((match, everything) for match in (base.glob("/".join(steps)) if steps else [base]))


def _walk_folder(folder: Path) -> Iterator[Path]:
    """Yield files below `folder` that may hold evals, but not hidden ones, results, or what is behind links."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:  # there may be evals in it
        problem = Problem(f"cannot be read: {error.strerror}", file=folder.as_posix())
        raise GateError("file-unreadable", f"{folder} cannot be read", problems=[problem]) from error
    for entry in entries:
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        if entry.is_dir():
            if entry.name not in SKIPPED_FOLDERS and not is_run_folder(entry):
                yield from _walk_folder(entry)
        elif may_hold_evals(entry) and entry.is_file() and not _is_latest_pointer(entry):
            yield entry


def may_hold_evals(file: Path) -> bool:
    """Whether a file of a folder may hold evals, by its name."""
    suffix = file.suffix.lower()
    return (suffix in SUFFIXES or suffix in UNREAD_NOTATIONS) and file.name not in NON_EVAL_FILES


def is_run_folder(folder: Path) -> bool:
    """Whether a run wrote the folder: its name is the id in its result, so that no other folder is skipped."""
    result = folder / RESULT_FILES[0]
    try:
        match = _RUN_ID.search(read_limited_raw(result, _HEAD_BYTES)) if result.is_file() else None
    except OSError:
        return False
    return match is not None and match[1].decode() == folder.name


def _explain_no_match(pattern: str, root: Path) -> str:
    path = root / pattern
    if path.is_dir():
        names = sorted(entry.name for entry in path.iterdir() if entry.is_file() and not entry.name.startswith("."))
        example = f": {quote_name(names[0])} is not read, only names with {_LISTED_SUFFIXES}" if names else ""
        return f"no eval files in the folder {quote_name(pattern)}{example}"
    if globs.is_glob(pattern):
        return f"nothing matches {quote_name(pattern)}"
    near = format_suggestion(path.name, [entry.name for entry in path.parent.iterdir()]) if path.parent.is_dir() else ""
    return f"there is no {quote_name(pattern)}{near}"


def load_suites(
    files: Sequence[EvalFile], root: Path, reading: ReadOptions, left_out: list[LeftOut] | None = None
) -> tuple[EvalSuite, ...]:
    """Load all suites, or raise one GateError with the problems of all files.

    To `left_out` come the files of folders that are no eval files.
    """
    suites: list[EvalSuite] = []
    skipped: list[LeftOut] = []
    problems: list[Problem] = []
    for file in files:
        try:
            content = read_eval_document(file, root)
            if isinstance(content, LeftOut):
                skipped.append(content)
            else:
                suites.append(
                    content.dialect.load(content.document.value, content.document.positions, content.source, reading)
                )
        except GateError as error:
            problems += error.problems
    if not problems:
        problems += _find_unnamed_parts(skipped, suites)
    if problems:
        problems = list(dict.fromkeys(problems))  # a file may belong to two suites
        raise GateError(
            "invalid-eval-files",
            f"{format_count(len(problems), 'problem')} in the eval files",
            "correct them; `eval-gate validate` checks without running anything",
            problems=problems,
        )
    if left_out is not None:
        left_out += skipped
    if not suites:
        raise GateError(
            "eval-files-not-found",
            "none of the files contains evals",
            f"name a file of JSON, YAML or JSON lines with {EXPECTED_SHAPE}, or create one with `eval-gate init`",
            problems=[problem for file in files[:_EXPLAINED_FILES] for problem in _explain_skip(file, root)],
        )
    return tuple(suites)


def _find_unnamed_parts(left_out: Sequence[LeftOut], suites: Sequence[EvalSuite]) -> list[Problem]:
    """Find files that look like parts of a suite, but that none of these suites names."""
    if not left_out or any(one.note for one in left_out):  # another tool's suite may name any file
        return []
    parts = {case.location.file for suite in suites for case in suite.cases}
    return [one.problem for one in left_out if one.problem and one.file not in parts]


def _explain_skip(file: EvalFile, root: Path) -> Sequence[Problem]:
    """Explain why a file of a folder is no eval file, in the words for a file that is named."""
    try:
        read_eval_document(replace(file, explicit=True), root)
    except GateError as error:
        return error.problems
    return ()


def check_baseline_files(
    suites: Mapping[str, int],
    loaded: Collection[str],
    left_out: Collection[LeftOut],
    patterns: Sequence[str],
    root: Path,
) -> None:
    """Check that the chosen folders hold no unread file that has cases in the baseline.

    `suites` has the baseline's number of cases by file. A file that is gone, or not chosen, is no mistake. Raises
    GateError `invalid-eval-files`.
    """
    skipped = {one.file for one in left_out}
    folders = [folder for pattern in patterns if (folder := root / pattern).is_dir()]
    problems = [
        Problem(
            f"not an eval file, but the baseline has {format_count(count, 'case')} of it: "
            "correct, rename or remove the file",
            file=file,
        )
        for file, count in suites.items()
        if file not in loaded
        if file in skipped
        or ((root / file).is_file() and any((root / file).is_relative_to(folder) for folder in folders))
    ]
    if problems:
        raise GateError(
            "invalid-eval-files",
            "eval files of the baseline are not read",
            "a run without them would count their cases as removed",
            problems=problems,
        )


def read_eval_document(file: EvalFile, root: Path) -> EvalDocument | LeftOut:
    """Read the document in a file and find its dialect; or say that the file, of a folder, is no eval file.

    Raises GateError for a file that was meant as evals and is none: it is named, its name says so, or a dialect finds
    its cases in what can be read. `unknown-format` means only that a named file is something else.
    """
    shown_as = format_path(file.path, root)  # by which results identify the suite
    data = read_bytes(file.path, shown_as)
    suffix = file.path.suffix.lower()
    if suffix in UNREAD_NOTATIONS and not file.explicit:
        return _leave_out_unread(file, data, shown_as)
    notation = find_notation(file.path)
    try:
        document = parse_document(notation, data, file.path, shown_as)
    except GateError as error:
        if _is_something_else(file, notation, data):
            return LeftOut(shown_as)
        raise _explain_unreadable_file(file, data, shown_as) or error from None
    if document.value == [] and not file.explicit and not _is_own_name(file.path):
        return LeftOut(shown_as)
    recognition = recognize_document(document.value, file.path, explicit=file.explicit)
    if isinstance(recognition, Dialect):
        _require_utf8_name(shown_as)
        return EvalDocument(recognition, document, EvalSource(shown_as, data, file.path, root))
    if isinstance(recognition, Broken) and not is_companion_file(file.path):
        problem = Problem(recognition.reason, file=shown_as, line=1)
        if recognition.is_part and not file.explicit:
            return LeftOut(shown_as, problem=problem)
        raise GateError("invalid-eval-file", f"{shown_as} is not an eval file", problems=[problem])
    other = recognition if isinstance(recognition, UnsupportedFile) else None
    if file.explicit and not is_companion_file(file.path):
        other = other or identify_text(data[:_HEAD_BYTES].decode("utf-8", "replace"))
        raise _build_unknown_format_error(
            shown_as, other.describe_alternative(shown_as) if other else f"not an eval file: expected {EXPECTED_SHAPE}"
        )
    # its author may expect that it is run
    note = f"{shown_as} {other.describe_alternative(shown_as)}" if other and (other is ADK or other is AGENTV_5) else ""
    return LeftOut(shown_as, note)


def _is_latest_pointer(file: Path) -> bool:
    """Whether a file points to the newest run. It has no cases, also if an earlier step of this job wrote it."""
    try:
        return file.name == RESULT_FILES[1] and json.loads(read_limited_raw(file, _HEAD_BYTES)).keys() == _POINTER_KEYS
    except (OSError, ValueError, AttributeError, RecursionError):
        return False


def find_notation(path: Path) -> Notation:
    """Find the notation of a file by its suffix; JSON for an unknown one."""
    suffix = path.suffix.lower()
    return next((one.notations[suffix] for one in DIALECTS.values() if suffix in one.notations), JSON[".json"])


def recognize_document(
    value: JsonValue, path: Path, *, explicit: bool = False
) -> Dialect | Broken | UnsupportedFile | None:
    """Have every dialect recognize a document, and return the result that counts.

    The first dialect with this notation has it; a suite in a notation that its dialect does not have is broken. A file
    that is certainly of another tool comes before all dialects, and a possible one after them.
    """
    other = identify_document(value)
    suffix = path.suffix.lower() if path.suffix.lower() in SUFFIXES else ".json"
    recognitions = {name: one.recognize(value, is_named=one.is_own_name(path)) for name, one in DIALECTS.items()}
    if other is not None and other.is_certain:
        # two keys of another tool hide no evals
        if not any(isinstance(one, Mine) and one.is_certain for one in recognitions.values()):
            return other
        recognitions = {name: one for name, one in recognitions.items() if isinstance(one, Mine) and one.is_certain}
    for name, recognition in recognitions.items():
        if isinstance(recognition, Mine) and suffix in DIALECTS[name].notations:
            return DIALECTS[name]
    for name, recognition in recognitions.items():
        if isinstance(recognition, Mine) and (recognition.is_certain or explicit):
            notations = ", ".join(DIALECTS[name].notations)
            return Broken(f"has the shape of {name}, which is written in {notations} only")
    return next((one for one in recognitions.values() if isinstance(one, Broken)), other)


def _is_something_else(file: EvalFile, notation: Notation, data: bytes) -> bool:
    """Whether a file that cannot be parsed is not meant as evals, by its outline."""
    if file.explicit or _is_own_name(file.path):
        return False
    outline = notation.outline(data)
    return (outline.is_complete or is_too_large(data)) and not _has_evals_in(file, outline)


def _has_evals_in(file: EvalFile, outline: Outline) -> bool:
    return any(isinstance(recognize_document(one, file.path), Dialect | Broken) for one in outline.documents)


def _leave_out_unread(file: EvalFile, data: bytes, shown_as: str) -> LeftOut:
    """Leave out a file in a notation that no dialect has. Raises GateError if it holds evals."""
    outline = UNREAD_NOTATIONS[file.path.suffix.lower()](data)
    if not _is_own_name(file.path) and not _has_evals_in(file, outline):
        return LeftOut(shown_as)
    problem = Problem(f"{file.path.suffix} is not read: write the evals in {_LISTED_SUFFIXES}", file=shown_as, line=1)
    raise GateError("invalid-eval-file", f"{shown_as} cannot be read", problems=[problem])


def _explain_unreadable_file(file: EvalFile, data: bytes, shown_as: str) -> GateError | None:
    """Explain a named file that no parser reads, or return None if the parser's error says enough."""
    if not file.explicit:
        return None
    text = data[:_HEAD_BYTES].decode("utf-8", "replace")
    other, is_guess = identify_text(text), file.path.suffix.lower() not in SUFFIXES  # it was only tried as JSON
    if other is not None and (other.is_certain or is_guess):
        return _build_unknown_format_error(shown_as, other.describe_alternative(shown_as))
    return _build_unknown_format_error(shown_as, _describe_results_file(shown_as, text)) if is_guess else None


def _build_unknown_format_error(shown_as: str, message: str) -> GateError:
    problem = Problem(message, file=shown_as, line=1)
    return GateError("unknown-format", f"{shown_as} is not an eval file", problems=[problem])


def _describe_results_file(shown_as: str, text: str) -> str:
    """Describe a file that is not in a notation of evals, such as a table, and how to use it."""
    way = f"if it contains results, use `eval-gate check {shlex.quote(shown_as)}`"
    return f"looks like {describe_content(text)}, not like an eval file: expected {EXPECTED_SHAPE}; {way}"


def _is_own_name(file: Path) -> bool:
    """Whether a file's name says that it holds evals, such as `weather.golden.json`."""
    return any(one.is_own_name(file) for one in DIALECTS.values())


def _require_utf8_name(shown_as: str) -> None:
    """Check that the name of a file is UTF-8: results identify a suite by it, and could hold no other."""
    if not is_well_formed(shown_as):
        problem = Problem("its name is not UTF-8: rename it", file=shown_as)
        raise GateError("file-unreadable", f"{shown_as} has a name that is not UTF-8", problems=[problem])


def is_companion_file(file: Path) -> bool:
    """Whether this file belongs to an eval file in its folder, and need not hold cases itself."""
    return any(one.is_companion(file) for one in DIALECTS.values())
