"""JUnit XML of test runners. Suites may be nested; each test case is one row.

Names are `classname` and `name`. A case without failure, error and skip passed. `flakyFailure` and `flakyError` are
executions before the one that passed, `rerunFailure` and `rerunError` are re-runs of one that failed (Maven's
Surefire). A name that stands twice in one suite is a re-run if all results before it failed (gotestsum, Gradle).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from eval_gate.external_results.result_rows import (
    DOCS,
    MAX_NAME,
    ExecutionEnding,
    FileFacts,
    ResultRow,
    RowPlace,
    build_usage,
    parse_cost,
    parse_number,
    parse_seconds,
)
from eval_gate.external_results.statuses import Meaning, StatusTable, classify_thrown_error, is_exception, parse_tables
from eval_gate.external_results.xml_streaming import XmlReader
from eval_gate.model.case import Location
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.struct import Struct, field
from eval_gate.text.escape import format_count, format_first_few

_RERUNS: Final = dict.fromkeys(("rerunFailure", "flakyFailure"), Status.FAILED) | dict.fromkeys(
    ("rerunError", "flakyError"), Status.ERROR
)
_RETRIES: Final = [[name] for name in _RERUNS]
"""The elements whose texts are of another attempt."""
STATUSES: Final = parse_tables("""
JUnit XML of every runner: element in a test, where any other counts if it has a `message`
  passed: warning; failed: failure; skipped: skipped; agent error: error
JUnit XML of behave 1.3.3, Catch2 3, ctest 3.25, Ginkgo 2, GoogleTest 1.17, Qt 6: status or `result` of a test
  passed: completed, fixed, ok, pass, passed, run, success, successful, warning
  failed: fail, failed, failure, regression, xpass, xpassed
  skipped: bfail, bpass, bxfail, bxpass, disabled, ignored, not_run, notrun, pending, pending_warn, skip, skipped
  skipped: suppressed, todo, xfail, xfailed
  agent error: aborted, broken, crashed, error, errored, interrupted, panicked, timedout, timeout
  evaluation error: cleanup_error, hook_error, inconclusive, undefined
  not run: executing, untested, untested_pending, untested_undefined
ctest 3.25: message of `skipped` where the `status` is `notrun`, up to `=`
  skipped: -, Disabled, SKIP_REGULAR_EXPRESSION_MATCHED, SKIP_RETURN_CODE
  not run: Fixture dependency failed, Insufficient resources, Required Files Missing, Unable to find executable
pytest 9.2: message of `error`, up to a quotation mark, where any other is an agent error
  evaluation error: collection failure, failed on setup with, failed on teardown with, internal error
behave 1.3.3: type of `error`, where any other is an agent error
  evaluation error: NoneType, PendingStepError, StepNotImplementedError
