"""Every case of a run as one row, with what the comparison says about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from runner.gate.compare import tally
from runner.model.case import Location
from runner.model.comparison import CaseChange, CaseClass, Comparison, Tally
from runner.model.result import CaseResult, RunResult, Status, SuiteResult
from runner.reports.context import ReportContext
from runner.reports.wording import tally_words


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One case to look at. `then` and `here` are `3/3`, or `pass` and `fail` where there was one trial."""

    id: str
    label: str
    """The id, with its eval file where another suite has the same id."""
    suite: str
    status: Status | None
    """None for a case that is only in the baseline."""
    change: CaseClass | None
    then: str | None
    here: str | None
    what: str | None
    """What failed here, in one line."""
    reason: str | None
    """Why the comparison says what it says of a judged case."""
    url: str | None
    stale: bool
    location: Location | None = None
    flaky: bool = False
    drop: float = 0.0
    answer: str | None = None
    duration_ms: float = 0.0
    cost_usd: float | None = None

    @property
    def change_words(self) -> str:
        """`regression`, `new pass`; empty without a baseline."""
        return self.change.value.replace("_", " ") if self.change else ""


def rows_of(run: RunResult, context: ReportContext) -> tuple[CaseRow, ...]:
    """One row per case in the order of the run, then those that are only in the baseline."""
    return tuple(_rows(run, run.comparison, context))


def _rows(run: RunResult, comparison: Comparison | None, context: ReportContext) -> Iterator[CaseRow]:
    changes = comparison.changes if comparison else ()
    by_case = {(change.suite, change.case_id): change for change in changes if change.change is not CaseClass.REMOVED}
    seen = Counter(case.id for suite in run.suites for case in suite.cases)
    for suite in run.suites:
        for case in suite.cases:
            label = case.id if seen[case.id] == 1 else f"{case.id} ({suite.eval_file})"
            yield _row(suite, case, by_case.get((suite.eval_file, case.id)), label, context)
    for change in changes:
        if change.change is CaseClass.REMOVED:
            yield _removed(change)


def _row(
    suite: SuiteResult, case: CaseResult, change: CaseChange | None, label: str, context: ReportContext
) -> CaseRow:
    then, here = change.baseline if change else None, tally(case)
    return CaseRow(
        id=case.id,
        label=label,
        suite=suite.eval_file,
        status=case.status,
        change=change.change if change else None,
        then=_then(then, change.record if change else None),
        here=tally_words(here) if case.status.judged else case.status.value.replace("_", " "),
        what=_first_line(case.error),
        reason=change.reason if change and case.status.judged else None,
        url=_url(case.location, context),
        location=case.location,
        stale=suite.stale,
        flaky=case.flaky,
        drop=(then.k / then.n if then else 0.0) - (here.k / here.n if here else 0.0),
        answer=case.details.response,
        duration_ms=case.duration_ms,
        cost_usd=case.cost_usd,
    )


def _removed(change: CaseChange) -> CaseRow:
    return CaseRow(
        id=change.case_id,
        label=change.case_id,
        suite=change.suite,
        status=None,
        change=change.change,
        then=tally_words(change.baseline),
        here=None,
        what=None,
        reason=change.reason,
        url=None,
        stale=False,
    )


def _then(baseline: Tally | None, record: Tally | None) -> str | None:
    """`pass`, and where recent runs are known `pass, 8 of 10`: how often the case passes without this change."""
    words = tally_words(baseline)
    return f"{words}, {record.k} of {record.n}" if words and record and record.n > 1 else words


def _first_line(text: str | None) -> str | None:
    return text.strip().splitlines()[0] if text and text.strip() else None


def _url(location: Location | None, context: ReportContext) -> str | None:
    """The case's place at the commit that was evaluated; none where that is not known."""
    if location is None or context.repository is None or context.head_sha is None:
        return None
    if location.file.startswith("/") or ".." in location.file.split("/"):
        return None  # not in the repository: a link built of it would lead somewhere else
    base = f"{context.server_url}/{context.repository}/blob/{context.head_sha}"
    return f"{base}/{quote(location.file, errors='replace')}#L{location.line}"
