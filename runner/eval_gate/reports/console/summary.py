"""The summary on a terminal: the contract's block per suite, then what changed, and the verdict last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eval_gate.model.comparison import Outcome
from eval_gate.model.execution import Status
from eval_gate.model.result import CaseResult, StaleKind, SuiteResult
from eval_gate.registry.staleness import console_line as console_words
from eval_gate.reports.console.changes import changes
from eval_gate.reports.console.style import FOLD_ABOVE, MAX_DESCRIPTION, MAX_ID, ConsoleStyle, columns, width
from eval_gate.reports.phrases import unmeasured
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.tables import SuiteRow
from eval_gate.reports.view.view import View
from eval_gate.reports.words.numbers import age, count, percent, points
from eval_gate.reports.words.verdict import undecided
from eval_gate.reports.words.waivers import waived_counts
from eval_gate.results.baseline import NOT_ASKED_FOR
from eval_gate.text.escape import console_line, cut

WIDTH: Final = 67

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
        for suite, row, cases in self._view.by_suite:
            yield from self._suite(suite, row, cases)
            yield ""
        yield from changes(self._view, self._style)
        waivers = self._view.waivers.warnings
        yield from self._style.warnings((*waivers, *self._view.warnings, *self._view.file_notes))
        yield from self._verdict()

    def _suite(self, suite: SuiteResult, row: SuiteRow, cases: tuple[CaseRow, ...]) -> Iterator[str]:
        tier = f" — {suite.tier.value} evals " if suite.tier else " — evals "
        name = console_line(suite.tool_name, 60)
        used = width(name) + len(f"═══ {tier}")
        yield self._style.paint("bold", f"═══ {name}{tier}{'═' * max(3, WIDTH - used)}")
        shown = cases
        if len(shown) > FOLD_ABOVE and not self._style.verbose:
            shown = tuple(one for one in cases if one.status is not Status.PASSED)
            yield f"  … {count(len(cases) - len(shown), 'passing case')} not listed (--verbose lists them)"
        yield from self._cases(shown)
        yield "─" * WIDTH
        yield f"  {_totals(suite)}{f' | mean score {row.score}' if row.score else ''}"
        for fact, sentence in zip(suite.stale_facts, suite.staleness_warnings, strict=False):
            # the contract's sample has a short form for the hash alone
            words = console_words(fact) if fact.kind is StaleKind.DESCRIPTION else sentence
            yield self._style.paint("yellow", f"  ⚠ {console_line(words)}")
        if self._style.verbose:
            yield from (f"  note: {console_line(notice)}" for notice in suite.notices)

    def _cases(self, rows: tuple[CaseRow, ...]) -> Iterator[str]:
        both = [(row, row.case) for row in rows if row.case is not None]
        lines = columns([_cells(row, case) for row, case in both], ("left", "left", "right", "left"))
        for (row, case), line in zip(both, lines, strict=True):
            glyph = _GLYPHS[case.status][1 if self._style.ascii else 0]
            yield f"  {self._style.paint(_PAINTED.get(case.status, 'dim'), glyph)} {line}"
            if case.error and case.status is not Status.NOT_RUN:
                broken = f"{row.here}: " if row.here else ""
                word = {Status.ERROR: broken, Status.SKIPPED: "skipped: "}.get(case.status, "")
                said = row.failures if case.graded and case.status.judged else (case.error,)
                yield from (f"    → {word}{console_line(one, 500)}" for one in said)

    def _verdict(self) -> Iterator[str]:
        view = self._view
        yield _counts(view)
        yield _rate(view)
        if view.reruns:
            yield view.reruns
        if view.comparison is not None:
            yield console_line(_baseline(view))
            if passed_over := unmeasured(view, mark=str):
                yield console_line(passed_over, 500)
            yield from (self._style.paint("yellow", f"⚠ {console_line(note, 500)}") for note in view.notes)
        elif view.context.no_baseline_reason not in {None, NOT_ASKED_FOR.reason}:
            yield console_line(f"not compared: {view.context.no_baseline_reason}", 1_000)
        yield ""
        words, colour = {
            Outcome.PASS: ("GATE PASSED", "green"),
            Outcome.FAIL: ("GATE FAILED", "red"),
            Outcome.ERROR: ("COULD NOT DECIDE", "yellow"),
        }[view.verdict.outcome]
        reasons = "; ".join([*view.reasons, *waived_counts(view.run)])
        why = console_line(undecided(view.run, view.verdict) if view.undecided else reasons, 1_000)
        yield self._style.paint(colour, f"{words}: {why}   exit {int(view.verdict.exit_code)}")
        if view.measured:
            yield f"{view.measured.title.lower()}{view.measured.remark}:"
            yield from (f"  · {console_line(line, 500)}" for line in view.measured.lines())
        if view.context.result_path:
            yield f"report: {view.context.result_path}"
        if view.context.rerun_command and view.verdict.outcome is not Outcome.PASS:
            yield f"rerun:  {view.context.rerun_command}"
        if view.context.accept_line:
            yield f"accept: {view.context.accept_line}"


def _cells(row: CaseRow, case: CaseResult) -> tuple[str, ...]:
    """Id, description, time, and the score of a graded case, or how many of several trials passed."""
    time = f"{case.duration_ms:.0f}ms" if case.status.judged or case.duration_ms else ""
    passed = sum(trial.status is Status.PASSED for trial in case.trials)
    result = f"{passed}/{len(case.trials)}" if len(case.trials) > 1 else ""
    if case.graded and case.status.judged:
        result = row.here or ""
    flaky = " flaky" if result and case.flaky else ""
    named = cut(console_line(case.id), MAX_ID), cut(console_line(case.description), MAX_DESCRIPTION)
    return (*named, time, f"{result}{flaky}")


def _totals(suite: SuiteResult) -> str:
    """The contract's four numbers together, then what the contract has no word for."""
    summary = suite.summary
    parts = [
        f"{summary.passed}/{summary.total_cases} passed",
        f"{summary.failed} failed",
        f"{summary.skipped_assertions} skipped assertions",
        f"{summary.total_duration_ms:.0f}ms total",
    ]
    if summary.errored:
        parts.append(count(summary.errored, "error"))
    if summary.skipped:
        parts.append(f"{summary.skipped} skipped")
    if summary.not_run:
        parts.append(f"{summary.not_run} not run")
    return " | ".join(parts)


