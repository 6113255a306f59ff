"""The summary on a terminal: the contract's block per suite, then what changed, and the verdict last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from eval_gate.model.comparison import Outcome
from eval_gate.model.result import CaseResult, StaleKind, Status, SuiteResult
from eval_gate.registry.staleness import console_line as console_words
from eval_gate.reports.console.changes import MAX_ID, changes
from eval_gate.reports.phrases import unmeasured
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.tables import SuiteRow
from eval_gate.reports.view.view import View
from eval_gate.reports.words.numbers import age, count, percent, points
from eval_gate.reports.words.verdict import undecided
from eval_gate.reports.words.waivers import waived_counts
from eval_gate.results.baseline import NOT_ASKED_FOR
from eval_gate.text.escape import console_line, cut

__all__ = ["FOLD_ABOVE", "MAX_DESCRIPTION", "MAX_ID", "ConsoleStyle", "pad", "render_console", "width"]

WIDTH: Final = 67
MAX_DESCRIPTION: Final = 60
FOLD_ABOVE: Final = 200
"""Cases of a suite above which passing ones are only counted, unless everything is asked for."""
MAX_WARNINGS: Final = 10

_GLYPHS: Final = {
    Status.PASSED: ("✓", "+"),
    Status.FAILED: ("✗", "x"),
    Status.ERROR: ("!", "!"),
    Status.SKIPPED: ("-", "-"),
    Status.NOT_RUN: ("·", "."),
}
_ASCII: Final = str.maketrans(
    {"═": "=", "─": "-", "→": "->", "⚠": "!", "–": "-", "−": "-", "—": "-", "…": "...", "⏎": "/", "·": "|"}
)
_COLOURS: Final = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}


@dataclass(frozen=True, slots=True)
class ConsoleStyle:
    """How the place it goes to wants it."""

    colour: bool = False
    ascii: bool = False
    verbose: bool = False


def render_console(view: View, style: ConsoleStyle) -> str:
    """The whole summary, ending with a line break."""
    lines = list(_Console(view, style).lines())
    text = "\n".join(lines) + "\n"
    return text.translate(_ASCII) if style.ascii else text


class _Console:
    def __init__(self, view: View, style: ConsoleStyle) -> None:
        self._view = view
        self._style = style

    def lines(self) -> Iterator[str]:
        for suite, row, cases in self._view.by_suite:
            yield from self._suite(suite, row, cases)
            yield ""
        yield from changes(self._view, self._paint, verbose=self._style.verbose)
        yield from self._warnings()
        yield from self._verdict()

    def _paint(self, colour: str, text: str) -> str:
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self._style.colour else text

    def _suite(self, suite: SuiteResult, row: SuiteRow, cases: tuple[CaseRow, ...]) -> Iterator[str]:
        tier = f" — {suite.tier.value} evals " if suite.tier else " — evals "
        name = console_line(suite.tool_name, 60)
        used = width(name) + len(f"═══ {tier}")
        yield self._paint("bold", f"═══ {name}{tier}{'═' * max(3, WIDTH - used)}")
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
            yield self._paint("yellow", f"  ⚠ {console_line(words)}")
        if self._style.verbose:
            yield from (f"  note: {console_line(notice)}" for notice in suite.notices)

    def _cases(self, rows: tuple[CaseRow, ...]) -> Iterator[str]:
        cases = [row.case for row in rows if row.case is not None]
        ids = [cut(console_line(case.id), MAX_ID) for case in cases]
        descriptions = [cut(console_line(case.description), MAX_DESCRIPTION) for case in cases]
        id_width = max(map(width, ids), default=0)
        text_width = max(map(width, descriptions), default=0)
        for row, case, case_id, description in zip(rows, cases, ids, descriptions, strict=True):
            glyph = _GLYPHS[case.status][1 if self._style.ascii else 0]
            colour = {"passed": "green", "failed": "red", "error": "yellow"}.get(case.status.value, "dim")
            time = f"{case.duration_ms:.0f}ms" if case.status.judged or case.duration_ms else ""
            line = f"{pad(case_id, id_width)}  {pad(description, text_width)}  {time:>8}{_result(case, row)}"
            yield f"  {self._paint(colour, glyph)} {line}".rstrip()
            if case.error and case.status is not Status.NOT_RUN:
                broken = f"{row.here}: " if row.here else ""
                word = {"error": broken, "skipped": "skipped: "}.get(case.status.value, "")
                lines = row.failures if case.graded and case.status.judged else (case.error,)
                yield from (f"    → {word}{console_line(said, 500)}" for said in lines)

    def _warnings(self) -> Iterator[str]:
        warnings = (*self._view.waivers.warnings, *self._view.warnings, *self._view.file_notes)
        shown = warnings if self._style.verbose else warnings[:MAX_WARNINGS]
        for warning in shown:
            yield self._paint("yellow", f"⚠ {console_line(warning, 500)}")
        if len(warnings) > len(shown):
            yield f"⚠ … and {count(len(warnings) - len(shown), 'more warning')} (--verbose lists them)"
        if warnings:
            yield ""

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
            yield from (self._paint("yellow", f"⚠ {console_line(note, 500)}") for note in view.notes)
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
        yield self._paint(colour, f"{words}: {why}   exit {int(view.verdict.exit_code)}")
        if view.measured:
            yield f"{view.measured.title.lower()}{view.measured.remark}:"
            yield from (f"  · {console_line(line, 500)}" for line in view.measured.lines())
        if view.context.result_path:
            yield f"report: {view.context.result_path}"
        if view.context.rerun_command and view.verdict.outcome is not Outcome.PASS:
            yield f"rerun:  {view.context.rerun_command}"
        if view.context.accept_line:
            yield f"accept: {view.context.accept_line}"


def _result(case: CaseResult, row: CaseRow) -> str:
    """What stands behind the time: the score of a graded case, or how many of several trials passed."""
    if case.graded and case.status.judged:
        return f"  {row.here}{' flaky' if case.flaky else ''}"
    return f"  {_trials(case)}" if len(case.trials) > 1 else ""


def _trials(case: CaseResult) -> str:
    passed = sum(trial.status is Status.PASSED for trial in case.trials)
    return f"{passed}/{len(case.trials)}{' flaky' if case.flaky else ''}"


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


def width(text: str) -> int:
    """Columns the text takes on a terminal: wide characters take two."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    return max(wcswidth(text), 0)


def pad(text: str, columns: int) -> str:
    """The text filled up with blanks to so many columns."""
    return text + " " * max(0, columns - width(text))
