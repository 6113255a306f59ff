"""What changed since the baseline, for the console: blockers first, shared evidence printed once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from eval_gate.gate.failure_causes import drop_error_prefix
from eval_gate.model.execution import CaseDetails, Status
from eval_gate.model.result import CaseResult
from eval_gate.reports.console.style import MAX_ID, ConsoleStyle
from eval_gate.reports.view.groups import Cause
from eval_gate.reports.view.report_view import ReportView
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.wording.metrics import MAX_METRIC_NAME
from eval_gate.reports.wording.numbers import format_count
from eval_gate.reports.wording.waivers import WaiverText
from eval_gate.text.escape import format_first_few, to_console_line, truncate_text

MAX_ROWS: Final = 30
MAX_COMPARED_CASES: Final = 10
"""Regressions whose two responses are shown."""
MAX_CAUSES: Final = 10
MAX_EVIDENCE: Final = 300
MAX_FAILURE: Final = 200
MAX_TERMS: Final = 500
MAX_NAMED_CALLS: Final = 5
MAX_BEHAVIOUR_NAMES: Final = 5
"""Cases that behave differently, or have one change of behaviour, that are named."""
_MAX_SHOWN_CHECKS: Final = 2
"""Checks above which the failure is shown instead of the expectation."""
_CONTEXT_CHARACTERS: Final = 12
"""Characters that remain of a common start of two responses."""
_INDENT: Final = " " * 4
_LABEL_WIDTH: Final = len("baseline") + 2


def render_changes(view: ReportView, style: ConsoleStyle) -> Iterator[str]:
    """Render a block of lines for each non-empty list of cases, with an empty line after each block."""
    yield from _render_regressions(view, style)
    yield from _render_group(style, "red", "MUST PASS", view.must_pass)
    yield from _render_group(style, "yellow", "INCONCLUSIVE, RE-RUNS MISSING", view.unconfirmed)
    if view.suite_drop:
        yield from style.wrap_text(view.suite_drop, begin="SUITE TEST: ", colour="yellow")
        yield ""
    yield from _render_group(
        style, "yellow", "NOT CAUSED BY THIS CHANGE, FAILS WITH THE BASE AGENT TOO", view.base_agent_failures
    )
    yield from _render_group(style, "yellow", "NOT CAUSED BY THIS CHANGE, BROKEN ON THE BASE", view.broken_on_main)
    yield from _render_waivers(view, style)
    for group in view.errors_by_kind:
        title = f"{group.title_for_many.upper()} ({len(group.rows)})"
        yield from style.wrap_text(f"{title}: {group.explanation}", colour="yellow")
        yield from _render_causes(group.causes, view.summary.total_cases, style)
        yield ""
    yield from _render_group(style, "yellow", f"SCORE DROPS OVER {view.score_tolerance}", view.score_drops)
    if any(row.evidence for row in view.new_passes):
        yield from _render_group(style, "green", "NEW PASSES", view.new_passes)
    else:
        yield from _render_names(style, "green", "NEW PASSES", view.new_passes, scores=True)
    if view.new_case_summary:
        colour = "yellow" if view.new_and_flaky else None
        yield from style.wrap_text(view.new_case_summary, begin="NEW AND CHANGED CASES: ", colour=colour)
        yield ""
    yield from _render_group(style, "yellow", "NEW OR CHANGED AND FLAKY", view.new_and_flaky)
    yield from _render_group(
        style, None, "INCONCLUSIVE OR FLAKY", view.inconclusive_or_flaky if view.uses_history else ()
    )
    yield from _render_behaviour(view, style)
    yield from _render_metrics(view, style)
    others = (
        ("FLAKY", () if view.uses_history else view.flaky),
        ("INCOMPARABLE", view.incomparable),
        ("NO SCORE IN EITHER RUN", view.still_errored),
        ("ADDED", view.added if style.verbose else ()),
        ("REMOVED", view.removed),
    )
    for name, rows in others:
        yield from _render_names(style, None, name, rows, scores=True)


def _render_regressions(view: ReportView, style: ConsoleStyle) -> Iterator[str]:
    """Render the title lines with the ids of all regressions, then the evidence and the responses.

    The title lines follow the contract. Cases that share evidence, expectation and responses are shown together
    once.
    """
    rows = view.regressions_and_suspects
    if not rows:
        return
    if view.regressions:
        yield from _render_title(style, "red", "REGRESSIONS", view.regressions)
    if view.suspected:
        yield from _render_title(style, "red", "SUSPECTED REGRESSIONS, NOT RE-RUN", view.suspected)
    if view.has_only_agent_errors:
        yield from _render_causes(view.causes, view.summary.total_cases, style)
    evidence = {_format_evidence(row, style) for row in rows}
    shared = len(evidence) == 1
    if shared:
        each = "" if len(rows) == 1 else "each " if rows[0].evidence else "each: "
        yield from style.wrap_text(f"{each}{_format_evidence(rows[0], style)}", begin="  ")
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for row in rows[:MAX_COMPARED_CASES]:
        text = "" if shared else _format_evidence(row, style)
        groups[text, *_render_responses(row, style)].append(_format_label(row))
    for (seen, *both), labels in groups.items():
        if len(groups) > 1:
            yield from style.wrap_text(f"{', '.join(labels)}{f': {seen}' if seen else ''}", begin="  ", indent=" " * 4)
        yield from both
    if len(rows) > MAX_COMPARED_CASES:
        yield f"  … and {len(rows) - MAX_COMPARED_CASES} more"
    yield ""


def _render_responses(row: CaseRow, style: ConsoleStyle) -> Iterator[str]:
    """Render one line each for the expectation, the baseline's response and the current response.

    A line is omitted if its text is unknown. Equal responses share a line.
    """
    then, now = _format_responses(row)
    both = (("both", now),) if then == now else (("baseline", then), ("this run", now))
    for label, words in (_format_expectation(row), *both):
        if words:
            begin = f"{_INDENT}{label:<{_LABEL_WIDTH}}"
            yield begin + style.cut_text(words, max(style.width - len(begin), 1))


def _format_expectation(row: CaseRow) -> tuple[str, str]:
    """Return the label and text of what the case expects, if it has few checks, else of what failed.

    The text of a failure is empty for a case without a score, because its error is shown as the response.
    """
    checks = row.case.text.expectation if row.case and row.case.text else ()
    if 0 < len(checks) <= _MAX_SHOWN_CHECKS:
        return "expected", to_console_line("; ".join(checks))
    return "failed", to_console_line(row.failure_summary or "") if row.is_scored else ""


def _format_responses(row: CaseRow) -> tuple[str, str]:
    """Format the responses of the baseline and of this run, with tool calls only if they differ.

    Long responses begin shortly before their first difference. Without a baseline, the first text is empty.
    """
    before, case = row.case_change.baseline_result if row.case_change else None, row.case
    if case is None:
        return "", ""
    if before is None:
        return "", _format_response(
            case.details, _get_error(case), _get_response_text(case.details), calls=bool(case.details.tools_called)
        )
    calls = before.details.tools_called != case.details.tools_called
    earlier, here = _strip_common_start(_get_response_text(before.details), _get_response_text(case.details))
    said = before.error or "" if before.status is Status.ERROR else ""
    return _format_response(before.details, said, earlier, calls=calls), _format_response(
        case.details, _get_error(case), here, calls=calls
    )


def _get_error(case: CaseResult) -> str:
    return case.error or "" if case.status is Status.ERROR else ""


def _format_response(details: CaseDetails, broken: str, response: str, *, calls: bool) -> str:
    """Format a response with its tool calls: `called escalate · "I am sorry"`.

    Return the error if `broken` is not empty.
    """
    if broken:
        return to_console_line(broken)
    said = [_format_tool_calls(details.tools_called)] if calls else []
    if details.response is not None and not response:
        return " · ".join([*said, "empty response"])
    return " · ".join([*said, *([f'"{response}"'] if response else [])])


def _format_tool_calls(names: tuple[str, ...]) -> str:
    return f"called {format_first_few(names, MAX_NAMED_CALLS, lambda name: to_console_line(name, 60)) or 'nothing'}"


def _get_response_text(details: CaseDetails) -> str:
    return to_console_line(details.response or "")


def _strip_common_start(one: str, other: str) -> tuple[str, str]:
    """Remove most of the common start of two texts if it is long enough to hide the difference."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    if same <= 2 * _CONTEXT_CHARACTERS or not one or not other or one == other:
        return one, other
    return f"…{one[same - _CONTEXT_CHARACTERS :]}", f"…{other[same - _CONTEXT_CHARACTERS :]}"


