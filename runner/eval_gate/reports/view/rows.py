"""Rows of a report: one per case, with its comparison with the baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

from eval_gate.gate.case_comparison import count_passes
from eval_gate.gate.failure_causes import find_cause, find_first_line
from eval_gate.model.case import CaseKey, Location
from eval_gate.model.comparison import CaseChange, CaseClass, PassCount
from eval_gate.model.evidence import CaseHistorySummary, GroundKind, Stability
from eval_gate.model.execution import ErrorKind, Status, Trial
from eval_gate.model.execution_usage import ExecutionUsage, measure_execution
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.model.waiver import WaiverKind
from eval_gate.reports.context import ReportContext
from eval_gate.reports.links import build_case_url, build_line_url
from eval_gate.reports.view.new_cases import describe_new_case, is_new_and_flaky
from eval_gate.reports.view.response_comparison import ResponseComparison, build_response_comparison
from eval_gate.reports.view.scores import describe_shortfalls
from eval_gate.reports.view.tables import describe_stale_suite
from eval_gate.reports.wording import case_errors as blame_words
from eval_gate.reports.wording import failed_turns as turn_words
from eval_gate.reports.wording import grounds as grounds_words
from eval_gate.reports.wording.numbers import format_passes, format_score, format_score_change, format_tally
from eval_gate.reports.wording.waivers import WaiverReport, WaiverText
from eval_gate.results.turn_details import count_scripted_turns
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import MAX_TEXT, shorten_error, to_one_line
from eval_gate.text.quoting import capitalize_first

_CHANGE_TEXTS: Final = {CaseClass.STILL_ERRORED: "no score in either run"}


TRACE: Final = "trace"
"""Label of the trace of this run's execution."""


class TraceReference(NamedTuple):
    """Trace of an execution: its id or address, and the link to it if the configuration allows one."""

    label: str
    trace: str
    url: str | None


