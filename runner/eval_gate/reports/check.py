"""A run as a check: a title that fits a list of checks, a summary, and the whole page behind it."""

from __future__ import annotations

from typing import Final

from eval_gate.model.comparison import Outcome, RuleCode
from eval_gate.reports.markdown import render_summary
from eval_gate.reports.phrases import links_line, measured_block, prose, provenance
from eval_gate.reports.view.view import View
from eval_gate.reports.words.headline import regression_words
from eval_gate.reports.words.numbers import count, percent
from eval_gate.reports.words.verdict import errors_words
from eval_gate.reports.words.waivers import waived_counts
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import cut, one_line, plain

MAX_TITLE: Final = 80
PAGE_LIMIT: Final = 60_000
"""Characters of the page; GitHub takes 65,535."""


class CheckText(FrozenStruct):
    """The three texts of a check run; summary and page are Markdown."""

    title: str
    summary: str
    page: str


def render_check(view: View) -> CheckText:
    """The check's texts. The summary needs neither folding nor alerts, which are not shown everywhere."""
    lead = f"**{view.lead}** " if view.lead else ""
    measured = [measured_block(view.measured)] if view.measured else []
    why = lead + plain(view.opening, 600)
    links = [words] if (words := links_line(view)) else []
    below = [prose(words, 600) for words in (view.bad_day, view.false_alarms) if words]
    summary = "\n\n".join([why, *below, *links, *measured, _counts(view), f"<sub>{provenance(view)}</sub>"])
    return CheckText(check_title(view), summary + "\n", render_summary(view, limit=PAGE_LIMIT))


def check_title(view: View) -> str:
    """The verdict in at most eighty characters: `3 regressions, 1 new pass — 111/120 pass (baseline 113)`."""
    verdict = view.verdict
    if verdict.outcome is Outcome.ERROR:
        why = view.reasons[0] if view.reasons else "the run was not finished"
        return _title("No verdict yet" if view.unjudged else f"Could not decide: {why}")
    first = verdict.reasons[0].code if verdict.outcome is Outcome.FAIL and verdict.reasons else ""
    if first == RuleCode.PASS_RATE:
        rates, rule = view.rates, verdict.rule(RuleCode.PASS_RATE)
        rate, limit = (rule.value, rule.limit) if rule else (percent(rates.now), "the limit")
        return _title(f"Pass rate {rate} ({rates.passed} of {rates.judged}) below {limit}")
    return _title(f"{_what(view)} — {_passes(view)}")


def cancelled_title(view: View) -> str:
    """The title for a run that was ended from outside."""
    total = view.summary.total_cases
    return f"Cancelled at {total - view.summary.not_run}/{total}"


def problem_title(message: str, *, usage: bool) -> str:
    """The title for a step that ended before there was a run."""
    return _title(f"{'Configuration error' if usage else 'Could not decide'}: {message}")


def _title(words: str) -> str:
    """At most eighty characters, cut between two words; within one only where it takes half of the title."""
    words = one_line(words, 10 * MAX_TITLE)
    before = words[:MAX_TITLE].rpartition(" ")[0]
    whole = len(words) <= MAX_TITLE or len(before) <= MAX_TITLE // 2
    return cut(words, MAX_TITLE) if whole else before.rstrip(" ,—(") + "…"


def _what(view: View) -> str:
    heading = f"{view.heading[:1].upper()}{view.heading[1:]}"
    failed, waived = view.verdict.outcome is Outcome.FAIL, waived_counts(view.run)
    if view.comparison is None or view.nothing_comparable:
        absent = "No baseline" if view.comparison is None else "Baseline not comparable"
        return heading if failed else ", ".join([absent, *waived])
    if view.regressions:
        words = regression_words(view.run)
        parts = [f"{words[:1].upper()}{words[1:]}", *waived]
    elif failed or view.suite_drop:
        parts = [heading]
    else:
        parts = [*([] if any("regression" in words for words in waived) else ["No regressions"]), *waived]
        if view.unsettled:
            parts.append(f"not sure about {count(len(view.unsettled), 'case')}")
        if view.not_decided:
            parts.append(f"{count(len(view.not_decided), 'case')} not decided")
    if view.new_passes:
        parts.append(count(len(view.new_passes), "new pass", "new passes"))
    if view.score_drops and not parts[0].startswith(RuleCode.SCORE_DROP.shown):
        parts.append(count(len(view.score_drops), "score drop"))
    if not failed:
        parts += errors_words(view.run)
    if view.baseline_is_stale:
        parts.append("baseline is stale")
    return ", ".join(parts)


def _passes(view: View) -> str:
    summary, baseline = view.summary, view.comparison.baseline if view.comparison else None
    then = f" (baseline {baseline.passed})" if baseline and not view.nothing_comparable else ""
    at_first = " at first" if view.again else ""
    return f"{summary.passed - view.again}/{summary.total_cases} pass{at_first}{then}"


def _counts(view: View) -> str:
    summary = view.summary
    parts = [f"{summary.passed} pass", f"{summary.failed} fail"]
    parts.append(f"{count(summary.errored, 'error')}{view.errored_counts}")
    if view.comparison is not None:
        parts += [count(len(view.regressions), "regression"), count(len(view.new_passes), "new pass", "new passes")]
        parts.append(f"{len(view.still_failing)} still failing")
        if view.score_drops:
            parts.append(count(len(view.score_drops), "score drop"))
    parts += view.more_counts
    parts += [f"{summary.not_run} not run", f"{summary.skipped} skipped"]
    return f"{count(summary.total_cases, 'case')}: {', '.join(parts)}."
