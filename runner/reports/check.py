"""A run as a check: a title that fits a list of checks, a summary, and the whole page behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from runner.gate.policy import SCORE_DROP
from runner.model.comparison import Outcome
from runner.reports.markdown import render_summary
from runner.reports.phrases import provenance
from runner.reports.view import View
from runner.reports.wording import count, percent
from runner.text.escape import cut, one_line, plain

MAX_TITLE: Final = 80
PAGE_LIMIT: Final = 60_000
"""Characters of the page; GitHub takes 65,535."""


@dataclass(frozen=True, slots=True)
class CheckText:
    """The three texts of a check run; summary and page are Markdown."""

    title: str
    summary: str
    page: str


def render_check(view: View) -> CheckText:
    """The check's texts. The summary needs neither folding nor alerts, which are not shown everywhere."""
    lead = f"**{view.lead}** " if view.lead else ""
    summary = "\n\n".join([lead + plain(view.opening, 600), _counts(view), f"<sub>{provenance(view)}</sub>"])
    return CheckText(check_title(view), summary + "\n", render_summary(view, limit=PAGE_LIMIT))


def check_title(view: View) -> str:
    """The verdict in at most eighty characters: `3 regressions, 1 new pass — 111/120 pass (baseline 113)`."""
    summary, verdict = view.summary, view.verdict
    if verdict.outcome is Outcome.ERROR:
        why = verdict.reasons[0].message if verdict.reasons else "the run was not finished"
        return cut(one_line(f"Could not decide: {why}"), MAX_TITLE)
    first = verdict.reasons[0].code if verdict.outcome is Outcome.FAIL and verdict.reasons else ""
    if first == "min-pass-rate":
        limit = next((rule.limit for rule in verdict.rules if rule.name == "Pass rate"), "the limit")
        return cut(f"Pass rate {percent(summary.pass_rate)} below {limit}", MAX_TITLE)
    return cut(f"{_what(view)} — {_passes(view)}", MAX_TITLE)


def cancelled_title(view: View) -> str:
    """The title for a run that was ended from outside."""
    total = view.summary.total_cases
    return f"Cancelled at {total - view.summary.not_run}/{total}"


def problem_title(message: str, *, usage: bool) -> str:
    """The title for a step that ended before there was a run."""
    return cut(one_line(f"{'Configuration error' if usage else 'Could not decide'}: {message}"), MAX_TITLE)


def _what(view: View) -> str:
    if view.comparison is None or view.nothing_comparable:
        absent = "No baseline" if view.comparison is None else "Baseline not comparable"
        return f"{view.heading[:1].upper()}{view.heading[1:]}" if view.verdict.outcome is Outcome.FAIL else absent
    parts = [count(len(view.regressions), "regression") if view.regressions else "No regressions"]
    if view.verdict.outcome is Outcome.FAIL and not view.regressions:
        parts = [f"{view.heading[:1].upper()}{view.heading[1:]}"]
    if view.new_passes:
        parts.append(count(len(view.new_passes), "new pass", "new passes"))
    if view.score_drops and not parts[0].startswith(SCORE_DROP):
        parts.append(count(len(view.score_drops), "score drop"))
    if view.baseline_is_stale:
        parts.append("baseline is stale")
    return ", ".join(parts)


def _passes(view: View) -> str:
    summary, baseline = view.summary, view.comparison.baseline if view.comparison else None
    then = f" (baseline {baseline.passed})" if baseline and not view.nothing_comparable else ""
    return f"{summary.passed}/{summary.total_cases} pass{then}"


def _counts(view: View) -> str:
    summary = view.summary
    parts = [f"{summary.passed} pass", f"{summary.failed} fail", count(summary.errored, "error")]
    if view.comparison is not None:
        parts += [count(len(view.regressions), "regression"), count(len(view.new_passes), "new pass", "new passes")]
        parts.append(f"{len(view.still_failing)} still failing")
        if view.score_drops:
            parts.append(count(len(view.score_drops), "score drop"))
    parts += [f"{summary.not_run} not run", f"{summary.skipped} skipped"]
    return f"{count(summary.total_cases, 'case')}: {', '.join(parts)}."
