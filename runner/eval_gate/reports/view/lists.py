"""The cases of a run by what became of them, and which of them keep the gate from passing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final, TypeAlias

from eval_gate.gate.evidence.fresh import fails
from eval_gate.gate.must_pass import must_pass
from eval_gate.gate.rules import SCORE_SHARE, drop_of, new_errors, score_share
from eval_gate.gate.scores import exceeds
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass, Comparison, Outcome, Reason, RuleCode, Verdict
from eval_gate.model.execution import Status
from eval_gate.model.grounds import GroundKind
from eval_gate.model.result import RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.view.fresh import is_fresh
from eval_gate.reports.view.groups import Errors, errors_by_blame
from eval_gate.reports.view.rows import CaseRow, Rows
from eval_gate.reports.words.waivers import Waivers, waivers_of
from eval_gate.struct import FrozenStruct

_FAILURES: Final = frozenset({CaseClass.REGRESSION, CaseClass.STILL_FAILING, CaseClass.UNSETTLED, CaseClass.FLAKY})
"""Classes whose failing cases have a list of their own."""
_SAID: Final = frozenset({CaseClass.REGRESSION, CaseClass.STILL_FAILING, CaseClass.UNSETTLED})
"""Classes that say more of a case than that it is flaky."""
_NO_NEW_ERRORS: Final = frozenset({CaseClass.REGRESSION, CaseClass.STILL_FAILING, CaseClass.STILL_ERRORED})
"""Classes of cases that could not be judged, and are no errors of their own."""
_APART: Final = frozenset(
    {GroundKind.MUST_PASS, GroundKind.NOT_RERUN, GroundKind.NOT_ASKED, GroundKind.SPENT, GroundKind.SLOW}
)
"""Grounds that have a list of their own, whatever the class."""
Holds: TypeAlias = Callable[[CaseRow], bool]
_NOT_CLEAN: Final = frozenset({CaseClass.UNSETTLED, CaseClass.FLAKY, CaseClass.REGRESSION})
_OF_OTHERS: Final = frozenset({"all-crashed"})
"""Reasons that only say more of another one."""


def _listed(holds: Callable[[CaseRow], bool], *, by_drop: bool = False) -> cached_property[tuple[CaseRow, ...]]:
    """The cases of the run for which it holds, waived ones apart; `by_drop`: the largest drop first."""

    def made(lists: CaseLists) -> tuple[CaseRow, ...]:
        found = (row for row in lists.noted if not row.waived and holds(row))
        return tuple(sorted(found, key=lambda row: -row.drop) if by_drop else found)

    return cached_property(made)


def _of(wanted: CaseClass) -> cached_property[tuple[CaseRow, ...]]:
    """The rows of one class but `still_passing`, waived ones too: for classes that are no failures."""
    return cached_property(
        lambda lists: (
            tuple(row for row in (*lists.noted, *lists.rows.removed) if row.change is wanted)
            if lists.comparison
            else ()
        )
    )


class CaseLists(FrozenStruct, eq=False, dict=True):
    """The lists of a judged run's cases, each made when it is first asked for. `run` is as its verdict counts it.

    A failing case is in exactly one list of failures; one that is waived is in `waived` and in no other.
    """

    run: RunResult
    verdict: Verdict
    context: ReportContext

    @property
    def comparison(self) -> Comparison | None:
        """What the run is compared with; None without a baseline."""
        return self.run.comparison

    @property
    def refined(self) -> bool:
        """Whether records and re-runs decided, and not the two runs alone."""
        return self.comparison is not None and self.comparison.error_rate is not None

    @cached_property
    def waivers(self) -> Waivers:
        """What there is to say about waivers beside their cases."""
        return waivers_of(self.run, self.context)

    @cached_property
    def rows(self) -> Rows:
        """The rows of all cases."""
        return Rows(self.run, self.context, self.waivers)

    @property
    def cases(self) -> tuple[CaseRow, ...]:
        """All cases of the run, in its order."""
        return self.rows.cases

    @property
    def noted(self) -> tuple[CaseRow, ...]:
        """The cases of which there is more to say than that they pass as before; no other is in any list here."""
        return self.rows.noted

    regressions = _listed(lambda row: row.change is CaseClass.REGRESSION, by_drop=True)
    must_pass = _listed(lambda row: row.decided_by is GroundKind.MUST_PASS and row.change is not CaseClass.REGRESSION)
    """Cases that must pass and do not, regressions apart."""
    suspected = _listed(lambda row: row.suspected, by_drop=True)
    """Suspected regressions: cases that failed, and were not re-run because the gate had failed already."""
    not_decided = _listed(lambda row: row.decided_by is not None and row.decided_by.undecided and not row.suspected)
    """Cases that may be regressions, and whose re-runs are missing."""
    new_passes = _of(CaseClass.NEW_PASS)
    still_failing = _listed(lambda row: row.change is CaseClass.STILL_FAILING and row.decided_by not in _APART)
    """Failures that are not of this change; those that must pass are a matter of their own."""
    by_control = _listed(lambda row: row.decided_by is GroundKind.CONTROL)
    """What would have failed the gate, had the base branch's agent not failed it too in the same minutes."""
    main_broke = _listed(lambda row: row.main_broke)
    """Those of the still failing ones that the default branch broke itself."""
    score_drops = _listed(lambda row: row.score_drop, by_drop=True)
    """Scores that fell by more than the tolerance, regressions apart."""
    failing = _listed(
        lambda row: (
            row.status is Status.FAILED
            and row.change not in _FAILURES
            and row.decided_by not in _APART
            and not row.flakes_from_the_start
        )
    )
    """Failing cases that the comparison says nothing else about: without a baseline, added, incomparable."""
    errors = _listed(
        lambda row: row.status is Status.ERROR and row.change not in _NO_NEW_ERRORS and row.decided_by not in _APART
    )
    """Cases that could not be judged, those apart that have a list of their own: what the change may have to do."""
    still_errored = _of(CaseClass.STILL_ERRORED)
    """Cases that could not be judged here, nor in the baseline."""
    unsettled = _listed(
        lambda row: (
            row.change is CaseClass.UNSETTLED
            and row.status is not Status.ERROR
            and row.decided_by is not GroundKind.CONTROL
        )
    )
    """Failures that may be chance; what crashed and was never judged is among the errors."""
    flaky_on_record = _listed(
        lambda row: row.flaky_on_record and row.change is CaseClass.STILL_PASSING and not row.flaky
    )
    """Cases that pass here, and that fail now and then on the default branch."""
    fresh_flaky = _listed(lambda row: row.flakes_from_the_start and row.decided_by not in _APART)
    """New and changed cases that were seen both to pass and to fail."""
    skipped = _listed(lambda row: row.status is Status.SKIPPED)
    incomparable = _of(CaseClass.INCOMPARABLE)
    """Cases with another question or expectation than before."""
    added = _of(CaseClass.ADDED)
    removed = _of(CaseClass.REMOVED)
    """Cases that only the baseline has."""

    @cached_property
    def broken(self) -> tuple[CaseRow, ...]:
        """Regressions, then suspected ones: what a reviewer has to look at."""
        return (*self.regressions, *self.suspected)

    @cached_property
    def waived(self) -> tuple[CaseRow, ...]:
        """Cases whose failure does not block because somebody accepted it, or set them aside."""
        return tuple(row for row in self.noted if row.waived)

    @cached_property
    def known_failing(self) -> tuple[CaseRow, ...]:
        """Those of the still failing ones that are neither worse than before nor broken there just now."""
        return tuple(
            row
            for row in self.still_failing
            if not (row.score_drop or row.main_broke or row.decided_by is GroundKind.CONTROL)
        )

    @cached_property
    def flaky(self) -> tuple[CaseRow, ...]:
        """Cases with both results among their trials, or by their record, where that is the most to say about them.

        Where records decided, a case is in one list of doubts only: one that fails and is new is among the failing.
        """
        apart = {row.key for row in self.failing} if self.refined else set()
        apart |= {row.key for row in self.fresh_flaky}
        seen = (row for row in self.noted if not row.waived and (row.flaky or row.change is CaseClass.FLAKY))
        return tuple(r for r in seen if r.decided_by not in _APART and r.change not in _SAID and r.key not in apart)

    @property
    def doubtful(self) -> tuple[CaseRow, ...]:
        """Failures that may be chance, and flaky cases that are in no other list."""
        return (*self.unsettled, *self.flaky)

    @cached_property
    def errors_by_blame(self) -> tuple[Errors, ...]:
        """The errors by whose fault they are."""
        return errors_by_blame(self.errors)


