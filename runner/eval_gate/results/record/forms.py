"""How a record is written: in full, or in less room where it is large, and the file of each suite beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from functools import cache
from typing import Final, NamedTuple, TypeVar

from pydantic import TypeAdapter

from eval_gate.model.base import construct
from eval_gate.model.comparison import CaseChange
from eval_gate.model.execution import NO_DETAILS, Status
from eval_gate.model.limits import DEPTH
from eval_gate.model.result import CaseResult, RunResult, SuiteResult
from eval_gate.text.foreign.json import ForeignJsonError, refuse_too_much

_RUN: Final = TypeAdapter(RunResult)  # bytes at once: a large run's text would be in memory three times otherwise
_SUITE: Final = TypeAdapter(SuiteResult)
_CASE: Final = TypeAdapter(CaseResult)
_CHANGE: Final = TypeAdapter(CaseChange)
_CASES: Final = TypeAdapter(tuple[CaseResult, ...])
_NO_CASES: Final = b'"cases":[]'
_NO_CASES_INDENTED: Final = b'"cases": []'
_NO_SUITES: Final = b'"suites": []'
_DETAILS: Final = b',"details":{'
_OF_A_CASE: Final = (
    b'"description":""',
    b'"durationMs":0.0',
    b'"assertionsRun":0',
    b'"assertionsSkipped":0',
    b'"error":null',
)
_OF_DETAILS: Final = (b'"toolsCalled":[]', b'"responseLength":0', b'"skippedTokens":[]', b'"response":null')
"""The contract's fields as they are where nothing is said, but for those of which something always is."""
_AT_ONCE: Final = 1_000
_FEW: Final = 200
"""Of the indented form, which takes the most room: a megabyte."""
_SIGNS_A_LINE: Final = 2
"""Those that values are counted by: what begins a list or a mapping, and a comma."""
_TOO_DEEP: Final = b"\n" + b"  " * DEPTH
_AROUND: Final = 10
"""Levels of a record around its cases, and more."""
_Thing = TypeVar("_Thing")


class RecordForm(Enum):
    """How a record is written. All three say the same, each in less room than the one before."""

    INDENTED = "indented"
    COMPACT = "compact"
    """Without line breaks and blanks, which are half of a record without answers."""
    SHORT = "short"
    """Without what is as it is where nothing is said, too: another three quarters of such a record."""


class FittedRecord(NamedTuple):
    """The record as it can be read again, and its JSON in pieces."""

    run: RunResult
    pieces: Iterable[bytes]
    form: RecordForm = RecordForm.INDENTED


class ShortForm:
    """The short form of a run that becomes less and less: of what stays as it was, nothing is written again.

    To go through it gives the whole record, piece by piece.
    """

    def __init__(self) -> None:
        self._run: RunResult | None = None
        self._head = b""
        self._cases: list[list[bytes]] = []

    def of(self, run: RunResult) -> ShortForm:
        """Of this run from now on, which has the cases of the one before, or less of them."""
        if self._run is None:
            self._cases = [[short_of(case) for case in suite.cases] for suite in run.suites]
        else:
            for before, suite, cases in zip(self._run.suites, run.suites, self._cases, strict=True):
                for at, (then, now) in enumerate(zip(before.cases, suite.cases, strict=True)):
                    if then is not now:
                        cases[at] = short_of(now)
        self._run = run
        rest = short_without_suites(run)
        # a record is known by its first key, which is always there
        self._head = b'{"schemaVersion":%d,%b,"suites":[' % (run.schema_version, rest[1:-1])
        return self

    def with_contract(self, number: int) -> Iterator[bytes]:
        """The cases of suite `number` for those who read the contract, some at a time, a comma between them."""
        assert self._run is not None
        cases = self._run.suites[number].cases
        for begin, shorts in _in_parts(self._cases[number]):
            yield b",".join(map(_with_contract, cases[begin : begin + _AT_ONCE], shorts))

    def has_few(self, values: int) -> bool:
        """Whether it is certain that neither values nor depth are too much: signs within texts are counted as well."""
        found = deepest = 0
        for case in (case for cases in self._cases for case in cases):
            opened = case.count(b"{") + case.count(b"[")
            found += opened + case.count(b",") + 1
            deepest = max(deepest, opened)
        return deepest < DEPTH - _AROUND and found + len(self._head) < values

    def __iter__(self) -> Iterator[bytes]:
        """No piece ends within a text."""
        assert self._run is not None
        yield self._head
        for number, (suite, cases) in enumerate(zip(self._run.suites, self._cases, strict=True)):
            own = _SUITE.dump_json(suite.model_copy(update={"cases": ()}), by_alias=True, exclude_defaults=True)
            yield b'%b%b,"cases":[' % (b"," if number else b"", own[:-1])
            for begin, some in _in_parts(cases):
                yield (b"," if begin else b"") + b",".join(some)
            yield b"]}"
        yield b"]}"


def _in_parts(of: Sequence[_Thing], so_many: int = _AT_ONCE) -> Iterator[tuple[int, Sequence[_Thing]]]:
    """Some at a time, with the index of the first of them."""
    return ((begin, of[begin : begin + so_many]) for begin in range(0, len(of), so_many))


def short_without_suites(run: RunResult) -> bytes:
    """A run beside its suites, without what is as it is where nothing is said; its comparison is most of it."""
    return _RUN.dump_json(run.model_copy(update={"suites": ()}), by_alias=True, exclude_defaults=True)


def short_of(case: CaseResult) -> bytes:
    """A case without what is as it is where nothing is said."""
    return _CASE.serializer.to_json(case, by_alias=True, exclude_defaults=True)  # at once: there are many


def short_of_change(change: CaseChange) -> bytes:
    """One case of a comparison in the same way."""
    return _CHANGE.serializer.to_json(change, by_alias=True, exclude_defaults=True)