class CaseRow(FrozenStruct, eq=False, dict=True):
    """Row of one case; `case` is None for a removed case, `case_change` is None without a comparison.

    `baseline_result` and `current_result` are `3 of 3 pass`, or `pass` and `fail` of a single execution; of a graded
    case they are scores: `0.90` and `0.67 (−0.23)`.
    """

    key: CaseKey
    label: str
    """The id, with its eval file if another suite has the same id."""
    case: CaseResult | None
    case_change: CaseChange | None
    context: ReportContext
    pass_score: float
    """The score from which a graded case passes."""
    stale: str = ""
    """Stale parts of its eval file, in a few words; empty if nothing is stale."""
    waiver: WaiverText | None = None
    """Waiver of the failure, which then does not block."""
    reused: bool = False
    """Whether this run did not execute the case: its result is that of an earlier run."""

    @property
    def id(self) -> str:
        """The id alone."""
        return self.key.case_id

    @property
    def suite(self) -> str:
        """The eval file."""
        return self.key.suite

    @property
    def status(self) -> Status | None:
        """Status in this run."""
        return self.case.status if self.case else None

    @property
    def error_kind(self) -> ErrorKind | None:
        """Cause of an error; None for a scored case, and if an older version did not store it."""
        return self.case.error_kind if self.case is not None and self.case.status is Status.ERROR else None

    @cached_property
    def place(self) -> str:
        """Where the history is from: `on main`."""
        return grounds_words.format_place(self.context)

    @cached_property
    def url(self) -> str | None:
        """Link to its line in the eval file."""
        return build_line_url(self.location, self.context)

    @cached_property
    def page_url(self) -> str | None:
        """Link to the case on the page, if that opens with one click."""
        return build_case_url(self.key, self.context)

    @property
    def is_scored(self) -> bool:
        """Whether it passed or failed here."""
        return self.case is not None and self.case.status.is_scored

    @property
    def change_class(self) -> CaseClass | None:
        """Class of the case compared with the baseline."""
        return self.case_change.change if self.case_change else None

    @property
    def location(self) -> Location | None:
        """Place in the eval file."""
        return self.case.location if self.case else None

    @property
    def response(self) -> str | None:
        """Response of the target."""
        return self.case.details.response if self.case else None

    @cached_property
    def execution(self) -> ExecutionUsage | None:
        """Time, tokens and cost of one execution here; None for a case that was not executed."""
        return measure_execution(self.case) if self.case and not self.reused else None

    @cached_property
    def response_comparison(self) -> ResponseComparison | None:
        """Prompt, responses and tool calls of both sides; None if nothing of them is stored."""
        return build_response_comparison(self.case, self.case_change) if self.case else None

    @property
    def graded(self) -> bool:
        """Whether the case has a score from 0 to 1, not only pass or fail."""
        return self.case.graded if self.case else self.case_change is not None and self.case_change.graded

    @property
    def reason(self) -> str | None:
        """Reason for the class of a scored or removed case."""
        return self.case_change.reason if self.case_change and (self.is_scored or self.case is None) else None

    @property
    def has_score_drop(self) -> bool:
        """Whether the score fell by more than the tolerance and the case is no regression."""
        return (
            self.case_change is not None
            and self.case_change.score_drop
            and self.change_class is not CaseClass.REGRESSION
        )

    @property
    def behaves_differently(self) -> bool:
        """Whether it passes in both runs and behaves differently."""
        return self.case_change is not None and self.case_change.behaves_differently

    @cached_property
    def baseline_result(self) -> str | None:
        """Result in the baseline, with recent runs if they are known: `pass (history: 8 of 10 pass)`."""
        return _format_baseline_result(self.case_change, self.pass_score)

    @cached_property
    def current_result(self) -> str | None:
        """The result in this run: `2 of 3 pass`, `agent error`, `0.67 (−0.23)`."""
        if self.case is None or self.case.status is Status.ERROR:
            return blame_words.format_error_kind(self.case, self.error_kind) if self.case else None
        if not self.is_scored:
            return self.case.status.value.replace("_", " ")
        counted = count_passes(self.case)
        if not self.graded or counted is None:
            return self.missed_rate or format_tally(counted)
        words = _format_score(counted, self.pass_score, self.missed_rate)
        return f"{words}{format_score_change(self._score_change)}"

    @property
    def baseline_cell(self) -> str | None:
        """Result of the history or else of the baseline: `20 of 20 pass`, or a score."""
        grounds = self.case_change.grounds if self.case_change else None
        if self.graded or grounds is None or not grounds.history.executions:
            return self.baseline_result
        return format_passes(grounds.history.passes, grounds.history.executions)

    @property
    def current_cell(self) -> str | None:
        """The result of all executions here, such as `0 of 4 pass` or `0 of 2 pass (agent error)`; or a score."""
        grounds = self.case_change.grounds if self.case_change else None
        if grounds is None or not grounds.current.executions or (self.graded and self.is_scored):
            return self.current_result
        counts = self.missed_rate or format_passes(grounds.current.passes, grounds.current.executions)
        return f"{counts} ({self.current_result})" if self.status is Status.ERROR else counts

    @property
    def missed_rate(self) -> str | None:
        """`7 of 10 passed, 8 needed`, for a case that misses its pass rule; None for every other."""
        rule = self.case.pass_rule if self.case else None
        if rule is None or self.case is None or self.status is not Status.FAILED:
            return None
        counted = [trial.status is Status.PASSED for trial in self.case.trials if trial.status.is_scored][: rule.trials]
        return f"{sum(counted)} of {len(counted)} passed, {rule.passes} needed"

    @property
    def is_decided_by_majority(self) -> bool:
        """Whether the majority of its executions here decides, because it passed and failed without a history."""
        return self.decided_by is None and self.flaky and self.is_scored and not self.graded

    @property
    def score(self) -> str | None:
        """`0.67 (−0.23)` of a graded case with a score."""
        if self.case is None or not self.graded or not self.is_scored:
            return None
        return f"{format_score(self.case.score, self.pass_score)}{format_score_change(self._score_change)}"

    @property
    def _score_change(self) -> float | None:
        return self.case_change.score_change if self.case_change else None

    @cached_property
    def failures(self) -> tuple[str, ...]:
        """Evaluators below 1 of a graded case; else the first line of the error, or of a failed trial.

        A case that failed and recovered has no error of its own.
        """
        if self.case is None:
            return ()
        low = describe_shortfalls(self.case, self.case_change.baseline_evaluator_scores if self.case_change else None)
        first = find_first_line(self._get_failed_execution(self.case).error)
        return low or ((first,) if first else ())

    @cached_property
    def traces(self) -> tuple[TraceReference, ...]:
        """Traces of the execution that `failures` describe, and of the baseline, as far as they are known."""
        baseline = self.case_change.baseline_result if self.case_change else None
        sides = ((TRACE, self.case and self._get_failed_execution(self.case)), ("trace of the baseline", baseline))
        details = ((label, side.details) for label, side in sides if side and side.details)
        return tuple(TraceReference(label, one.trace, one.trace_url) for label, one in details if one.trace)

    @property
    def failed_turn(self) -> int | None:
        """First turn that failed in the execution that `failures` describe; None if none did."""
        return self._get_failed_execution(self.case).failed_turn if self.case else None

    @staticmethod
    def _get_failed_execution(case: CaseResult) -> CaseResult | Trial:
        """Return the case, or the first execution that failed if the case recovered."""
        failed = (trial for trial in case.trials if trial.status in {Status.FAILED, Status.ERROR})
        return case if case.error else next(failed, case)

    def split_turn(self, error: str) -> tuple[str | None, str]:
        """Split an error of the case into the turn that failed, such as `turn 3 of 5`, and the rest."""
        if self.case is None or not self.failed_turn:
            return None, error
        kind = self._get_failed_execution(self.case).error_kind
        return turn_words.split_turn(error, count_scripted_turns(self.case), kind)

    def expand_turn(self, error: str) -> str:
        """Name the turn in an error of the case after a text that names its kind: `turn 3 of 5: …`."""
        total = count_scripted_turns(self.case) if self.case else None
        return ": ".join(filter(None, turn_words.split_turn(error, total))) if self.failed_turn else error

    @property
    def user_change(self) -> str | None:
        """What the simulated user of a conversation did otherwise than in the baseline."""
        baseline = self.case_change.baseline_result if self.case_change else None
        return turn_words.describe_user_change(self.case.details, baseline) if self.case else None

    @property
    def failure_summary(self) -> str | None:
        """What failed here, in one line, after the turn of a conversation."""
        return ": ".join(filter(None, self.split_turn(" · ".join(self.failures)))) or None

    def split_failure(self, limit: int = MAX_TEXT) -> tuple[str | None, str]:
        """Split what failed, shortened, into the turn of a conversation and the rest.

        A single error keeps its last words, which say why; several failures keep the first.
        """
        shorten = to_one_line if len(self.failures) > 1 else shorten_error
        label, failure = self.split_turn(" · ".join(self.failures))
        return label, shorten(failure, max(limit - len(label or ""), 1))

    def shorten_failure(self, limit: int = MAX_TEXT) -> str | None:
        """Shorten what failed; None if nothing did."""
        return ": ".join(filter(None, self.split_failure(limit))) or None

    @property
    def cause(self) -> str | None:
        """Cause that other failures may share; for a case that recovered, that of its earlier failure."""
        return find_cause(self.case) or self.failure_summary if self.case is not None else None

    @property
    def drop(self) -> float:
        """Drop of the score, else of the share of passes, compared with the history if there is one."""
        if self.case_change is None:
            return 0.0
        if self._score_change is not None:
            return -self._score_change
        if self.case_change.grounds is not None:
            record, runs = self.case_change.grounds.history, self.case_change.grounds.current
            return record.passes / max(record.executions, 1) - runs.passes / max(runs.executions, 1)
        counts = self.case_change.baseline, count_passes(self.case) if self.case else None
        baseline, current = (one.passes / one.executions if one else 0.0 for one in counts)
        return baseline - current

    @property
    def decided_by(self) -> GroundKind | None:
        """Grounds of the decision, if it used more than the two runs."""
        return self.case_change.grounds.kind if self.case_change and self.case_change.grounds else None

    @property
    def is_listed_by_ground(self) -> bool:
        """Whether its ground has a list of its own, whatever the class."""
        return self.decided_by is GroundKind.MUST_PASS or (
            self.decided_by is not None and self.decided_by.is_inconclusive
        )

    @property
    def suspected(self) -> bool:
        """Whether the case failed and was not re-run because the gate had already failed."""
        return self.case_change is not None and self.case_change.counts_as_suspected

    @cached_property
    def evidence(self) -> str | None:
        """`failed 4 of 4 here, 1 of 20 on main`, if more than the two runs was compared.

        For a new or changed case, the results of its executions here.
        """
        if self.case_change is None:
            return None
        text = grounds_words.describe_evidence(self.case_change, self.place)
        return text or describe_new_case(self.case, self.case_change)

    @property
    def _history(self) -> CaseHistorySummary | None:
        return self.case_change.case_history if self.case_change else None

    @property
    def history_text(self) -> str | None:
        """Description of the history of the case, if it was used."""
        return grounds_words.describe_history(self._history, self.place) if self._history else None

    @property
    def flakiness(self) -> str | None:
        """`passed 2 of 6 on main; fails 67 % of the time`: the history without its runs."""
        return grounds_words.describe_history(self._history, self.place, with_runs=False) if self._history else None

    @property
    def flaky(self) -> bool:
        """Whether the case passed and failed in this run."""
        return self.case is not None and self.case.flaky

    @property
    def is_flaky_in_history(self) -> bool:
        """Whether recent runs of the default branch call it flaky; a case with a rule may fail some of its trials."""
        is_flaky = self._history is not None and self._history.stability is Stability.FLAKY
        return is_flaky and (self.case is None or self.case.pass_rule is None)

    @cached_property
    def is_new_and_flaky(self) -> bool:
        """Whether the case is new or changed, and passed and failed in this run."""
        return is_new_and_flaky(self.case, self.case_change)

    @property
    def expected_before(self) -> str | None:
        """Expectation in the baseline, if this run has another."""
        baseline = self.case_change.baseline_result if self.case_change else None
        return _join_checks(baseline.expectation) if baseline and baseline.expectation else None

    @property
    def broken_since(self) -> str | None:
        """The commit of the default branch since which it fails there, as its first characters; None if unknown."""
        commit = self._history.broken_since if self._history else None
        return grounds_words.format_run_name(commit) if commit else None

    @property
    def fails_as_flaky(self) -> bool:
        """Whether it fails here and in the baseline, and is flaky on the default branch."""
        return self.case_change is not None and grounds_words.is_failing_as_flaky(self.case_change)

    @property
    def is_broken_on_main(self) -> bool:
        """Whether the default branch itself broke the case."""
        return (
            self.case_change is not None
            and grounds_words.describe_broken_main(self.case_change, self.place) is not None
        )

    @property
    def scores(self) -> str | None:
        """`0.90 → 0.67 (−0.23)` of a graded case, `0.90` if nothing changed; None without a score."""
        if not self.graded or (self.case is not None and not self.is_scored):
            return None
        return " → ".join(dict.fromkeys(words for words in (self.baseline_result, self.current_result) if words))

    @property
    def outcome(self) -> str:
        """`pass`, `2 of 3 pass`, `error`; for a graded case with the score: `fail 0.67 (−0.23)`."""
        if self.graded and self.is_scored:
            return f"{'pass' if self.status is Status.PASSED else 'fail'} {self.current_result}"
        return self.current_result or ""

    @property
    def results(self) -> str:
        """Both results: `pass → fail`, `fail`."""
        return " → ".join(filter(None, (self.baseline_result, self.current_result)))

    @property
    def evidence_or_results(self) -> str:
        """The evidence, or else both results."""
        return self.evidence or self.results or "–"

    @cached_property
    def evidence_lines(self) -> tuple[str, ...]:
        """The conclusion with the counts, the chance, and further evidence, as phrases."""
        return self._list_evidence_lines(arithmetic=True)

    def _list_evidence_lines(self, *, arithmetic: bool) -> tuple[str, ...]:
        change = self.case_change
        chance = grounds_words.describe_chance(change) if arithmetic and change else None
        further = grounds_words.list_further_evidence(change, self.place, arithmetic=arithmetic) if change else ()
        score = f"score {self.score}" if self.score and self.evidence else None
        word = grounds_words.format_conclusion(change) if change and self.evidence else None
        first = grounds_words.join_conclusion(word, self.evidence_or_results) if word else self.evidence_or_results
        turns = turn_words.describe_failed_turns(self.case.trials) if self.case else ()
        missed = None if (self.missed_rate or "") in first else self.missed_rate
        return (first, *filter(None, [missed, chance, *turns, *further, score]))

    @property
    def evidence_summary(self) -> str:
        """The evidence without its arithmetic, as one text; empty if only the two runs were compared."""
        return "; ".join(self._list_evidence_lines(arithmetic=False)) if self.evidence else ""

    @property
    def evidence_text(self) -> str:
        """The phrases of the evidence as one text; empty if only the two runs were compared."""
        return "; ".join(self.evidence_lines) if self.evidence else ""

    @property
    def evidence_sentences(self) -> str:
        """The phrases of the evidence as sentences; empty if only the two runs were compared."""
        return " ".join(f"{capitalize_first(one)}." for one in self.evidence_lines) if self.evidence else ""

    @property
    def change_text(self) -> str:
        """`regression`, `new pass`, `regression, waived`; empty without a baseline, and for a skipped case."""
        if self.status is Status.SKIPPED:
            return ""
        if self.suspected and not self.waiver:
            return "suspected regression"
        if self.decided_by is not None and self.decided_by.is_inconclusive:
            return "inconclusive"
        if self.waiver and self.waiver.kind is WaiverKind.QUARANTINE:
            return self.waiver.effect
        became = self.change_class.value.replace("_", " ") if self.change_class else ""
        became = _CHANGE_TEXTS.get(self.change_class, became) if self.change_class else became
        return ", ".join(filter(None, [became, self.waiver.effect if self.waiver else ""]))

    @property
    def is_notable(self) -> bool:
        """Whether it does not simply pass as before: only such a case is in a list."""
        change = self.case_change
        if self.status is not Status.PASSED or self.flaky or self.waiver is not None:
            return True
        return change is not None and (
            change.change is not CaseClass.STILL_PASSING
            or change.grounds is not None
            or change.score_change is not None
            or change.score_drop
            or change.behaves_differently
            or self.is_flaky_in_history
        )


