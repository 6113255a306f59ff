"""A baseline that this run lost because something in its setup has another name. Pure.

A run with a renamed gate, results folder, target or selection starts without a baseline, and nothing can be a
regression. So it is compared with the results under the earlier name after all: they do not become its baseline,
because nothing says that they belong together, but what they show as lost does not pass.
"""

from __future__ import annotations

from collections.abc import Set

from eval_gate.config.policy import FailOn, Policy
from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.pass_score import apply_pass_score
from eval_gate.gate.score_changes import exceeds_limit
from eval_gate.gate.setup_comparison import find_setup_changes
from eval_gate.model.case import CaseKey
from eval_gate.model.result import RunResult
from eval_gate.model.setup_change import SetupChange, SetupChangeKind
from eval_gate.results.baseline import NoBaseline, UnlinkedResult
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import format_count, format_first_few
from eval_gate.text.quoting import describe_name


class LostBaseline(FrozenStruct):
    """Result of cases of this run that is not its baseline, and what is worse here."""

    change: SetupChange
    hint: str
    worse_cases: tuple[CaseKey, ...] = ()
    """Cases that fail here and pass there or are waived there, or whose score is lower than the policy allows."""
    waived_cases: Set[CaseKey] = frozenset()
    """Those that fail there too, where a waiver lets them pass."""
    altered_cases: int = 0
    """Cases that pass there and are removed or changed here, and loosened rules, if the policy blocks them."""

    def describe_name(self) -> str:
        """Describe what has another name."""
        old_name, new_name = (describe_name(name or "") for name in (self.change.baseline, self.change.current))
        return f"the {self.change.subject} {old_name} is now {new_name}, so nothing is compared"

    def describe_loss(self) -> str:
        """Describe which cases are worse here, and why they are not regressions, as half a sentence."""
        lost = [key.case_id for key in self.worse_cases if key not in self.waived_cases]
        cases = lost or [key.case_id for key in self.worse_cases]
        if not cases:
            altered = format_count(self.altered_cases, "setup change")
            return f"{self.describe_name()}, but {altered} would fail the gate here"
        one, many = ("passes", "pass") if lost else ("is waived", "are waived")
        worse = format_count(len(cases), f"case that {one} there fails", f"cases that {many} there fail")
        return f"{self.describe_name()}, but {worse} here: {format_first_few(cases, 3)}"


def find_lost_baseline(absent: NoBaseline, run: RunResult, policy: Policy) -> LostBaseline | None:
    """Find the result of the same cases that this run is not compared with: the one against which most is worse.

    `run` has the pass score of the policy applied. Return None if no stored result has one of its cases.
    """
    if not policy.can_fail_by_comparison:
        return None
    candidates = [lost for one in absent.unlinked if (lost := _compare_with(one, run, policy)) is not None]
    return max(candidates, key=lambda lost: (len(lost.worse_cases), lost.altered_cases), default=None)


def _compare_with(unlinked: UnlinkedResult, run: RunResult, policy: Policy) -> LostBaseline | None:
    cases = GateCases.pair(apply_pass_score(unlinked.result, policy.pass_score), run)
    shared = list(cases.iter_pairs())
    if not shared:
        return None
    most, waived = policy.max_score_drop, cases.baseline.waived_keys
    worse = [
        key
        for key, case, earlier in shared
        if case.status.is_scored
        and (
            (policy.compares_failures and not case.passed and (earlier.passed or cases.get_earlier_key(key) in waived))
            or (most is not None and case.graded and exceeds_limit(earlier.score - case.score, most))
        )
    ]
    changes = find_setup_changes(cases, policy.to_run_policy(run))
    altered = changes.removed_cases * (FailOn.REMOVED in policy.fail_on)
    altered += (changes.changed_cases + changes.loosened_rules) * (FailOn.CHANGED in policy.fail_on)
    change = SetupChange(
        kind=SetupChangeKind.LOST_BASELINE,
        subject=unlinked.subject,
        baseline=unlinked.name,
        current=unlinked.current,
        count=len(shared),
    )
    waived_there = {key for key in worse if cases.get_earlier_key(key) in waived}
    return LostBaseline(change, unlinked.hint, tuple(worse), waived_there, altered)
