"""`eval-gate power` at work: the record is found, the figures are made, and put side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from eval_gate.cli.records.stored_runs import results_folder
from eval_gate.config.policy import DEFAULT_CONFIRM
from eval_gate.errors import GateError
from eval_gate.gate.evidence.suite.level import MAX_RUNS
from eval_gate.gate.judge import quarantined_cases
from eval_gate.gate.power.cases import CaseGroups, cases_before, with_confirm, with_history, with_number
from eval_gate.gate.power.sight import MOST_CONFIRM, Sight, sight_of
from eval_gate.gate.waivers.file import known_waivers
from eval_gate.reports.words.numbers import count
from eval_gate.reports.words.power import ungated_words
from eval_gate.results.baseline import NoBaseline
from eval_gate.results.read import find_baseline
from eval_gate.session.rejudge import rules_for
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import console_line

MOST_LISTED: Final = 10
"""Cases that cannot be gated and are listed without --verbose."""
_PLACE: Final = "on record"
_HEAD: Final = ("", "every time", "half of the time", "1 time in 5", "loss in every case")
_RECORD: Final = "the record as it is"


class Supposition(FrozenStruct):
    """What somebody wants to know of: so many runs on record, cases, re-runs of a case in doubt. None: as it is."""

    history: int | None = None
    cases: int | None = None
    confirm: int | None = None

    @property
    def anything(self) -> bool:
        """Whether anything is supposed."""
        return any(one is not None for one in (self.history, self.cases, self.confirm))


class ForecastRow(FrozenStruct):
    """One line of the table; the first is about the record as it is."""

    label: str
    cases: CaseGroups
    sight: Sight


def forecast_rows(
    reference: str, supposed: Supposition, output_dir: str | None, flags: Mapping[str, JsonValue]
) -> list[ForecastRow]:
    """The record as it is, then what else there may be. Raises GateError `baseline-not-found` without a record."""
    baseline = find_baseline(reference, results_folder(output_dir, reference))
    if isinstance(baseline, NoBaseline):
        hint = "`eval-gate run` makes the first run; RUN names another, by its id or its path"
        raise GateError("baseline-not-found", f"no record yet: {baseline.reason}", hint)
    result = baseline.result
    rules = rules_for(result, flags)
    waivers = known_waivers(rules, Path.cwd(), datetime.now(UTC).date())
    now = cases_before(
        baseline,
        rules.policy,
        quarantined_cases(result, waivers, rules.policy.must_pass),
    )
    others = [_supposed(now, supposed)] if supposed.anything else list(_more(now))
    return [ForecastRow(label, cases, sight_of(cases)) for label, cases in ((_RECORD, now), *others)]


def _supposed(now: CaseGroups, supposed: Supposition) -> tuple[str, CaseGroups]:
    said: list[str] = []
    cases = now
    if supposed.history is not None:
        cases, said = with_history(cases, supposed.history), [*said, count(supposed.history, "run")]
    if supposed.cases is not None:
        cases, said = with_number(cases, supposed.cases), [*said, count(supposed.cases, "case")]
    if supposed.confirm is not None:
        cases, said = with_confirm(cases, supposed.confirm), [*said, f"up to {count(supposed.confirm, 're-run')}"]
    return f"with {', '.join(said)}", cases


def _more(now: CaseGroups) -> Iterator[tuple[str, CaseGroups]]:
    """Twice of each thing that there can be more of."""
    longer = min(now.runs * 2, MAX_RUNS)
    if 0 < now.runs < longer:
        yield f"with {longer} runs on record", with_history(now, longer)
    if now.number:
        yield f"with {now.number * 2:,} such cases", with_number(now, now.number * 2)
    again = min(now.confirmation.confirm * 2 or DEFAULT_CONFIRM, MOST_CONFIRM)
    if again > now.confirmation.confirm:
        yield f"with up to {count(again, 're-run')}", with_confirm(now, again)


def table(rows: Sequence[ForecastRow], *, every: bool) -> Iterator[str]:
    """The figures side by side, then the cases that cannot be gated; all of these where `every` is asked for."""
    now = rows[0]
    sight = now.sight
    confirm = sight.confirm
    again = f"up to {count(confirm, 're-run')} of a case in doubt" if confirm else "no re-runs"
    yield f"{count(sight.cases, 'case')}, {count(sight.runs, 'run')} on record, {again}"
    if now.cases.aside:
        yield f"{count(now.cases.aside, 'more case')} in no test: in quarantine"
    yield ""
    yield "How often one run finds a case that begins to fail so often, and the least loss it finds in 9 of 10 runs:"
    yield ""
    cells = [_HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(_HEAD))]
    for line in cells:
        first, *others = (
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        yield "   ".join((first, *others)).rstrip()
    yield from _remarks(rows)
    if sight.ungated:
        yield ""
        yield f"{count(len(sight.ungated), 'case')} cannot be gated, even if it fails every time:"
        shown = sight.ungated if every else sight.ungated[:MOST_LISTED]
        for one in shown:
            yield f"  {console_line(ungated_words(one, _PLACE), 500)}"
        if left := len(sight.ungated) - len(shown):
            yield f"  and {count(left, 'more case')} (--verbose lists them)"


def _cells(row: ForecastRow) -> tuple[str, ...]:
    sight = row.sight
    loss = "-" if not sight.loss_known else "none" if sight.loss is None else count(sight.loss, "point")
    return (row.label, *(f"{chance * 100:.0f} %" for chance in (sight.always, sight.half, sight.fifth)), loss)


def _remarks(rows: Sequence[ForecastRow]) -> Iterator[str]:
    """What the figures do not say of themselves."""
    now = rows[0].cases
    if any(not row.sight.confirm for row in rows):
        yield ""
        yield "Without re-runs every failure of a case that passed before counts: it is found as often as it fails, and"
        yield "so is one that only flakes. What loss is seen cannot be said: the gate is red without one too."
    if now.allowed:
        yield ""
        yield f"{count(now.allowed, 'regression')} may pass (allowedRegressions), so no loss can be said to be found."
    if now.runs >= MAX_RUNS:
        yield ""
        yield f"The record is full: it holds the newest {MAX_RUNS} runs, so more history would change nothing."


def as_data(rows: Sequence[ForecastRow]) -> dict[str, JsonValue]:
    """The same for programs: chances 0 to 1, the loss in points."""
    ungated: list[JsonValue] = [
        {
            "suite": one.key.suite,
            "caseId": one.key.case_id,
            "why": one.reason.value,
            "failures": one.record.failures,
            "runs": one.record.runs,
            "executions": one.executions,
            "needed": one.needed,
        }
        for one in rows[0].sight.ungated
    ]
    return {"rows": [_row(row) for row in rows], "aside": rows[0].cases.aside, "ungated": ungated}


def _row(row: ForecastRow) -> JsonValue:
    sight = row.sight
    return {
        "label": row.label,
        "cases": sight.cases,
        "runs": sight.runs,
        "confirm": sight.confirm,
        "found": {"always": sight.always, "half": sight.half, "oneInFive": sight.fifth},
        "smallestLossPoints": sight.loss,
    }
