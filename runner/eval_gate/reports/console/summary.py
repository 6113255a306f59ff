"""Console summary: a block per suite, then what changed, and the verdict last."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from eval_gate.gate.failure_causes import drop_error_prefix
from eval_gate.model.comparison import Outcome, PassCount
from eval_gate.model.evidence import Counts
from eval_gate.model.execution import Status
from eval_gate.model.result import CaseResult, SuiteResult
from eval_gate.reports.console.changes import render_changes
from eval_gate.reports.console.style import (
    FOLD_ABOVE,
    MAX_DESCRIPTION,
    MAX_ID,
    ConsoleStyle,
    cut_middle,
    measure_width,
    pad_text,
    wrap_command,
)
from eval_gate.reports.markdown_fragments import describe_older_baseline, describe_unmeasured_runs
from eval_gate.reports.view.report_view import ReportView
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.tables import SuiteRow
from eval_gate.reports.wording.judges import describe_judges
from eval_gate.reports.wording.numbers import (
    extract_day,
    format_age,
    format_count,
    format_passes,
    format_percent,
    format_points,
)
from eval_gate.reports.wording.spending import format_small_sample_interval
from eval_gate.reports.wording.verdict import (
    explain_inconclusive,
    suggest_next_step,
)
from eval_gate.reports.wording.waivers import format_waived_counts
from eval_gate.results.baseline import NOT_REQUESTED
from eval_gate.staleness.staleness_checks import format_console_line as stale_line
from eval_gate.text.escape import to_console_line

RULER_WIDTH: Final = 67
Cells: TypeAlias = tuple[str, str, str, str]
"""Id, description, time, result."""
MAX_SAME_ERRORS: Final = 5
"""Cases of a suite with the same error above which one line shows them all."""
MAX_NAMED_CASES: Final = 3
MAX_GRADED_CASES: Final = 30
_MARGIN: Final = 4
"""Columns of the sign before each line."""
_GAP: Final = "  "
_MIN_DESCRIPTION: Final = 8
"""Columns below which a description is left out."""

_GLYPHS: Final = {
    Status.PASSED: ("✓", "+"),
    Status.FAILED: ("✗", "x"),
    Status.ERROR: ("!", "!"),
    Status.SKIPPED: ("-", "-"),
    Status.NOT_RUN: ("·", "."),
}
_STATUS_COLOURS: Final = {Status.PASSED: "green", Status.FAILED: "red", Status.ERROR: "yellow"}


def render_console(view: ReportView, style: ConsoleStyle) -> str:
    """Render the complete summary of a run for the console, ended by a line break."""
    return style.join_lines(_ConsoleSummary(view, style).render_lines())


class _ConsoleSummary:
    def __init__(self, view: ReportView, style: ConsoleStyle) -> None:
        self._view = view
        self._style = style

    def render_lines(self) -> Iterator[str]:
        fold = None if self._style.verbose else FOLD_ABOVE
        for suite, row, cases in self._view.iter_suites(folded_above=fold):
            yield from self._render_suite(suite, row, cases)
            yield ""
        yield from render_changes(self._view, self._style)
        yield from self._render_grades()
        waivers = self._view.waivers.warnings
        yield from self._style.render_warnings((*waivers, *self._view.warnings, *self._view.file_notes))
        yield from self._render_totals()
        yield ""
        yield from self._render_verdict()

    def _render_suite(self, suite: SuiteResult, row: SuiteRow, shown: Sequence[CaseRow]) -> Iterator[str]:
        style, across = self._style, min(RULER_WIDTH, self._style.width)
        tier = style.to_displayable(f" — {suite.tier.value} evals " if suite.tier else " — evals ")
        room = max(across - measure_width(f"═══ {tier}═══"), 3)
        title = f"═══ {style.cut_name(to_console_line(suite.tool_name, 60), room)}{tier}"
        yield style.paint("bold", f"{title}{'═' * max(3, across - measure_width(title))}")
        if len(suite.cases) > FOLD_ABOVE and not style.verbose:
            left_out = format_count(len(suite.cases) - len(shown), "passing case")
            yield from style.wrap_text(f"… {left_out} not listed (--verbose lists them)", begin="  ")
        common = {} if style.verbose else _group_common_errors(shown)
        yield from self._render_cases([row for row in shown if row not in common])
        yield from self._render_common_errors(common, len(suite.cases))
        yield "─" * across
        yield from style.wrap_parts(_iter_suite_totals(suite, row), begin="  ", indent=" " * 4, between=" | ")
        for fact, sentence in zip(suite.stale_facts, suite.staleness_warnings, strict=False):
            yield from style.wrap_text(
                to_console_line(stale_line(fact, sentence)), begin="  ⚠ ", indent=" " * 4, colour="yellow"
            )
        if style.verbose:
            for notice in suite.notices:
                yield from style.wrap_text(to_console_line(notice), begin="  note: ", indent=" " * 4)

    def _render_cases(self, rows: Sequence[CaseRow]) -> Iterator[str]:
        both = [(row, row.case) for row in rows if row.case is not None]
        lines = _render_case_lines([_build_cells(row, case) for row, case in both], self._style)
        for (row, case), line in zip(both, lines, strict=True):
            glyph = _GLYPHS[case.status][1 if self._style.ascii else 0]
            yield f"  {self._style.paint(_STATUS_COLOURS.get(case.status, 'dim'), glyph)} {line}"
            if case.error and case.status is not Status.NOT_RUN:
                for one in row.failures if case.graded and case.status.is_scored else (_format_error(row, case),):
                    yield from self._style.wrap_text(to_console_line(one, 500), begin="    → ", indent=" " * 6)

    def _render_common_errors(self, common: Mapping[CaseRow, str], total: int) -> Iterator[str]:
        """Render one line for each error that many cases share, with the first of these cases."""
        groups: dict[str, list[CaseRow]] = defaultdict(list)
        for row, error in common.items():
            groups[error].append(row)
        glyph = _GLYPHS[Status.ERROR][1 if self._style.ascii else 0]
        for error, rows in groups.items():
            names = ", ".join(cut_middle(to_console_line(row.id), MAX_ID) for row in rows[:MAX_NAMED_CASES])
            text = f"{to_console_line(error, 500)} in {len(rows)} of {format_count(total, 'case')}, first {names}, …"
            yield from self._style.wrap_text(
                f"{text} (--verbose lists them)", begin=f"  {glyph} ", indent=" " * 4, colour="yellow"
            )

    def _render_grades(self) -> Iterator[str]:
        """Render the grades of rubrics, one line for each case, also of cases that pass."""
        grades, style = self._view.grades, self._style
        if not grades:
            return
        by_case: dict[str, list[str]] = defaultdict(list)
        for grade in grades:
            reasoning = f" ({grade.reasoning})" if style.verbose and grade.reasoning else ""
            by_case[grade.case].append(f"{grade.dimension} {grade.score}{reasoning}")
        shown = [*by_case.items()][: None if style.verbose else MAX_GRADED_CASES]
        yield from style.wrap_text(f"RUBRIC GRADES ({format_count(len(by_case), 'case')})")
        for case, parts in shown:
            text = to_console_line(f"{case}: {', '.join(parts)}", 1_000)
            yield from style.wrap_text(text, begin="  ", indent=" " * 4)
        if len(by_case) > len(shown):
            more = format_count(len(by_case) - len(shown), "more case")
            yield f"  … and {more} (--verbose lists them)"
        yield ""

    def _render_totals(self) -> Iterator[str]:
        """Render the totals of the run, and the baseline that it was compared with."""
        view, style = self._view, self._style
        yield from style.wrap_parts(_iter_counts(view), between="   ")
        yield from style.wrap_parts(_iter_pass_rates(view), between="  ")
        if view.reruns:
            yield from style.wrap_text(view.reruns)
        # that a judge has not been compared with people is news once, not in each run
        judges = view.judges if style.verbose else describe_judges(view.run, of=frozenset())
        for words in (*(view.power if style.verbose else ()), *judges):
            yield from style.wrap_text(to_console_line(words, 1_000))
        if view.comparison is not None:
            yield from style.wrap_text(to_console_line(_format_baseline(view)))
            if older := describe_older_baseline(view, mark=str):
                yield from style.wrap_text(to_console_line(older, 500))
            if passed_over := describe_unmeasured_runs(view, mark=str):
                yield from style.wrap_text(to_console_line(passed_over, 500))
            for note in view.notes:
                yield from style.wrap_text(to_console_line(note, 500), begin="⚠ ", colour="yellow")
        elif view.context.no_baseline_reason not in {None, NOT_REQUESTED.reason}:
            yield from style.wrap_text(to_console_line(f"no baseline: {view.context.no_baseline_reason}", 1_000))

    def _render_verdict(self) -> Iterator[str]:
        """Render the verdict as the last block, because people read a log from its end.

        The block has the reasons, the setup changes, the next step, the path of the result, and the commands to re-run
        or waive cases.
        """
        view, style = self._view, self._style
        words, colour = {
            Outcome.PASSED: ("GATE PASSED", "green"),
            Outcome.FAILED: ("GATE FAILED", "red"),
            Outcome.INCONCLUSIVE: ("GATE INCONCLUSIVE", "yellow"),
        }[view.verdict.outcome]
        if view.has_no_verdict:
            words = "NO VERDICT YET"
        reasons = [*view.reasons, *format_waived_counts(view.run)]
        shown = [explain_inconclusive(view.run, view.verdict)] if view.is_inconclusive else reasons
        ended = "" if view.has_no_verdict else f"   exit {int(view.verdict.exit_code)}"
        yield from self._render_reasons(words, colour, [to_console_line(one, 1_000) for one in shown], ended)
        if view.bad_day:
            yield from style.wrap_text(to_console_line(view.bad_day, 1_000))
        if view.false_alarms:
            yield from style.wrap_text(to_console_line(view.false_alarms, 1_000))
        if view.setup_changes:
            yield from style.wrap_text(f"{view.setup_changes.title.lower()}:")
            for line in view.setup_changes.format_lines():
                yield from style.wrap_text(to_console_line(line, 500), begin="  · ", indent=" " * 4)
        if next_step := self._find_next_step():
            yield from style.wrap_text(to_console_line(next_step, 1_000), begin="Next step: ")
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
        if context.saving:
            yield from style.wrap_text(context.saving)

    def _find_next_step(self) -> str | None:
        """Find what to do about a gate that did not pass; None if it passed or nothing is known."""
        view = self._view
        if view.has_no_verdict or view.verdict.outcome is Outcome.PASSED:
            return None
        if view.is_inconclusive:
            return f"Run it again. If it ends the same way, {view.remedy}."
        if view.has_only_agent_errors:
            return "Run it again once. If every case ends with an agent error again, this change is the cause."
        step = suggest_next_step(view.run, view.verdict, can_waive=view.context.waive_command is not None)
        return f"{step}." if step else None

    def _render_reasons(self, words: str, colour: str, reasons: Sequence[str], ended: str) -> Iterator[str]:
        """Render the verdict and its reasons on one line, or each reason on its own line if that is too long.

        The exit code, `ended`, follows the first reason.
        """
        style = self._style
        together = style.to_displayable(f"{words}: {'; '.join(reasons)}{ended}")
        if measure_width(together) <= style.width:
            yield style.paint(colour, together)
            return
        first = [*style.wrap_text("".join(reasons[:1]), begin=f"{words}: ")] or [words]
        if measure_width(first[-1]) + len(ended) > style.width:
            first.append(f"  {ended.strip()}")
        else:
            first[-1] += ended
        yield from (style.paint(colour, line) for line in first)
        for reason in reasons[1:]:
            yield from style.wrap_text(reason, begin="  ", colour=colour)


def _format_error(row: CaseRow, case: CaseResult) -> str:
    """Format the error of a case after its kind, such as `agent error: HTTP 500`, and name the kind once."""
    word = {Status.ERROR: row.current_result, Status.SKIPPED: "skipped"}.get(case.status)
    if not word:
        return case.error or ""
    return f"{word}: {drop_error_prefix(case.error or '')}"


def _group_common_errors(rows: Sequence[CaseRow]) -> dict[CaseRow, str]:
    """Find the rows whose error many other rows share, with this error."""
    errors = {
        row: _format_error(row, row.case) for row in rows if row.case is not None and row.case.status is Status.ERROR
    }
    counts = Counter(errors.values())
    return {row: error for row, error in errors.items() if counts[error] > MAX_SAME_ERRORS}


def _build_cells(row: CaseRow, case: CaseResult) -> Cells:
    """Id, description, time, and the score of a graded case, or how many of several executions passed."""
    took = row.execution.duration_ms if row.execution else 0.0
    time = f"{took:.0f}ms" if case.status.is_scored or took else ""
    result = _format_executions(row.counted_executions, len(case.trials))
    if case.graded and case.status.is_scored:
        result = row.current_result or ""
    flaky = ", flaky" if result and case.flaky else ""
    return to_console_line(case.id), to_console_line(case.description), time, f"{result}{flaky}"


def _format_executions(counted: Counts | PassCount | None, executions: int) -> str:
    """`2 of 3 pass`, `0 of 1 pass, 2 without a score`; empty for a single execution, and if none has a score."""
    if counted is None or executions <= 1:
        return ""
    unscored = executions - counted.executions
    more = f", {unscored} without a score" if unscored > 0 else ""
    return f"{format_passes(counted.passes, counted.executions)}{more}"


def _render_case_lines(rows: Sequence[Cells], style: ConsoleStyle) -> Iterator[str]:
    """Render one line per case.

    In a narrow output, ids lose their middle and descriptions their end.
    """
    if not rows:
        return
    times, results = (max(measure_width(style.to_displayable(row[place])) for row in rows) for place in (2, 3))
    results = min(results, style.width // 2)
    behind = sum(len(_GAP) + columns for columns in (times, results) if columns)
    room = style.width - _MARGIN - behind
    ids = min(max(measure_width(style.to_displayable(row[0])) for row in rows), MAX_ID)
    words = min(max(measure_width(style.to_displayable(row[1])) for row in rows), MAX_DESCRIPTION)
    if words and ids + len(_GAP) + words > room:
        narrow = min(ids, max(room - len(_GAP) - words, room * 3 // 5))
        left = room - len(_GAP) - narrow
        ids, words = (narrow, left) if left >= _MIN_DESCRIPTION else (ids, 0)
    ids = max(min(ids, room), 1)
    for name, description, time, result in rows:
        cells = [pad_text(style.cut_name(name, ids), ids)]
        cells += [pad_text(style.cut_text(description, words), words)] if words else []
        cells += [pad_text(time, times, right=True)] if times else []
        cells += [style.cut_text(result, results)] if results else []
        yield _GAP.join(cells).rstrip()


def _iter_suite_totals(suite: SuiteResult, row: SuiteRow) -> Iterator[str]:
    """Yield the four totals of a suite that the contract defines, then other totals that are not zero."""
    summary = suite.summary
    yield f"{summary.passed}/{summary.total_cases} passed"
    yield f"{summary.failed} failed"
    yield f"{summary.skipped_assertions} skipped assertions"
    yield f"{summary.total_duration_ms:.0f}ms total"
    if summary.errored:
        yield format_count(summary.errored, "error")
    if summary.skipped:
        yield f"{summary.skipped} skipped"
    if summary.not_run:
        yield f"{summary.not_run} not run"
    if row.score:
        yield f"mean score {row.score}"


def _iter_counts(view: ReportView) -> Iterator[str]:
    summary = view.summary
    yield f"pass {summary.passed}"
    yield f"fail {summary.failed}{view.failed_counts}"
    yield f"errors {summary.errored}{view.errored_counts}"
    yield f"not run {summary.not_run}"
    yield from view.further_counts
    if view.score_drops:
        yield f"score drops {len(view.score_drops)}"
    if summary.skipped:
        yield f"skipped {summary.skipped}"
    if summary.flaky and not view.uses_history:
        yield f"flaky {summary.flaky}"


def _iter_pass_rates(view: ReportView) -> Iterator[str]:
    rates, unscored = view.rates, view.summary.errored + view.summary.not_run + view.summary.skipped
    now, before = rates.current, rates.baseline
    counts = (
        f"{rates.passed} of {format_count(rates.judged, 'scored case')}"
        if unscored
        else (f"{rates.passed} of {rates.judged}")
    )
    facts = [counts, f"{unscored} without a score" if unscored else None, format_small_sample_interval(rates)]
    yield f"pass rate {format_percent(now)} ({', '.join(filter(None, facts))})"
    if now is not None and before is not None:
        yield f"baseline {format_percent(before)}"
        yield format_points(before, now)


def _format_baseline(view: ReportView) -> str:
    assert view.comparison is not None
    facts, context = view.comparison.baseline, view.context
    branch = f"{context.branch}@" if context.branch else ""
    name, day = f"baseline {branch}{facts.sha[:7] if facts.sha else facts.run_id}", extract_day(facts.timestamp)
    parts = [f"{name} of {day}" if day else name, *filter(None, [format_age(facts.age_days)])]
    if facts.commits_behind is not None:
        parts.append(f"{format_count(facts.commits_behind, 'commit')} behind")
    if view.baseline_is_stale:
        parts.append("stale: differences may come from the default branch")
    return " · ".join(parts)
