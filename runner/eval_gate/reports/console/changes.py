"""What changed since the baseline, for the console: blockers first, each case named once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eval_gate.model.execution import Status
from eval_gate.reports.console.case_list import (
    MAX_EVIDENCE,
    MAX_NAMES,
    format_evidence,
    format_label,
    format_names,
    render_case_list,
    render_name_list,
    render_omitted,
)
from eval_gate.reports.console.style import MAX_ID, ConsoleStyle
from eval_gate.reports.view.report_view import ReportView
from eval_gate.reports.wording.metrics import MAX_METRIC_NAME
from eval_gate.reports.wording.waivers import WaiverText
from eval_gate.text.escape import format_count, to_console_line, truncate_text

MAX_VALUE: Final = 200
MAX_TERMS: Final = 500
MAX_BEHAVIOUR_NAMES: Final = 5
"""Cases that behave differently, or have one change of behaviour, that are named."""


def render_changes(view: ReportView, style: ConsoleStyle) -> Iterator[str]:
    """Render a block of lines for each non-empty list of cases, with an empty line after each block."""
    yield from _render_failures(view, style)
    yield from _render_waivers(view, style)
    for group in view.errors_by_kind:
        yield from render_case_list(
            group.title_for_many.upper(), group.rows, style, "yellow", explanation=group.explanation
        )
    yield from render_case_list(f"SCORE DROPS OVER {view.score_tolerance}", view.score_drops, style, "yellow")
    render_passes = render_case_list if any(row.evidence for row in view.new_passes) else render_name_list
    yield from render_passes("NEW PASSES", view.new_passes, style, "green")
    if view.new_case_summary:
        colour = "yellow" if view.new_and_flaky else None
        yield from style.wrap_text(view.new_case_summary, begin="NEW AND CHANGED CASES: ", colour=colour)
        yield ""
    yield from render_case_list("NEW OR CHANGED AND FLAKY", view.new_and_flaky, style, "yellow")
    if view.uses_history:
        yield from render_case_list("INCONCLUSIVE OR FLAKY", view.inconclusive_or_flaky, style)
    else:
        yield from render_case_list("FLAKY", view.flaky, style)
    yield from _render_behaviour(view, style)
    yield from _render_metrics(view, style)
    yield from render_case_list("SKIPPED", view.skipped, style, explanation="they do not count")
    others = {
        "STILL FAILING": tuple(row for row in view.known_failing if row.key not in view.blockers.cases),
        "INCOMPARABLE": view.incomparable,
        "NO SCORE IN EITHER RUN": view.still_errored,
        "NOT RUN": tuple(row for row in view.notable if row.status is Status.NOT_RUN),
        "ADDED": view.added if style.verbose else (),
        "REMOVED": view.removed,
    }
    for title, rows in others.items():
        yield from render_name_list(title, rows, style)


def _render_failures(view: ReportView, style: ConsoleStyle) -> Iterator[str]:
    """Render the failures: regressions first, then others that block, then those that this change did not cause."""
    with_responses = {
        "REGRESSIONS": view.regressions,
        "SUSPECTED REGRESSIONS, NOT RE-RUN": view.suspected,
        "FAILED" if view.comparison is None else "FAILED, NOT COMPARABLE": view.failing,
        "STILL FAILING": tuple(row for row in view.known_failing if row.key in view.blockers.cases),
    }
    for title, rows in with_responses.items():
        yield from render_case_list(title, rows, style, "red", responses=True)
    yield from render_case_list("MUST PASS", view.must_pass, style, "red")
    if view.suite_drop:
        yield from style.wrap_text(view.suite_drop, begin="SUITE TEST: ", colour="yellow")
        yield ""
    others = {
        f"INCONCLUSIVE, {view.missing_reruns_title.upper()}": view.unconfirmed,
        "NOT CAUSED BY THIS CHANGE, FAILS WITH THE BASE AGENT TOO": view.base_agent_failures,
        "NOT CAUSED BY THIS CHANGE, BROKEN ON THE BASE": view.broken_on_main,
    }
    for title, rows in others.items():
        yield from render_case_list(title, rows, style, "yellow")


def _render_waivers(view: ReportView, style: ConsoleStyle) -> Iterator[str]:
    """Render the waived and quarantined cases, and the new and proposed waivers, with their terms."""
    said = dict[WaiverText, str]()
    if view.waived:
        yield from style.wrap_text(f"WAIVED OR QUARANTINED ({len(view.waived)})", colour="yellow")
        for row in view.waived[:MAX_NAMES]:
            yield from _render_waiver(
                style,
                row.label,
                row.waiver,
                format_evidence(row, style),
            )
            if row.waiver:
                said.setdefault(row.waiver, format_label(row))
        yield from render_omitted(len(view.waived) - MAX_NAMES)
        yield ""
    for name, entries in (
        ("NEW WAIVERS IN THIS PULL REQUEST", view.waivers.added),
        ("PROPOSED WAIVERS, NOT COUNTED", view.waivers.proposed),
    ):
        if entries:
            yield from style.wrap_text(f"{name} ({len(entries)})", colour="yellow")
            for entry in entries[:MAX_NAMES]:
                yield from _render_waiver(style, entry.pattern, entry, above=said.get(entry))
            yield ""


def _render_waiver(
    style: ConsoleStyle, name: str, words: WaiverText | None, seen: str = "", *, above: str | None = None
) -> Iterator[str]:
    """Render the terms of a waiver, or which case `above` already shows them, and the evidence of its case."""
    terms = f"see {above} above" if above else to_console_line(words.terms if words else "", MAX_TERMS)
    parts = "; ".join(filter(None, [terms, seen]))
    yield from style.wrap_text(f"{truncate_text(to_console_line(name), MAX_ID)}: {parts}", begin="  ", indent=" " * 4)


def _render_behaviour(view: ReportView, style: ConsoleStyle) -> Iterator[str]:
    """Render the passing cases that behave differently on one line; with verbose output, how they do."""
    found = view.behaviour
    if found is None:
        return
    hint = "" if style.verbose else " (--verbose shows how)"
    names = format_names(found.cases, MAX_BEHAVIOUR_NAMES)
    yield from style.wrap_text(f"{found.title}{f': {names}' if names else ''}{hint}")
    for row in found.rows[:MAX_NAMES] if style.verbose else ():
        cases = format_names(row.cases, MAX_BEHAVIOUR_NAMES)
        sides = (to_console_line(side or "–", MAX_VALUE) for side in (row.baseline, row.current))
        text = f"{cases}: {to_console_line(row.what, MAX_EVIDENCE)}: {' → '.join(sides)}"
        yield from style.wrap_text(text, begin="  ", indent=" " * 4)
    yield from render_omitted(len(found.rows) - MAX_NAMES if style.verbose else 0, "more change")
    yield ""


def _render_metrics(view: ReportView, style: ConsoleStyle) -> Iterator[str]:
    """Render a line if an evaluator or tag changed; with verbose output, a line for each of them and what marks say."""
    found = view.metrics
    if found is None or not (found.found.changed or style.verbose):
        return
    hint = "" if style.verbose else " (--verbose shows them)"
    yield from style.wrap_text(f"{found.title}{hint}")
    for row in found.select_rows(MAX_NAMES) if style.verbose else ():
        parts = (row.direction.upper(), "tag" if row.is_tag else "", to_console_line(row.name, MAX_METRIC_NAME))
        name = " ".join(filter(None, parts))
        text = (
            f"{name}: score {row.scores}, pass rate {row.pass_rates}, difference {row.difference} "
            f"in {format_count(row.cases, 'case')}"
        )
        yield from style.wrap_text(text, begin="  ", indent=" " * 4)
    if style.verbose:
        yield from render_omitted(found.found.tested - len(found.select_rows(MAX_NAMES)), "more row")
        yield from style.wrap_text(found.plain_note, begin="  ", indent=" " * 4)
    yield ""
