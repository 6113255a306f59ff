"""JUnit XML, as test runners write it. Suites may stand in suites; what is read is the test case.

Names are `classname` and `name`. A case without failure, error and skip passed; `rerunFailure`, `rerunError`,
`flakyFailure` and `flakyError` are executions before or after the one that counts (Maven's Surefire).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.parsers import expat

from eval_gate.model.case import Location
from eval_gate.model.execution import Blame, Status
from eval_gate.model.limits import BROUGHT_DEPTH, BROUGHT_TEXT
from eval_gate.result_formats.rows import (
    MAX_NAME,
    FileFacts,
    ResultRow,
    RowPlace,
    blame_of,
    broken_off,
    dollars,
    number,
    seconds,
    unreadable,
    usage,
)
from eval_gate.struct import Struct, field

_CHUNK: Final = 1 << 16
_AGAIN: Final = {
    "rerunFailure": Status.FAILED,
    "rerunError": Status.ERROR,
    "flakyFailure": Status.FAILED,
    "flakyError": Status.ERROR,
}
_ENDS: Final = {"failure": Status.FAILED, "error": Status.ERROR, "skipped": Status.SKIPPED}
_TEXTS: Final = frozenset({*_AGAIN, *_ENDS, "system-out"})
_VITEST: Final = "vitest tests"
_WHY: Final = 300
_PYTEST: Final = frozenset({"pytest", "pytest tests"})
"""How pytest names its suite, and all suites together."""
_HEADING: Final = re.compile(r"^-+ Captured \w+ -+$\n?", re.MULTILINE)
"""What pytest writes above the output of a test."""
_TORN_DOWN: Final = "failed on teardown"
_THROWN: Final = re.compile(r"(?!\S*Assert)[\w.]*(Error|Exception|Timeout|Refused)\b")
"""How a message begins where the test did not say no: it was ended by an exception."""
_NUMBERED = (
    "promptfoo numbers the names in its JUnit files, and they are others as soon as a test is added: "
    "write `-o out.json` and give that file"
)


class _Case(Struct):
    attributes: dict[str, str]
    suite: str
    line: int
    status: Status = Status.PASSED
    error: str | None = None
    again: list[tuple[Status, str]] = field(default_factory=list)
    answer: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    of_pytest: bool = False
    said: str = ""
    """The message of how it ended, without the text below it, which quotes code."""

    @property
    def name(self) -> tuple[str, str]:
        """By what it is known."""
        return self.attributes.get("classname", ""), self.attributes.get("name", "")


class _Parser:
    """Collects the cases between two reads of the file. A document type is refused: entities are what bombs are of."""

    def __init__(self, shown: str) -> None:
        self.done: list[_Case] = []
        self.tool = ""
        self._shown = shown
        self._suites: list[str] = []
        self._open: list[str] = []
        self._case: _Case | None = None
        self._text: list[str] = []
        self._length = 0
        self._message = ""
        self._type = ""
        self._failed: set[tuple[str, str]] = set()
        self._expat = expat.ParserCreate()
        self._expat.buffer_text = True
        self._expat.StartElementHandler = self._begin
        self._expat.EndElementHandler = self._finish
        self._expat.CharacterDataHandler = self._characters
        self._expat.StartDoctypeDeclHandler = self._refuse_doctype

    def feed(self, data: bytes, *, last: bool) -> None:
        try:
            self._expat.Parse(data, last)
        except expat.ExpatError as error:
            place = RowPlace(self._shown, error.lineno)
            raise unreadable(place, f"is not XML: {expat.errors.messages[error.code]}") from None
        except (LookupError, ValueError) as error:  # of an encoding that Python does not have, or has and expat cannot
            raise unreadable(
                RowPlace(self._shown, 1), f"is in an encoding that is not read: {str(error)[:100]}"
            ) from None

    def _refuse_doctype(self, *_: object) -> None:
        raise unreadable(RowPlace(self._shown, self._expat.CurrentLineNumber), "has a document type: JUnit needs none")

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        if not self._open:
            if name not in {"testsuites", "testsuite"}:
                raise unreadable(RowPlace(self._shown), f"is not JUnit: it begins with <{name[:40]}>")
            self.tool = attributes.get("name", "")
            if self.tool == "promptfoo":
                raise unreadable(RowPlace(self._shown), "has names that do not last", _NUMBERED)
        if len(self._open) > BROUGHT_DEPTH:
            raise unreadable(RowPlace(self._shown), f"is nested deeper than {BROUGHT_DEPTH} levels")
        self._open.append(name)
        if name == "testsuite":
            self._suites.append(attributes.get("name", ""))
        elif name == "testcase":
            suite = self._suites[-1] if self._suites else ""
            by_pytest = not _PYTEST.isdisjoint({self.tool, suite})
            self._case = _Case(attributes, suite, self._expat.CurrentLineNumber, of_pytest=by_pytest)
        elif name == "property" and self._case is not None:
            self._case.properties[attributes.get("name", "")] = attributes.get("value", "")
        elif name in _TEXTS:
            self._text, self._length, self._message = [], 0, attributes.get("message", "")
            self._type = attributes.get("type", "")

    def _characters(self, text: str) -> None:
        if self._open and self._open[-1] in _TEXTS and self._length < BROUGHT_TEXT:
            self._text.append(text[: BROUGHT_TEXT - self._length])
            self._length += len(text)

    def _finish(self, name: str) -> None:
        self._open.pop()
        case = self._case
        if name == "testsuite":
            self._suites.pop()
        elif case is None:
            return
        elif name == "testcase":
            self._take(case)
            self._case = None
        elif name in _ENDS:
            # an error beside a failure is of tearing down: what was judged counts
            if case.status is Status.PASSED:
                case.status, case.error, case.said = _ENDS[name], self._said(), self._headline()
                if name == "failure" and self._nobody_reached():
                    case.status = Status.ERROR
        elif name in _AGAIN:
            case.again.append((_AGAIN[name], self._said()))
        elif name == "system-out":
            case.answer = "".join(self._text)
            if case.of_pytest:
                case.answer = _HEADING.sub("", case.answer).strip() or None

    def _take(self, case: _Case) -> None:
        """The case; not where it is the second that pytest writes of a test that failed and could not be torn down."""
        if case.of_pytest and case.name in self._failed and case.said.startswith(_TORN_DOWN):
            if self.done and self.done[-1].name == case.name:
                self.done[-1].answer = case.answer  # pytest writes the output into the second
            return
        if case.of_pytest and case.status is not Status.PASSED:
            self._failed.add(case.name)
        self.done.append(case)

    def _nobody_reached(self) -> bool:
        """Whether what is called a failure is an exception of no connection; most runners call both the same."""
        thrown = _THROWN.match(self._type) if self._type else _THROWN.match(self._message)
        return thrown is not None and blame_of(self._headline()) is Blame.UNREACHABLE

    def _headline(self) -> str:
        """What was thrown, without quoted code: the message, and what vitest says it was caused by."""
        causes = [line for line in "".join(self._text).splitlines() if line.startswith("Caused by:")]
        return "\n".join([self._message, *causes])

    def _said(self) -> str:
        """The message, and the text where that says more."""
        text = "".join(self._text).strip()
        return text if text.startswith(self._message) or not self._message else f"{self._message}\n{text}".strip()


def read_junit(file: Path, shown: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Every execution of every test case."""
    parser = _Parser(shown)
    try:
        with file.open("rb") as stream:
            while data := stream.read(_CHUNK):
                parser.feed(data, last=False)
                facts.tool = f"JUnit ({parser.tool[:60]})" if parser.tool else "JUnit"
                for case in parser.done[:-1]:  # what follows the last one may still be of it
                    yield from _rows(case, shown, vitest=parser.tool == _VITEST)
                del parser.done[:-1]
            parser.feed(b"", last=True)
            for case in parser.done:
                yield from _rows(case, shown, vitest=parser.tool == _VITEST)
    except OSError as error:
        raise unreadable(RowPlace(shown), f"cannot be read: {error.strerror}") from error


