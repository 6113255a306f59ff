"""Writes results: `<outputDir>/<runId>/run.json`, one file per suite next to it, and `latest.json`.

Every file is written under a temporary name and renamed, so that a reader sees the old one or the new one. The JSON is
encoded piece by piece, so that it is never in memory as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import NODEFAULT, Struct, json, structs

from eval_gate.errors import GateError
from eval_gate.files.writing import make_folder, open_replacement, write_atomically
from eval_gate.model.limits import DEPTH, RESULT_BYTES, RESULT_VALUES
from eval_gate.model.result import CaseResult, RunResult, SuiteResult
from eval_gate.results.detail_truncation import drop_all_details, drop_passing_details
from eval_gate.results.history import HISTORY_NAME, History, encode_history
from eval_gate.results.result_names import LATEST_NAME, RUN_NAME, is_run_id
from eval_gate.struct import replace
from eval_gate.text.escape import format_count
from eval_gate.text.quoting import quote_name
from eval_gate.text.untrusted.bounded_json import JsonSizeCounter, UntrustedJsonError

_MAX_STEM_BYTES: Final = 150
"""Bytes of a suite's file name: file systems allow 255, and a temporary name is longer."""


def make_run_folder(output_dir: Path, run_id: str) -> Path:
    """Create the folder of a run if needed, and return it.

    Raises GateError `invalid-run-id` for an id that cannot name a folder, `output-not-writable` and
    `output-outside-working-directory`.
    """
    if not is_run_id(run_id):
        raise GateError(
            "invalid-run-id",
            f"{quote_name(run_id, or_digits=True)} is not a valid run id",
            "allowed: A-Z a-z 0-9 . _ -",
        )
    folder = output_dir / run_id
    make_folder(folder)
    return folder


class WrittenRun(NamedTuple):
    """Path of a stored run result, and the run as stored, with warnings about dropped details."""

    file: Path
    run: RunResult


def write_initial_result(output_dir: Path, run: RunResult) -> None:
    """Write the run result of a run that has only begun, with its reused suites, and point `latest.json` at it."""
    _write_files(make_run_folder(output_dir, run.run_id), run, iter_compact_pieces(run), _ignore_piece)
    _write_latest_pointer(output_dir, run)


def write_history(output_dir: Path, run_id: str, history: History) -> None:
    """Write the history that ends with this run. Do so first: it takes as much memory as the results."""
    write_atomically(make_run_folder(output_dir, run_id) / HISTORY_NAME, encode_history(history))


def write_result(output_dir: Path, run: RunResult) -> WrittenRun:
    """Write the run result, and every suite's EvalSuiteResult.

    A run result that no later run could read loses the details of cases that passed and did not change, and its
    indents; where that is not enough, the details of all cases. A warning of the run says so, and also where it is
    still too large after that.
    """
    folder = make_run_folder(output_dir, run.run_id)
    if not _write_if_readable(folder, run, iter_full_pieces(run)):
        run = _write_smaller(folder, run)
    _write_latest_pointer(output_dir, run)
    return WrittenRun(folder / RUN_NAME, run)


def _write_smaller(folder: Path, run: RunResult) -> RunResult:
    """Write the run with as many details as a later run can read; the run as it is written."""
    limits = f"{RESULT_BYTES:,} bytes, {RESULT_VALUES:,} values or {DEPTH} levels"
    for drop, which in ((drop_passing_details, " that passed and did not change"), (drop_all_details, "")):
        less, cases = drop(run)
        if cases:
            several = format_count(len(cases), "case")
            less = _add_warning(less, f"the run result would exceed {limits}: dropped details of {several}{which}")
        if _write_if_readable(folder, less, iter_compact_pieces(less)):
            return less
    less = _add_warning(less, f"no later run can read this run result as its baseline: it exceeds {limits}")
    _write_files(folder, less, iter_compact_pieces(less), _ignore_piece)
    return less


def _write_if_readable(folder: Path, run: RunResult, pieces: Iterable[JsonPiece]) -> bool:
    """Whether a later run can read it. Else only the files of some suites are written."""
    try:
        _write_files(folder, run, pieces, _ReadabilityCheck().add)
    except _UnreadableError:
        return False
    return True


def _write_files(folder: Path, run: RunResult, pieces: Iterable[JsonPiece], check: Callable[[bytes], object]) -> None:
    """Write the run result and the files of its suites. What `check` raises of a piece ends it."""
    names = set[str]()
    with open_replacement(folder / RUN_NAME) as write:
        for number, some in groupby(pieces, key=lambda piece: piece.suite):
            with (
                nullcontext(_ignore_piece)
                if number is None
                else open_replacement(folder / _name_suite_file(run.suites[number], names)) as write_suite
            ):
                for piece in some:
                    check(piece.run_result)
                    write(piece.run_result)
                    write_suite(piece.suite_file)


class _UnreadableError(Exception):
    """Result that no later run could read."""


class _ReadabilityCheck:
    """Check, piece by piece, that a later run can read the JSON."""

    def __init__(self) -> None:
        self._bytes_left = RESULT_BYTES
        self._counted = JsonSizeCounter(RESULT_VALUES)

    def add(self, piece: bytes) -> None:
        """Count a piece towards what a later run can read. Raises _UnreadableError once it is exceeded."""
        self._bytes_left -= len(piece)
        if self._bytes_left < 0:
            raise _UnreadableError
        try:
            self._counted.add_piece(piece)
        except UntrustedJsonError as error:
            raise _UnreadableError from error


