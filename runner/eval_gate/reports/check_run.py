"""Texts of the check run on GitHub: title, summary and page."""

from __future__ import annotations

from typing import Final

from eval_gate.model.comparison import Outcome
from eval_gate.reports.markdown import render_summary
from eval_gate.reports.markdown_fragments import format_links, format_prose, format_provenance, format_setup_changes
from eval_gate.reports.view.report_view import ReportView
from eval_gate.reports.wording.numbers import format_pass_counts
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import escape_markdown, format_count, to_one_line, truncate_text
from eval_gate.text.quoting import capitalize_first

MAX_TITLE: Final = 80
MAX_PAGE: Final = 60_000
"""Characters of the page; GitHub takes 65,535."""


class CheckText(FrozenStruct):
    """Title, summary and page of a check run; summary and page are Markdown."""

    title: str
    summary: str
    page: str


def render_check_run(view: ReportView) -> CheckText:
    """Render title, summary and page, the summary without folds and alerts, which are not displayed everywhere."""
    lead = f"**{view.lead}** " if view.lead else ""
    measured = [format_setup_changes(view.setup_changes)] if view.setup_changes else []
    why = lead + escape_markdown(view.opening, 600)
    advice = [f"**Next step:** {format_prose(view.advice.next_step, 600)}"] if view.advice else []
    links = [words] if (words := format_links(view)) else []
    reuse = view.reuse if view.run.reused_suites else None
    sentences = (view.outside_cause, view.bad_day, view.false_alarms, reuse)
    notes = [format_prose(words, 600) for words in sentences if words]
    parts = [why, *advice, *measured, *notes, *links, f"{view.counts}.", f"<sub>{format_provenance(view)}</sub>"]
    summary = "\n\n".join(parts)
    return CheckText(format_check_title(view), summary + "\n", render_summary(view, limit=MAX_PAGE))


def format_check_title(view: ReportView) -> str:
    """Summarize the verdict in at most 80 characters.

    Example: `3 regressions, 1 new pass — 111/120 pass (baseline 113)`. A longer title is truncated.
    """
    if view.verdict.outcome is Outcome.INCONCLUSIVE:
        why = view.reasons[0] if view.reasons else "the run did not finish"
        return _truncate_title("No verdict yet" if view.has_no_verdict else f"Inconclusive: {why}")
    new = [format_count(len(view.new_passes), "new pass", "new passes")] if view.new_passes else []
    heading = ", ".join([capitalize_first(view.heading), *new])
    return _truncate_title(f"{heading} — {format_pass_counts(view.pass_counts)}")


def format_cancelled_title(view: ReportView) -> str:
    """Format the check title of a run that was cancelled from outside."""
    total = view.summary.total_cases
    return f"Cancelled at {total - view.summary.not_run}/{total}"


def format_problem_title(message: str, *, usage: bool) -> str:
    """Format the check title of a step that ended before it had a run."""
    return _truncate_title(f"{'Configuration error' if usage else 'Inconclusive'}: {message}")


def _truncate_title(words: str) -> str:
    """Truncate a title between two words, or within a word that takes more than half of it."""
    words = to_one_line(words, 10 * MAX_TITLE)
    start = words[:MAX_TITLE].rpartition(" ")[0]
    whole = len(words) <= MAX_TITLE or len(start) <= MAX_TITLE // 2
    return truncate_text(words, MAX_TITLE) if whole else start.rstrip(" ,—(") + "…"
