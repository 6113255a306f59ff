"""Console summary: a line for each suite or case, then what changed, and the verdict last."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from eval_gate.model.comparison import Outcome
from eval_gate.model.execution import Status
from eval_gate.model.result import Summary
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
from eval_gate.reports.console.style import MAX_ID, ConsoleStyle, measure_width, pad_text, wrap_command
from eval_gate.reports.console.tree import iter_further_counts, paint_glyph, render_tree
from eval_gate.reports.markdown_fragments import describe_older_baseline, describe_unmeasured_runs
from eval_gate.reports.run_statistics import PassCounts
from eval_gate.reports.view.report_view import ReportView
from eval_gate.reports.wording.judges import describe_judges
from eval_gate.reports.wording.metrics import MAX_METRIC_NAME
from eval_gate.reports.wording.numbers import extract_day, format_age, format_pass_counts
from eval_gate.reports.wording.reuse import describe_nothing_changed
from eval_gate.reports.wording.verdict import explain_inconclusive, iter_report_only
from eval_gate.reports.wording.waivers import WaiverText, format_waived_counts
from eval_gate.results.baseline import NOT_REQUESTED
from eval_gate.staleness.staleness_checks import format_console_line
from eval_gate.text.escape import format_count, to_console_line, truncate_text

MAX_SUITES: Final = 30
"""Number of suites above which only suites with a case that did not pass are listed."""
MAX_SUITE_NAME: Final = 60
MAX_VALUE: Final = 200
MAX_TERMS: Final = 500
MAX_BEHAVIOUR_NAMES: Final = 5
"""Cases that behave differently, or have one change of behaviour, that are named."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


def render_console(view: ReportView, style: ConsoleStyle) -> str:
    """Render the complete summary of a run for the console, ended by a line break."""
    return style.join_lines(_ConsoleSummary(view, style).render_lines())


