"""TRX of VSTest: `dotnet test --logger trx`, with the outcomes and counters of its published schema.

The classes of tests stand behind the results. A test with results within it is a container: each of those is a case. A
run that was broken off says so in its summary, and its counters count what is in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from eval_gate.external_results.result_rows import (
    MAX_NAME,
    MAX_ROWS,
    ExecutionEnding,
    FileFacts,
    ResultRow,
    RowPlace,
    parse_seconds,
)
from eval_gate.external_results.statuses import Meaning, classify_thrown_error, is_exception, parse_tables
from eval_gate.external_results.xml_streaming import XmlReader
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.struct import Struct, field

_RESULTS: Final = frozenset(
    {"UnitTestResult", "TestResultAggregation", "GenericTestResult", "ManualTestResult", "WebTestResult"}
)
_TEXTS: Final = frozenset({"StdOut", "Message", "StackTrace", "Text"})
STATUSES: Final = parse_tables("""
VSTest (vstst.xsd of 2010): outcome of a test
  passed: Passed; failed: Failed; skipped: NotExecuted; agent error: Error, Timeout
  evaluation error: Aborted, Completed, Disconnected, Inconclusive, NotRunnable, PassedButRunAborted, Warning
  incomplete: InProgress, Pending
VSTest (vstst.xsd of 2010): outcome of the run
  no verdict: -, Completed, Inconclusive, NotExecuted, Passed, Warning; failed: Failed, Error, Timeout
  incomplete: Aborted, Disconnected, InProgress, NotRunnable, PassedButRunAborted, Pending
""")
_OUTCOME, _RUN = STATUSES
_RUN_ABORTED: Final = re.compile(
    r"test run was aborted|test ?host process crashed|test session timed? ?out", re.IGNORECASE
)
_THREW: Final = re.compile(r"Test method \S{1,1000} threw exception:\s*")
"""What MSTest writes before the name of an exception."""
_CLEANUP: Final = re.compile(r"\[Test \w+ (Setup|Cleanup) Failure\b")
"""How xUnit names what failed before or after tests, and is none."""
_DURATION: Final = re.compile(r"(?:(\d{1,5})\.)?(\d{1,3}):(\d{1,2}):(\d{1,2}(?:\.\d{1,9})?)")
_MAX_QUOTED: Final = 300
_SAME_NAME_HINT: Final = (
    "rows of one theory are cases of their own: give each row a display name, or arguments that differ as text"
)
_FAILED_COUNTERS: Final = ("failed", "error", "timeout", "aborted")


class _Result(Struct):
    attributes: dict[str, str]
    line: int
    container: bool = False
    failed_inside: bool = False
    """It is a container of one that did not pass."""
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def outcome(self) -> str:
        return self.attributes.get("outcome", "")

    @property
    def status(self) -> Status:
        return _OUTCOME.build_ending(self.outcome).status or Status.ERROR


class _Definition(Struct):
    class_name: str = ""
    method: str = ""
    tags: list[str] = field(default_factory=list)


class _Parser(XmlReader):
    """Reader of TRX that collects results and definitions."""

    format_name = "TRX"
    text_names = _TEXTS

    def __init__(self, file: Path, shown_as: str) -> None:
        super().__init__(file, shown_as)
        self.results: list[_Result] = []
        self.definitions: dict[str, _Definition] = {}
        self.outcome = ""
        self.counters: dict[str, int] = {}
        self._stack: list[_Result] = []
        self._definition = _Definition()

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        """Begin a result, a definition or the summary."""
        if self.is_at_root and name != "TestRun":
            raise RowPlace(self._shown_as).build_error(f"is not TRX: it begins with <{name[:40]}>")
        if name in _TEXTS:
            self.clear_text()
        elif name in _RESULTS:
            self._begin_result(attributes)
        elif name == "UnitTest":
            self._definition = self.definitions.setdefault(attributes.get("id", ""), _Definition())
        elif name == "TestMethod":
            self._definition.class_name = attributes.get("className", "").partition(",")[0].strip()
            self._definition.method = attributes.get("name", "")
        elif name == "TestCategoryItem":
            self._definition.tags.append(attributes.get("TestCategory", "")[:100])
        elif name == "ResultSummary":
            self.outcome = attributes.get("outcome", "")
        elif name == "Counters":
            self.counters = {key: int(text) for key, text in attributes.items() if text.isdecimal() and len(text) < 10}

    def end_element(self, name: str) -> None:
        """End a result, or a text in it."""
        if name in _TEXTS:
            text = "".join(self._text)
            if self._stack:
                self._stack[-1].texts.setdefault(name, text)
            elif name == "Text" and _RUN_ABORTED.search(text[:10_000]):
                what = f"reports that the run broke off: {text.strip()[:_MAX_QUOTED]}"
                raise RowPlace(self._shown_as, self.line).build_incomplete_error(what)
        elif name in _RESULTS:
            result = self._stack.pop()
            if self._stack and (result.failed_inside or result.status in {Status.FAILED, Status.ERROR}):
                self._stack[-1].failed_inside = True

    def _begin_result(self, attributes: dict[str, str]) -> None:
        result = _Result(attributes, self.line)
        if self._stack:
            self._stack[-1].container = True
        if len(self.results) > MAX_ROWS:
            raise RowPlace(self._shown_as, self.line).build_error(f"is one of more than {MAX_ROWS:,} results")
        self.results.append(result)
        self._stack.append(result)


def read_trx(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield every execution of every test. A container counts where it failed and nothing in it did."""
    facts.tool = "VSTest"
    parser = _Parser(file, shown_as)
    for _ in parser.iter_pieces():
        pass
    _check_summary(parser, shown_as)
    for result in parser.results:
        if not result.container or (result.status in {Status.FAILED, Status.ERROR} and not result.failed_inside):
            definition = parser.definitions.get(result.attributes.get("testId", ""), _Definition())
            yield _build_row(result, definition, shown_as)


