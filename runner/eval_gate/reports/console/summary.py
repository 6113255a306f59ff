"""The summary on a terminal: the contract's block per suite, then what changed, and the verdict last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from eval_gate.model.comparison import Outcome
from eval_gate.model.execution import Status
from eval_gate.model.result import CaseResult, SuiteResult
from eval_gate.registry.staleness import console_line as stale_line
from eval_gate.reports.console.changes import changes
from eval_gate.reports.console.style import (
    FOLD_ABOVE,
    MAX_DESCRIPTION,
    MAX_ID,
    ConsoleStyle,
    command_lines,
    padded,
    width,
)
from eval_gate.reports.phrases import older_baseline, unmeasured_words
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.tables import SuiteRow
from eval_gate.reports.view.view import View
from eval_gate.reports.words.numbers import age, count, day_of, percent, points
from eval_gate.reports.words.verdict import undecided_words
from eval_gate.reports.words.waivers import waived_counts
from eval_gate.results.baseline import NOT_ASKED_FOR
from eval_gate.text.escape import console_line

WIDTH: Final = 67
Cells: TypeAlias = tuple[str, str, str, str]
"""Id, description, time, result."""
_BEFORE: Final = 4
"""Columns of the sign before each line."""
_GAP: Final = "  "
_LEAST: Final = 8
"""Columns below which a description says nothing and is left out."""

_GLYPHS: Final = {
    Status.PASSED: ("✓", "+"),
    Status.FAILED: ("✗", "x"),
    Status.ERROR: ("!", "!"),
    Status.SKIPPED: ("-", "-"),
    Status.NOT_RUN: ("·", "."),
}
_PAINTED: Final = {Status.PASSED: "green", Status.FAILED: "red", Status.ERROR: "yellow"}


def render_console(view: View, style: ConsoleStyle) -> str:
    """The whole summary, ending with a line break."""
    return style.text(_Console(view, style).lines())


class _Console:
    def __init__(self, view: View, style: ConsoleStyle) -> None:
        self._view = view
        self._style = style

    def lines(self) -> Iterator[str]:
        fold = None if self._style.verbose else FOLD_ABOVE
        for suite, row, cases in self._view.by_suite(folded_above=fold):
            yield from self._suite(suite, row, cases)
            yield ""
        yield from changes(self._view, self._style)
        waivers = self._view.waivers.warnings
        yield from self._style.warnings((*waivers, *self._view.warnings, *self._view.file_notes))
        yield from self._counted()
        yield ""
        yield from self._verdict()

    def _suite(self, suite: SuiteResult, row: SuiteRow, shown: Sequence[CaseRow]) -> Iterator[str]:
        style, across = self._style, min(WIDTH, self._style.width)
        tier = style.plain(f" — {suite.tier.value} evals " if suite.tier else " — evals ")
        room = max(across - width(f"═══ {tier}═══"), 3)
        title = f"═══ {style.cut_name(console_line(suite.tool_name, 60), room)}{tier}"
        yield style.paint("bold", f"{title}{'═' * max(3, across - width(title))}")
        if len(suite.cases) > FOLD_ABOVE and not style.verbose:
            left_out = count(len(suite.cases) - len(shown), "passing case")
            yield from style.wrap(f"… {left_out} not listed (--verbose lists them)", begin="  ")
        yield from self._cases(shown)
        yield "─" * across
        yield from style.flow(_totals(suite, row), begin="  ", indent=" " * 4, between=" | ")
        for fact, sentence in zip(suite.stale_facts, suite.staleness_warnings, strict=False):
            yield from style.wrap(
                console_line(stale_line(fact, sentence)), begin="  ⚠ ", indent=" " * 4, colour="yellow"
            )
        if style.verbose:
            for notice in suite.notices:
                yield from style.wrap(console_line(notice), begin="  note: ", indent=" " * 4)

    def _cases(self, rows: Sequence[CaseRow]) -> Iterator[str]:
        both = [(row, row.case) for row in rows if row.case is not None]
        lines = _case_lines([_cells(row, case) for row, case in both], self._style)
        for (row, case), line in zip(both, lines, strict=True):
            glyph = _GLYPHS[case.status][1 if self._style.ascii else 0]
            yield f"  {self._style.paint(_PAINTED.get(case.status, 'dim'), glyph)} {line}"
            if case.error and case.status is not Status.NOT_RUN:
                broken = f"{row.here}: " if row.here else ""
                word = {Status.ERROR: broken, Status.SKIPPED: "skipped: "}.get(case.status, "")
                for one in row.failures if case.graded and case.status.judged else (case.error,):
                    yield from self._style.wrap(f"{word}{console_line(one, 500)}", begin="    → ", indent=" " * 6)

    def _counted(self) -> Iterator[str]:
        """What there is in numbers, and what it was compared with."""
        view, style = self._view, self._style
        yield from style.flow(_counts(view), between="   ")
        yield from style.flow(_rate(view), between="  ")
        if view.reruns:
            yield from style.wrap(view.reruns)
        for words in (*(view.sight if style.verbose else ()), *view.judges):
            yield from style.wrap(console_line(words, 1_000))
        if view.comparison is not None:
            yield from style.wrap(console_line(_baseline(view)))
            if older := older_baseline(view, mark=str):
                yield from style.wrap(console_line(older, 500))
            if passed_over := unmeasured_words(view, mark=str):
                yield from style.wrap(console_line(passed_over, 500))
            for note in view.notes:
                yield from style.wrap(console_line(note, 500), begin="⚠ ", colour="yellow")
        elif view.context.no_baseline_reason not in {None, NOT_ASKED_FOR.reason}:
            yield from style.wrap(console_line(f"not compared: {view.context.no_baseline_reason}", 1_000))

    def _verdict(self) -> Iterator[str]:
        """The last block: who reads a log begins at its end."""
        view, style, context = self._view, self._style, self._view.context
        words, colour = {
            Outcome.PASS: ("GATE PASSED", "green"),
            Outcome.FAIL: ("GATE FAILED", "red"),
            Outcome.ERROR: ("COULD NOT DECIDE", "yellow"),
        }[view.verdict.outcome]
        if view.unjudged:
            words = "NO VERDICT YET"
        reasons = [*view.reasons, *waived_counts(view.run)]
        said = [undecided_words(view.run, view.verdict)] if view.undecided else reasons
        ended = "" if view.unjudged else f"   exit {int(view.verdict.exit_code)}"
        yield from self._reasons(words, colour, [console_line(one, 1_000) for one in said], ended)
        if view.bad_day:
            yield from style.wrap(console_line(view.bad_day, 1_000))
        if view.false_alarms:
            yield from style.wrap(console_line(view.false_alarms, 1_000))
        if view.measured:
            yield from style.wrap(f"{view.measured.title.lower()}{view.measured.remark}:")
            for line in view.measured.lines():
                yield from style.wrap(console_line(line, 500), begin="  · ", indent=" " * 4)
        if context.result_path:
            yield from style.flow([context.result_path], begin="report: ", whole=True)
        if context.rerun_command and view.verdict.outcome is not Outcome.PASS:
            yield from command_lines("rerun:  ", context.rerun_command, style)
            if context.rerun_left_out:
                where = f"all of them are in {context.result_path}" if context.result_path else "see above"
                left_out = count(context.rerun_left_out, "more case")
                yield from style.wrap(f"and {left_out}: {where}", begin=" " * 8, indent=" " * 8, whole=True)
        if context.accept_line:
            yield from command_lines("accept: ", context.accept_line, style)

    def _reasons(self, words: str, colour: str, said: Sequence[str], ended: str) -> Iterator[str]:
        """The verdict and its reasons on one line, else each reason on its own; the exit code ends the first."""
        style = self._style
        together = style.plain(f"{words}: {'; '.join(said)}{ended}")
        if width(together) <= style.width:
            yield style.paint(colour, together)
            return
        first = [*style.wrap("".join(said[:1]), begin=f"{words}: ")] or [words]
        if width(first[-1]) + len(ended) > style.width:
            first.append(f"  {ended.strip()}")
        else:
            first[-1] += ended
        yield from (style.paint(colour, line) for line in first)
        for reason in said[1:]:
            yield from style.wrap(reason, begin="  ", colour=colour)


def _cells(row: CaseRow, case: CaseResult) -> Cells:
    """Id, description, time, and the score of a graded case, or how many of several trials passed."""
    time = f"{case.duration_ms:.0f}ms" if case.status.judged or case.duration_ms else ""
    passed = sum(trial.status is Status.PASSED for trial in case.trials)
    result = f"{passed}/{len(case.trials)}" if len(case.trials) > 1 else ""
    if case.graded and case.status.judged:
        result = row.here or ""
    flaky = " flaky" if result and case.flaky else ""
    return console_line(case.id), console_line(case.description), time, f"{result}{flaky}"


def _case_lines(rows: Sequence[Cells], style: ConsoleStyle) -> Iterator[str]:
    """A line for each case. Where room is short, ids lose their middle and descriptions their end."""
    if not rows:
        return
    times, results = (max(width(style.plain(row[place])) for row in rows) for place in (2, 3))
    results = min(results, style.width // 2)
    behind = sum(len(_GAP) + columns for columns in (times, results) if columns)
    room = style.width - _BEFORE - behind
    ids = min(max(width(style.plain(row[0])) for row in rows), MAX_ID)
    words = min(max(width(style.plain(row[1])) for row in rows), MAX_DESCRIPTION)
    if words and ids + len(_GAP) + words > room:
        narrow = min(ids, max(room - len(_GAP) - words, room * 3 // 5))
        left = room - len(_GAP) - narrow
        ids, words = (narrow, left) if left >= _LEAST else (ids, 0)
    ids = max(min(ids, room), 1)
    for name, description, time, result in rows:
        cells = [padded(style.cut_name(name, ids), ids)]
        cells += [padded(style.cut(description, words), words)] if words else []
        cells += [padded(time, times, right=True)] if times else []
        cells += [style.cut(result, results)] if results else []
        yield _GAP.join(cells).rstrip()


def _totals(suite: SuiteResult, row: SuiteRow) -> Iterator[str]:
    """The contract's four numbers together, then what the contract has no word for."""
    summary = suite.summary
    yield f"{summary.passed}/{summary.total_cases} passed"
    yield f"{summary.failed} failed"
    yield f"{summary.skipped_assertions} skipped assertions"
    yield f"{summary.total_duration_ms:.0f}ms total"
    if summary.errored:
        yield count(summary.errored, "error")
    if summary.skipped:
        yield f"{summary.skipped} skipped"
    if summary.not_run:
        yield f"{summary.not_run} not run"
    if row.score:
        yield f"mean score {row.score}"


