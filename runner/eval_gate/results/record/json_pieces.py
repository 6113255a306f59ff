"""A run result as JSON, piece by piece, with the file of each suite: nothing of it is in memory as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from msgspec import NODEFAULT, Struct, json, structs

from eval_gate.model.result import CaseResult, RunResult, SuiteResult
from eval_gate.struct import replace

_MANY: Final = 200
"""Cases of one piece: half a megabyte."""


class JsonPiece(NamedTuple):
    """The next part of a run result, and the same part of a suite's own file. No part ends within a text."""

    run_result: bytes
    suite: int | None = None
    suite_file: bytes = b""


def full_pieces(run: RunResult) -> Iterator[JsonPiece]:
    """Every field, indented.

    A line break in a text is written as an escape, so that each line can be moved to the right.
    """
    empty = _indented(replace(run, suites=()))
    if not run.suites:
        yield JsonPiece(empty)
        return
    head, rest = _split(empty, b'"suites": [')
    yield JsonPiece(head)
    for number, suite in enumerate(run.suites):
        yield JsonPiece(b",\n    " if number else b"\n    ")
        for part in _full_suite(suite):
            yield JsonPiece(part.replace(b"\n", b"\n    "), number, part)
    yield JsonPiece(b"\n  " + rest)


def _full_suite(suite: SuiteResult) -> Iterator[bytes]:
    empty = _indented(replace(suite, cases=()))
    if not suite.cases:
        yield empty
        return
    head, rest = _split(empty, b'"cases": [')
    yield head
    for number, cases in enumerate(_parts(suite.cases)):
        part = _indented(cases)[1:-2]
        yield (b"," if number else b"") + part.replace(b"\n", b"\n  ")
    yield b"\n  " + rest


def compact_pieces(run: RunResult) -> Iterator[JsonPiece]:
    """The same without indents, and in the run result without fields that have their default.

    A suite's own file has every field: whoever reads it may know nothing but the contract.
    """
    empty = json.encode(_without_defaults(replace(run, suites=())))
    yield JsonPiece(b'{"schemaVersion":%d,%b,"suites":[' % (run.schema_version, empty[1:-1]))
    for number, suite in enumerate(run.suites):
        empty_suite = replace(suite, cases=())
        head, rest = _split(json.encode(empty_suite), b'"cases":[')
        bare = json.encode(_without_defaults(empty_suite))
        yield JsonPiece(b'%b%b,"cases":[' % (b"," if number else b"", bare[:-1]), number, head)
        for at, cases in enumerate(_parts(suite.cases)):
            comma = b"," if at else b""
            bare, whole = json.encode(_without_defaults(cases)), json.encode(cases)
            yield JsonPiece(comma + bare[1:-1], number, comma + whole[1:-1])
        yield JsonPiece(b"]}", number, rest)
    yield JsonPiece(b"]}")


def _indented(value: object) -> bytes:
    return json.format(json.encode(value), indent=2)


def _without_defaults(value: object) -> object:
    """Return the same data as mappings and lists, without fields that have their default."""
    match value:
        case Struct():
            names = _names_and_defaults(type(value))
            given = ((key, getattr(value, name), default) for name, key, default in names)
            return {key: _without_defaults(one) for key, one, default in given if one != default}
        case tuple():
            return [_without_defaults(one) for one in value]
        case dict():
            return {key: _without_defaults(one) for key, one in value.items()}
        case _:
            return value


@cache
def _names_and_defaults(kind: type[Struct]) -> tuple[tuple[str, str, object], ...]:
    """Return the name of each field, its name in JSON, and its default."""
    return tuple(
        (one.name, one.encode_name, one.default_factory() if one.default_factory is not NODEFAULT else one.default)
        for one in structs.fields(kind)
    )


def _split(empty: bytes, opened: bytes) -> tuple[bytes, bytes]:
    """What stands before and behind the things of an empty list, which `opened` begins: a text has no bare quote."""
    head, _, rest = empty.partition(opened)
    return head + opened, rest


def _parts(cases: Sequence[CaseResult]) -> Iterator[tuple[CaseResult, ...]]:
    return (tuple(cases[begin : begin + _MANY]) for begin in range(0, len(cases), _MANY))
