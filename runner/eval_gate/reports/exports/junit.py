"""JUnit XML, as CI systems read it: a failure or an error is what keeps the gate from passing, and nothing else is.

So that a red file and a red gate are the same. A case that fails and does not block is skipped, with the reason. What
blocks and is no case, a limit of cost or a gate that could not decide, is a test case of the gate's own.

Readers differ in what they show: GitLab and test reporters on GitHub take the text of an element, Jenkins and Azure its
`message`, only Jenkins properties. So each of them holds the reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree as ET

from eval_gate.config.outputs import JunitFailures
from eval_gate.model.comparison import CaseClass, Outcome
from eval_gate.model.execution import Status
from eval_gate.model.result import CaseResult, RunResult, SuiteResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.scores import shortfalls
from eval_gate.reports.view.view import View, view_of
from eval_gate.reports.words.numbers import score
from eval_gate.reports.words.verdict import message as reason_words
from eval_gate.text.escape import one_line
from eval_gate.text.inert import visible_text

_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_WAIVABLE: Final = frozenset({Status.FAILED, Status.ERROR})
_BROKEN: Final = frozenset({Status.FAILED, Status.ERROR, Status.NOT_RUN})
_RESULTS: Final = ("failure", "error", "skipped")
GATE: Final = "eval-gate"
"""The suite of what blocks and is no case."""
MAX_OUTPUT: Final = 20_000
MAX_MESSAGE: Final = 300
"""Characters of the attribute; the element holds all of it."""


def render(run: RunResult, context: ReportContext) -> str:
    """One `testsuite` per eval file, one `testcase` per case; times in seconds."""
    view = view_of(run, context)
    suites = [_suite(suite, rows, view) for suite, _, rows in view.by_suite()]
    if view.blocking.apart:
        suites.append(_gate(view))
    root = ET.Element("testsuites", name="eval-gate")
    root.extend(suites)
    _count(root, _seconds(view.summary.total_duration_ms))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(suite: SuiteResult, rows: Sequence[CaseRow], view: View) -> ET.Element:
    element = ET.Element("testsuite", name=_text(suite.eval_file or suite.tool_name))
    element.extend(_case(case, row, view) for case, row in zip(suite.cases, rows, strict=True))
    _count(element, _seconds(suite.summary.total_duration_ms))
    element.set("timestamp", _text(suite.timestamp))
    return element


def _count(element: ET.Element, time: str) -> None:
    """How many of each there are, as the elements inside have it."""
    element.set("tests", str(sum(1 for _ in element.iter("testcase"))))
    for result, name in zip(_RESULTS, ("failures", "errors", "skipped"), strict=True):
        element.set(name, str(sum(1 for _ in element.iter(result))))
    element.set("time", time)


def _gate(view: View) -> ET.Element:
    """What blocks although no case of the run says so."""
    element = ET.Element("testsuite", name=GATE)
    tag = "failure" if view.verdict.outcome is Outcome.FAIL else "error"
    for reason in view.blocking.apart:
        case = ET.SubElement(element, "testcase", name=_text(reason.code), classname=GATE, time=_seconds(0))
        _result(case, tag, reason_words(view.run, reason), reason.code)
    _count(element, _seconds(0))
    return element


def _case(case: CaseResult, row: CaseRow, view: View) -> ET.Element:
    element = ET.Element("testcase", name=_text(case.id), classname=_text(row.suite), time=_seconds(case.duration_ms))
    if case.location:
        element.set("file", _text(case.location.file))
        element.set("line", str(case.location.line))
    parent = ET.SubElement(element, "properties")
    for name, value in _properties(case, row):
        ET.SubElement(parent, "property", name=name, value=one_line(_text(value), MAX_MESSAGE))
    waived = row.waived if case.status in _WAIVABLE else None
    said = [*([waived.terms] if waived else []), *_became(row), _why(case, row, view.verdict.pass_score)]
    if tag := _tag(case, row, view):
        blamed = row.blame.value if row.blame else case.status.value
        _result(element, tag, "\n".join([*said, *_record(row)]), blamed)
    elif waived is not None:
        _result(element, "skipped", "\n".join(said), waived.done)
    elif case.status is Status.SKIPPED:
        _result(element, "skipped", "\n".join(said), case.status.value)
    elif case.status in _BROKEN:
        first, *others = said
        _result(element, "skipped", "\n".join([f"does not block: {first}", *others]), case.status.value)
    if case.details.response:
        ET.SubElement(element, "system-out").text = _text(case.details.response[:MAX_OUTPUT])
    return element


def _tag(case: CaseResult, row: CaseRow, view: View) -> str | None:
    """`failure` of what was answered wrong, `error` of what could not be judged; None of what does not block."""
    everything = view.context.junit is JunitFailures.ALL and case.status in _BROKEN and row.waived is None
    if row.key not in view.blocking.cases and not everything:
        return None
    undecided = view.undecided and row.key in view.blocking.cases
    return "error" if undecided or case.status in {Status.ERROR, Status.NOT_RUN} else "failure"


def _result(element: ET.Element, tag: str, said: str, kind: str) -> None:
    text = _text(said[:MAX_OUTPUT])
    ET.SubElement(element, tag, message=one_line(text.replace("\n", "; "), MAX_MESSAGE), type=_text(kind)).text = text


def _properties(case: CaseResult, row: CaseRow) -> list[tuple[str, str]]:
    """What is known of the case beside its result, each under a name that stays."""
    scored = f"{case.score:.6g}" if case.graded and case.status.judged else None
    reason = row.why_words or row.reason or row.what
    found = {
        "suite": row.suite,
        "change": row.change_words,
        "reason": reason,
        "record": row.record,
        "score": scored,
        "baseline": row.then,
        "here": row.here,
        "waived": row.waived.terms if row.waived else None,
    }
    return [(name, value) for name, value in found.items() if value]


def _became(row: CaseRow) -> list[str]:
    """`regression: failed 4 of 4 here, 1 of 20 on main`; `still failing` where only the two runs were looked at."""
    words = ": ".join(filter(None, [row.change_words, row.why_words if row.evidence else ""]))
    compared = row.change is not None and row.change not in {CaseClass.NOT_RUN, CaseClass.ERRORED}
    return [words] if words and (compared or row.evidence) else []


def _record(row: CaseRow) -> list[str]:
    """What the other lines do not say."""
    both = [f"{name}: {words}" for name, words in (("baseline", row.then), ("here", row.here)) if words]
    return both if row.then and not row.evidence else []


def _why(case: CaseResult, row: CaseRow, least: float) -> str:
    """What the case itself says; of a graded one `score 0.67`, then an evaluator a line."""
    word = case.status.value.replace("_", " ")
    if not case.status.judged:
        return f"{word}: {case.error}" if case.error and case.status is not Status.ERROR else case.error or word
    error = case.error or row.what or word
    if not case.graded:
        return error
    return "\n".join((f"score {score(case.score, least)}", *(shortfalls(case) or (error,))))


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.3f}"


def _text(text: str) -> str:
    """Only characters that XML knows, and those that hide or turn others as marks."""
    return _NOT_XML.sub("\ufffd", visible_text(text.replace("\r\n", "\n")))