def _counts(view: View) -> str:
    summary = view.summary
    parts = [f"pass {summary.passed}", f"fail {summary.failed}{view.failed_counts}"]
    parts.append(f"errors {summary.errored}{view.errored_counts}")
    parts.append(f"not run {summary.not_run}")
    parts += view.more_counts
    if view.score_drops:
        parts.append(f"score drops {len(view.score_drops)}")
    if summary.skipped:
        parts.append(f"skipped {summary.skipped}")
    if summary.flaky and not view.refined:
        parts.append(f"flaky {summary.flaky}")
    return "   ".join(parts)


def _rate(view: View) -> str:
    rates, unjudged = view.rates, view.summary.errored + view.summary.not_run + view.summary.skipped
    now, before = rates.now, rates.before
    of = f"{rates.passed} of {rates.judged}{f' judged, {unjudged} not judged' if unjudged else ''}"
    rate = f"pass rate {percent(now)} ({of})"
    return rate if now is None or before is None else f"{rate}  baseline {percent(before)}  {points(before, now)}"


def _baseline(view: View) -> str:
    assert view.comparison is not None
    facts, context = view.comparison.baseline, view.context
    branch = f"{context.base_branch}@" if context.base_branch else ""
    parts = [f"baseline {branch}{facts.sha[:7] if facts.sha else facts.run_id}", *filter(None, [age(facts.age_days)])]
    if facts.commits_behind is not None:
        parts.append(f"{count(facts.commits_behind, 'commit')} behind")
    if view.baseline_is_stale:
        parts.append("stale: differences may come from the default branch")
    return " · ".join(parts)
