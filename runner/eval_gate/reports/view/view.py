"""A run as numbers and words, made once. Every report only places what is here, so that no two can disagree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from eval_gate.gate.acceptable import judged_as
from eval_gate.gate.compare import changed_since
from eval_gate.gate.scores import limit_words
from eval_gate.model.comparison import CaseClass, Comparison, Outcome, RuleCode, Verdict
from eval_gate.model.result import RunResult, Status, Summary
from eval_gate.model.waiver import Kind
from eval_gate.reports.context import ReportContext
from eval_gate.reports.view.causes import Cause, group_causes
from eval_gate.reports.view.errors import Errors, by_blame
from eval_gate.reports.view.grades import Grade, grades_of
from eval_gate.reports.view.lists import Lists
from eval_gate.reports.view.rates import Rates, certainty, rates_of
from eval_gate.reports.view.reruns import rerun_words
from eval_gate.reports.view.rows import CaseRow, rows_of
from eval_gate.reports.view.staleness import StaleSuites, stale_suites
from eval_gate.reports.view.tables import RuleRow, SuiteRow, is_stale, rule_rows, suite_rows
from eval_gate.reports.view.waivers import Waivers, waivers_of
from eval_gate.reports.words.accepting import accept_command
from eval_gate.reports.words.blame import blames, counted
from eval_gate.reports.words.measured import MeasuredWords, measured_words
from eval_gate.reports.words.numbers import count, spending
from eval_gate.reports.words.verdict import (
    all_crash,
    headline,
    lead,
    message,
    nothing_comparable,
    opening,
    outage,
    says_nothing,
    suite_drop,
)

__all__ = ["CaseRow", "ReportContext", "RuleRow", "SuiteRow", "View", "view_of"]

MAX_TARGETS: Final = 10


@dataclass(frozen=True, slots=True)
class View:
    """Everything a report shows, in the words it is shown in. `run` is as its verdict counts it."""

    context: ReportContext
    run: RunResult
    verdict: Verdict
    symbol: str
    heading: str
    lead: str | None
    opening: str
    measured: MeasuredWords | None
    """What differs in how this run was measured; it stands below the opening."""
    comparison: Comparison | None
    cases: tuple[CaseRow, ...]
    """All cases of the run, in its order; the other rows are among them."""
    regressions: tuple[CaseRow, ...]
    must_pass: tuple[CaseRow, ...]
    """Cases that must pass and do not, regressions apart."""
    not_decided: tuple[CaseRow, ...]
    """Cases that may be regressions, and whose re-runs are missing."""
    waived: tuple[CaseRow, ...]
    """Cases whose failure does not block because somebody accepted it, or set them aside. In no list of failures."""
    waivers: Waivers
    new_passes: tuple[CaseRow, ...]
    still_failing: tuple[CaseRow, ...]
    main_broke: tuple[CaseRow, ...]
    """Those of the still failing ones that the default branch broke itself."""
    known_failing: tuple[CaseRow, ...]
    """Those of the still failing ones that are neither worse than before nor broken there just now."""
    score_drops: tuple[CaseRow, ...]
    """Scores that fell by more than the tolerance, regressions apart, the largest drop first."""
    failing: tuple[CaseRow, ...]
    """All failing cases that no comparison explains: without a baseline, added, or incomparable."""
    errors: tuple[CaseRow, ...]
    """Cases that could not be judged here, without those of which more is known."""
    errors_by_blame: tuple[Errors, ...]
    """The same, by whose fault it is."""
    still_errored: tuple[CaseRow, ...]
    """Cases that could not be judged here, and not in the baseline either."""
    unsettled: tuple[CaseRow, ...]
    """Failures that may be chance."""
    flaky: tuple[CaseRow, ...]
    flaky_on_record: tuple[CaseRow, ...]
    """Cases that pass here, and that fail now and then on the default branch."""
    skipped: tuple[CaseRow, ...]
    incomparable: tuple[CaseRow, ...]
    added: tuple[CaseRow, ...]
    removed: tuple[CaseRow, ...]
    grades: tuple[Grade, ...]
    """What judges gave for the dimensions of rubrics."""
    causes: tuple[Cause, ...]
    suites: tuple[SuiteRow, ...]
    stale: tuple[StaleSuites, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    """What there is to say about the comparison as a whole."""
    file_notes: tuple[str, ...]
    """Which eval files have changed since the baseline; what that means for its cases is said of these."""
    rules: tuple[RuleRow, ...]
    rates: Rates
    certainty: tuple[str, ...]
    """How sure the pass rate and its change are, in half sentences."""
    suite_drop: str | None
    """How all cases together compare with their records, where they dropped and no reason of the verdict says so."""
    reruns: str | None
    """What re-runs of doubtful cases took."""
    accept_command: str | None
    """What somebody with write access may comment to accept the regressions."""
    spending: str
    baseline_is_stale: bool
    nothing_comparable: bool

    @property
    def asked(self) -> tuple[str, ...]:
        """What was evaluated: one target, or several."""
        targets = self.run.targets or (self.run.target,)
        shown = tuple(target.identity for target in targets[:MAX_TARGETS])
        return shown if len(targets) <= MAX_TARGETS else (*shown, f"{len(targets) - MAX_TARGETS} more")

    @property
    def reasons(self) -> tuple[str, ...]:
        """What decided, in half sentences."""
        return tuple(message(self.run, reason) for reason in self.verdict.reasons)

    @property
    def refined(self) -> bool:
        """Whether records and re-runs decided, and not the two runs alone."""
        return self.comparison is not None and self.comparison.error_rate is not None

    @property
    def doubtful(self) -> tuple[CaseRow, ...]:
        """Failures that may be chance, and flaky cases that are in no other list."""
        return (*self.unsettled, *self.flaky)

    @property
    def flaky_blocks(self) -> bool:
        """Whether a rule counts flaky and unsettled cases."""
        return self.verdict.rule(RuleCode.FLAKY) is not None

    @property
    def more_counts(self) -> tuple[str, ...]:
        """Counts beside passes and failures that only some runs have, failures among them: `1 accepted`."""
        kinds = [row.waived.kind for row in self.waived if row.waived]
        numbers = {
            "of the regressions passed when tried again": self.again,
            "must pass": len(self.must_pass),
            "not decided": len(self.not_decided),
            "not sure": len(self.unsettled),
            "flaky": len(self.flaky) if self.refined else 0,
            "accepted": kinds.count(Kind.ACCEPTED),
            "quarantined": kinds.count(Kind.QUARANTINE),
        }
        return tuple(f"{number} {word}" for word, number in numbers.items() if number)

    @property
    def failed_counts(self) -> str:
        """` (2 regressions, 1 still failing)`, of those that answered; empty without a baseline."""
        if self.comparison is None:
            return ""
        regressions, still = (
            sum(row.status is not Status.ERROR for row in rows) for rows in (self.regressions, self.still_failing)
        )
        return f" ({count(regressions, 'regression')}, {still} still failing)"

    @property
    def errored_counts(self) -> str:
        """` (2 crashed, 1 unreachable, 2 of them regressions)`; empty where there is nothing to say."""
        rows = {"regression": self.regressions, "still failing": self.still_failing}
        broken = {words: sum(row.status is Status.ERROR for row in found) for words, found in rows.items()}
        said = [counted(blames(self.run))]
        said += [f"{count(broken['regression'], 'regression')} among them"] if broken["regression"] else []
        said += [f"{broken['still failing']} still failing"] if broken["still failing"] else []
        said += [f"{len(self.still_errored)} in the baseline too"] if self.still_errored else []
        return f" ({', '.join(filter(None, said))})" if any(said) else ""

    @property
    def remedy(self) -> str:
        """Where to look if a run without a verdict ends the same way again."""
        code = self.verdict.reasons[0].code if self.verdict.reasons else ""
        if code == "baseline-unavailable":
            return "GitHub or the permissions of the job need a look, not this change"
        if says_nothing(self.run, self.verdict):
            return "the judge or the engine needs a look, not this change"
        if outage(self.run, self.verdict):
            return "see whether the agent starts and answers in time with this change, then at its host or provider"
        return "see what the target does with this change, and without it"

    @property
    def all_crash(self) -> bool:
        """Whether regressions may be an outage after all: no case was answered, and each crashed."""
        return bool(self.regressions) and all_crash(self.run)

    @property
    def again(self) -> int:
        """Regressions that passed when they were tried again."""
        return sum(row.status is Status.PASSED for row in self.regressions)

    @property
    def score_tolerance(self) -> str:
        """The drop beyond which it is shown as one."""
        return limit_words(self.comparison.score_tolerance) if self.comparison else ""

    @property
    def summary(self) -> Summary:
        """The counts."""
        return self.run.summary

    @property
    def undecided(self) -> bool:
        """Whether the run says nothing about the change."""
        return self.verdict.outcome is Outcome.ERROR

    @property
    def stale_count(self) -> int:
        """How many suites are stale."""
        return sum(suite.stale for suite in self.suites)


def view_of(run: RunResult, context: ReportContext) -> View:
    """The view of a judged run. A run without a verdict was interrupted before it could be judged."""
    if run.verdict is None:  # what is known of its cases is no judgement yet
        run = run.model_copy(update={"comparison": None})
    verdict = run.verdict or Verdict(outcome=Outcome.ERROR, exit_code=3)
    run = judged_as(run)
    waivers = waivers_of(run, context)
    rows = Lists(rows_of(run, context, waivers))
    regressions, failing, still_failing = rows.regressions(), rows.unexplained_failures(), rows.still_failing()
    baseline, reruns = run.comparison.baseline if run.comparison else None, rerun_words(run)
    stale = baseline is not None and is_stale(baseline, context)
    notes = run.comparison.notes if run.comparison else ()
    of_files = {changed_since(suite.eval_file) for suite in run.suites}
    symbol, heading = headline(run, verdict, context.no_baseline_words, baseline_is_stale=stale)
    return View(
        context=context,
        run=run,
        verdict=verdict,
        symbol=symbol,
        heading=heading,
        lead=lead(run, verdict),
        opening=opening(run, verdict),
        measured=measured_words(run.comparison, context),
        comparison=run.comparison,
        cases=rows.here,
        regressions=regressions,
        must_pass=rows.must_pass(),
        not_decided=rows.not_decided(),
        waived=rows.waived,
        waivers=waivers,
        new_passes=rows.of(CaseClass.NEW_PASS),
        still_failing=still_failing,
        main_broke=rows.main_broke(),
        known_failing=tuple(row for row in still_failing if not row.score_drop and not row.main_broke),
        score_drops=rows.score_drops(),
        failing=failing,
        errors=rows.errors(),
        errors_by_blame=by_blame(rows.errors()),
        still_errored=rows.still_errored(),
        unsettled=rows.unsettled(),
        flaky=_flaky(rows, run),
        flaky_on_record=rows.flaky_on_record(),
        skipped=rows.with_status(Status.SKIPPED),
        incomparable=rows.of(CaseClass.INCOMPARABLE),
        added=rows.of(CaseClass.ADDED),
        removed=rows.of(CaseClass.REMOVED),
        grades=grades_of(run.suites),
        causes=group_causes((row.label, row.cause) for row in (regressions or failing)),
        suites=suite_rows(run, baseline),
        stale=stale_suites(run.suites),
        warnings=_warnings(run),
        notes=tuple(note for note in notes if note not in of_files),
        file_notes=tuple(note for note in notes if note in of_files),
        rules=rule_rows(run, verdict, context, stale=stale),
        rates=rates_of(run),
        certainty=certainty(run),
        suite_drop=_unsaid_drop(run, verdict),
        reruns=reruns,
        accept_command=accept_command(regressions, context) if verdict.outcome is Outcome.FAIL else None,
        spending=spending(run.summary, baseline if reruns is None else None),  # re-runs would look like an increase
        baseline_is_stale=stale,
        nothing_comparable=nothing_comparable(run),
    )


def _flaky(rows: Lists, run: RunResult) -> tuple[CaseRow, ...]:
    """Where records decided, a case is in one list of doubts only: one that fails and is new is among the failing."""
    refined = run.comparison is not None and run.comparison.error_rate is not None
    failing = {(row.suite, row.id) for row in rows.unexplained_failures()} if refined else set()
    return tuple(row for row in rows.flaky() if (row.suite, row.id) not in failing)


def _unsaid_drop(run: RunResult, verdict: Verdict) -> str | None:
    found = run.comparison.suite_finding if run.comparison else None
    said = any(reason.code == RuleCode.SUITE_DROP for reason in verdict.reasons)
    return suite_drop(run) if found is not None and found.dropped and not said else None


def _warnings(run: RunResult) -> tuple[str, ...]:
    """What silently weakens the run: warnings of files first, then of what happened while running, each once."""
    of_files = [f"{suite.eval_file}: {warning}" for suite in run.suites for warning in suite.warnings]
    said = {warning for suite in run.suites for warning in suite.warnings}
    of_cases = [
        f"{case.id}: {warning}"
        for suite in run.suites
        for case in suite.cases
        for warning in case.warnings
        if f"{case.id}: {warning}" not in said
    ]
    return tuple(dict.fromkeys((*run.warnings, *of_files, *of_cases)))
