"""Figures of `eval-gate power`: reads the history, computes the rows and formats the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from eval_gate.cli.stored_runs.run_settings import find_results_folder
from eval_gate.config.policy import DEFAULT_RERUNS
from eval_gate.errors import GateError
from eval_gate.gate.evidence.suite.branch_level import MAX_RUNS
from eval_gate.gate.power.case_groups import (
    CaseGroups,
    group_baseline_cases,
    scale_history,
    scale_number,
    set_max_reruns,
)
from eval_gate.gate.power.detection_power import MAX_RERUNS, DetectionPower, compute_detection_power
from eval_gate.gate.verdict_decision import find_quarantined_cases
from eval_gate.gate.waivers.waiver_file import load_waivers
from eval_gate.reports.wording.power import describe_ungated_case
from eval_gate.results.baseline import NoBaseline
from eval_gate.results.run_reader import find_baseline
from eval_gate.session.stored_run import load_run_config
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import format_count, to_console_line

MAX_LISTED: Final = 10
"""Cases that cannot be gated and are listed without --verbose."""
_PLACE_WORDS: Final = "in the history"
_TABLE_HEAD: Final = ("", "always", "half the time", "1 time in 5", "loss in every case")
_CURRENT_LABEL: Final = "current history"


class Supposition(FrozenStruct):
    """Assumed number of runs in the history, cases and re-runs. None: as it is."""

    history: int | None = None
    cases: int | None = None
    reruns: int | None = None

    @property
    def is_given(self) -> bool:
        """Whether anything is assumed."""
        return any(one is not None for one in (self.history, self.cases, self.reruns))


class ForecastRow(FrozenStruct):
    """One row of the table; the first row describes the current history."""

    label: str
    cases: CaseGroups
    sight: DetectionPower


def build_forecast_rows(
    reference: str, supposed: Supposition, output_dir: str | None, flags: Mapping[str, JsonValue]
) -> list[ForecastRow]:
    """Build the rows: the history, then assumptions. Raises GateError `baseline-not-found` without a history."""
    baseline = find_baseline(reference, find_results_folder(output_dir, reference))
    if isinstance(baseline, NoBaseline):
        hint = "make the first run with `eval-gate run`, or name another RUN by its id or path"
        raise GateError("baseline-not-found", f"no history yet: {baseline.reason}", hint)
    result = baseline.result
    rules = load_run_config(result, flags)
    waivers = load_waivers(rules, Path.cwd(), datetime.now(UTC).date())
    base = group_baseline_cases(baseline, rules.policy, find_quarantined_cases(result, waivers, rules.policy.must_pass))
    changes = [_apply_supposition(base, supposed)] if supposed.is_given else list(_iter_suppositions(base))
    return [
        ForecastRow(label, cases, compute_detection_power(cases)) for label, cases in ((_CURRENT_LABEL, base), *changes)
    ]


def _apply_supposition(current: CaseGroups, supposed: Supposition) -> tuple[str, CaseGroups]:
    phrases: list[str] = []
    cases = current
    if supposed.history is not None:
        cases, phrases = scale_history(cases, supposed.history), [*phrases, format_count(supposed.history, "run")]
    if supposed.cases is not None:
        cases, phrases = scale_number(cases, supposed.cases), [*phrases, format_count(supposed.cases, "case")]
    if supposed.reruns is not None:
        cases, phrases = (
            set_max_reruns(cases, supposed.reruns),
            [*phrases, f"up to {format_count(supposed.reruns, 're-run')}"],
        )
    return f"with {', '.join(phrases)}", cases


def _iter_suppositions(current: CaseGroups) -> Iterator[tuple[str, CaseGroups]]:
    longer = min(current.runs * 2, MAX_RUNS)
    if 0 < current.runs < longer:
        yield f"with {longer} runs in the history", scale_history(current, longer)
    if current.number:
        yield f"with {current.number * 2:,} such cases", scale_number(current, current.number * 2)
    more_reruns = min(current.criteria.max_reruns * 2 or DEFAULT_RERUNS, MAX_RERUNS)
    if more_reruns > current.criteria.max_reruns:
        yield f"with up to {format_count(more_reruns, 're-run')}", set_max_reruns(current, more_reruns)


def iter_table_lines(rows: Sequence[ForecastRow], *, every: bool) -> Iterator[str]:
    """Yield the table with all figures, and the cases that cannot be gated: `every` one, or `MAX_LISTED`."""
    current = rows[0]
    sight = current.sight
    max_reruns = sight.max_reruns
    reruns = f"up to {format_count(max_reruns, 're-run')} of a suspected regression" if max_reruns else "no re-runs"
    yield f"{format_count(sight.cases, 'case')}, {format_count(sight.runs, 'run')} in the history, {reruns}"
    if current.cases.quarantined:
        yield f"{format_count(current.cases.quarantined, 'more case')} in quarantine, not counted"
    yield ""
    yield "Chance that one run detects a case that begins to fail (always, half the time, …), and the smallest loss in"
    yield "every case that it detects in 9 of 10 runs:"
    yield ""
    cells = [_TABLE_HEAD, *(_format_cells(row) for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(_TABLE_HEAD))]
    for line in cells:
        padded = (
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        yield "   ".join(padded).rstrip()
    yield from _iter_remarks(rows)
    if sight.ungated_cases:
        yield ""
        number = len(sight.ungated_cases)
        they = "it always fails" if number == 1 else "they always fail"
        yield f"{format_count(number, 'case')} cannot be gated, even if {they}:"
        listed_cases = sight.ungated_cases if every else sight.ungated_cases[:MAX_LISTED]
        for one in listed_cases:
            yield f"  {to_console_line(describe_ungated_case(one, _PLACE_WORDS), 500)}"
        if more_cases := len(sight.ungated_cases) - len(listed_cases):
            yield f"  and {format_count(more_cases, 'more case')} (--verbose lists them)"


def _format_cells(row: ForecastRow) -> tuple[str, ...]:
    sight = row.sight
    loss = (
        "-"
        if not sight.is_loss_known
        else "none"
        if sight.smallest_loss is None
        else format_count(sight.smallest_loss, "point")
    )
    return (row.label, *(f"{chance * 100:.0f} %" for chance in sight.chances), loss)


def _iter_remarks(rows: Sequence[ForecastRow]) -> Iterator[str]:
    current = rows[0].cases
    if any(not row.sight.max_reruns for row in rows):
        yield ""
        yield "Without re-runs, every failure of a case that passed before counts, also of a flaky case. The smallest"
        yield "loss is unknown, because the gate fails without a loss too."
    if current.allowed_regressions:
        yield ""
        yield (
            f"{format_count(current.allowed_regressions, 'regression')} may pass (allowedRegressions), so the gate is "
            "not sure to detect any loss."
        )
    if current.runs >= MAX_RUNS:
        yield ""
        yield f"The history is full: it has the newest {MAX_RUNS} runs, so more runs do not change the figures."


def as_data(rows: Sequence[ForecastRow]) -> dict[str, JsonValue]:
    """Convert the rows to JSON data, with chances from 0 to 1 and the loss in points."""
    ungated: list[JsonValue] = [
        {
            "suite": one.key.suite,
            "caseId": one.key.case_id,
            "reason": one.reason.value,
            "failures": one.history.failures,
            "runs": one.history.executions,
            "executions": one.executions,
            "needed": one.needed_failures,
        }
        for one in rows[0].sight.ungated_cases
    ]
    return {"rows": [_row_as_data(row) for row in rows], "quarantined": rows[0].cases.quarantined, "ungated": ungated}


def _row_as_data(row: ForecastRow) -> JsonValue:
    sight = row.sight
    return {
        "label": row.label,
        "cases": sight.cases,
        "runs": sight.runs,
        "reruns": sight.max_reruns,
        "found": {
            "always": sight.chances.dead_case,
            "half": sight.chances.half_failing,
            "oneInFive": sight.chances.fifth_failing,
        },
        "smallestLossPoints": sight.smallest_loss,
    }
