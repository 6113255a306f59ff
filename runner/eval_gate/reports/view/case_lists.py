"""Lists of a run's cases by class and status, and the cases that block the gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final, TypeAlias

from eval_gate.errors import ExitCode
from eval_gate.gate.evidence.new_case_runs import is_failing
from eval_gate.gate.must_pass import is_must_pass
from eval_gate.gate.rules import find_fallen_scores
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass, Comparison, Reason, ReasonCode, RuleCode, Verdict
from eval_gate.model.evidence import GroundKind
from eval_gate.model.execution import Status
from eval_gate.model.result import RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.view.groups import ErrorGroup, group_errors
from eval_gate.reports.view.new_cases import is_new_or_changed
from eval_gate.reports.view.rows import CaseRow, build_rows
from eval_gate.reports.wording.grounds import describe_missing_evidence
from eval_gate.reports.wording.verdict import find_new_errors
from eval_gate.reports.wording.waivers import WaiverReport, build_waiver_report
from eval_gate.struct import FrozenStruct

_FAILURES: Final = frozenset({CaseClass.REGRESSION, CaseClass.STILL_FAILING, CaseClass.INCONCLUSIVE, CaseClass.FLAKY})
"""Classes whose failing cases have a list of their own."""
_SPECIFIC_CLASSES: Final = frozenset({CaseClass.REGRESSION, CaseClass.STILL_FAILING, CaseClass.INCONCLUSIVE})
"""Classes that take precedence over flaky."""
_NO_NEW_ERRORS: Final = frozenset({CaseClass.REGRESSION, CaseClass.STILL_FAILING, CaseClass.STILL_ERRORED})
"""Classes of cases without a score that do not count as new errors."""
RowPredicate: TypeAlias = Callable[[CaseRow], bool]
_NOT_CLEAN: Final = frozenset({CaseClass.INCONCLUSIVE, CaseClass.FLAKY, CaseClass.REGRESSION})


def _select_rows(holds: Callable[[CaseRow], bool], *, by_drop: bool = False) -> cached_property[tuple[CaseRow, ...]]:
    """Build a cached property of the unwaived notable rows that `holds` is true for, largest drop first `by_drop`."""

    def select_rows(lists: CaseLists) -> tuple[CaseRow, ...]:
        rows = (row for row in lists.notable if not row.waiver and holds(row))
        return tuple(sorted(rows, key=lambda row: -row.drop) if by_drop else rows)

    return cached_property(select_rows)


def _select_class(case_class: CaseClass) -> cached_property[tuple[CaseRow, ...]]:
    """Build a cached property of the rows of one class, waived ones too; not for failures or `still_passing`."""
    return cached_property(
        lambda lists: (
            tuple(row for row in (*lists.notable, *lists.rows[len(lists.cases) :]) if row.change_class is case_class)
            if lists.comparison
            else ()
        )
    )


class CaseLists(FrozenStruct, eq=False, dict=True):
    """Lists of the cases of a run with a verdict, each computed on first use.

    A failing case is in exactly one list of failures; a waived one is only in `waived`.
    """

    run: RunResult
    verdict: Verdict
    context: ReportContext

    @property
    def comparison(self) -> Comparison | None:
        """Comparison with the baseline; None without one."""
        return self.run.comparison

    @property
    def uses_history(self) -> bool:
        """Whether histories and re-runs decided, and not the two runs alone."""
        return self.comparison is not None and self.comparison.false_alarm_rate is not None

    @cached_property
    def waivers(self) -> WaiverReport:
        """Texts about the waivers of the run."""
        return build_waiver_report(self.run, self.context)

    @cached_property
    def rows(self) -> tuple[CaseRow, ...]:
        """Rows of all cases, then those of cases that only the baseline has."""
        return build_rows(self.run, self.context, self.waivers)

    @cached_property
    def cases(self) -> tuple[CaseRow, ...]:
        """All cases of the run, in its order."""
        return tuple(row for row in self.rows if row.case is not None)

    @cached_property
    def notable(self) -> tuple[CaseRow, ...]:
        """Cases that do not simply pass as before; no other case is in a list."""
        return tuple(row for row in self.cases if row.is_notable)

    regressions = _select_rows(lambda row: row.change_class is CaseClass.REGRESSION, by_drop=True)
    must_pass = _select_rows(
        lambda row: row.decided_by is GroundKind.MUST_PASS and row.change_class is not CaseClass.REGRESSION
    )
    """Must-pass cases that fail, except regressions."""
    suspected = _select_rows(lambda row: row.suspected, by_drop=True)
    """Suspected regressions: cases that failed, and were not re-run because the gate had failed already."""
    unconfirmed = _select_rows(
        lambda row: row.decided_by is not None and row.decided_by.is_inconclusive and not row.suspected
    )
    """Cases that may be regressions: the run neither confirms nor clears them."""

    @property
    def missing_evidence(self) -> str:
        """What the unconfirmed cases lack, as words to follow their number."""
        return describe_missing_evidence(row.decided_by for row in self.unconfirmed if row.decided_by)

    @property
    def missing_evidence_title(self) -> str:
        """The same as a title."""
        return {"with missing re-runs": "re-runs missing"}.get(self.missing_evidence, "too little evidence")

    new_passes = _select_class(CaseClass.NEW_PASS)
    still_failing = _select_rows(
        lambda row: row.change_class is CaseClass.STILL_FAILING and not row.is_listed_by_ground
    )
    """Failures that this change did not cause, except those of must-pass cases."""
    base_agent_failures = _select_rows(lambda row: row.decided_by is GroundKind.BASE_AGENT)
    """Cases that would fail the gate if the base agent had not failed them too."""
    broken_on_main = _select_rows(lambda row: row.is_broken_on_main)
    """Still failing cases that the default branch broke itself."""
    flaky_failing = _select_rows(lambda row: row.fails_as_flaky)
    """Still failing cases that are flaky on the default branch."""
    score_drops = _select_rows(lambda row: row.has_score_drop, by_drop=True)
    """Cases whose score fell by more than the tolerance, except regressions."""
    failing = _select_rows(
        lambda row: (
            row.status is Status.FAILED
            and row.change_class not in _FAILURES
            and not row.is_listed_by_ground
            and not row.is_new_and_flaky
        )
    )
    """Failing cases without a comparable result: no baseline, added, or incomparable."""
    errors = _select_rows(
        lambda row: (
            row.status is Status.ERROR and row.change_class not in _NO_NEW_ERRORS and not row.is_listed_by_ground
        )
    )
    """Cases without a score that the change may have caused, except those with a list of their own."""
    still_errored = _select_class(CaseClass.STILL_ERRORED)
    """Cases without a score in this run and in the baseline."""
    inconclusive_cases = _select_rows(
        lambda row: (
            row.change_class is CaseClass.INCONCLUSIVE
            and row.status is not Status.ERROR
            and row.decided_by is not GroundKind.BASE_AGENT
        )
    )
    """Failures that may be chance; cases that only had agent errors are among the errors."""
    flaky_in_history = _select_rows(
        lambda row: row.is_flaky_in_history and row.change_class is CaseClass.STILL_PASSING and not row.flaky
    )
    """Cases that pass in this run and sometimes fail on the default branch."""
    behaving_differently = cached_property(
        lambda lists: tuple(row for row in lists.notable if row.behaves_differently) if lists.comparison else ()
    )
    """Cases that pass in both runs and behave differently, quarantined ones included."""
    new_and_flaky = _select_rows(lambda row: row.is_new_and_flaky and not row.is_listed_by_ground)
    """New and changed cases that passed and failed in this run."""
    skipped = _select_rows(lambda row: row.status is Status.SKIPPED)
    incomparable = _select_class(CaseClass.INCOMPARABLE)
    """Cases whose prompt or expectation changed."""
    added = _select_class(CaseClass.ADDED)
    removed = _select_class(CaseClass.REMOVED)
    """Cases that only the baseline has."""

    @cached_property
    def regressions_and_suspects(self) -> tuple[CaseRow, ...]:
        """Regressions, then suspected regressions: what a reviewer looks at first."""
        return (*self.regressions, *self.suspected)

    @cached_property
    def waived(self) -> tuple[CaseRow, ...]:
        """Cases whose failure does not block because it is waived or they are quarantined."""
        return tuple(row for row in self.notable if row.waiver)

    @cached_property
    def known_failing(self) -> tuple[CaseRow, ...]:
        """Still failing cases that neither got worse nor were just broken on the default branch."""
        return tuple(
            row
            for row in self.still_failing
            if not (
                row.has_score_drop
                or row.is_broken_on_main
                or row.fails_as_flaky
                or row.decided_by is GroundKind.BASE_AGENT
            )
        )

    @property
    def listed_failing_count(self) -> int:
        """Number of still failing cases that another list names."""
        return len(self.still_failing) - len(self.known_failing)

    @cached_property
    def flaky(self) -> tuple[CaseRow, ...]:
        """Cases that passed and failed in this run or in their history, if no other list has them.

        If histories decided, a new case that fails is only among the failing ones.
        """
        other_keys = {row.key for row in self.failing} if self.uses_history else set()
        other_keys |= {row.key for row in self.new_and_flaky}
        rows = (row for row in self.notable if not row.waiver and (row.flaky or row.change_class is CaseClass.FLAKY))
        return tuple(
            r
            for r in rows
            if not r.is_listed_by_ground and r.change_class not in _SPECIFIC_CLASSES and r.key not in other_keys
        )

    @property
    def inconclusive_or_flaky(self) -> tuple[CaseRow, ...]:
        """Failures that may be chance, and flaky cases that are in no other list."""
        return (*self.inconclusive_cases, *self.flaky)

    @cached_property
    def errors_by_kind(self) -> tuple[ErrorGroup, ...]:
        """Errors by error kind."""
        return group_errors(self.errors, self.regressions_and_suspects)


class GateBlockers(FrozenStruct):
    """Cases and other reasons that block the gate; both are empty only if it passed."""

    cases: frozenset[CaseKey]
    other_reasons: tuple[Reason, ...] = ()
    """Reasons that no case shows: a limit of cost, a stale suite, an unavailable baseline."""


def find_blockers(lists: CaseLists) -> GateBlockers:
    """Find the unwaived cases and the reasons that block the gate; none if it exits with 0."""
    if lists.verdict.exit_code is ExitCode.PASSED:
        return GateBlockers(frozenset())
    about, keys, other_reasons = _build_predicates(lists), set[CaseKey](), list[Reason]()
    for reason in lists.verdict.reasons:
        holds = about.get(reason.code)
        reason_keys = {row.key for row in lists.notable if not row.waiver and holds(row)} if holds else set()
        keys |= reason_keys
        if not reason_keys and reason.code != ReasonCode.ALL_AGENT_ERRORS:  # it only explains another reason
            other_reasons.append(reason)
    if not keys and not other_reasons:
        message = lists.run.stop_reason or "the run ended before it had a verdict"
        other_reasons.append(Reason(code=ReasonCode.RUN_INCOMPLETE, message=message))
    return GateBlockers(frozenset(keys), tuple(other_reasons))


def _build_predicates(lists: CaseLists) -> Mapping[str, RowPredicate]:
    """Build the predicate for each reason code: whether the reason is about a case."""
    errors, run = {id(case) for case in find_new_errors(lists.run)}, lists.run
    most = run.policy.max_score_drop if run.policy else None
    fallen = find_fallen_scores(run, run.comparison, most) if run.comparison else {}
    return {
        RuleCode.REGRESSIONS: lambda row: row.change_class is CaseClass.REGRESSION,
        RuleCode.SUITE_DROP: lambda row: row.decided_by is GroundKind.SUITE_DROP,
        RuleCode.MUST_PASS: lambda row: _fails_must_pass(row, lists),
        RuleCode.FAILURES: lambda row: row.status is Status.FAILED,
        RuleCode.PASS_RATE: lambda row: row.status is Status.FAILED,
        RuleCode.SCORE_DROP: lambda row: row.key in fallen,
        RuleCode.AGENT_ERRORS: lambda row: row.decided_by is GroundKind.AGENT_ERRORS,
        RuleCode.ERRORS: lambda row: id(row.case) in errors,
        RuleCode.COVERAGE: lambda row: row.status in {Status.ERROR, Status.NOT_RUN},
        RuleCode.FLAKY: lambda row: row.flaky or row.change_class in _NOT_CLEAN or row.is_new_and_flaky,
        RuleCode.NEW_FAILURES: lambda row: (
            row.case is not None and is_new_or_changed(row.case_change) and is_failing(row.case)
        ),
        ReasonCode.NO_SCORED_CASES: lambda row: row.status in {Status.ERROR, Status.NOT_RUN},
        ReasonCode.TOO_FEW_SCORED_CASES: lambda row: row.status is Status.ERROR,
        ReasonCode.RUN_INCOMPLETE: lambda row: row.status is Status.NOT_RUN,
        ReasonCode.UNCONFIRMED_REGRESSIONS: lambda row: row.decided_by is not None and row.decided_by.is_inconclusive,
    }


def _fails_must_pass(row: CaseRow, lists: CaseLists) -> bool:
    """Whether a must-pass case fails, by the rule; by its class if an older version did not store the rule."""
    policy = lists.run.policy
    if row.case is None or row.status is not Status.FAILED or row.change_class is CaseClass.INCONCLUSIVE:
        return False
    return is_must_pass(row.case, policy.must_pass) if policy else row.decided_by is GroundKind.MUST_PASS
