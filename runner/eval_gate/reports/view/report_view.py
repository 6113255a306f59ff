"""View of a run: all numbers and texts of its reports, computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, TypeVar

from eval_gate.errors import ExitCode
from eval_gate.gate.case_comparison import format_changed_file_note
from eval_gate.gate.must_pass import find_must_pass_cases
from eval_gate.gate.pass_score import apply_recorded_pass_score
from eval_gate.gate.reason_wording import (
    describe_score_drop,
    describe_suite_drop,
    format_error_kind_counts,
    has_regression_by_itself,
)
from eval_gate.gate.score_changes import format_limit
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import BaselineFacts, CaseClass, Outcome, RuleCode, Verdict
from eval_gate.model.evidence import GroundKind
from eval_gate.model.execution import Status
from eval_gate.model.result import RunResult, SuiteResult
from eval_gate.model.waiver import WaiverKind
from eval_gate.reports import run_statistics
from eval_gate.reports.context import ReportContext
from eval_gate.reports.view.behaviour_rows import BehaviourReport
from eval_gate.reports.view.case_lists import CaseLists, find_blockers
from eval_gate.reports.view.groups import group_causes, group_stale_suites
from eval_gate.reports.view.new_cases import summarize_new_cases
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.scores import list_grades
from eval_gate.reports.view.tables import SuiteRow, build_rule_rows, build_suite_rows, is_baseline_stale
from eval_gate.reports.wording import headline
from eval_gate.reports.wording import verdict as verdict_words
from eval_gate.reports.wording.advice import Advice, find_advice, find_doc_link, format_lead
from eval_gate.reports.wording.case_errors import describe_mistakes
from eval_gate.reports.wording.grounds import format_place
from eval_gate.reports.wording.judges import describe_judges
from eval_gate.reports.wording.metrics import MetricReport
from eval_gate.reports.wording.model_calls import describe_model_calls
from eval_gate.reports.wording.power import describe_false_alarms, describe_first_runs, describe_power
from eval_gate.reports.wording.reuse import describe_outside_cause, describe_reuse
from eval_gate.reports.wording.setup_changes import describe_prompt_change, describe_setup_changes
from eval_gate.reports.wording.spending import (
    count_reruns,
    describe_certainty,
    describe_reruns,
    describe_spending,
    describe_warm_up,
)
from eval_gate.reports.wording.verdict import describe_changes_since_push
from eval_gate.reports.wording.waivers import build_waive_comment
from eval_gate.results.turn_details import has_simulated_user
from eval_gate.struct import replace
from eval_gate.text.escape import format_count

MAX_TARGETS: Final = 10
OPEN_ROWS: Final = 10
"""Cases that a table shows unfolded; more are grouped by their causes."""


T = TypeVar("T")


def _cache_property(compute: Callable[[ReportView], T]) -> cached_property[T]:
    """Wrap `compute` as a property that is computed on first use."""
    return cached_property(compute)


class ReportView(CaseLists):
    """Numbers and texts of a run for all its reports."""

    summary = _cache_property(lambda view: view.run.summary)
    """The counts."""
    has_no_verdict = _cache_property(lambda view: view.verdict.reasons == (verdict_words.NO_VERDICT,))
    is_inconclusive = _cache_property(lambda view: view.verdict.outcome is Outcome.INCONCLUSIVE)
    """Whether the gate is inconclusive."""
    nothing_comparable = _cache_property(lambda view: run_statistics.has_no_comparable_case(view.run))
    """Whether there is a baseline, but no case is comparable with it."""

    @property
    def _baseline(self) -> BaselineFacts | None:
        return self.comparison.baseline if self.comparison else None

    @cached_property
    def baseline_is_stale(self) -> bool:
        """Whether the baseline is older than the limits of the context."""
        return self._baseline is not None and is_baseline_stale(self._baseline, self.context)

    # Words: the verdict, its reasons, and the spending

    @cached_property
    def _headline(self) -> tuple[str, str]:
        absent = "baseline lost" if self.run.lost_baseline else self.context.no_baseline_heading
        return headline.build_headline(self.run, self.verdict, absent, baseline_is_stale=self.baseline_is_stale)

    @property
    def symbol(self) -> str:
        """The sign before the heading."""
        return self._headline[0]

    @property
    def heading(self) -> str:
        """The verdict in a few words."""
        return self._headline[1]

    lead = _cache_property(lambda view: format_lead(view.advice, view.verdict))
    """The words before the opening, in bold."""

    @cached_property
    def opening(self) -> str:
        """Why, in a few sentences; it continues the lead if that ends with a colon."""
        words = verdict_words.describe_verdict(self.run, self.verdict)
        return words if self.lead and self.lead.endswith(":") else verdict_words.to_sentence(words)

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        """Reasons of the verdict, as phrases."""
        return tuple(verdict_words.list_reasons(self.run, self.verdict))

    setup_changes = _cache_property(lambda view: describe_setup_changes(view.run, view.context))
    """Setup changes since the baseline; reports show them below the opening."""
    prompt_change = _cache_property(lambda view: describe_prompt_change(view.run))
    """The first difference of the system prompt, where both prompts are known."""
    changes_since_push = _cache_property(lambda view: describe_changes_since_push(view.run, view.context))
    """Changes of the regressions since the last push to the pull request."""
    doc_link = _cache_property(
        lambda view: find_doc_link(view.run, view.verdict, baseline_is_stale=view.baseline_is_stale)
    )
    """The page of documentation about the state of this run."""

    @property
    def targets(self) -> tuple[str, ...]:
        """What was evaluated: one target, or several."""
        targets = self.run.targets or (self.run.target,)
        names = tuple(target.identity for target in targets[:MAX_TARGETS])
        return names if len(targets) <= MAX_TARGETS else (*names, f"{len(targets) - MAX_TARGETS} more")

    @cached_property
    def suite_drop(self) -> str | None:
        """Drops of all cases together that no reason of the verdict states, also those within run variation."""
        if self.comparison is None:
            return None
        drop, scores = self.comparison.suite_finding, self.comparison.score_finding
        reasons, sentences = {reason.code for reason in self.verdict.reasons}, []
        if drop is not None and (drop.is_run_variation or (drop.is_drop and RuleCode.SUITE_DROP not in reasons)):
            sentences.append(describe_suite_drop(drop, has_regressions=has_regression_by_itself(self.comparison)))
        if scores is not None and scores.is_drop and RuleCode.SUITE_SCORES not in reasons:
            sentences.append(describe_score_drop(scores))
        return "; ".join(sentences) or None

    bad_day = _cache_property(lambda view: verdict_words.describe_bad_day(view.run, format_place(view.context)))
    """Other explanations of a suite drop; reports show them below the opening."""
    false_alarms = _cache_property(lambda view: describe_false_alarms(view.run, format_place(view.context)))
    """False alarm rate, if it is higher than promised; reports show it below the opening."""

    reuse = _cache_property(lambda view: describe_reuse(view.run))
    """What was reused from earlier runs, or why nothing was; None if no suite has measures."""
    model_calls = _cache_property(lambda view: describe_model_calls(view.run))
    """What answered the agent's model calls; None if they do not go through a proxy."""
    outside_cause = _cache_property(lambda view: describe_outside_cause(view.run))
    """Why the change is not the cause in re-checked suites that got worse; reports show it below the opening."""

    first_runs = _cache_property(lambda view: describe_first_runs(view.run, format_place(view.context)))
    """What a gate with fewer than ten runs of history finds and misses, and what more runs change."""

    @cached_property
    def advice(self) -> Advice | None:
        """What happened, whose it is and the next step; None if the gate passed."""
        waive = "waive the failures with `/eval-gate waive`" if self.waive_comment is not None else None
        return find_advice(self.run, self.verdict, self.context, waive=waive)

    @cached_property
    def waive_comment(self) -> str | None:
        """Comment with which a person with write access waives the regressions."""
        if self.verdict.outcome is not Outcome.FAILED:
            return None
        return build_waive_comment((row.id for row in self.waivable), self.context)

    @cached_property
    def must_pass_regressions(self) -> tuple[CaseRow, ...]:
        """Regressions that cannot be waived, because their cases must pass."""
        waivable = set(self.waivable)
        return tuple(row for row in self.regressions if row not in waivable)

    @cached_property
    def waivable(self) -> tuple[CaseRow, ...]:
        """Regressions that can be waived: all but those of must-pass cases."""
        policy = self.run.policy
        must = find_must_pass_cases(self.run, policy.must_pass if policy else ())
        return tuple(row for row in self.regressions if row.key not in must)

    # Further tables and lists

    grades = _cache_property(lambda view: list_grades(view.run))
    """Grades of LLM judges for the dimensions of rubrics."""
    causes = _cache_property(
        lambda view: group_causes((row, row.cause) for row in (view.regressions_and_suspects or view.failing))
    )
    """Causes of the regressions and suspected ones, or else of the failures."""

    @cached_property
    def examples(self) -> tuple[CaseRow, ...]:
        """Regressions in the order to look at them: one of each cause, then those that differ within their cause."""
        if not self.regressions_and_suspects:
            return ()
        first = [cause.examples[0] for cause in self.causes]
        unlike = [row for cause in self.causes if cause.values or not cause.is_shared for row in cause.cases]
        return tuple(dict.fromkeys((*first, *unlike)))

    @cached_property
    def suites(self) -> tuple[SuiteRow, ...]:
        """One row per suite."""
        return build_suite_rows(self.run, self._baseline)

    def iter_suites(self) -> Iterator[tuple[SuiteResult, SuiteRow, Sequence[CaseRow]]]:
        """Yield every suite with its row and those of its cases."""
        begin = 0
        for suite, row in zip(self.run.suites, self.suites, strict=True):
            end = begin + len(suite.cases)
            yield suite, row, self.cases[begin:end]
            begin = end

    failing_title = _cache_property(lambda view: headline.format_new_failures(row.change_class for row in view.failing))
    """How many new or changed cases fail."""

    @cached_property
    def broken_by_commit(self) -> tuple[tuple[str | None, tuple[CaseRow, ...]], ...]:
        """Cases that the default branch broke, by the commit since which they fail there; None if it is unknown."""
        commits = dict.fromkeys(row.broken_since for row in self.broken_on_main)
        return tuple(
            (commit, tuple(row for row in self.broken_on_main if row.broken_since == commit)) for commit in commits
        )

    stale_suites = _cache_property(lambda view: group_stale_suites(view.run.suites))
    """Stale suites by tool."""

    @property
    def stale_count(self) -> int:
        """How many suites are stale."""
        return sum(bool(suite.stale) for suite in self.suites)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Mistakes in eval files, then other warnings."""
        return (*self.mistakes, *self.other_warnings)

    mistakes = _cache_property(lambda view: describe_mistakes(view.run))
    """Mistakes in eval files, each with its place and its cases."""

    @cached_property
    def other_warnings(self) -> tuple[str, ...]:
        """Warnings of the run, of eval files and of cases, each once; without mistakes in eval files."""
        of_files = [f"{suite.eval_file}: {warning}" for suite in self.run.suites for warning in suite.warnings]
        texts = {warning for suite in self.run.suites for warning in suite.warnings}
        of_cases = [f"{case.id}: {warning}" for _, case in self.run.iter_cases() for warning in case.warnings]
        return tuple(dict.fromkeys((*self.run.warnings, *of_files, *(one for one in of_cases if one not in texts))))

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Notes about the comparison as a whole."""
        return tuple(note for note in self._all_notes if note not in self._file_note_texts)

    @cached_property
    def file_notes(self) -> tuple[str, ...]:
        """Notes about eval files that changed since the baseline."""
        return tuple(note for note in self._all_notes if note in self._file_note_texts)

    @property
    def _all_notes(self) -> tuple[str, ...]:
        return self.comparison.notes if self.comparison else ()

    @cached_property
    def _file_note_texts(self) -> frozenset[str]:
        return frozenset(format_changed_file_note(suite.eval_file) for suite in self.run.suites)

    blockers = _cache_property(find_blockers)
    """Cases and other reasons that block the gate."""
    rules = _cache_property(
        lambda view: build_rule_rows(view.run, view.verdict, view.context, stale=view.baseline_is_stale)
    )
    """Rows of the rules that decided, the baseline's age and the pass score."""

    # Numbers, and texts with numbers

    fallen_evaluators = _cache_property(lambda view: headline.format_fallen_evaluators(view.run))
    """Which evaluators fell in how many cases; None if none fell in several."""
    outage = _cache_property(lambda view: run_statistics.find_outage(view.run))
    """The agent error that most cases without a pass share; None if there is no such error."""
    pass_counts = _cache_property(lambda view: run_statistics.count_passing_cases(view.run))
    """Passing cases among all that ran, here and in the baseline."""
    certainty = _cache_property(lambda view: describe_certainty(view.run))
    """Confidence intervals of the pass rate and its change, as phrases."""
    power = _cache_property(lambda view: describe_power(view.run, format_place(view.context)))
    """What a run of these cases can detect, and which cases it cannot gate, as phrases."""
    judges = _cache_property(lambda view: describe_judges(view.run))
    """Agreement of the LLM judges with people, as phrases."""

    @cached_property
    def relevant_judges(self) -> tuple[str, ...]:
        """The same for a short report, which mentions an uncalibrated judge only if it scored a listed case."""
        rows = (
            *self.regressions,
            *self.failing,
            *self.must_pass,
            *self.inconclusive_or_flaky,
            *self.score_drops,
            *self.new_passes,
        )
        graded = (
            row.case.fingerprints.judge for row in rows if row.case is not None and row.case.fingerprints is not None
        )
        return describe_judges(self.run, frozenset(judge for judge in graded if judge))

    @cached_property
    def behaviour(self) -> BehaviourReport | None:
        """Passing cases that behave differently than in the baseline; None without any."""
        changes = self.comparison.behaviour_changes if self.comparison else None
        if changes is None or not changes.cases:
            return None
        return BehaviourReport(changes, self.behaving_differently)

    @cached_property
    def metrics(self) -> MetricReport | None:
        """Evaluators and tags compared with the baseline; None without any."""
        changes = self.comparison.metric_changes if self.comparison else None
        failed = self.verdict.outcome is Outcome.FAILED
        return MetricReport(changes, failed) if changes is not None and changes.rows else None

    new_case_summary = _cache_property(lambda view: summarize_new_cases(view.run))
    """Results of new and changed cases that ran several times."""
    reruns = _cache_property(lambda view: describe_reruns(view.run))
    """Time and cost of the re-runs."""
    rerun_count = _cache_property(lambda view: count_reruns(view.run))
    """Number of re-runs and of their cases; None without any."""

    @cached_property
    def spending(self) -> str:
        """Time and cost of the run and its warm-up rounds.

        The change since the baseline is left out after re-runs, which would look like an increase, and with reused
        suites, which cost nothing here.
        """
        has_users = any(has_simulated_user(case) for case in run_statistics.list_executed_cases(self.run))
        is_comparable = self.reruns is None and not self.run.reused_suites
        own = describe_spending(self.summary, self._baseline if is_comparable else None, has_users=has_users)
        return " · ".join(filter(None, [own, describe_warm_up(self.run)]))

    @property
    def score_tolerance(self) -> str:
        """Fall of a score above which it is a score drop."""
        return format_limit(self.comparison.score_tolerance) if self.comparison else ""

    @property
    def flaky_blocks(self) -> bool:
        """Whether a rule counts flaky and inconclusive cases, or the flaky ones are part of a suite drop that fails."""
        of_drop = (row for row in self.flaky if row.decided_by is GroundKind.SUITE_DROP)
        return self.verdict.find_rule(RuleCode.FLAKY) is not None or any(
            row.key in self.blockers.cases for row in of_drop
        )

    @cached_property
    def _rows_by_word(self) -> Mapping[str, tuple[CaseRow, ...]]:
        """Cases with a count of their own, except passes, failures and regressions, by the word for it."""
        kinds = {
            kind: tuple(row for row in self.waived if row.waiver and row.waiver.kind is kind) for kind in WaiverKind
        }
        cleared = (row for row in self.base_agent_failures if row.change_class is CaseClass.INCONCLUSIVE)
        return {
            "must-pass failing": self.must_pass,
            "not worse than the base agent": tuple(cleared),
            self.missing_evidence: self.unconfirmed,
            "inconclusive": self.inconclusive_cases,
            "new and flaky": self.new_and_flaky,
            "flaky": self.flaky if self.uses_history else (),
            "waived": kinds[WaiverKind.WAIVER],
            "quarantined": kinds[WaiverKind.QUARANTINE],
        }

    @cached_property
    def counts(self) -> str:
        """`60 cases: 52 pass (1 flaky), 8 do not pass (5 regressions, 2 suspected, 1 agent error), 3 not run`."""
        passing = f"{self.summary.passed} pass{_join_in_parentheses(self.passing_counts)}"
        return f"{format_count(self.summary.total_cases, 'case')}: {', '.join([passing, *self.other_counts])}"

    @cached_property
    def passing_counts(self) -> Sequence[str]:
        """Counts of passing cases with something to say, such as `1 flaky`."""
        return self._count_kinds(Status.PASSED)

    @cached_property
    def other_counts(self) -> Sequence[str]:
        """Counts of the cases that do not pass, of score drops and of re-runs, such as `8 do not pass`."""
        summary, failing, parts = self.summary, self.summary.failed + self.summary.errored, []
        errors = format_error_kind_counts(row.error_kind for row in self.errors)
        if failing:
            kinds = [*self._count_kinds(Status.FAILED, Status.ERROR), *filter(None, [errors])]
            parts.append(f"{format_count(failing, 'does', 'do')} not pass{_join_in_parentheses(kinds)}")
        more = {"not run": summary.not_run, "skipped": summary.skipped}
        parts += [f"{number} {word}" for word, number in more.items() if number]
        parts += [format_count(len(self.score_drops), "score drop")] if self.score_drops else []
        parts += [self.rerun_count] if self.rerun_count else []
        return parts

    def _count_kinds(self, *statuses: Status) -> list[str]:
        """Count the cases of these statuses by kind: each in the first kind that holds for it."""
        recovered = " passed only when re-run" if statuses == (Status.PASSED,) else ""
        kinds = {
            "regression": self.regressions,
            "suspected": self.suspected,
            "flaky before this change": self.flaky_failing,
            "still failing": self.still_failing,
            **self._rows_by_word,
            "without a comparable baseline": self.failing if self.comparison else (),
            "without a score in the baseline too": self.still_errored,
        }
        counted_keys, counts = set[CaseKey](), list[str]()
        for word, rows in kinds.items():
            keys = {row.key for row in rows if row.status in statuses} - counted_keys
            counted_keys |= keys
            if keys and word == "regression":
                counts.append(f"{format_count(len(keys), word)}{recovered}")
            elif keys:
                counts.append(f"{len(keys)} {word}")
        return counts


def _join_in_parentheses(words: Sequence[str]) -> str:
    return f" ({', '.join(words)})" if words else ""


def build_view(run: RunResult, context: ReportContext) -> ReportView:
    """Build the view of a run and its verdict.

    Without a verdict, the run was interrupted or the gate has not decided yet. The view then omits the comparison,
    because its classes are provisional.
    """
    verdict = run.verdict
    if verdict is None:  # the classes of its cases are provisional
        run = replace(run, comparison=None)
        reasons = (verdict_words.NO_VERDICT,) if run.complete else ()
        verdict = Verdict(outcome=Outcome.INCONCLUSIVE, exit_code=ExitCode.INCOMPLETE, reasons=reasons)
    return ReportView(apply_recorded_pass_score(run), verdict, context)