def build_rows(run: RunResult, context: ReportContext, waivers: WaiverReport) -> tuple[CaseRow, ...]:
    """Build the rows of all cases of a run, then those of removed cases."""
    changes, cases = run.comparison.changes if run.comparison else (), list(run.iter_cases())
    by_case = {change.key: change for change in changes if change.change is not CaseClass.REMOVED}
    least = run.verdict.pass_score if run.verdict else 1.0
    id_counts = Counter([key.case_id for key, _ in cases])
    stale = {suite.eval_file: describe_stale_suite(suite) for suite in run.suites if suite.stale}
    reused = run.reused_suites
    rows = [
        CaseRow(
            key,
            case.id if id_counts[case.id] == 1 else f"{case.id} ({key.suite})",
            case,
            by_case.get(key),
            context,
            least,
            stale.get(key.suite, ""),
            waivers.by_case.get(key),
            key.suite in reused,
        )
        for key, case in cases
    ]
    removed = (change for change in changes if change.change is CaseClass.REMOVED)
    return (*rows, *(CaseRow(change.key, change.case_id, None, change, context, least) for change in removed))


def _join_checks(lines: Sequence[str]) -> str:
    """Join what is expected into one line, with each heading before what is under it."""
    joined = ""
    for line in lines:
        between = " " if joined.endswith(":") else "; "
        joined += f"{between if joined else ''}{line.strip()}"
    return joined


def _format_score(tally: PassCount, least: float, missed_rate: str | None = None) -> str:
    """`0.67`, and for several trials `0.67, 1 of 3 pass`, or the missed rate."""
    words = format_score(tally.score, least)
    counts = missed_rate or format_passes(tally.passes, tally.executions)
    return f"{words}, {counts}" if tally.executions > 1 else words


def _format_baseline_result(change: CaseChange | None, least: float) -> str | None:
    """Format `pass at def5678 (history: 8 of 10 pass)`, or for a graded case `0.90, 0.86 over 10 runs` (the mean)."""
    if change is None or change.baseline is None:
        return None
    baseline, record = change.baseline, change.case_history
    where = f" at {grounds_words.format_run_name(change.compared_with)}" if change.compared_with else ""
    if change.graded:
        words, scores = f"{_format_score(baseline, least)}{where}", change.score_history
        mean = format_score(scores.mean) if scores is not None and scores.runs > 1 else None
        return words if scores is None or mean in {None, words} else f"{words}, {mean} over {scores.runs} runs"
    words = f"{format_tally(baseline)}{where}"
    runs = record.counts.executions if record else 0
    if record is None or runs <= baseline.executions:
        return words
    return f"{words} (history: {format_passes(record.counts.passes, runs)})"
