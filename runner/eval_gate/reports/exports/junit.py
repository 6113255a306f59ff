"""Export as JUnit XML, where exactly what blocks the gate is a failure or an error.

A case that fails and does not block is skipped, with the reason. Other blocking reasons, such as a limit of cost or an
inconclusive gate, are test cases of a suite of their own.

The reason is in the text, in the `message` and in a property of each element: GitLab and test reporters on GitHub show
the first, Jenkins and Azure the second, and only Jenkins the third.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree as ET

from eval_gate.config.outputs import JunitFailures
from eval_gate.model.comparison import CaseClass, Outcome
from eval_gate.model.conversation import Message
from eval_gate.model.execution import CaseDetails, Status, format_error
from eval_gate.model.result import CaseResult, RunResult, SuiteResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.view.report_view import ReportView, build_view
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.scores import describe_shortfalls
from eval_gate.reports.wording.advice import Advice
from eval_gate.reports.wording.numbers import format_score
from eval_gate.text.escape import shorten_error, to_one_line
from eval_gate.text.safe_output import reveal_invisible
from eval_gate.text.turns import format_transcript

_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_WAIVABLE: Final = frozenset({Status.FAILED, Status.ERROR})
_UNSUCCESSFUL: Final = frozenset({Status.FAILED, Status.ERROR, Status.NOT_RUN})
_RESULT_TAGS: Final = ("failure", "error", "skipped")
GATE_SUITE: Final = "eval-gate"
"""Suite of the blocking reasons that no case stands for."""
MAX_OUTPUT: Final = 20_000
MAX_MESSAGE: Final = 300
"""Characters of the attribute; the element has the whole text."""


def render(run: RunResult, context: ReportContext) -> str:
    """Render a `testsuite` for each eval file and a `testcase` for each case; times are in seconds."""
    view = build_view(run, context)
    suites = [_build_suite(suite, rows, view) for suite, _, rows in view.iter_suites()]
    if view.blockers.other_reasons:
        suites.append(_build_gate_suite(view))
    root = ET.Element("testsuites", name="eval-gate")
    root.extend(suites)
    _set_counts(root, _format_seconds(view.summary.total_duration_ms))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _build_suite(suite: SuiteResult, rows: Sequence[CaseRow], view: ReportView) -> ET.Element:
    element = ET.Element("testsuite", name=_to_xml_text(suite.eval_file or suite.tool_name))
    element.extend(_build_case(case, row, view) for case, row in zip(suite.cases, rows, strict=True))
    # what is reused took no time
    _set_counts(element, _format_seconds(0 if suite.reused else suite.summary.total_duration_ms))
    element.set("timestamp", _to_xml_text(suite.timestamp))
    return element


def _set_counts(element: ET.Element, time: str) -> None:
    """Set the counts of the elements inside."""
    element.set("tests", str(sum(1 for _ in element.iter("testcase"))))
    for result, name in zip(_RESULT_TAGS, ("failures", "errors", "skipped"), strict=True):
        element.set(name, str(sum(1 for _ in element.iter(result))))
    element.set("time", time)


def _build_gate_suite(view: ReportView) -> ET.Element:
    """Build the suite of the gate itself, with a test case for each blocking reason that no case shows."""
    element = ET.Element("testsuite", name=GATE_SUITE)
    tag = "failure" if view.verdict.outcome is Outcome.FAILED else "error"
    for reason in view.blockers.other_reasons:
        case = ET.SubElement(
            element, "testcase", name=_to_xml_text(reason.code), classname=GATE_SUITE, time=_format_seconds(0)
        )
        _add_result(case, tag, reason.message, reason.code, view.advice)
    # what is reused took no time
    _set_counts(element, _format_seconds(0))
    return element


def _build_case(case: CaseResult, row: CaseRow, view: ReportView) -> ET.Element:
    element = ET.Element(
        "testcase",
        name=_to_xml_text(case.id),
        classname=_to_xml_text(row.suite),
        time=_format_seconds(row.execution.duration_ms if row.execution else 0),
    )
    if case.location:
        element.set("file", _to_xml_text(case.location.file))
        element.set("line", str(case.location.line))
    parent = ET.SubElement(element, "properties")
    for name, value in _collect_properties(case, row):
        limit = None if name == "trace" else MAX_MESSAGE
        ET.SubElement(parent, "property", name=name, value=to_one_line(_to_xml_text(value), limit or len(value)))
    waived = row.waiver if case.status in _WAIVABLE else None
    lines = [
        *([waived.terms] if waived else []),
        *_format_change(row),
        _explain_result(case, row, view.verdict.pass_score),
    ]
    if tag := _choose_tag(case, row, view):
        error_type = row.error_kind.value if row.error_kind else case.status.value
        advice = view.advice if row.key in view.blockers.cases and view.advice and view.advice.is_about(case) else None
        _add_result(element, tag, "\n".join([*lines, *_format_both_results(row)]), error_type, advice)
    elif case.status in _UNSUCCESSFUL or case.status is Status.SKIPPED:
        text = "\n".join(lines)
        text = text if waived or case.status is Status.SKIPPED else f"does not block: {text}"
        _add_result(element, "skipped", text, waived.effect if waived else case.status.value)
    if output := _format_output(case.details):
        ET.SubElement(element, "system-out").text = _to_xml_text(output[:MAX_OUTPUT])
    return element


def _format_output(details: CaseDetails) -> str | None:
    """Return the response, or the messages of a conversation that were sent and the responses to them."""
    sent = [turn for turn in details.turns if turn.status is not Status.NOT_RUN]
    messages = [
        Message(role="assistant" if place % 2 else "user", content=text)
        for turn in sent
        for place, text in enumerate((turn.message, turn.response))
        if text is not None
    ]
    return format_transcript(messages) if messages else details.response


def _choose_tag(case: CaseResult, row: CaseRow, view: ReportView) -> str | None:
    """Choose `failure` for a wrong response and `error` for a case without a score; None if it does not block."""
    everything = view.context.junit is JunitFailures.ALL and case.status in _UNSUCCESSFUL and row.waiver is None
    if row.key not in view.blockers.cases and not everything:
        return None
    is_inconclusive = view.is_inconclusive and row.key in view.blockers.cases
    return "error" if is_inconclusive or case.status in {Status.ERROR, Status.NOT_RUN} else "failure"


def _add_result(element: ET.Element, tag: str, message: str, kind: str, advice: Advice | None = None) -> None:
    text = _to_xml_text(message[:MAX_OUTPUT])
    added = ET.SubElement(
        element, tag, message=shorten_error(text.replace("\n", "; "), MAX_MESSAGE), type=_to_xml_text(kind)
    )
    added.text = f"{text}\nnext step: {_to_xml_text(advice.next_step)}" if advice else text


def _collect_properties(case: CaseResult, row: CaseRow) -> list[tuple[str, str]]:
    """Collect further facts about a case, under stable names and without empty values."""
    scored = f"{case.score:.6g}" if case.graded and case.status.is_scored else None
    reason = row.evidence_text or row.reason or row.failure_summary
    facts = {
        "suite": row.suite,
        "change": row.change_text,
        "reason": reason,
        "history": row.history_text,
        "score": scored,
        "baseline": row.baseline_result,
        "current": row.current_result,
        "waived": row.waiver.terms if row.waiver else None,
        "trace": case.details.trace_url or case.details.trace,
    }
    return [(name, value) for name, value in facts.items() if value]


def _format_change(row: CaseRow) -> list[str]:
    """`regression: failed 4 of 4 here, 1 of 20 on main`; `still failing` if only two runs were compared."""
    words = ": ".join(filter(None, [row.change_text, row.evidence_text if row.evidence else ""]))
    compared = row.change_class is not None and row.change_class not in {CaseClass.NOT_RUN, CaseClass.ERRORED}
    return [words] if words and (compared or row.evidence) else []


def _format_both_results(row: CaseRow) -> list[str]:
    """Format both results as lines, unless the row has evidence from its history, which states both."""
    both = [
        f"{name}: {words}" for name, words in (("baseline", row.baseline_result), ("here", row.current_result)) if words
    ]
    return both if row.baseline_result and not row.evidence else []


def _explain_result(case: CaseResult, row: CaseRow, least: float) -> str:
    """Explain the result of a case; a graded one gives its score and each evaluator that took points off."""
    word = case.status.value.replace("_", " ")
    if not case.status.is_scored:
        error = row.expand_turn(format_error(case.error, case.error_hint))
        return f"{word}: {error}" if error and case.status is not Status.ERROR else error or word
    error = row.expand_turn(case.error or row.failure_summary or word)
    if not case.graded:
        return error
    return "\n".join((f"score {format_score(case.score, least)}", *(describe_shortfalls(case) or (error,))))


def _format_seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.3f}"


def _to_xml_text(text: str) -> str:
    """Replace characters that XML does not allow, and mark those that hide or reverse others."""
    return _NOT_XML.sub("\ufffd", reveal_invisible(text.replace("\r\n", "\n")))
