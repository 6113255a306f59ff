"""A run result as JSON, piece by piece, with the file of each suite: nothing of it is in memory as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pydantic import TypeAdapter

from eval_gate.model.result import CaseResult, RunResult, SuiteResult

_RUN: Final = TypeAdapter(RunResult)
_SUITE: Final = TypeAdapter(SuiteResult)
_CASES: Final = TypeAdapter(tuple[CaseResult, ...])
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
    empty = _RUN.dump_json(run.model_copy(update={"suites": ()}), by_alias=True, indent=2)
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
    empty = _SUITE.dump_json(suite.model_copy(update={"cases": ()}), by_alias=True, indent=2)
    if not suite.cases:
        yield empty
        return
    head, rest = _split(empty, b'"cases": [')
    yield head
    for number, cases in enumerate(_parts(suite.cases)):
        part = _CASES.dump_json(cases, by_alias=True, indent=2)[1:-2]
        yield (b"," if number else b"") + part.replace(b"\n", b"\n  ")
    yield b"\n  " + rest


def compact_pieces(run: RunResult) -> Iterator[JsonPiece]:
    """The same without indents, and in the run result without fields that have their default.

    A suite's own file has every field: whoever reads it may know nothing but the contract.
    """
    empty = _RUN.dump_json(run.model_copy(update={"suites": ()}), by_alias=True, exclude_defaults=True)
    yield JsonPiece(b'{"schemaVersion":%d,%b,"suites":[' % (run.schema_version, empty[1:-1]))
    for number, suite in enumerate(run.suites):
        empty_suite = suite.model_copy(update={"cases": ()})
        head, rest = _split(_SUITE.dump_json(empty_suite, by_alias=True), b'"cases":[')
        bare = _SUITE.dump_json(empty_suite, by_alias=True, exclude_defaults=True)
        yield JsonPiece(b'%b%b,"cases":[' % (b"," if number else b"", bare[:-1]), number, head)
        for at, cases in enumerate(_parts(suite.cases)):
            comma = b"," if at else b""
            bare = _CASES.dump_json(cases, by_alias=True, exclude_defaults=True)
            whole = _CASES.dump_json(cases, by_alias=True)
            yield JsonPiece(comma + bare[1:-1], number, comma + whole[1:-1])
        yield JsonPiece(b"]}", number, rest)
    yield JsonPiece(b"]}")


def _split(empty: bytes, opened: bytes) -> tuple[bytes, bytes]:
    """What stands before and behind the things of an empty list, which `opened` begins: a text has no bare quote."""
    head, _, rest = empty.partition(opened)
    return head + opened, rest


def _parts(cases: Sequence[CaseResult]) -> Iterator[tuple[CaseResult, ...]]:
    return (tuple(cases[begin : begin + _MANY]) for begin in range(0, len(cases), _MANY))
