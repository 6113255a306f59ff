"""The page's data: one row for every case as columns, and the details of those that have room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, Final

from eval_gate.model.execution import Status
from eval_gate.reports.links import anchor_of
from eval_gate.reports.page.case import LETTERS, case_data
from eval_gate.reports.page.cuts import LADDER, MANY_CASES, PageCases, fitted, island
from eval_gate.reports.view.groups import group_causes
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.view import View
from eval_gate.reports.words.grounds import place_of
from eval_gate.struct import FrozenStruct
from eval_gate.text.inert import visible_text

MAX_CAUSES: Final = 50
_TAGS: Final = 20
_FRAME: Final = 300_000
"""Bytes of the page that are neither rows nor details: our script and style sheet, the first screen, plain HTML."""
_QUIET: Final = frozenset({"passing", "added", "incomparable", "skipped", "not-run", "flaky-record"})
_WORDS: Final = 160
"""Characters of what failed that stand in a row of the list, where there are many cases."""


class Group(FrozenStruct):
    """The cases that one chip stands for. `tone` is its colour: fail, warn, pass, or soft for what needs no look."""

    key: str
    title: str
    tone: str
    rows: tuple[CaseRow, ...]


class PageData(FrozenStruct, eq=False, dict=True):
    """A view as the page has it. Each case is in one group: the first that says something of it."""

    view: View

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The groups that have cases, those to look at first."""
        return tuple(_once(_groups(self.view)))

    @cached_property
    def rows(self) -> tuple[CaseRow, ...]:
        """All cases in the order of their groups."""
        return tuple(row for group in self.groups for row in group.rows)

    @property
    def many(self) -> bool:
        """Whether passing cases are only rows."""
        return len(self.rows) > MANY_CASES

    @cached_property
    def kept(self) -> PageCases:
        """What is said of single cases, by their place among the rows."""
        wanted = [(place, row) for place, row in enumerate(self.rows) if not self.many or place not in self._quiet]
        used = len(island(self._columns).encode()) + _FRAME
        return fitted(wanted, lambda row, cut: case_data(row, self.view, cut), used)

    @cached_property
    def _quiet(self) -> frozenset[int]:
        """The places of cases that nobody will look at first."""
        keys = [group.key for group in self.groups for _ in group.rows]
        bad = {Status.FAILED, Status.ERROR}
        return frozenset(n for n, row in enumerate(self.rows) if keys[n] in _QUIET and row.status not in bad)

    @cached_property
    def left_out(self) -> tuple[str, ...]:
        """What a reader would otherwise miss without knowing, in sentences."""
        said = []
        if self.many:
            said.append(
                f"Of more than {MANY_CASES:,} cases, passing ones are only listed; run.json holds their answers."
            )
        if self.kept.cut is not LADDER[0]:
            said.append(
                f"So that this page opens at once, each text on it ends after {self.kept.cut.text:,} characters; "
                "run.json holds more."
            )
        if self.kept.without:
            said.append(f"Of the last {self.kept.without:,} cases there is only the row.")
        return tuple(said)

    @cached_property
    def data(self) -> dict[str, Any]:
        """All of it, as the script reads it."""
        return {
            "groups": [[one.key, one.title, one.tone, len(one.rows)] for one in self.groups],
            "suites": [[visible_text(row.file), visible_text(row.name), row.stale] for row in self.view.suites],
            "rows": self._columns,
            "causes": [visible_text(cause.what)[:300] for cause in self.view.causes[:MAX_CAUSES]],
            "history": self._history,
            "place": visible_text(place_of(self.view.context)),
            "compared": self.view.comparison is not None,
            "leftOut": list(self.left_out),
            "carries": self._carries,
        }

    @cached_property
    def _carries(self) -> dict[str, bool]:
        """Which evidence the run has of any case at all. What a format never carries leaves no gap in each case."""
        sides = [side.details for row in self.rows for side in (row.case, row.compared and row.compared.before) if side]
        return {
            "answers": any(details.response is not None for details in sides),
            "calls": any(details.tool_calls or details.tools_called for details in sides),
        }

    @cached_property
    def _columns(self) -> dict[str, Any]:
        suites = {row.file: place for place, row in enumerate(self.view.suites)}
        targets, tags = _Names(), _Names()
        rows = self.rows
        places = range(len(rows))
        columns: dict[str, Any] = {
            "id": [visible_text(row.id) for row in rows],
            "suite": [suites.get(row.suite, -1) for row in rows],
            "group": [place for place, group in enumerate(self.groups) for _ in group.rows],
            "status": "".join(LETTERS[row.status] if row.status else "-" for row in rows),
            "ms": [round(row.case.duration_ms) if row.case else 0 for row in rows],
            "anchor": "".join(anchor_of(row.key)[-8:] for row in rows),
            "cost": [round(cost * 1e6) for cost in costs] if any(costs := [_cost(row) for row in rows]) else [],
            # of some cases only
            "drop": {n: round(drop, 3) for n in places if (drop := max(rows[n].drop, 0.0))},
            "what": {n: visible_text(what)[:_WORDS] for n in places if (what := _what(rows[n]))},
            "cause": self._causes,
            "flaky": [n for n in places if rows[n].flaky],
            "stale": [n for n in places if rows[n].stale],
            "dropped": [n for n in places if rows[n].score_drop],
            "elsewhere": {n: visible_text(rows[n].suite) for n in places if rows[n].suite not in suites},
        }
        if not self.many:
            columns["about"] = {n: visible_text(row.case.description)[:300] for n, row in enumerate(rows) if row.case}
        columns["target"] = {n: targets[row.case.target] for n, row in enumerate(rows) if row.case and row.case.target}
        sets: dict[tuple[int, ...], int] = {(): 0}
        found = [tuple(tags[tag] for tag in row.case.tags[:_TAGS]) if row.case else () for row in rows]
        columns["tagSet"] = [sets.setdefault(one, len(sets)) for one in found] if any(found) else []
        return columns | {"tagSets": list(sets), "targetNames": targets.names, "tagNames": tags.names}

    @cached_property
    def _causes(self) -> dict[int, int]:
        """Which cause a case is an instance of, by their places."""
        causes = [cause.what for cause in self.view.causes[:MAX_CAUSES]]
        grouped = {id(row) for row in (self.view.broken or self.view.failing)}
        known: dict[str, int | None] = {}
        found = {}
        for place, row in enumerate(self.rows):
            if id(row) not in grouped:
                continue
            said = row.cause or ""
            if said not in known:
                known[said] = next((n for n, what in enumerate(causes) if _alike(row.cause, what)), None)
            if (cause := known[said]) is not None:
                found[place] = cause
        return found

    @property
    def _history(self) -> list[list[str]]:
        found = self.view.comparison.history if self.view.comparison else ()
        return [[visible_text((one.sha or one.run_id)[:7]), visible_text(one.timestamp[:10])] for one in found]


