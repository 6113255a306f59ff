"""JUnit XML, as CI systems read it: a failed assertion is a failure, an execution error an error.

The type of an error says whose fault it is: `crashed`, `unreachable`, `ours`; `error` where the result does not say.

A graded case carries its score as a property, and is a failure where the gate takes it for one. A failure that somebody
accepted or set aside is skipped: it does not count, and the message says by whose word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree as ET

from eval_gate.model.comparison import CaseClass
from eval_gate.model.execution import Status
from eval_gate.model.result import CaseResult, SuiteResult
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.scores import shortfalls
from eval_gate.reports.view.view import View
from eval_gate.reports.words.numbers import score
from eval_gate.text.escape import one_line

_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_WAIVABLE: Final = frozenset({Status.FAILED, Status.ERROR})
MAX_OUTPUT: Final = 20_000
MAX_MESSAGE: Final = 300
"""Characters of the attribute; the element holds all of it."""


def render_junit(view: View) -> str:
    """One `testsuite` per eval file, one `testcase` per case; times in seconds."""
    summary = view.summary
    suites = [_suite(suite, rows, view.verdict.pass_score) for suite, _, rows in view.by_suite]
    root = ET.Element(
        "testsuites",
        name="eval-gate",
        tests=str(summary.total_cases),
        failures=_sum(suites, "failures"),
        errors=_sum(suites, "errors"),
        skipped=_sum(suites, "skipped"),
        time=_seconds(summary.total_duration_ms),
    )
    root.extend(suites)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _sum(suites: list[ET.Element], name: str) -> str:
    return str(sum(int(suite.get(name, "0")) for suite in suites))


def _suite(suite: SuiteResult, rows: Sequence[CaseRow], least: float) -> ET.Element:
    summary = suite.summary
    waived = Counter(row.status for row in rows if row.status in _WAIVABLE and row.waived is not None)
    element = ET.Element(
        "testsuite",
        name=_text(suite.eval_file or suite.tool_name),
        tests=str(summary.total_cases),
        failures=str(summary.failed - waived[Status.FAILED]),
        errors=str(summary.errored + summary.not_run - waived[Status.ERROR]),
        skipped=str(summary.skipped + waived.total()),
        time=_seconds(summary.total_duration_ms),
        timestamp=_text(suite.timestamp),
    )
    element.extend(_case(case, row, least) for case, row in zip(suite.cases, rows, strict=True))
    return element


def _case(case: CaseResult, row: CaseRow, least: float) -> ET.Element:
    element = ET.Element("testcase", name=_text(case.id), classname=_text(row.suite), time=_seconds(case.duration_ms))
    if case.location:
        element.set("file", _text(case.location.file))
        element.set("line", str(case.location.line))
    if properties := _properties(case, row):
        parent = ET.SubElement(element, "properties")
        for name, value in properties:
            ET.SubElement(parent, "property", name=name, value=one_line(_text(value), MAX_MESSAGE))
    # a case that was not run is an error here: JUnit has no word for it, and it must not look fine
    tag = {Status.FAILED: "failure", Status.ERROR: "error", Status.NOT_RUN: "error", Status.SKIPPED: "skipped"}
    if case.status in tag:
        waived = row.waived if case.status in _WAIVABLE else None
        said = _text("\n".join([*([waived.terms] if waived else []), *_verdict(row), _why(case, least)]))
        blamed = row.blame.value if row.blame else case.status.value
        name, kind = ("skipped", waived.done) if waived else (tag[case.status], blamed)
        ET.SubElement(element, name, message=one_line(said, MAX_MESSAGE), type=kind).text = said
    if case.details.response:
        ET.SubElement(element, "system-out").text = _text(case.details.response[:MAX_OUTPUT])
    return element


def _properties(case: CaseResult, row: CaseRow) -> list[tuple[str, str]]:
    """The score of a graded case; what was concluded where more than the two runs was looked at; who waives it."""
    found = []
    if case.graded and case.status.judged:
        found.append(("score", f"{case.score:.6g}"))
    if row.evidence:
        found += [("change", row.change_words), ("evidence", row.why_words)]
    if row.waived:
        found.append((row.waived.done, row.waived.terms))
    return found


def _verdict(row: CaseRow) -> list[str]:
    """`regression: failed 4 of 4 here, 1 of 20 on main`, where more than the two runs was looked at."""
    if row.change is CaseClass.STILL_ERRORED:
        return [row.change_words]
    return [f"{row.change_words}: {row.why_words}"] if row.evidence else []


def _why(case: CaseResult, least: float) -> str:
    """What the case itself says; of a graded one `score 0.67`, then an evaluator a line."""
    error = case.error or case.status.value.replace("_", " ")
    if not case.graded or not case.status.judged:
        return error
    return "\n".join((f"score {score(case.score, least)}", *(shortfalls(case) or (error,))))


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.3f}"


def _text(text: str) -> str:
    """Only characters that XML knows."""
    return _NOT_XML.sub("\ufffd", text)