def _check_summary(parser: _Parser, shown_as: str) -> None:
    """Raise GateError where the run broke off, or its summary says more than the results that are in the file."""
    passed = all(one.status in {Status.PASSED, Status.SKIPPED} for one in parser.results)
    meaning = _RUN.find_meaning(parser.outcome)
    if meaning is not Meaning.NO_VERDICT and (meaning is not Meaning.FAILED or passed):
        doubts = {Meaning.FAILED: ", but all of its tests passed", None: ", which is not a known outcome"}
        what = f"reports that the run is {parser.outcome[:40]}{doubts.get(meaning, '')}"
        raise RowPlace(shown_as).build_incomplete_error(what)
    failed = sum(parser.counters.get(name, 0) for name in _FAILED_COUNTERS)
    RowPlace(shown_as).check_count(parser.counters.get("total", 0), len(parser.results), "results")
    number = sum(one.outcome != "Passed" for one in parser.results)
    RowPlace(shown_as).check_count(failed, number, "results that did not pass")


def _build_row(result: _Result, definition: _Definition, shown_as: str) -> ResultRow:
    place, class_name = RowPlace(shown_as, result.line), definition.class_name
    if _OUTCOME.find_meaning(result.outcome) is Meaning.INCOMPLETE:
        raise place.build_incomplete_error(f"is a test that is {result.outcome}")
    name = result.attributes.get("testName", "").strip()
    if class_name and name.startswith(f"{class_name}."):
        name = name.removeprefix(f"{class_name}.")
    if not name or len(name) > MAX_NAME:
        raise place.build_error(f"is a result without a testName of up to {MAX_NAME:,} characters")
    ending = _classify_result(result)
    if class_name == name == definition.method and ending.error:  # no method of .NET has its class's name, Jest's do
        raise place.build_unloaded_error(name, ending.error)
    return ResultRow(
        suite=class_name[:MAX_NAME] or "tests",
        id=name,
        place=place,
        **ending._asdict(),
        response=result.texts.get("StdOut"),
        duration_ms=_parse_duration(result.attributes.get("duration", "")),
        tags=tuple(definition.tags[:50]),
        rerun_name=f"{class_name}.{definition.method}" if class_name and definition.method else None,
        named_by="className and testName",
        duplicate_hint=_SAME_NAME_HINT,
    )


def _classify_result(result: _Result) -> ExecutionEnding:
    message = result.texts.get("Message", "").strip()
    error = "\n".join(filter(None, (message, result.texts.get("StackTrace", "").strip()))) or None
    ending = _OUTCOME.build_ending(result.outcome, error)
    if ending.error_kind is ErrorKind.EVALUATION_ERROR or ending.status in {Status.PASSED, Status.SKIPPED}:
        return ending
    if _CLEANUP.match(result.attributes.get("testName", "")):
        return ExecutionEnding(Status.ERROR, ErrorKind.EVALUATION_ERROR, error or "it failed outside of its tests")
    thrown = _THREW.sub("", message, count=1)
    kind = classify_thrown_error(thrown)
    if result.status is Status.FAILED and is_exception(thrown) and kind is ErrorKind.AGENT_UNREACHABLE:
        return ExecutionEnding(Status.ERROR, kind, error)
    return ExecutionEnding(result.status, kind, error or _OUTCOME.describe(result.outcome))


def _parse_duration(duration: str) -> float | None:
    """Parse days, hours, minutes and seconds, such as `1.00:00:00.25`, as milliseconds."""
    match = _DURATION.fullmatch(duration)
    if match is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return parse_seconds(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