def _ignore_piece(_piece: bytes) -> None:
    """Stand for a missing check or file."""


def _add_warning(run: RunResult, warning: str) -> RunResult:
    return replace(run, warnings=(warning, *run.warnings))


def _write_latest_pointer(output_dir: Path, run: RunResult) -> None:
    pointer = {"runId": run.run_id, "timestamp": run.timestamp, "path": f"{run.run_id}/{RUN_NAME}"}
    write_atomically(output_dir / LATEST_NAME, _encode_indented(pointer) + b"\n")


def _name_suite_file(suite: SuiteResult, used: set[str]) -> str:
    """Name the file `<eval file's stem>.json`, safe, short and unique within the run."""
    stem = re.sub(r"[^\w.-]+", "-", Path(suite.eval_file).stem).strip(".-") or "suite"
    stem = stem.encode()[:_MAX_STEM_BYTES].decode(errors="ignore")
    name, number = f"{stem}.json", 1
    while name.casefold() in used or name in {RUN_NAME, HISTORY_NAME}:
        number += 1
        name = f"{stem}-{number}.json"
    used.add(name.casefold())
    return name


_CASES_PER_PIECE: Final = 200
"""Cases in one piece: about half a megabyte."""


class JsonPiece(NamedTuple):
    """The next part of a run result, and the same part of the suite's own file."""

    run_result: bytes
    suite: int | None = None
    suite_file: bytes = b""


def iter_full_pieces(run: RunResult) -> Iterator[JsonPiece]:
    """Yield every field, indented; no text breaks a line, so that each line can be moved to the right."""
    empty = _encode_indented(replace(run, suites=()))
    if not run.suites:
        yield JsonPiece(empty)
        return
    head, rest = _split_list(empty, b'"suites": [')
    yield JsonPiece(head)
    for number, suite in enumerate(run.suites):
        yield JsonPiece(b",\n    " if number else b"\n    ")
        for part in _iter_suite_pieces(suite):
            yield JsonPiece(part.replace(b"\n", b"\n    "), number, part)
    yield JsonPiece(b"\n  " + rest)


def _iter_suite_pieces(suite: SuiteResult) -> Iterator[bytes]:
    empty = _encode_indented(replace(suite, cases=()))
    if not suite.cases:
        yield empty
        return
    head, rest = _split_list(empty, b'"cases": [')
    yield head
    for number, cases in enumerate(_iter_chunks(suite.cases)):
        part = _encode_indented(cases)[1:-2]
        yield (b"," if number else b"") + part.replace(b"\n", b"\n  ")
    yield b"\n  " + rest


def iter_compact_pieces(run: RunResult) -> Iterator[JsonPiece]:
    """Yield the run result as JSON without indentation and without default values, in pieces.

    The file of a suite has every field, because its readers may know nothing but the contract.
    """
    empty = json.encode(_drop_defaults(replace(run, suites=())))
    yield JsonPiece(b'{"schemaVersion":%d,%b,"suites":[' % (run.schema_version, empty[1:-1]))
    for number, suite in enumerate(run.suites):
        empty_suite = replace(suite, cases=())
        head, rest = _split_list(json.encode(empty_suite), b'"cases":[')
        bare = json.encode(_drop_defaults(empty_suite))
        yield JsonPiece(b'%b%b,"cases":[' % (b"," if number else b"", bare[:-1]), number, head)
        for at, cases in enumerate(_iter_chunks(suite.cases)):
            comma = b"," if at else b""
            bare, whole = json.encode(_drop_defaults(cases)), json.encode(cases)
            yield JsonPiece(comma + bare[1:-1], number, comma + whole[1:-1])
        yield JsonPiece(b"]}", number, rest)
    yield JsonPiece(b"]}")


def _encode_indented(value: object) -> bytes:
    return json.format(json.encode(value), indent=2)


def _drop_defaults(value: object) -> object:
    """Return the same data as mappings and lists, without fields that have their default."""
    match value:
        case Struct():
            names = _list_fields(type(value))
            fields = ((key, getattr(value, name), default) for name, key, default in names)
            return {key: _drop_defaults(one) for key, one, default in fields if one != default}
        case tuple():
            return [_drop_defaults(one) for one in value]
        case dict():
            return {key: _drop_defaults(one) for key, one in value.items()}
        case _:
            return value


@cache
def _list_fields(kind: type[Struct]) -> tuple[tuple[str, str, object], ...]:
    return tuple(
        (one.name, one.encode_name, one.default_factory() if one.default_factory is not NODEFAULT else one.default)
        for one in structs.fields(kind)
    )


def _split_list(empty: bytes, opened: bytes) -> tuple[bytes, bytes]:
    """Split at the first `opened`, which is the list: the text of a JSON string has no unescaped quote."""
    head, _, rest = empty.partition(opened)
    return head + opened, rest


def _iter_chunks(cases: Sequence[CaseResult]) -> Iterator[tuple[CaseResult, ...]]:
    return (tuple(cases[begin : begin + _CASES_PER_PIECE]) for begin in range(0, len(cases), _CASES_PER_PIECE))