""")
_ELEMENT, _ATTRIBUTE, _SKIP, _ERROR, _ERROR_TYPE = STATUSES
_SKIPPED, _BROKE = Meaning.SKIPPED, Meaning.EVALUATION_ERROR
_GRAVITY: Final = (Meaning.PASSED, _SKIPPED, Meaning.AGENT_ERROR, Meaning.NOT_RUN, _BROKE, Meaning.FAILED)
"""Of several statuses of one test the last in this order counts: what failed was scored."""
_TEXTS: Final = frozenset({*_RERUNS, *_ELEMENT.meanings, "system-out"})
_VITEST: Final = "vitest tests"
_NOT_LOADED: Final = "Test suite failed to run"
"""The `classname` of a file that jest could not load, where jest-junit reports it."""
_MAX_QUOTED: Final = 300
_MAX_LISTED: Final = 3
_THOUSANDS: Final = 3
"""Digits behind a comma that may stand for thousands."""
_PYTEST: Final = frozenset({"pytest", "pytest tests"})
"""How pytest names its suite, and all suites together."""
_RUNNERS: Final = frozenset(
    {*_PYTEST, _VITEST, "jest tests", "Mocha Tests", "AllTests", "bun test", "deno test", "nextest-run"}
)
"""How runners name themselves at the root. Any other name there is of a class, a report or a run, and changes."""
_HEADING: Final = re.compile(r"^-+ Captured \w+ -+$\n?", re.MULTILINE)
"""What pytest writes above the output of a test."""
_TEARDOWN_FAILURE: Final = "failed on teardown"
_MAY_FAIL: Final = "TEST_CASE tagged with !mayfail"
"""The message of `skipped` by which Catch2 marks a failed test that is expected to fail."""
_NODES: Final = "test"
"""The `classname` of every test of Node's runner: only its suites tell where a test is."""
_COUNTING_TESTS: Final = frozenset({"AllTests", "jest tests", "vitest tests"})
"""Tools that count only tests: GoogleTest, jest-junit, vitest. pytest counts subtests too, and Catch2 its checks."""
_HOOK: Final = re.compile(
    r"""(^|\s)"(before|after)\ (all|each)"\ hook\b   # mocha and Cypress
      |^Test\ execution\ failure:\ could\ be\ caused\ by\ test\ hooks   # jest-junit
      |^(setUp|tearDown)(Class|Module)\ \(   # unittest
      |^(classMethod|initializationError|executionError)$   # Gradle, JUnit 4
      |^\[(Synchronized)?(Before|After)Suite\]   # Ginkgo
      |^TestMain$   # gotestsum: a package that failed outside of its tests
      |^\[(build|setup)\ failed\]$   # go-junit-report
      |^UninstantiatedParameterizedTestSuite<   # GoogleTest
    """,
    re.VERBOSE,
)
"""How test runners name what failed before or after tests, and is none."""
_BROKEN_CLASS: Final = re.compile(r"unittest\.loader\._FailedTest|PHPUnit[\\._]Framework[\\._]ErrorTestCase")
"""The `classname` of what could not be loaded: of unittest, and of a data provider that threw in PHPUnit."""
_WARNING: Final = re.compile(r"(PHPUnit[\\._]Framework[\\._]Warning(TestCase)?)?:Warning")
"""What PHPUnit calls a data provider that threw, and a class without tests: it passes."""
_SUBTEST: Final = re.compile(r"(?P<test>test\w*) (\[.*\]|\(.*\)|\[.*\] \(.*\))", re.DOTALL)
"""How unittest names a `subTest`: by the test, a message and parameters."""
_SUBTEST_REPEAT: Final = "parts"
"""Failures of one test of unittest, which are of one case."""
_RERUNFAILURES_HINT: Final = (
    "pytest-rerunfailures (`--reruns`) writes each attempt as a test, without the failures that it re-ran: run "
    f"pytest without it, and let the gate re-run failed cases with `--rerun-command` ({DOCS})"
)
_PROMPTFOO_HINT = (
    "promptfoo numbers the names in its JUnit files, and the numbers change when a test is added: "
    "use `-o out.json` and that file"
)


class _Case(Struct):
    attributes: dict[str, str]
    suites: tuple[str, ...]
    """The names of the suites that it is in, the innermost last."""
    line: int
    suite_line: int = 0
    project: str = ""
    """Of Playwright's, with which browser and settings it ran."""
    status: tuple[StatusTable, str] = (_ATTRIBUTE, "passed")
    """The gravest of its statuses."""
    error: str | None = None
    reruns: list[tuple[Status, str]] = field(default_factory=list)
    response: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    is_pytest: bool = False
    may_fail: bool = False
    is_doubtful: bool = False
    """It may have passed in a retry."""
    message: str = ""
    """The message of how it ended, without the text below it, which quotes code."""

    def add_status(self, table: StatusTable, value: str) -> None:
        """Set a status if it is graver than the current one; an unknown status is grave."""
        if _GRAVITY.index(table.find_meaning(value) or _BROKE) > _GRAVITY.index(self.meaning):
            self.status = table, value

    @property
    def meaning(self) -> Meaning:
        table, value = self.status
        return table.find_meaning(value) or _BROKE

    @property
    def has_failed(self) -> bool:
        """Whether it neither passed nor was skipped by its author."""
        return self.meaning not in {Meaning.PASSED, _SKIPPED}

    @property
    def name(self) -> tuple[str, str]:
        return self.attributes.get("classname", ""), self.attributes.get("name", "")

    @property
    def suite(self) -> str:
        """The innermost suite that has a name."""
        return next((name for name in reversed(self.suites) if name), "")

    @property
    def path(self) -> str:
        return " > ".join(filter(None, self.suites))


