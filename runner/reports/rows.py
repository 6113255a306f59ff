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
from runner.reports.scores import lowest, shortfalls
from runner.reports.wording import score, score_change, tally_words


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One case to look at. `then` and `here` are `3/3`, or `pass` and `fail` where there was one trial.

    Of a graded case they are scores: `0.90` and `0.67 (−0.23)`.
    """

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
    graded: bool = False
    score_drop: bool = False
    """The score fell by more than the tolerance, and that is not said by calling it a regression."""
    failures: tuple[str, ...] = ()
    """What failed here, a line for each evaluator where there are several."""
    cause: str | None = None
    """What it may have in common with other failures."""
    target: str | None = None

    @property
    def scores(self) -> str | None:
        """`0.90 → 0.67 (−0.23)` of a graded case, `0.90` where nothing changed; None where there is no score."""
        if not self.graded or (self.status is not None and not self.status.judged):
            return None
        return " → ".join(dict.fromkeys(words for words in (self.then, self.here) if words))

    @property
    def outcome(self) -> str:
        """`pass`, `2/3`, `error`; of a graded case the word and the score: `fail 0.67 (−0.23)`."""
        if self.graded and self.status is not None and self.status.judged:
            return f"{'pass' if self.status is Status.PASSED else 'fail'} {self.here}"
        return self.here or ""

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
    least = run.verdict.pass_score if run.verdict else 1.0
    seen = Counter(case.id for suite in run.suites for case in suite.cases)
    for suite in run.suites:
        for case in suite.cases:
            label = case.id if seen[case.id] == 1 else f"{case.id} ({suite.eval_file})"
            yield _row(suite, case, by_case.get((suite.eval_file, case.id)), label, context, least)
    for change in changes:
        if change.change is CaseClass.REMOVED:
            yield _removed(change, least)


def _row(
    suite: SuiteResult, case: CaseResult, change: CaseChange | None, label: str, context: ReportContext, least: float
) -> CaseRow:
    then, here = change.baseline if change else None, tally(case)
    failures = _failures(case, change)
    return CaseRow(
        id=case.id,
        label=label,
        suite=suite.eval_file,
        status=case.status,
        change=change.change if change else None,
        then=_then(change, least),
        here=_here(case, here, change, least),
        what=" · ".join(failures) or None,
        reason=change.reason if change and case.status.judged else None,
        url=_url(case.location, context),
        location=case.location,
        stale=suite.stale,
        flaky=case.flaky,
        drop=_drop(then, here, change),
        answer=case.details.response,
        duration_ms=case.duration_ms,
        cost_usd=case.cost_usd,
        graded=case.graded,
        score_drop=change is not None and change.score_drop and change.change is not CaseClass.REGRESSION,
        failures=failures,
        cause=f"low score: {name}" if (name := lowest(case)) else _first_line(case.error),
        target=case.target,
    )


def _failures(case: CaseResult, change: CaseChange | None) -> tuple[str, ...]:
    """The evaluators that took something from a grade; else the first line of the error."""
    low = shortfalls(case, change.evaluators_then if change else None)
    first = _first_line(case.error)
    return low or ((first,) if first else ())


def _here(case: CaseResult, here: Tally | None, change: CaseChange | None, least: float) -> str | None:
    if not case.status.judged:
        return case.status.value.replace("_", " ")
    if not case.graded or here is None:
        return tally_words(here)
    return f"{_score_words(here, least)}{score_change(change.score_change if change else None)}"


def _score_words(tally: Tally, least: float) -> str:
    """`0.67`, and of several trials how many of them passed: `0.67, 1/3`."""
    words = score(tally.score, least)
    return f"{words}, {tally.k}/{tally.n}" if tally.n > 1 else words


def _drop(then: Tally | None, here: Tally | None, change: CaseChange | None) -> float:
    if change is not None and change.score_change is not None:
        return -change.score_change
    return (then.k / then.n if then else 0.0) - (here.k / here.n if here else 0.0)


def _removed(change: CaseChange, least: float) -> CaseRow:
    return CaseRow(
        id=change.case_id,
        label=change.case_id,
        suite=change.suite,
        status=None,
        change=change.change,
        then=_then(change, least),
        graded=change.graded,
        here=None,
        what=None,
        reason=change.reason,
        url=None,
        stale=False,
    )


def _then(change: CaseChange | None, least: float) -> str | None:
    """`pass`, and where recent runs are known `pass, 8 of 10`: how often the case passes without this change.

    Of a graded case `0.90`, and its mean over recent runs: `0.90, 0.86 over 10 runs`.
    """
    baseline, record = (change.baseline, change.record) if change else (None, None)
    if baseline is None:
        return None
    graded = change is not None and change.graded
    words = _score_words(baseline, least) if graded else tally_words(baseline)
    if record is None or record.n <= 1:
        return words
    return f"{words}, {score(record.score)} over {record.n} runs" if graded else f"{words}, {record.k} of {record.n}"


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
