"""What keeps the gate from passing: the cases that its reasons are about, and the reasons that are about no case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from eval_gate.gate.evidence.fresh import fails
from eval_gate.gate.must_pass import must_pass
from eval_gate.gate.rules import SCORE_SHARE, drop_of, new_errors, score_share
from eval_gate.gate.scores import exceeds
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass, Outcome, Reason, RuleCode
from eval_gate.model.execution import Status
from eval_gate.model.grounds import GroundKind
from eval_gate.model.result import RunResult
from eval_gate.reports.view.fresh import is_fresh
from eval_gate.reports.view.lists import CaseLists
from eval_gate.reports.view.rows import CaseRow
from eval_gate.struct import FrozenStruct

Holds: TypeAlias = Callable[[CaseRow], bool]
_NOT_CLEAN: Final = frozenset({CaseClass.UNSETTLED, CaseClass.FLAKY, CaseClass.REGRESSION})
_OF_OTHERS: Final = frozenset({"all-crashed"})
"""Reasons that only say more of another one."""


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
        RuleCode.SUITE_DROP: lambda row: row.change is CaseClass.REGRESSION and row.decided_by is GroundKind.SUITE,
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
