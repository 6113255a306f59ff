"""Lists of cases on the console, grouped by cause, with the responses of one case of each cause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final

from eval_gate.gate.failure_causes import drop_error_prefix
from eval_gate.model.execution import NO_DETAILS, CaseDetails, Status
from eval_gate.reports.console.style import MAX_ID, ConsoleStyle
from eval_gate.reports.view.groups import Cause, group_causes
from eval_gate.reports.view.rows import CaseRow
from eval_gate.results.turn_details import select_turn, slice_turn
from eval_gate.text.escape import format_count, format_first_few, shorten_error, to_console_line, truncate_text

MAX_NAMES: Final = 30
"""Cases that a line names."""
MAX_CAUSES: Final = 10
"""Causes of a list, and different failures of a cause."""
MAX_EVIDENCE: Final = 300
MAX_FAILURE: Final = 500
MAX_NAMED_CALLS: Final = 5
_CONTEXT_CHARACTERS: Final = 12
"""Characters that remain of a common start of two responses."""
_NOTHING_MORE: Final = frozenset({"fail", "–"})
"""Evidence that adds nothing to the title of a list."""


def render_case_list(
    title: str,
    rows: Sequence[CaseRow],
    style: ConsoleStyle,
    colour: str | None = None,
    *,
    explanation: str | None = None,
    responses: bool = False,
) -> Iterator[str]:
    """Render a list of cases by cause, and an empty line after it; nothing if there are no cases.

    An `explanation` of all cases replaces the evidence of each. With `responses`, those of the first case of each cause
    follow, and the names of cases with the same failure follow the title, as in the contract: `REGRESSIONS (2): a, b`.
    """
    if not rows:
        return
    evidence = {row: format_evidence(row, style) if explanation is None else "" for row in rows}
    shared = evidence[rows[0]] if len(set(evidence.values())) == 1 else ""
    alone = responses and len({(evidence[row], _format_failure(row)) for row in rows}) == 1
    behind = format_names(rows) if alone else explanation
    yield from style.wrap_text(f"{title} ({len(rows)}){f': {behind}' if behind else ''}", colour=colour)
    if shared and (alone or len(rows) > 1):
        each = "" if len(rows) == 1 else "each " if rows[0].evidence else "each: "
        yield from style.wrap_text(f"{each}{shared}", begin="  ")
        evidence = dict.fromkeys(rows, "")
    causes = group_causes((row, row.cause) for row in rows)
    for cause in causes[:MAX_CAUSES]:
        if not alone:
            yield from _render_cause(cause, evidence, style)
        elif failure := _format_failure(rows[0]):
            yield from style.wrap_text(failure, begin="    failed    ", indent=" " * 14)
        yield from _render_first_case(cause.cases, style, responses=responses)
    yield from _render_rest([row for cause in causes[MAX_CAUSES:] for row in cause.cases], style)
    yield ""


def render_name_list(
    title: str, rows: Sequence[CaseRow], style: ConsoleStyle, colour: str | None = None
) -> Iterator[str]:
    """Render `NEW PASSES (2): a, b 0.67 → 1.00`, and an empty line after it; nothing if there are no cases."""
    if rows:
        yield from style.wrap_text(f"{title} ({len(rows)}): {format_names(rows, scores=True)}", colour=colour)
        yield ""


def render_omitted(number: int, what: str = "more") -> Iterator[str]:
    """Render how many were left out, if any were."""
    if number > 0:
        yield f"  … and {number} {what}" if what == "more" else f"  … and {format_count(number, what)}"


def format_names(rows: Sequence[CaseRow], most: int = MAX_NAMES, *, scores: bool = False) -> str:
    """Format the names of cases, with the scores of graded ones if nothing else shows them."""
    return format_first_few(rows, most, lambda row: f"{format_label(row)} {(scores and row.scores) or ''}".rstrip())


def format_label(row: CaseRow) -> str:
    """Format the name of a case as a part of one line."""
    return truncate_text(to_console_line(row.label), MAX_ID)


def format_evidence(row: CaseRow, style: ConsoleStyle) -> str:
    """Format the evidence of a case, with its arithmetic only if the output is verbose."""
    evidence = (row.evidence_text if style.verbose else row.evidence_summary) or row.evidence_or_results
    return "" if evidence in _NOTHING_MORE else to_console_line(evidence, MAX_EVIDENCE)


def _format_failure(row: CaseRow, *, alone: bool = True) -> str:
    """Format what failed; for a graded case that shares its cause, only the evaluator that cost it most."""
    failure = row.shorten_failure(MAX_FAILURE) if alone else shorten_error("".join(row.failures[:1]), MAX_FAILURE)
    return to_console_line(drop_error_prefix(failure or ""), MAX_FAILURE)


def _render_cause(cause: Cause[CaseRow], evidence: Mapping[CaseRow, str], style: ConsoleStyle) -> Iterator[str]:
    """Render `a: failure` for one case; for several the cause, then the cases by their own failures and evidence."""
    failures = {row: _format_failure(row, alone=cause.count == 1) for row in cause.cases}
    heading, margin, lines = "", "  ", defaultdict[str, list[CaseRow]](list)
    if cause.count > 1:
        same = len(set(failures.values())) == 1
        heading = (
            failures[cause.cases[0]]
            if same
            else to_console_line(shorten_error(drop_error_prefix(cause.text), MAX_FAILURE))
        )
    if heading:
        yield from style.wrap_text(f"{cause.count} cases: {heading}", begin=margin, indent=" " * 4)
        margin = " " * 4
    for row, failure in failures.items():
        more = "" if failure == heading else failure.removeprefix(f"{heading}: ")
        lines["; ".join(filter(None, [evidence[row], more]))].append(row)
    groups = [*lines.items()]
    for text, rows in groups[:MAX_CAUSES]:
        line = ": ".join(filter(None, [format_names(rows), text]))
        yield from style.wrap_text(line, begin=margin, indent=f"{margin}  ")
    yield from _render_rest([row for _, rows in groups[MAX_CAUSES:] for row in rows], style, margin)


def _render_rest(rows: Sequence[CaseRow], style: ConsoleStyle, margin: str = "  ") -> Iterator[str]:
    """Render the names of the cases whose failures are too many to be shown."""
    if rows:
        yield from style.wrap_text(format_names(rows), begin=f"{margin}… and ", indent=f"{margin}  ")


def _render_first_case(rows: Sequence[CaseRow], style: ConsoleStyle, *, responses: bool) -> Iterator[str]:
    """Render a line each for the responses of baseline and this run to the first case, and for its trace if it failed.

    Equal responses share a line.
    """
    baseline, current = _format_responses(rows[0])
    sides = (("both", current),) if baseline == current else (("baseline", baseline), ("this run", current))
    sides = (*sides, ("user", (rows[0].user_change or "").removeprefix("the simulated user ")))
    margin = "    first:  " if len(rows) > 1 else " " * 4
    for label, words in sides:
        if words and responses:
            begin = f"{margin}{label:<10}"
            yield begin + style.cut_text(words, max(style.width - len(begin), 1))
            margin = " " * len(margin)
    for one in rows[0].traces[:1] if rows[0].failures else ():
        yield f"{margin}{'trace':<10}{to_console_line(one.url or one.trace)}"


def _format_responses(row: CaseRow) -> tuple[str, str]:
    """Format both responses from shortly before their first difference, with tool calls only if these differ."""
    baseline, case = row.case_change.baseline_result if row.case_change else None, row.case
    if case is None:
        return "", ""
    baseline_details, current_details = baseline.details if baseline is not None else NO_DETAILS, case.details
    if turn := select_turn(case, baseline):
        baseline_details, current_details = (slice_turn(one, turn) for one in (baseline_details, current_details))
    calls = baseline_details.tools_called != current_details.tools_called
    earlier, current = (to_console_line(details.response or "") for details in (baseline_details, current_details))
    earlier, current = _strip_common_start(earlier, current)
    place = f"turn {turn}: " if turn and not case.failed_turn else ""  # the failure names the turn that failed
    current_text = place + _format_response(current_details, current, calls=calls) if row.is_scored else ""
    if baseline is None or baseline.status is Status.ERROR:
        return to_console_line((baseline and baseline.error) or ""), current_text
    return place + _format_response(baseline_details, earlier, calls=calls), current_text


def _format_response(details: CaseDetails, response: str, *, calls: bool) -> str:
    """Format a response with its tool calls: `called escalate · "I am sorry"`."""
    names = format_first_few(details.tools_called, MAX_NAMED_CALLS, lambda name: to_console_line(name, 60))
    parts = [f"called {names or 'nothing'}"] if calls else []
    if details.response is not None and not response:
        return " · ".join([*parts, "empty response"])
    return " · ".join([*parts, *([f'"{response}"'] if response else [])])


def _strip_common_start(one: str, other: str) -> tuple[str, str]:
    """Remove most of the common start of two texts if it is long enough to hide the difference."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    if same <= 2 * _CONTEXT_CHARACTERS or not one or not other or one == other:
        return one, other
    return f"…{one[same - _CONTEXT_CHARACTERS :]}", f"…{other[same - _CONTEXT_CHARACTERS :]}"