def _render_waivers(view: ReportView, style: ConsoleStyle) -> Iterator[str]:
    """Render the waived and quarantined cases, and the new and proposed waivers, with their terms."""
    said = dict[WaiverText, str]()
    if view.waived:
        yield from style.wrap_text(f"WAIVED OR QUARANTINED ({len(view.waived)})", colour="yellow")
        for row in view.waived[:MAX_ROWS]:
            yield from _render_waiver(
                style,
                row.label,
                row.waiver,
                _format_seen(row, style),
            )
            if row.waiver:
                said.setdefault(row.waiver, _format_label(row))
        yield from _render_omitted_count(view.waived)
        yield ""
    for name, entries in (
        ("NEW WAIVERS IN THIS PULL REQUEST", view.waivers.added),
        ("PROPOSED WAIVERS, NOT COUNTED", view.waivers.proposed),
    ):
        if entries:
            yield from style.wrap_text(f"{name} ({len(entries)})", colour="yellow")
            for entry in entries[:MAX_ROWS]:
                yield from _render_waiver(style, entry.pattern, entry, above=said.get(entry))
            yield ""


def _render_waiver(
    style: ConsoleStyle, name: str, words: WaiverText | None, seen: str = "", *, above: str | None = None
) -> Iterator[str]:
    """Render the terms of a waiver and the evidence of its case.

    With `above`, the line refers to the case that already shows the terms.
    """
    terms = f"see {above} above" if above else to_console_line(words.terms if words else "", MAX_TERMS)
    parts = "; ".join(filter(None, [terms, seen]))
    yield from style.wrap_text(f"{truncate_text(to_console_line(name), MAX_ID)}: {parts}", begin="  ", indent=" " * 4)