def _counts(view: View) -> Iterator[str]:
    summary = view.summary
    yield f"pass {summary.passed}"
    yield f"fail {summary.failed}{view.failed_counts}"
    yield f"errors {summary.errored}{view.errored_counts}"
    yield f"not run {summary.not_run}"
    yield from view.more_counts
    if view.score_drops:
        yield f"score drops {len(view.score_drops)}"
    if summary.skipped:
        yield f"skipped {summary.skipped}"
    if summary.flaky and not view.refined:
        yield f"flaky {summary.flaky}"


def _rate(view: View) -> Iterator[str]:
    rates, unjudged = view.rates, view.summary.errored + view.summary.not_run + view.summary.skipped
    now, before = rates.now, rates.before
    of = f"{rates.passed} of {rates.judged}{f' judged, {unjudged} not judged' if unjudged else ''}"
    yield f"pass rate {percent(now)} ({of})"
    if now is not None and before is not None:
        yield f"baseline {percent(before)}"
        yield points(before, now)


def _baseline(view: View) -> str:
    assert view.comparison is not None
    facts, context = view.comparison.baseline, view.context
    branch = f"{context.branch}@" if context.branch else ""
    name, day = f"baseline {branch}{facts.sha[:7] if facts.sha else facts.run_id}", day_of(facts.timestamp)
    parts = [f"{name} of {day}" if day else name, *filter(None, [age(facts.age_days)])]
    if facts.commits_behind is not None:
        parts.append(f"{count(facts.commits_behind, 'commit')} behind")
    if view.baseline_is_stale:
        parts.append("stale: differences may come from the default branch")
    return " · ".join(parts)