def _rows(case: _Case, shown: str, *, vitest: bool) -> Iterator[ResultRow]:
    place, attributes, properties = RowPlace(shown, case.line), case.attributes, case.properties
    name = attributes.get("name", "").strip()
    if not name or len(name) > MAX_NAME:
        raise unreadable(place, f"is a testcase without a name of up to {MAX_NAME:,} characters")
    if vitest and name == attributes.get("classname") and case.status in {Status.FAILED, Status.ERROR}:
        said = (case.error or "").partition("\n")[0][:_WHY]
        raise broken_off(place, f"says that {name} could not be loaded, and none of its tests was run: {said}")
    file = attributes.get("file")
    line = attributes.get("line", "")
    row = ResultRow(
        suite=(attributes.get("classname") or case.suite or "tests")[:MAX_NAME],
        id=name,
        status=case.status,
        place=place,
        score=_number(properties.get("score")),
        answer=case.answer,
        error=case.error,
        blame=blame_of(case.said or case.error or ""),
        duration_ms=seconds(_number(attributes.get("time"))),
        cost_usd=dollars(_number(properties.get("cost_usd"))),
        usage=usage(_number(properties.get("input_tokens")), _number(properties.get("output_tokens"))),
        location=Location(file=file, line=_line(line, case)) if file else None,
        # it puts signs between the names of blocks, and its filter sees spaces there
        again=name.replace(" > ", " ") if vitest else _node(file, attributes.get("classname", ""), name),
        named_by="classname and name",
        # executions of one case are said to be; the same name a second time is another case of the same name
        repeat=f"{place.line}" if case.again else None,
    )
    yield row
    for status, said in case.again:
        yield row._replace(status=status, error=said, answer=None, duration_ms=None)


def _line(given: str, case: _Case) -> int:
    """The line, counted from 1: pytest counts from 0."""
    return max(int(given) + case.of_pytest, 1) if given.isdecimal() and len(given) < 10 else 1


def _node(file: str | None, classname: str, name: str) -> str | None:
    """Pytest's own name of a test, `tests/test_bot.py::TestBot::test_hours`, where the file is known."""
    if file is None or not file.endswith(".py"):
        return None
    module = file.removesuffix(".py").replace("/", ".")
    inner = classname.removeprefix(module).strip(".").split(".") if classname.startswith(module) else []
    return "::".join([file, *filter(None, inner), name])


def _number(text: str | None) -> float | None:
    try:
        return number(float(text.replace(",", ""))) if text else None  # some write 1,234.5
    except ValueError:
        return None