def _render_behaviour(view: ReportView, style: ConsoleStyle) -> Iterator[str]:
    """Render the passing cases that behave differently on one line; with verbose output, how they do."""
    found = view.behaviour
    if found is None:
        return
    hint = "" if style.verbose else " (--verbose shows how)"
    names = format_first_few(found.cases, MAX_BEHAVIOUR_NAMES, _format_label)
    yield from style.wrap_text(f"{found.title}{f': {names}' if names else ''}{hint}")
    for row in found.rows[:MAX_ROWS] if style.verbose else ():
        cases = format_first_few(row.cases, MAX_BEHAVIOUR_NAMES, _format_label)
        sides = (to_console_line(side or "–", MAX_FAILURE) for side in (row.baseline, row.current))
        text = f"{cases}: {to_console_line(row.what, MAX_EVIDENCE)}: {' → '.join(sides)}"
        yield from style.wrap_text(text, begin="  ", indent=" " * 4)
    if style.verbose and len(found.rows) > MAX_ROWS:
        yield f"  … and {format_count(len(found.rows) - MAX_ROWS, 'more change')}"
    for words in found.widespread if style.verbose else ():
        yield from style.wrap_text(to_console_line(words, MAX_TERMS), begin="  ", indent=" " * 4)
    yield ""