class _Suite(Struct):
    name: str
    line: int
    declared_failures: int
    """Failures and errors that the file says are in it."""
    declared_tests: int = 0
    """Tests that it says are in it, of a tool that counts these alone."""
    found_failures: int = 0
    found_tests: int = 0
    declared_executions: int = 0
    """Tests that it says are in it, which are executions where it counts more of them than there are tests."""
    failed_reruns: int = 0
    """Executions that failed and are not the one that counts."""
    declared_flaky: int = 0
    """Tests that it says passed in a retry. GdUnit4 writes the failures of these as it writes those of others."""
    host: str = ""
    has_errors: bool = True
    """It counts its errors, or has none that are counted elsewhere."""

    @classmethod
    def from_attributes(cls, attributes: dict[str, str], line: int, *, tool: str) -> _Suite:
        tests = _parse_count(attributes, "tests")
        return cls(
            attributes.get("name", ""),
            line,
            _parse_count(attributes, "failures") + _parse_count(attributes, "errors"),
            tests if tool in _COUNTING_TESTS else 0,
            declared_executions=tests,
            declared_flaky=_parse_count(attributes, "flaky"),
            host=attributes.get("hostname", ""),
            has_errors="errors" in attributes or not {"tests", "failures"} <= attributes.keys(),
        )


def _parse_count(attributes: dict[str, str], name: str) -> int:
    text = attributes.get(name, "").strip()
    return int(text) if text.isdecimal() and len(text) < 10 else 0


