"""JUnit XML, as CI systems read it: a failed assertion is a failure, an execution error an error.

A graded case carries its score as a property, and is a failure where the gate takes it for one.
"""

from __future__ import annotations

import re
from typing import Final
from xml.etree import ElementTree as ET

from runner.gate.acceptable import judged_as
from runner.model.result import CaseResult, RunResult, Status, SuiteResult
from runner.reports.scores import shortfalls
from runner.reports.wording import score
from runner.text.escape import one_line

_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
MAX_OUTPUT: Final = 20_000
MAX_MESSAGE: Final = 300
"""Characters of the attribute; the element holds all of it."""


def render_junit(run: RunResult) -> str:
    """One `testsuite` per eval file, one `testcase` per case; times in seconds."""
    run = judged_as(run)
    summary = run.summary
    root = ET.Element(
        "testsuites",
        name="eval-gate",
        tests=str(summary.total_cases),
        failures=str(summary.failed),
        errors=str(summary.errored + summary.not_run),
        skipped=str(summary.skipped),
        time=_seconds(summary.total_duration_ms),
    )
    for suite in run.suites:
        root.append(_suite(suite, run.verdict.pass_score if run.verdict else 1.0))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(suite: SuiteResult, least: float) -> ET.Element:
    summary = suite.summary
    element = ET.Element(
        "testsuite",
        name=_text(suite.eval_file or suite.tool_name),
        tests=str(summary.total_cases),
        failures=str(summary.failed),
        errors=str(summary.errored + summary.not_run),
        skipped=str(summary.skipped),
        time=_seconds(summary.total_duration_ms),
        timestamp=_text(suite.timestamp),
    )
    for case in suite.cases:
        element.append(_case(case, suite, least))
    return element


def _case(case: CaseResult, suite: SuiteResult, least: float) -> ET.Element:
    element = ET.Element(
        "testcase", name=_text(case.id), classname=_text(suite.eval_file), time=_seconds(case.duration_ms)
    )
    if case.location:
        element.set("file", _text(case.location.file))
        element.set("line", str(case.location.line))
    if case.graded and case.status.judged:
        ET.SubElement(ET.SubElement(element, "properties"), "property", name="score", value=f"{case.score:.6g}")
    # a case that was not run is an error here: JUnit has no word for it, and it must not look fine
    tag = {Status.FAILED: "failure", Status.ERROR: "error", Status.NOT_RUN: "error", Status.SKIPPED: "skipped"}
    if case.status in tag:
        said = _text(_why(case, least))
        ET.SubElement(
            element, tag[case.status], message=one_line(said, MAX_MESSAGE), type=case.status.value
        ).text = said
    if case.details.response:
        ET.SubElement(element, "system-out").text = _text(case.details.response[:MAX_OUTPUT])
    return element


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