def _render_metrics(view: ReportView, style: ConsoleStyle) -> Iterator[str]:
    """Render a line if an evaluator or tag changed; with verbose output, a line for each of them and what marks say."""
    found = view.metrics
    if found is None or not (found.found.changed or style.verbose):
        return
    hint = "" if style.verbose else " (--verbose shows them)"
    yield from style.wrap_text(f"{found.title}{hint}")
    for row in found.select_rows(MAX_ROWS) if style.verbose else ():
        parts = (row.direction.upper(), "tag" if row.is_tag else "", to_console_line(row.name, MAX_METRIC_NAME))
        name = " ".join(filter(None, parts))
        text = (
            f"{name}: score {row.scores}, pass rate {row.pass_rates}, difference {row.difference} "
            f"in {format_count(row.cases, 'case')}"
        )
        yield from style.wrap_text(text, begin="  ", indent=" " * 4)
    if style.verbose:
        if left_out := found.found.tested - len(found.select_rows(MAX_ROWS)):
            yield f"  … and {format_count(left_out, 'more row')}"
        yield from style.wrap_text(found.plain_note, begin="  ", indent=" " * 4)
    yield ""


def _render_group(style: ConsoleStyle, colour: str | None, name: str, rows: Sequence[CaseRow]) -> Iterator[str]:
    """Render the number of cases, and the evidence of each, once for all that share it."""
    if not rows:
        return
    yield from style.wrap_text(f"{name} ({len(rows)})", colour=colour)
    groups: dict[str, list[str]] = defaultdict(list)
    for row in rows[:MAX_ROWS]:
        groups[_format_evidence(row, style)].append(_format_label(row))
    for seen, labels in groups.items():
        yield from style.wrap_text(f"{', '.join(labels)}: {seen}", begin="  ", indent=" " * 4)
    yield from _render_omitted_count(rows)
    yield ""


def _render_names(
    style: ConsoleStyle, colour: str | None, name: str, rows: Sequence[CaseRow], *, scores: bool = False
) -> Iterator[str]:
    if rows:
        yield from _render_title(style, colour, name, rows, scores=scores)
        yield ""


def _render_title(
    style: ConsoleStyle, colour: str | None, name: str, rows: Sequence[CaseRow], *, scores: bool = False
) -> Iterator[str]:
    """Render `REGRESSIONS (2): a, b`, with the scores of graded cases if nothing else follows."""
    shown = [f"{to_console_line(row.label)} {(scores and row.scores) or ''}".rstrip() for row in rows[:MAX_ROWS]]
    more = f" … and {len(rows) - MAX_ROWS} more" if len(rows) > MAX_ROWS else ""
    yield from style.wrap_text(f"{name} ({len(rows)}): {', '.join(shown)}{more}", colour=colour)


def _render_omitted_count(rows: Sequence[CaseRow]) -> Iterator[str]:
    if len(rows) > MAX_ROWS:
        yield f"  … and {len(rows) - MAX_ROWS} more"


def _format_label(row: CaseRow) -> str:
    return truncate_text(to_console_line(row.label), MAX_ID)


def _render_causes(causes: Sequence[Cause[CaseRow]], total: int, style: ConsoleStyle) -> Iterator[str]:
    """Render one line for each cause of failures: its text, its number of all `total` cases, and its first cases."""
    for cause in causes[:MAX_CAUSES]:
        names = ", ".join(map(_format_label, cause.examples))
        first = f": {names}" if cause.names_all else f", first {names}, …"
        said = to_console_line(drop_error_prefix(cause.text), MAX_FAILURE)
        text = f"{said} in {cause.count} of {format_count(total, 'case')}{first}"
        yield from style.wrap_text(text, begin="  ", indent=" " * 4)
    if len(causes) > MAX_CAUSES:
        yield f"  … and {format_count(len(causes) - MAX_CAUSES, 'more cause')}"


def _format_seen(row: CaseRow, style: ConsoleStyle) -> str:
    """Format the evidence of a case, with its arithmetic only if the output is verbose."""
    evidence = row.evidence_text if style.verbose else row.evidence_summary
    return to_console_line(evidence or row.evidence_or_results, MAX_EVIDENCE)


def _format_evidence(row: CaseRow, style: ConsoleStyle) -> str:
    """Format the evidence of a case, and its failure unless the list of all cases already shows it."""
    listed = row.case is not None and row.case.error and row.status is not Status.NOT_RUN
    what = None if listed else row.failure_summary
    return "; ".join([_format_seen(row, style), *([to_console_line(what, MAX_FAILURE)] if what else [])])