def suite_files(record: FittedRecord) -> Iterator[tuple[SuiteResult, Iterable[bytes]]]:
    """Every suite with its own file in pieces.

    It has all of the contract's fields in every form: whoever reads it may know no other.
    """
    for number, suite in enumerate(record.run.suites):
        if record.form is RecordForm.INDENTED:
            yield suite, _indented_suite(suite)
        elif isinstance(record.pieces, ShortForm):
            yield suite, _around(suite, record.pieces.with_contract(number))
        else:
            several = _in_parts(suite.cases)
            yield suite, _around(suite, (_CASES.dump_json(tuple(some), by_alias=True)[1:-1] for _, some in several))


def _around(suite: SuiteResult, cases: Iterable[bytes]) -> Iterator[bytes]:
    """A suite's file around its cases, some at a time."""
    empty = _SUITE.dump_json(suite.model_copy(update={"cases": ()}), by_alias=True)
    head, between, rest = empty.partition(_NO_CASES)  # in no text, where its quotes would be escaped
    yield head + between[:-1]
    for at, some in enumerate(cases):
        yield b"," + some if at else some
    yield b"]" + rest


def _with_contract(case: CaseResult, short: bytes) -> bytes:
    """The short form of a case, and what it leaves out although the contract has it: to write it anew takes longer."""
    details = case.details
    said = (case.description, case.duration_ms, case.assertions_run, case.assertions_skipped, case.error is not None)
    missing = _missing(_OF_A_CASE, tuple(map(bool, said)))
    answered = (details.tools_called, details.response_length, details.skipped_tokens, details.response is not None)
    more = _missing(_OF_DETAILS, tuple(map(bool, answered)))
    if not any(answered) and details == NO_DETAILS:
        missing += b'"details":{%b},' % more[:-1]
    elif more:  # in a text its quotes would be escaped, and others within the case come behind it
        short = short.replace(_DETAILS, _DETAILS + more, 1)
    return b"{" + missing + short[1:]


@cache
def _missing(fields: tuple[bytes, ...], said: tuple[bool, ...]) -> bytes:
    """The fields of which nothing is said, a comma behind each."""
    return b"".join(field + b"," for field, there in zip(fields, said, strict=True) if not there)


def record_pieces(run: RunResult, form: RecordForm) -> Sequence[bytes]:
    """The whole record in one of the two longer forms, in pieces of which none ends within a text."""
    return (
        [_RUN.dump_json(run, by_alias=True)]
        if form is RecordForm.COMPACT
        else [piece.record for piece in indented(run)]
    )


class RecordPiece(NamedTuple):
    """The next of an indented record, and the same of the file of the suite that it is of: two files in one go."""

    record: bytes
    suite: int | None = None
    own: bytes = b""


def indented(run: RunResult) -> Iterator[RecordPiece]:
    """The indented record and the files of its suites, some cases at a time: nothing of them is in memory twice.

    A line break in a text is written as an escape, so that each line can be moved to the right.
    """
    empty = _RUN.dump_json(run.model_copy(update={"suites": ()}), by_alias=True, indent=2)
    head, _, rest = empty.partition(_NO_SUITES)
    if not run.suites:
        yield RecordPiece(empty)
        return
    yield RecordPiece(head + _NO_SUITES[:-1])
    for number, suite in enumerate(run.suites):
        yield RecordPiece(b",\n    " if number else b"\n    ")
        for own in _indented_suite(suite):
            yield RecordPiece(own.replace(b"\n", b"\n    "), number, own)
    yield RecordPiece(b"\n  ]" + rest)


def _indented_suite(suite: SuiteResult) -> Iterator[bytes]:
    """The same of one suite alone."""
    empty = _SUITE.dump_json(suite.model_copy(update={"cases": ()}), by_alias=True, indent=2)
    if not suite.cases:
        yield empty
        return
    head, _, rest = empty.partition(_NO_CASES_INDENTED)
    yield head + _NO_CASES_INDENTED[:-1]
    for begin, some in _in_parts(suite.cases, _FEW):
        cases = _CASES.dump_json(tuple(some), by_alias=True, indent=2)[1:-2]
        yield (b"," if begin else b"") + cases.replace(b"\n", b"\n  ")
    yield b"\n  ]" + rest


class RecordTooLargeError(Exception):
    """It is not certain that the record would be read again."""


class MeasuredJson:
    """Looks at JSON with indents, piece by piece, for whether it is certain to be read again."""

    def __init__(self, most: int, values: int) -> None:
        self._most, self._values = most, values
        self._bytes = self._lines = 0

    def add(self, piece: bytes) -> None:
        """Raises RecordTooLargeError as soon as it is not. In a line, two signs at most count as values."""
        self._bytes += len(piece)
        self._lines += piece.count(b"\n")
        if self._bytes > self._most or self._lines * _SIGNS_A_LINE > self._values or _TOO_DEEP in piece:
            raise RecordTooLargeError


def bare(run: RunResult, form: RecordForm) -> int:
    """Bytes that this many cases take at least, with nothing in them: known without writing them."""
    return _bare_case(form) * sum(len(suite.cases) for suite in run.suites)


@cache
def _bare_case(form: RecordForm) -> int:
    case = construct(CaseResult, id="", passed=True, status=Status.PASSED)
    indent, short = 2 if form is RecordForm.INDENTED else None, form is RecordForm.SHORT
    return len(_CASE.dump_json(case, by_alias=True, indent=indent, exclude_defaults=short))


def too_many(pieces: Iterable[bytes], values: int) -> bool:
    """Whether JSON in these pieces would not be read again, whatever its size."""
    try:
        refuse_too_much(pieces, values=values)
    except ForeignJsonError:
        return True
    return False
