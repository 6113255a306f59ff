"""Encodes a run result as JSON piece by piece, so that it is never in memory as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from msgspec import NODEFAULT, Struct, json, structs

from eval_gate.model.result import CaseResult, RunResult, SuiteResult
from eval_gate.struct import replace

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
            given = ((key, getattr(value, name), default) for name, key, default in names)
            return {key: _drop_defaults(one) for key, one, default in given if one != default}
        case tuple():
            return [_drop_defaults(one) for one in value]
        case dict():
            return {key: _drop_defaults(one) for key, one in value.items()}
        case _:
            return value


@cache
def _list_fields(kind: type[Struct]) -> tuple[tuple[str, str, object], ...]:
    """Return the name of each field, its name in JSON, and its default."""
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
