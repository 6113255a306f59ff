"""Every case of a run as one row, with what the comparison says about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from eval_gate.gate.compare import nobody_answered, tally
from eval_gate.model.case import Location
from eval_gate.model.comparison import CaseChange, CaseClass, Tally
from eval_gate.model.grounds import Steadiness, Why
from eval_gate.model.result import Blame, CaseResult, RunResult, Status, SuiteResult
from eval_gate.model.waiver import Kind
from eval_gate.reports.context import ReportContext
from eval_gate.reports.links import line_url
from eval_gate.reports.view.scores import lowest, shortfalls
from eval_gate.reports.view.waivers import Waivers, WaiverWords
from eval_gate.reports.words import blame as blame_words
from eval_gate.reports.words import grounds as grounds_words
from eval_gate.reports.words.numbers import score, score_change, tally_words

_BECAME: Final = {CaseClass.UNSETTLED: "not sure", CaseClass.STILL_ERRORED: "not judged on either side"}


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
    score: str | None = None
    """`0.67 (−0.23)` of a graded case that was judged."""
    score_drop: bool = False
    """The score fell by more than the tolerance, and that is not said by calling it a regression."""
    failures: tuple[str, ...] = ()
    """What failed here, a line for each evaluator where there are several."""
    cause: str | None = None
    """What it may have in common with other failures."""
    target: str | None = None
    why: Why | None = None
    """What decided about it, where more than the two runs was looked at."""
    evidence: str | None = None
    """`failed 4 of 4 here, 1 of 20 on main`, where more than the two runs was looked at."""
    odds: str | None = None
    """`by chance 1 in 50,000`."""
    remarks: tuple[str, ...] = ()
    """What the counts alone do not say, in half sentences."""
    record: str | None = None
    """What recent runs of the default branch say about it, where that was looked at."""
    flaky_on_record: bool = False
    blame: Blame | None = None
    """Whose fault it is that it could not be judged; None of a judged case, and where an older version did not say."""
    main_broke: bool = False
    """The default branch itself fails it, and did not before."""
    compared_with: str | None = None
    """The earlier run it is compared with, where that is not the baseline."""
    waived: WaiverWords | None = None
    """Why its failure does not block, where it would otherwise."""

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
    def seen(self) -> str:
        """The evidence where there is some; else both sides: `pass → fail`, `fail`."""
        return self.evidence or " → ".join(words for words in (self.then, self.here) if words) or "–"

    @property
    def seen_lines(self) -> tuple[str, ...]:
        """What was seen, how likely that is by chance, and what the counts alone do not say."""
        score = f"score {self.score}" if self.score and self.evidence else None
        return (self.seen, *filter(None, [self.odds, *self.remarks, score]))

    @property
    def why_words(self) -> str:
        """The same in one line; empty where only the two runs were looked at."""
        if not self.evidence:
            return ""
        first, others = (2, self.seen_lines[2:]) if self.odds else (1, self.seen_lines[1:])
        return "; ".join([", ".join(self.seen_lines[:first]), *others])

    @property
    def change_words(self) -> str:
        """`regression`, `new pass`, `regression, accepted`; empty without a baseline."""
        if self.why is Why.NOT_RERUN:
            return "not decided"
        if self.waived and self.waived.kind is Kind.QUARANTINE:
            return self.waived.done
        became = self.change.value.replace("_", " ") if self.change else ""
        became = _BECAME.get(self.change, became) if self.change else became
        return ", ".join(filter(None, [became, self.waived.done if self.waived else ""]))


def rows_of(run: RunResult, context: ReportContext, waivers: Waivers) -> tuple[CaseRow, ...]:
    """One row per case in the order of the run, then those that are only in the baseline."""
    place = grounds_words.place_of(context)
    return tuple(_judged_on(row, change, place, waivers) for row, change in _rows(run, context))


def _judged_on(row: CaseRow, change: CaseChange | None, place: str, waivers: Waivers) -> CaseRow:
    """The row with what was concluded about it, and by whom it is waived."""
    waived = waivers.by_case.get((row.suite, row.id)) if row.status is not None else None
    record = change.case_record if change else None
    if change is None or (record is None and change.grounds is None and change.compared_with is None):
        return replace(row, waived=waived) if waived else row
    return replace(
        row,
        waived=waived,
        why=change.grounds.why if change.grounds else None,
        evidence=grounds_words.evidence(change, place),
        odds=grounds_words.odds(change),
        remarks=grounds_words.remarks(change, place),
        record=grounds_words.record_words(record, place) if record else None,
        flaky_on_record=record is not None and record.steadiness is Steadiness.FLAKY,
        main_broke=grounds_words.main_broke(change, place) is not None,
        compared_with=grounds_words.named(change.compared_with) if change.compared_with else None,
    )


def _rows(run: RunResult, context: ReportContext) -> Iterator[tuple[CaseRow, CaseChange | None]]:
    changes = run.comparison.changes if run.comparison else ()
    by_case = {(change.suite, change.case_id): change for change in changes if change.change is not CaseClass.REMOVED}
    least = run.verdict.pass_score if run.verdict else 1.0
    seen = Counter(case.id for suite in run.suites for case in suite.cases)
    silent = nobody_answered(run)
    for suite in run.suites:
        for case in suite.cases:
            label = case.id if seen[case.id] == 1 else f"{case.id} ({suite.eval_file})"
            change = by_case.get((suite.eval_file, case.id))
            blame = blame_words.blame_of(case, silent=silent)
            row = _row(suite, case, change, label, context, least)
            yield (replace(row, **_blamed(case, blame)) if case.status is Status.ERROR else row), change
    for change in changes:
        if change.change is CaseClass.REMOVED:
            yield _removed(change, least), change


def _blamed(case: CaseResult, blame: Blame | None) -> dict[str, Any]:
    """Whose fault it is that a case could not be judged, and what stands for its result then."""
    return {"blame": blame, "here": blame_words.here(case, blame)}


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
        url=line_url(case.location, context),
        location=case.location,
        stale=suite.stale,
        flaky=case.flaky,
        drop=_drop(then, here, change),
        answer=case.details.response,
        duration_ms=case.duration_ms,
        cost_usd=case.cost_usd,
        graded=case.graded,
        score=_score(case, change, least),
        score_drop=change is not None and change.score_drop and change.change is not CaseClass.REGRESSION,
        failures=failures,
        cause=f"low score: {name}" if (name := lowest(case)) else _first_line(case.error),
        target=case.target,
    )


def _failures(case: CaseResult, change: CaseChange | None) -> tuple[str, ...]:
    """The evaluators that took something from a grade; else the first line of the error, or of the first failed trial.

    A case that failed and recovered has no error of its own.
    """
    low = shortfalls(case, change.evaluators_then if change else None)
    failed = (trial.error for trial in case.trials if trial.status is Status.FAILED)
    first = _first_line(case.error or next(failed, None))
    return low or ((first,) if first else ())


def _here(case: CaseResult, here: Tally | None, change: CaseChange | None, least: float) -> str | None:
    if not case.status.judged:
        return case.status.value.replace("_", " ")
    if not case.graded or here is None:
        return tally_words(here)
    return f"{_score_words(here, least)}{score_change(change.score_change if change else None)}"


def _score(case: CaseResult, change: CaseChange | None, least: float) -> str | None:
    if not case.graded or not case.status.judged:
        return None
    return f"{score(case.score, least)}{score_change(change.score_change if change else None)}"


def _score_words(tally: Tally, least: float) -> str:
    """`0.67`, and of several trials how many of them passed: `0.67, 1/3`."""
    words = score(tally.score, least)
    return f"{words}, {tally.k}/{tally.n}" if tally.n > 1 else words


def _drop(then: Tally | None, here: Tally | None, change: CaseChange | None) -> float:
    """By how much it got worse: of a score, else of the share of passes, on the branch's record where there is one."""
    if change is not None and change.score_change is not None:
        return -change.score_change
    if change is not None and change.grounds is not None:
        record, runs = change.grounds.record, change.grounds.here
        return record.passes / max(record.runs, 1) - runs.passes / max(runs.runs, 1)
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

    Of a case that is compared with another run than the baseline `pass at def5678, 8 of 10`.
    Of a graded case `0.90`, and its mean over recent runs: `0.90, 0.86 over 10 runs`.
    """
    if change is None or change.baseline is None:
        return None
    baseline, record = change.baseline, change.case_record
    where = f" at {grounds_words.named(change.compared_with)}" if change.compared_with else ""
    if change.graded:
        words, scores = f"{_score_words(baseline, least)}{where}", change.score_record
        return words if scores is None or scores.runs <= 1 else f"{words}, {score(scores.mean)} over {scores.runs} runs"
    words = f"{tally_words(baseline)}{where}"
    runs = record.counts.runs if record else 0
    if record is None or runs <= baseline.n:
        return words
    return f"{words}, {'' if baseline.k else 'passed '}{record.counts.passes} of {runs}"


def _first_line(text: str | None) -> str | None:
    return text.strip().splitlines()[0] if text and text.strip() else None