class _ConsoleSummary:
    def __init__(self, view: ReportView, style: ConsoleStyle) -> None:
        self._view = view
        self._style = style

    def render_lines(self) -> Iterator[str]:
        view, style = self._view, self._style
        yield from render_tree(view, style) if style.verbose else self._render_suites()
        yield from _render_changes(view, style)
        if style.verbose:
            yield from self._render_grades()
        stale = () if style.verbose else self._list_staleness()
        yield from style.render_warnings((*view.waivers.warnings, *stale, *view.warnings, *view.file_notes))
        yield from self._render_totals()
        yield ""
        yield from self._render_verdict()

    def _render_suites(self) -> Iterator[str]:
        """Render a line for each suite: `✗ get_weather labeled  9 of 10 pass`."""
        style, suites = self._style, [*zip(self._view.run.suites, self._view.suites, strict=True)]
        listed = [one for one in suites if len(suites) <= MAX_SUITES or one[0].summary.passed < one[0].summary.ran]
        names = [style.cut_name(to_console_line(row.name), min(MAX_SUITE_NAME, style.width // 2)) for _, row in listed]
        across = max(map(measure_width, names), default=0)
        for (suite, row), name in zip(listed, names, strict=True):
            facts = [format_pass_counts(PassCounts(suite.summary.passed, suite.summary.ran))]
            facts += [*iter_further_counts(suite.summary, row), *(["stale"] if row.stale else [])]
            facts += ["reused"] if suite.reused else []
            begin = f"{paint_glyph(_summarize_status(suite.summary), style)} {pad_text(name, across)}  "
            yield begin + style.cut_text("   ".join(facts), max(style.width - across - 4, 1))
        if len(listed) < len(suites):
            yield f"… and {format_count(len(suites) - len(listed), 'more suite')} in which every case passes"
        yield ""

    def _list_staleness(self) -> Iterator[str]:
        """List what makes suites stale: `get_weather (golden, labeled): Description hash mismatch …`."""
        for group in self._view.stale_suites:
            tiers = f" ({', '.join(group.tiers)})" if group.tiers else ""
            for fact, sentence in zip(group.facts, group.warnings, strict=False):
                yield f"{group.tool}{tiers}: {format_console_line(fact, sentence)}"

    def _render_grades(self) -> Iterator[str]:
        """Render the grades of rubrics, one line for each case, also of cases that pass."""
        by_case: dict[str, list[str]] = defaultdict(list)
        for grade in self._view.grades:
            reasoning = f" ({grade.reasoning})" if grade.reasoning else ""
            by_case[grade.case].append(f"{grade.dimension} {grade.score}{reasoning}")
        if by_case:
            yield from self._style.wrap_text(f"RUBRIC GRADES ({format_count(len(by_case), 'case')})")
            for case, parts in by_case.items():
                text = to_console_line(f"{case}: {', '.join(parts)}", 1_000)
                yield from self._style.wrap_text(text, begin="  ", indent=" " * 4)
            yield ""

    def _render_totals(self) -> Iterator[str]:
        """Render the totals of the run, and the baseline that it was compared with."""
        view, style = self._view, self._style
        # the reader of a comparison has seen an earlier summary
        hint = () if style.verbose or view.comparison else ("(--verbose lists every case)",)
        yield from style.wrap_parts((*_iter_counts(view), *hint), between="   ")
        spending = view.spending if view.summary.total_duration_ms else None  # another tool may not report its time
        for words in filter(None, (spending, view.reruns)):
            yield from style.wrap_parts(words.split(" · "), between=" · ")
        # a short summary repeats nothing about judges that were never compared with people
        judges = view.judges if style.verbose else describe_judges(view.run, of=frozenset())
        older, passed_over = describe_older_baseline(view, mark=str), describe_unmeasured_runs(view, mark=str)
        power = view.power if style.verbose else ()
        facts = (view.reuse, view.first_runs, *power, *judges, _format_baseline(view), older, passed_over)
        for words in filter(None, facts):
            yield from style.wrap_text(to_console_line(words, 1_000))
        for note in view.notes:
            yield from style.wrap_text(to_console_line(note, 500), begin="⚠ ", colour="yellow")

    def _render_verdict(self) -> Iterator[str]:
        """Render the verdict as the last block, because people read a log from its end."""
        view, style = self._view, self._style
        words, colour = {
            Outcome.PASSED: ("GATE PASSED", "green"),
            Outcome.FAILED: ("GATE FAILED", "red"),
            Outcome.INCONCLUSIVE: ("GATE INCONCLUSIVE", "yellow"),
        }[view.verdict.outcome]
        if view.has_no_verdict:
            words = "NO VERDICT YET"
        elif view.verdict.runs_until_failing is not None:
            words, colour = "GATE WOULD HAVE FAILED", "yellow"
        unchanged = describe_nothing_changed(view.run)
        reasons = [*view.reasons, *([unchanged] if unchanged else []), *format_waived_counts(view.run)]
        sentences = [explain_inconclusive(view.run, view.verdict)] if view.is_inconclusive else reasons
        exit_text = "" if view.has_no_verdict else f"   exit {int(view.verdict.exit_code)}"
        yield from self._render_reasons(words, colour, [to_console_line(one, 1_000) for one in sentences], exit_text)
        softened = iter_report_only(view.run, view.verdict)
        for words in filter(None, (*softened, view.outside_cause, view.bad_day, view.false_alarms)):
            yield from style.wrap_text(to_console_line(words, 1_000))
        if view.setup_changes:
            yield from style.wrap_text(f"{view.setup_changes.title.lower()}:")
            for line in view.setup_changes.format_lines():
                yield from style.wrap_text(to_console_line(line, 500), begin="  · ", indent=" " * 4)
        if view.advice is not None:
            yield from style.wrap_text(to_console_line(view.advice.next_step, 1_000), begin="Next step: ")
        yield from self._render_commands()

    def _render_commands(self) -> Iterator[str]:
        """Render the path of the result, and the commands to re-run or waive cases."""
        view, style, context = self._view, self._style, self._view.context
        if context.result_path:
            yield from style.wrap_parts([context.result_path], begin="result: ", whole=True)
        if context.rerun_command and view.verdict.outcome is not Outcome.PASSED:
            yield from wrap_command("rerun:  ", context.rerun_command, style)
            if context.rerun_omitted_count:
                where = f"see {context.result_path}" if context.result_path else "see above"
                left_out = format_count(context.rerun_omitted_count, "more case")
                yield from style.wrap_text(f"and {left_out}: {where}", begin=" " * 8, indent=" " * 8, whole=True)
        if context.waive_command:
            yield from wrap_command("waive:  ", context.waive_command, style)

    def _render_reasons(self, words: str, colour: str, reasons: Sequence[str], exit_text: str) -> Iterator[str]:
        """Render the verdict and its reasons, on one line if they fit; `exit_text` follows the first reason."""
        style = self._style
        one_line = style.to_displayable(f"{words}: {'; '.join(reasons)}{exit_text}")
        if measure_width(one_line) <= style.width:
            yield style.paint(colour, one_line)
            return
        first = [*style.wrap_text("".join(reasons[:1]), begin=f"{words}: ")] or [words]
        if measure_width(first[-1]) + len(exit_text) > style.width:
            first.append(f"  {exit_text.strip()}")
        else:
            first[-1] += exit_text
        yield from (style.paint(colour, line) for line in first)
        for reason in reasons[1:]:
            yield from style.wrap_text(reason, begin="  ", colour=colour)


def _render_changes(view: ReportView, style: ConsoleStyle) -> Iterator[str]:
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
    lists = {
        "STILL FAILING": tuple(row for row in view.known_failing if row.key not in view.blockers.cases),
        "INCOMPARABLE": view.incomparable,
        "NO SCORE IN EITHER RUN": view.still_errored,
        "NOT RUN": tuple(row for row in view.notable if row.status is Status.NOT_RUN),
        "ADDED": view.added if style.verbose else (),
        "REMOVED": view.removed,
    }
    for title, rows in lists.items():
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
    lists = {
        f"INCONCLUSIVE, {view.missing_evidence_title.upper()}": view.unconfirmed,
        "NOT CAUSED BY THIS CHANGE, FAILS WITH THE BASE AGENT TOO": view.base_agent_failures,
        "NOT CAUSED BY THIS CHANGE, BROKEN ON THE BASE": view.broken_on_main,
    }
    for title, rows in lists.items():
        yield from render_case_list(title, rows, style, "yellow")


def _render_waivers(view: ReportView, style: ConsoleStyle) -> Iterator[str]:
    """Render the waived and quarantined cases, and the new and proposed waivers, with their terms."""
    labels = dict[WaiverText, str]()
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
                labels.setdefault(row.waiver, format_label(row))
        yield from render_omitted(len(view.waived) - MAX_NAMES)
        yield ""
    for name, entries in (
        ("NEW WAIVERS IN THIS PULL REQUEST", view.waivers.added),
        ("PROPOSED WAIVERS, NOT COUNTED", view.waivers.proposed),
    ):
        if entries:
            yield from style.wrap_text(f"{name} ({len(entries)})", colour="yellow")
            for entry in entries[:MAX_NAMES]:
                yield from _render_waiver(style, entry.pattern, entry, above=labels.get(entry))
            yield ""


def _render_waiver(
    style: ConsoleStyle, name: str, words: WaiverText | None, evidence: str = "", *, above: str | None = None
) -> Iterator[str]:
    """Render the terms of a waiver, or which case `above` already shows them, and the evidence of its case."""
    terms = f"see {above} above" if above else to_console_line(words.terms if words else "", MAX_TERMS)
    parts = "; ".join(filter(None, [terms, evidence]))
    yield from style.wrap_text(f"{truncate_text(to_console_line(name), MAX_ID)}: {parts}", begin="  ", indent=" " * 4)


def _render_behaviour(view: ReportView, style: ConsoleStyle) -> Iterator[str]:
    """Render the passing cases that behave differently on one line; with verbose output, how they do."""
    report = view.behaviour
    if report is None:
        return
    hint = "" if style.verbose else " (--verbose shows how)"
    names = format_names(report.cases, MAX_BEHAVIOUR_NAMES)
    yield from style.wrap_text(f"{report.title}{f': {names}' if names else ''}{hint}")
    for row in report.rows[:MAX_NAMES] if style.verbose else ():
        cases = format_names(row.cases, MAX_BEHAVIOUR_NAMES)
        sides = (to_console_line(side or "–", MAX_VALUE) for side in (row.baseline, row.current))
        text = f"{cases}: {to_console_line(row.what, MAX_EVIDENCE)}: {' → '.join(sides)}"
        yield from style.wrap_text(text, begin="  ", indent=" " * 4)
    yield from render_omitted(len(report.rows) - MAX_NAMES if style.verbose else 0, "more change")
    yield ""


def _render_metrics(view: ReportView, style: ConsoleStyle) -> Iterator[str]:
    """Render a line if an evaluator or tag changed; with verbose output, a line for each of them and what marks say."""
    report = view.metrics
    if report is None or not (report.changes.changed or style.verbose):
        return
    hint = "" if style.verbose else " (--verbose shows them)"
    yield from style.wrap_text(f"{report.title}{hint}")
    for row in report.select_rows(MAX_NAMES) if style.verbose else ():
        parts = (row.direction.upper(), "tag" if row.is_tag else "", to_console_line(row.name, MAX_METRIC_NAME))
        name = " ".join(filter(None, parts))
        text = (
            f"{name}: score {row.scores}, pass rate {row.pass_rates}, difference {row.difference} "
            f"in {format_count(row.cases, 'case')}"
        )
        yield from style.wrap_text(text, begin="  ", indent=" " * 4)
    if style.verbose:
        yield from render_omitted(report.changes.tested - len(report.select_rows(MAX_NAMES)), "more row")
        yield from style.wrap_text(report.plain_note, begin="  ", indent=" " * 4)
    yield ""


def _summarize_status(summary: Summary) -> Status:
    """Return the worst status of the cases that ran; `skipped` if none did."""
    if not summary.ran:
        return Status.SKIPPED
    return Status.FAILED if summary.failed else Status.ERROR if summary.errored else Status.PASSED


def _iter_counts(view: ReportView) -> Iterator[str]:
    """Yield how many cases pass, here and in the baseline, and the counts of all others."""
    yield format_pass_counts(view.pass_counts)
    yield from (*view.passing_counts, *view.other_counts)
    if view.summary.flaky and not view.uses_history:
        yield f"{view.summary.flaky} flaky"


def _format_baseline(view: ReportView) -> str | None:
    """`baseline main@3f2c1ab of 2026-11-19 · 2 days old`, or why there is none although one was requested."""
    if view.comparison is None:
        reason = None if view.run.lost_baseline else view.context.no_baseline_reason
        return None if reason in {None, NOT_REQUESTED.reason} else f"no baseline: {reason}"
    facts, context = view.comparison.baseline, view.context
    branch = f"{context.branch}@" if context.branch else ""
    # the id of an own run is a UUID, which is no name; that of external results is their file
    run_id = None if _UUID(facts.run_id) else facts.run_id
    run = f"{branch}{facts.sha[:7]}" if facts.sha else run_id or context.branch
    parts = [" of ".join(filter(None, [f"baseline {run}" if run else "baseline", extract_day(facts.timestamp)]))]
    parts += filter(None, [format_age(facts.age_days)])
    if facts.commits_behind is not None:
        parts.append(f"{format_count(facts.commits_behind, 'commit')} behind")
    if view.baseline_is_stale:
        parts.append("stale: differences may come from the default branch")
    return " · ".join(parts)