class _Parser(XmlReader):
    """Reader of JUnit XML that collects the cases between two pieces."""

    format_name = "JUnit"
    text_names = _TEXTS

    def __init__(self, file: Path, shown_as: str) -> None:
        super().__init__(file, shown_as)
        self.cases: list[_Case] = []
        self.tool = ""
        self._suites: list[_Suite] = []
        self._errors = 0
        """Errors that the root counts, where no suite does: they are of the runner, as gotestsum's, and of no test."""
        self._by_playwright = False
        self._case: _Case | None = None
        self._message = ""
        self._type = ""
        self._unknown = ""
        """The name of an element of a test that has a message and no known meaning."""
        self._failed: set[tuple[str, str]] = set()
        self.recovered: list[str] = []
        """Tests that passed when the tool retried them."""

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        """Begin a suite, a test, or an element of a test."""
        if self.is_at_root:
            if name not in {"testsuites", "testsuite"}:
                raise RowPlace(self._shown_as).build_error(f"is not JUnit: it begins with <{name[:40]}>")
            self.tool = attributes.get("name", "")
            self._by_playwright = name == "testsuites" and "id" in attributes
            self._errors = _parse_count(attributes, "errors") if name == "testsuites" else 0
            if self.tool == "promptfoo":
                raise RowPlace(self._shown_as).build_error("has unstable names", _PROMPTFOO_HINT)
        if name in {"testsuite", "testsuites"}:
            suite = _Suite.from_attributes(attributes, self.line, tool=self.tool)
            if self._suites and suite.has_errors:
                self._errors = 0
            self._suites.append(suite)
        elif name == "testcase":
            self._case = self._build_case(attributes)
        elif name == "property" and self._case is not None:
            self._case.properties[attributes.get("name", "")] = attributes.get("value", "")
        elif self._open[-2:-1] not in _RETRIES and (
            name in _TEXTS or (self._open[-2] == "testcase" and "message" in attributes)
        ):
            self.clear_text()
            self._message, self._type = attributes.get("message", ""), attributes.get("type", "")
            self._unknown = "" if name in _TEXTS else name

    def _build_case(self, attributes: dict[str, str]) -> _Case:
        inside = self._suites[1:] if self._open[0] == "testsuites" else self._suites
        names = tuple(suite.name for suite in inside)
        project = self._suites[-1].host if self._by_playwright and self._suites else ""
        by_pytest = not _PYTEST.isdisjoint({self.tool, *names[-1:]})
        suite_line = self._suites[-1].line if self._suites else 0
        case = _Case(attributes, names, self.line, suite_line, project, is_pytest=by_pytest)
        for word in filter(None, (attributes.get(key, "").strip().lower() for key in ("status", "result"))):
            case.add_status(_ATTRIBUTE, word)
        for suite in self._suites:
            suite.found_tests += 1
        return case

    def end_element(self, name: str) -> None:
        """End a suite, a test, or an element of a test."""
        if name in {"failure", "error"}:
            self._count_failure()
        if name in {"testsuite", "testsuites"}:
            self._check_counts(self._suites.pop())
        elif self._case is not None:
            self._end_case_element(self._case, name)
        elif name in {"failure", "error"}:
            self._refuse_suite()

    def _end_case_element(self, case: _Case, name: str) -> None:
        """Handle the end tag of an element within a test, or of the test itself."""
        if name == "testcase":
            if case.error is None and case.meaning in {Meaning.FAILED, Meaning.AGENT_ERROR}:
                case.error = "the attributes of the test report a failure without a reason"
                self._count_failure()
            if case.may_fail:
                case.status = _ELEMENT, "skipped"
            self._doubt_failure(case)
            self._add_case(case)
            self._case = None
        elif name in _RERUNS:
            case.reruns.append((_RERUNS[name], self._format_message()))
        elif name in _ELEMENT.meanings or name == self._unknown:
            self._add_status(case, name)
        elif name == "system-out" and self._open[-1:] not in _RETRIES:
            case.response = "".join(self._text)
            if case.is_pytest:
                case.response = _HEADING.sub("", case.response).strip() or None

    def _add_status(self, case: _Case, name: str) -> None:
        """Add how a test ended by an element in it, whose message or type may say it more exactly."""
        earlier_meaning, message = case.meaning, self._message
        case.add_status(_ELEMENT, "error" if name == "failure" and self._is_unreachable() else name)
        if name == "skipped":
            case.may_fail = case.may_fail or message.startswith(_MAY_FAIL)
            if case.attributes.get("status") == "notrun":
                case.add_status(_SKIP, message.partition("=")[0])
        elif name == "error" and case.is_pytest and _ERROR.find_meaning(phrase := message.partition(' "')[0]):
            case.add_status(_ERROR, phrase)
        elif name == "error" and _ERROR_TYPE.find_meaning(self._type):
            case.add_status(_ERROR_TYPE, self._type)
        if case.error is None or case.meaning is not earlier_meaning:
            case.error, case.message = self._format_message(), self._format_headline()

    def _doubt_failure(self, case: _Case) -> None:
        """Doubt a failure in a suite that counts flaky tests without naming them."""
        flaky = self._suites[-1].declared_flaky if self._suites else 0
        if flaky and case.has_failed:
            tests = format_count(flaky, "flaky test")
            case.error = f"it may have passed in a retry: its suite counts {tests} and does not say which\n{case.error}"
            case.is_doubtful = True

    def _count_failure(self) -> None:
        for suite in self._suites:
            suite.found_failures += 1

    def _check_counts(self, suite: _Suite) -> None:
        """Raise GateError where a suite counts more tests, or more that did not pass, than stand in it."""
        of_runner = self._errors if not self._suites and suite.found_tests else 0
        counted, failures = suite.declared_failures - of_runner, suite.found_failures
        if suite.declared_executions == suite.found_tests + suite.failed_reruns:  # Surefire 2 counts each execution
            failures += suite.failed_reruns
        place = RowPlace(self._shown_as, suite.line)
        place.check_count(counted, failures, "failures and errors")
        place.check_count(suite.declared_tests, suite.found_tests, "tests")

    def _refuse_suite(self) -> None:
        message = self._format_message().partition("\n")[0][:_MAX_QUOTED]
        place = RowPlace(self._shown_as, self.line)
        what = f"reports that the suite {self._suites[-1].name[:_MAX_QUOTED]} failed outside of its tests: {message}"
        raise place.build_incomplete_error(what)

    def _add_case(self, case: _Case) -> None:
        """Add a finished case, except pytest's second entry for a failed test whose teardown failed too."""
        for suite in self._suites:
            suite.failed_reruns += len(case.reruns)
        if case.reruns and case.meaning is Meaning.PASSED:
            self.recovered.append(case.attributes.get("name", "")[:_MAX_QUOTED])
        if case.is_pytest and case.name in self._failed and case.message.startswith(_TEARDOWN_FAILURE):
            if self.cases and self.cases[-1].name == case.name:
                self.cases[-1].response = case.response  # pytest writes the output into the second
            return
        if case.is_pytest and case.meaning is not Meaning.PASSED:
            self._failed.add(case.name)
        self.cases.append(case)

    def _is_unreachable(self) -> bool:
        """Whether what is called a failure is an exception of no connection; most runners call both the same."""
        thrown = is_exception(self._type or self._message)
        return thrown and classify_thrown_error(self._format_headline()) is ErrorKind.AGENT_UNREACHABLE

    def _format_headline(self) -> str:
        """Return what was thrown without quoted code: the message, and the "Caused by" lines of vitest."""
        causes = [line for line in "".join(self._text).splitlines() if line.startswith("Caused by:")]
        return "\n".join([self._message, *causes])

    def _format_message(self) -> str:
        """Return the message, and the text of the element if it says more."""
        text = "".join(self._text).strip()
        return text if text.startswith(self._message) or not self._message else f"{self._message}\n{text}".strip()