class _Names:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._places: dict[str, int] = {}

    def __getitem__(self, name: str) -> int:
        if name not in self._places:
            self._places[name] = len(self.names)
            self.names.append(visible_text(name)[:200])
        return self._places[name]


def _alike(said: str | None, cause: str) -> bool:
    """Whether a failure is an instance of this cause."""
    return len(group_causes([("", said), ("", cause)])) == 1


def _cost(row: CaseRow) -> float:
    return (row.case.cost_usd or 0.0) + (row.case.judge_cost_usd or 0.0) if row.case else 0.0


def _what(row: CaseRow) -> str | None:
    return row.what if row.status is not Status.PASSED or row.change_words == "regression" else None


def _groups(view: View) -> Iterator[Group]:
    """The lists of a run as people look through them. A case may be in several."""
    yield Group("regression", "Regressions", "fail", view.regressions)
    yield Group("suspected", "Suspected regressions, not re-run", "fail", view.suspected)
    yield Group("must-pass", "Must pass", "fail", view.must_pass)
    yield Group("not-decided", "Not decided", "warn", view.not_decided)
    yield Group("failing", "Failing, nothing to compare with" if view.comparison else "Failing", "fail", view.failing)
    yield Group("score-drop", "Score drops", "warn", view.score_drops)
    for errors in view.errors_by_blame:
        yield Group(f"error-{errors.title.split()[0].lower()}", f"{errors.title}s", "warn", errors.rows)
    yield Group("fresh-flaky", "New or changed, and flaky", "warn", view.fresh_flaky)
    yield Group("unsettled", "Not sure", "warn", view.unsettled)
    yield Group("new-pass", "New passes", "pass", view.new_passes)
    yield Group("by-control", "Fails with the base branch's agent too", "soft", view.by_control)
    yield Group("main-broke", "Broken before this change", "soft", view.main_broke)
    yield Group("waived", "Accepted and quarantined", "soft", view.waived)
    yield Group("flaky", "Flaky", "warn", view.flaky)
    yield Group("still-failing", "Still failing", "soft", view.known_failing)
    yield Group("still-errored", "Not judged on either side", "soft", view.still_errored)
    yield Group("flaky-record", "Flaky, passing here", "soft", view.flaky_on_record)
    yield Group("incomparable", "Not comparable", "soft", view.incomparable)
    yield Group("added", "New cases", "soft", view.added)
    yield Group("removed", "Removed since the baseline", "soft", view.removed)
    yield Group("skipped", "Skipped", "soft", view.skipped)
    yield Group("not-run", "Not run", "soft", _of(view.cases, Status.NOT_RUN))
    yield Group("errored", "Could not be judged", "warn", _of(view.cases, Status.ERROR))
    yield Group("failed", "Failing", "soft", _of(view.cases, Status.FAILED))
    yield Group("passing", "Passing", "pass", view.cases)


def _of(rows: Iterable[CaseRow], status: Status) -> tuple[CaseRow, ...]:
    return tuple(row for row in rows if row.status is status)


def _once(groups: Iterable[Group]) -> Iterator[Group]:
    """The groups with every case only in the first of its groups; without those that have none."""
    seen: set[int] = set()
    for group in groups:
        rows = tuple(row for row in group.rows if id(row) not in seen)
        seen.update(id(row) for row in rows)
        if rows:
            yield Group(group.key, group.title, group.tone, rows)
