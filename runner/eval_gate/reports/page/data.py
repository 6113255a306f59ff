"""Data of the page: all cases as columns, and details of as many cases as fit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import groupby
from typing import Any, Final

from eval_gate.gate.failure_causes import get_group_key
from eval_gate.gate.metric_changes import iter_named_results
from eval_gate.model.execution import Status
from eval_gate.reports.links import build_anchor
from eval_gate.reports.page.case_data import STATUS_LETTERS, build_case_data
from eval_gate.reports.page.truncation import MANY_CASES, TRUNCATION_STEPS, PageCases, encode_island, truncate_cases
from eval_gate.reports.view.groups import group_causes
from eval_gate.reports.view.report_view import ReportView
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.wording.grounds import format_place
from eval_gate.reports.wording.metrics import MetricRow
from eval_gate.reports.wording.numbers import format_pass_counts
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.escape import format_count, truncate_middle
from eval_gate.text.safe_output import reveal_invisible

MAX_CAUSES: Final = 50
_MAX_TAGS: Final = 20
_MAX_EVALUATORS: Final = 200
"""Evaluators in the filter, those of the most cases."""
_FRAME_BYTES: Final = 300_000
"""Bytes of the page that are neither rows nor details: its script, style sheet, first screen and plain HTML."""
_LOW_PRIORITY_GROUPS: Final = frozenset({"passing", "added", "incomparable", "skipped", "not-run", "flaky-history"})
_MAX_FAILURE: Final = 160
"""Characters of a failure in a row of the list."""


class PageGroup(FrozenStruct):
    """Group of cases behind one filter chip of the page; `tone` is its colour."""

    key: str
    title: str
    tone: str
    rows: tuple[CaseRow, ...]
    words: tuple[str, ...] | None = None
    """Words of its count, for one case and for several; None for the title."""


class PageRow(FrozenStruct):
    """Case of the list with the places of its group and of the cause that it shares with other cases."""

    row: CaseRow
    group: int
    cause: int | None = None


class PageData(FrozenStruct, eq=False, dict=True):
    """Data of a report view for the page; each case is in the first group that contains it."""

    view: ReportView

    @cached_property
    def groups(self) -> tuple[PageGroup, ...]:
        """The groups that have cases, the most important first."""
        return tuple(_deduplicate_groups(_iter_groups(self.view)))

    @cached_property
    def chips(self) -> tuple[tuple[str, str, str], ...]:
        """The counts of the first screen: failing groups, passing cases, and the other groups.

        Each is its selection (a group by its place, a status by its letter), its text and its tone.
        """
        groups = [(str(place), group) for place, group in enumerate(self.groups) if group.key != "passing"]
        chips = [
            (place, format_count(len(one.rows), *(one.words or [one.title.lower()] * 2)), one.tone)
            for place, one in groups
        ]
        red = [chip for chip in chips if chip[2] == "fail"]
        passing = ("P", format_pass_counts(self.view.pass_counts), "pass")
        return (*red, passing, *(chip for chip in chips if chip not in red))

    @cached_property
    def _listed(self) -> tuple[list[str], tuple[PageRow, ...]]:
        """Headings of causes, and all cases in the order of their groups, those that share a cause first."""
        causes: list[str] = []
        listed: list[PageRow] = []
        for _, groups in groupby(
            enumerate(self.groups), key=lambda one: "regression" if one[1].key == "suspected" else one[1].key
        ):
            rest = [PageRow(row, place) for place, group in groups for row in group.rows]
            if self.groups[rest[0].group].tone in {"fail", "warn"}:
                for text, members in _iter_shared_causes(rest):
                    if len(causes) < MAX_CAUSES:
                        listed += [PageRow(one.row, one.group, len(causes)) for one in members]
                        causes.append(text)
            row_ids = {id(one.row) for one in listed}
            listed += [one for one in rest if id(one.row) not in row_ids]
        return causes, tuple(listed)

    @cached_property
    def rows(self) -> tuple[CaseRow, ...]:
        """All cases in the order of the list."""
        return tuple(one.row for one in self._listed[1])

    @property
    def has_many_cases(self) -> bool:
        """Whether passing cases are only rows."""
        return len(self.rows) > MANY_CASES

    @cached_property
    def case_details(self) -> PageCases:
        """Details of cases by their place among the rows."""
        detailed = [
            (place, row)
            for place, row in enumerate(self.rows)
            if not self.has_many_cases or place not in self._low_priority_places
        ]
        used = len(encode_island(self._columns).encode()) + _FRAME_BYTES
        return truncate_cases(detailed, lambda row, cut: build_case_data(row, self.view, cut), used)

    @cached_property
    def _low_priority_places(self) -> frozenset[int]:
        keys = [self.groups[one.group].key for one in self._listed[1]]
        bad = {Status.FAILED, Status.ERROR}
        return frozenset(
            n for n, row in enumerate(self.rows) if keys[n] in _LOW_PRIORITY_GROUPS and row.status not in bad
        )

    @cached_property
    def omissions(self) -> tuple[str, ...]:
        """Sentences about what the page leaves out."""
        sentences = []
        if self.has_many_cases:
            sentences.append(
                f"Of more than {MANY_CASES:,} cases, passing ones are only listed; run.json holds their responses."
            )
        if self.case_details.truncation is not TRUNCATION_STEPS[0]:
            sentences.append(
                f"Each text on this page ends after {self.case_details.truncation.max_characters:,} characters; "
                "run.json holds more."
            )
        if self.case_details.omitted_count:
            sentences.append(f"The last {self.case_details.omitted_count:,} cases have only a row in the list.")
        return tuple(sentences)

    @property
    def filter_note(self) -> str:
        """Which cases the filter by evaluator cannot list, as a sentence; empty if it lists all."""
        rows = zip(self.rows, self._evaluators_of_rows, strict=True)
        unknown = sum(not names and row.status is not None and row.status.is_scored for row, names in rows)
        if not self._evaluators or not unknown:
            return ""
        are = format_count(unknown, "case that has", "cases that have")
        return f"The filter by evaluator does not list {are} no stored evaluator results."

    @cached_property
    def data(self) -> dict[str, Any]:
        """All data of the page, as the script reads it."""
        return {
            "groups": [[one.key, one.title, one.tone] for one in self.groups],
            "suites": [reveal_invisible(row.file) for row in self.view.suites],
            "reused": [place for place, suite in enumerate(self.view.run.suites) if suite.reused],
            "rows": self._columns,
            "causes": [reveal_invisible(truncate_middle(text, 300)) for text in self._listed[0]],
            "here": self.current_title,
            "history": self._history,
            "place": reveal_invisible(format_place(self.view.context)),
            "compared": self.view.comparison is not None,
            "leftOut": list(self.omissions),
            "carries": self._available_evidence,
        }

    @cached_property
    def _available_evidence(self) -> dict[str, bool]:
        """Whether any case has responses or tool calls; a case lacks only what others have."""
        sides = [
            side.details
            for row in self.rows
            for side in (row.case, row.case_change and row.case_change.baseline_result)
            if side
        ]
        return {
            "answers": any(details.response is not None for details in sides),
            "calls": any(details.tool_calls or details.tools_called for details in sides),
        }

    @cached_property
    def _columns(self) -> dict[str, Any]:
        suites = {row.file: place for place, row in enumerate(self.view.suites)}
        targets, tags = dict[str, int](), dict[str, int]()
        rows, (texts, listed) = self.rows, self._listed
        places = range(len(rows))
        causes = {n: one.cause for n, one in enumerate(listed) if one.cause is not None}
        columns: dict[str, Any] = {
            "id": [reveal_invisible(row.id) for row in rows],
            "suite": [suites.get(row.suite, -1) for row in rows],
            "group": [one.group for one in listed],
            "status": "".join(STATUS_LETTERS[row.status] if row.status else "-" for row in rows),
            "ms": [round(row.execution.duration_ms) if row.execution else 0 for row in rows],
            "anchor": "".join(build_anchor(row.key)[-8:] for row in rows),
            # of some cases only
            "drop": {n: round(drop, 3) for n in places if (drop := max(rows[n].drop, 0.0))},
            "what": {
                n: reveal_invisible(truncate_middle(what, _MAX_FAILURE))
                for n in places
                if (what := _find_failure(rows[n], texts[causes[n]] if n in causes else ""))
            },
            "cause": causes,
            "flaky": [n for n in places if rows[n].flaky],
            "stale": [n for n in places if rows[n].stale],
            "behaves": [n for n in places if rows[n].behaves_differently],
            "dropped": [n for n in places if rows[n].has_score_drop],
            "elsewhere": {n: reveal_invisible(rows[n].suite) for n in places if rows[n].suite not in suites},
        }
        if not self.has_many_cases:
            columns["about"] = {
                n: reveal_invisible(row.case.description)[:300] for n, row in enumerate(rows) if row.case
            }
        columns["target"] = {
            n: targets.setdefault(row.case.target, len(targets))
            for n, row in enumerate(rows)
            if row.case and row.case.target
        }
        columns["tagSet"], columns["tagSets"] = _number_sets(
            tuple(tags.setdefault(tag, len(tags)) for tag in row.case.tags[:_MAX_TAGS]) if row.case else ()
            for row in rows
        )
        evaluators = {name: place for place, name in enumerate(self._evaluators)}
        columns["evaluatorSet"], columns["evaluatorSets"] = _number_sets(
            tuple(evaluators[name] for name in names if name in evaluators) for names in self._evaluators_of_rows
        )
        names = {"targetNames": targets, "tagNames": tags, "evaluatorNames": self._evaluators}
        return columns | {column: [*map(_shorten_name, listed)] for column, listed in names.items()}

    @cached_property
    def _evaluators(self) -> tuple[str, ...]:
        """Names in the filter by evaluator, sorted; none if all cases with results have the same evaluators."""
        counts = Counter(name for names in self._evaluators_of_rows for name in names)
        with_results = sum(map(bool, self._evaluators_of_rows))
        if all(count == with_results for count in counts.values()):
            return ()
        return tuple(sorted(name for name, _ in counts.most_common(_MAX_EVALUATORS)))

    @cached_property
    def _evaluators_of_rows(self) -> tuple[tuple[str, ...], ...]:
        results = (row.case.evaluator_results if row.case else () for row in self.rows)
        return tuple(tuple(dict.fromkeys(name for name, _ in iter_named_results(one))) for one in results)

    def find_filter_place(self, row: MetricRow) -> int | None:
        """Find the number of a tag or an evaluator in its filter; None if the filter does not have it."""
        return self._filter_places["tagNames" if row.is_tag else "evaluatorNames"].get(_shorten_name(row.name))

    @cached_property
    def _filter_places(self) -> dict[str, dict[str, int]]:
        return {
            column: {name: place for place, name in enumerate(self._columns[column])}
            for column in ("tagNames", "evaluatorNames")
        }

    @property
    def current_title(self) -> str:
        """Name of the side that is compared with the baseline."""
        return "This PR" if self.view.context.base_branch else "This run"

    @property
    def _history(self) -> list[list[str]]:
        runs = self.view.comparison.recent_runs if self.view.comparison else ()
        return [[reveal_invisible((one.sha or one.run_id)[:7]), reveal_invisible(one.timestamp[:10])] for one in runs]


def _number_sets(sets: Iterable[tuple[int, ...]]) -> tuple[list[int], list[tuple[int, ...]]]:
    """Return the number of the set of each row, and the sets by their numbers; no numbers if all sets are empty."""
    numbers: dict[tuple[int, ...], int] = {(): 0}
    column = [numbers.setdefault(one, len(numbers)) for one in sets]
    return (column if any(column) else []), list(numbers)


def _shorten_name(name: str) -> str:
    return reveal_invisible(name)[:200]


def _iter_shared_causes(rows: Iterable[PageRow]) -> Iterator[tuple[str, list[PageRow]]]:
    """Yield each cause that two cases or more share, with these cases; the most frequent first."""
    groups: dict[str, list[PageRow]] = defaultdict(list)
    for one in rows:
        if one.row.cause:
            groups[get_group_key(one.row.cause)].append(one)
    for members in sorted(groups.values(), key=len, reverse=True):
        if len(members) > 1:
            yield group_causes((one.row, one.row.cause) for one in members)[0].text, members


def _find_failure(row: CaseRow, cause: str) -> str | None:
    """Find what failed, without the words of the heading of its cause."""
    text = row.failure_summary if row.status is not Status.PASSED or row.change_text == "regression" else None
    return None if text is None or text == cause else text.removeprefix(f"{cause}: ")


def _iter_groups(view: ReportView) -> Iterator[PageGroup]:
    """Yield the groups of cases that the page lists, in reading order; a case may be in several."""
    yield PageGroup("regression", "Regressions", "fail", view.regressions, ("regression",))
    yield PageGroup(
        "suspected", "Suspected regressions, not re-run", "fail", view.suspected, ("more suspected", "more suspected")
    )
    yield PageGroup("must-pass", "Must pass", "fail", view.must_pass, ("must-pass case fails", "must-pass cases fail"))
    yield PageGroup("unconfirmed", "Not confirmed", "warn", view.unconfirmed)
    yield PageGroup(
        "failing", "Failing, nothing to compare with" if view.comparison else "Failing", "fail", view.failing
    )
    yield PageGroup("score-drop", "Score drops", "warn", view.score_drops, ("score drop",))
    for errors in view.errors_by_kind:
        words = errors.headline.partition(" ")[2]
        key = f"error-{errors.title.split()[0].lower()}"
        yield PageGroup(key, errors.title_for_many, "warn", errors.rows, (words, words))
    yield PageGroup("new-flaky", "New or changed, and flaky", "warn", view.new_and_flaky)
    yield PageGroup("inconclusive", "Inconclusive", "warn", view.inconclusive_cases)
    yield PageGroup("new-pass", "New passes", "pass", view.new_passes, ("new pass", "new passes"))
    yield PageGroup("base-agent", "Also fail with the base agent", "soft", view.base_agent_failures)
    yield PageGroup("main-broke", "Broken before this change", "soft", view.broken_on_main)
    yield PageGroup("waived", "Waived and quarantined", "soft", view.waived)
    yield PageGroup("flaky", "Flaky", "warn", view.flaky)
    yield PageGroup("still-failing", "Still failing", "soft", view.known_failing)
    yield PageGroup("still-errored", "No score on either side", "soft", view.still_errored)
    yield PageGroup("behaves-differently", "Pass and behave differently", "soft", view.behaving_differently)
    yield PageGroup("flaky-history", "Flaky, passing in this run", "soft", view.flaky_in_history)
    yield PageGroup("incomparable", "Not comparable", "soft", view.incomparable)
    yield PageGroup("added", "New cases", "soft", view.added, ("new case",))
    yield PageGroup("removed", "Removed since the baseline", "soft", view.removed)
    yield PageGroup("skipped", "Skipped", "soft", view.skipped)
    yield PageGroup("not-run", "Not run", "soft", _select_by_status(view.cases, Status.NOT_RUN))
    yield PageGroup("errored", "No score", "warn", _select_by_status(view.cases, Status.ERROR))
    yield PageGroup("failed", "Failing", "soft", _select_by_status(view.cases, Status.FAILED))
    yield PageGroup("passing", "Passing", "pass", view.cases)


def _select_by_status(rows: Iterable[CaseRow], status: Status) -> tuple[CaseRow, ...]:
    return tuple(row for row in rows if row.status is status)


def _deduplicate_groups(groups: Iterable[PageGroup]) -> Iterator[PageGroup]:
    row_ids: set[int] = set()
    for group in groups:
        rows = tuple(row for row in group.rows if id(row) not in row_ids)
        row_ids.update(id(row) for row in rows)
        if rows:
            yield replace(group, rows=rows)