class Blocking(FrozenStruct):
    """Both are empty exactly where the gate passes."""

    cases: frozenset[CaseKey]
    apart: tuple[Reason, ...] = ()
    """Reasons that no case of the run stands for: a limit of cost, a stale suite, a baseline that could not be had."""


def blocking_of(lists: CaseLists) -> Blocking:
    """What the verdict rests on. Waived cases are never among it."""
    if lists.verdict.outcome is Outcome.PASS:
        return Blocking(frozenset())
    about, found, apart = _about(lists), set[CaseKey](), list[Reason]()
    for reason in lists.verdict.reasons:
        holds = about.get(reason.code)
        mine = {row.key for row in lists.noted if not row.waived and holds(row)} if holds else set()
        found |= mine
        if not mine and reason.code not in _OF_OTHERS:
            apart.append(reason)
    return Blocking(frozenset(found), tuple(apart) if found or apart else (_ended(lists.run),))


def _ended(run: RunResult) -> Reason:
    return Reason(code="not-complete", message=run.stopped or "the run ended before it could be judged")


def _about(lists: CaseLists) -> Mapping[str, Holds]:
    """By the code of a reason, whether it is about a case."""
    errors = {id(case) for case in new_errors(lists.run, lists.comparison)}
    return {
        RuleCode.REGRESSIONS: lambda row: row.change is CaseClass.REGRESSION,
        RuleCode.SUITE_DROP: lambda row: row.decided_by is GroundKind.SUITE,
        RuleCode.MUST_PASS: lambda row: _must_pass(row, lists),
        RuleCode.FAILURES: lambda row: row.status is Status.FAILED,
        RuleCode.PASS_RATE: lambda row: row.status is Status.FAILED,
        RuleCode.SCORE_DROP: _dropped(lists),
        RuleCode.UNMEASURED: lambda row: id(row.case) in errors,
        RuleCode.COVERAGE: lambda row: row.status in {Status.ERROR, Status.NOT_RUN},
        RuleCode.FLAKY: lambda row: row.flaky or row.change in _NOT_CLEAN or row.flakes_from_the_start,
        RuleCode.NEW_FAILURES: lambda row: row.case is not None and is_fresh(row.compared) and fails(row.case),
        "nothing-judged": lambda row: row.status in {Status.ERROR, Status.NOT_RUN},
        "too-many-errors": lambda row: row.status is Status.ERROR,
        "not-complete": lambda row: row.status is Status.NOT_RUN,
        "not-confirmed": lambda row: row.decided_by is not None and row.decided_by.undecided,
    }


def _must_pass(row: CaseRow, lists: CaseLists) -> bool:
    """As the rule has it; by what was concluded where an older version did not keep the rule."""
    policy = lists.run.policy
    if row.case is None or row.status is not Status.FAILED or row.change is CaseClass.UNSETTLED:
        return False
    return must_pass(row.case, policy.must_pass) if policy else row.decided_by is GroundKind.MUST_PASS


def _dropped(lists: CaseLists) -> Holds:
    """Whether a score fell by more than the rule allows."""
    most = lists.run.policy.max_score_drop if lists.run.policy else None
    share = score_share(lists.comparison) if lists.comparison else SCORE_SHARE

    def holds(row: CaseRow) -> bool:
        if most is None or row.case is None or row.compared is None or row.compared.score_change is None:
            return False
        return exceeds(drop_of(row.compared, row.case.score, most, share), most)

    return holds