def read_junit(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield every execution of every test case."""
    parser, blocks = _Parser(file, shown_as), _VitestBlocks()
    for _ in parser.iter_pieces():
        facts.tool = f"JUnit ({parser.tool})" if parser.tool in _RUNNERS else "JUnit"
        for case in parser.cases[:-1]:  # what follows the last one may still be of it
            yield from _iter_rows(case, shown_as, blocks if parser.tool == _VITEST else None)
        del parser.cases[:-1]
    for case in parser.cases:
        yield from _iter_rows(case, shown_as, blocks if parser.tool == _VITEST else None)
    if parser.recovered:
        cases = format_count(len(parser.recovered), "case")
        note = f"{shown_as}: {cases} failed and passed in a retry, which the tool counts as passed: "
        facts.notes.append(note + format_first_few(parser.recovered, _MAX_LISTED))


class _VitestBlocks(Struct):
    """Blocks of vitest's tests by file: the names of blocks with failed hooks follow the tests."""

    names: dict[str, set[str]] = field(default_factory=dict)

    def has_block(self, file: str, name: str) -> bool:
        """Whether this is the name of a block. The name of a test adds the blocks that it is in."""
        *blocks, _ = name.split(" > ")
        if blocks:
            self.names.setdefault(file, set()).update(blocks)
        return name in self.names.get(file, ())


def _iter_rows(case: _Case, shown_as: str, vitest: _VitestBlocks | None) -> Iterator[ResultRow]:
    place, attributes, properties = RowPlace(shown_as, case.line), case.attributes, case.properties
    classname = attributes.get("classname", "").strip()
    name, of_class = attributes.get("name", "").strip(), False
    if not name and "name" in attributes:  # what happened to the class, or before all tests
        name, of_class = classname or case.suite, True
    if case.is_pytest and not classname and not name:
        raise place.build_incomplete_error("is the test at which pytest was stopped: the tests after it were not run")
    if not name or len(name) > MAX_NAME:
        raise place.build_error(f"is a testcase without a name of up to {MAX_NAME:,} characters")
    no_pass = case.has_failed
    if vitest and name == attributes.get("classname") and no_pass:
        raise place.build_unloaded_error(name, case.error or "")
    of_block = vitest is not None and vitest.has_block(attributes.get("classname", ""), name)
    of_hook = (no_pass and (of_block or of_class)) or _is_trouble(case, classname, name)
    ending = _build_ending(case, of_hook=of_hook)
    if classname == _NOT_LOADED and no_pass:
        raise place.build_unloaded_error(name, (case.error or "").replace(f"● {_NOT_LOADED}", "").strip())
    file = attributes.get("file")
    of_unittest = no_pass and not of_hook and not case.is_pytest and (file or "").endswith(".py")
    if of_unittest and (part := _SUBTEST.fullmatch(name)):
        name = part["test"]
    line = attributes.get("line", "")
    by_path = classname == _NODES and not case.is_pytest and not of_class
    suite = (by_path and case.path) or (not of_class and classname) or case.suite or "tests"
    longer = (f"{case.path}: {suite}" if case.path not in {"", suite} else "", f"{case.project}: {suite}")
    row = ResultRow(
        suite=suite[:MAX_NAME],
        id=name,
        place=place,
        **ending._asdict(),
        score=_parse_decimal(properties.get("score")),
        response=case.response,
        duration_ms=parse_seconds(_parse_decimal(attributes.get("time"))),
        cost_usd=parse_cost(_parse_decimal(properties.get("cost_usd"))),
        usage=build_usage(*(_parse_decimal(properties.get(key)) for key in ("input_tokens", "output_tokens"))),
        location=Location(file=file, line=_parse_line(line, case)) if file else None,
        # it puts signs between the names of blocks, and its filter sees spaces there
        rerun_name=name.replace(" > ", " ") if vitest else _find_node_id(file, attributes.get("classname", ""), name),
        named_by="classname and name",
        longer_suites=tuple(one[:MAX_NAME] for one in longer if one and not one.startswith(": ")),
        duplicate_hint=_RERUNFAILURES_HINT if case.is_pytest else None,
        # executions of one case are marked, or follow a failure in the same suite and file, as gotestsum and Gradle
        # write them; any other second result of a name is another case
        retry_scope=f"{shown_as}:{case.suite_line}:{file}:{line}",
        repeat=f"{place.line}" if case.reruns else _SUBTEST_REPEAT if of_unittest else None,
    )
    yield from _iter_attempts(row, case)


def _iter_attempts(row: ResultRow, case: _Case) -> Iterator[ResultRow]:
    """Yield the row of a case, and those of its retries unless it passed: the last result counts."""
    yield row
    for status, error in case.reruns if row.status is not Status.PASSED else ():
        yield row._replace(status=status, error=error, response=None, duration_ms=None, rerun=True)


def _is_trouble(case: _Case, classname: str, name: str) -> bool:
    """Whether a runner uses the name of a test for a problem of its own."""
    if case.has_failed:
        return _HOOK.search(name) is not None or _BROKEN_CLASS.match(classname) is not None
    return _WARNING.fullmatch(f"{classname}:{name}") is not None


def _build_ending(case: _Case, *, of_hook: bool) -> ExecutionEnding:
    """Build the ending of a test; of what broke outside of tests, nothing is known of the agent."""
    if of_hook or case.is_doubtful:
        return ExecutionEnding(Status.ERROR, ErrorKind.EVALUATION_ERROR, case.error or "it failed outside of its tests")
    table, value = case.status
    kind, ending = classify_thrown_error(case.message or case.error or ""), table.build_ending(value, case.error)
    is_clear = ending.error_kind is ErrorKind.EVALUATION_ERROR and kind is not ErrorKind.AGENT_UNREACHABLE
    return ending if is_clear else ending._replace(error_kind=kind)


def _parse_line(text: str, case: _Case) -> int:
    """Return the line number of a test, counted from 1. pytest counts from 0. Returns 1 for an invalid number."""
    return max(int(text) + case.is_pytest, 1) if text.isdecimal() and len(text) < 10 else 1


def _find_node_id(file: str | None, classname: str, name: str) -> str | None:
    """Find pytest's own name of a test, `tests/test_bot.py::TestBot::test_hours`, if the file is known."""
    if file is None or not file.endswith(".py"):
        return None
    module = file.removesuffix(".py").replace("/", ".")
    inner = classname.removeprefix(module).strip(".").split(".") if classname.startswith(module) else []
    return "::".join([file, *filter(None, inner), name])


def _parse_decimal(text: str | None) -> float | None:
    """Parse a number with commas for thousands or for decimals; None if a comma could mean either."""
    plain = (text or "").strip()
    if "," in plain:
        whole, _, part = plain.rpartition(".")
        if whole and "," in whole and part.isdecimal():
            plain = f"{whole.replace(',', '')}.{part}"  # 1,234.5
        else:
            whole, _, part = plain.rpartition(",")
            if "," in whole or (len(part) == _THOUSANDS and whole.lstrip("0")):
                return None  # 1,234 is a thousand, or one and a bit
            plain = f"{whole.replace('.', '').replace(',', '')}.{part}"
    try:
        return parse_number(float(plain)) if plain else None
    except ValueError:
        return None
