"""Word the reasons of a verdict that need more than a value and a limit.

Every report shows these sentences as they are in the verdict. Names of cases are unescaped; the reports escape them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from eval_gate.gate.waivers.wording import KIND_WORDS
from eval_gate.model.comparison import CaseChange, CaseClass, Comparison, RuleCode
from eval_gate.model.evidence import (
    NO_EXECUTIONS,
    ErrorFinding,
    GroundKind,
    Grounds,
    PermittedRegression,
    ScoreFinding,
    SuiteFinding,
)
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.model.result import RunResult
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import format_count

MIN_ODDS: Final = 2
"""Smallest odds that are shown: what happens more often than not is not called chance."""
_NOTICEABLE_FACTOR: Final = 2
"""Factor of the chance from which a sentence mentions the differences between days."""
ERROR_KIND_WORDS: Final = {
    ErrorKind.AGENT_ERROR: ("agent error", "agent errors"),
    ErrorKind.AGENT_UNREACHABLE: ("agent unreachable", "agent unreachable"),
    ErrorKind.EVALUATION_ERROR: ("evaluation error", "evaluation errors"),
}
"""Words for one error of a kind, and for several."""


_COUNT_SENTENCES: Final = {
    RuleCode.MUST_PASS: ("must-pass case failed", "must-pass cases failed"),
    RuleCode.FAILURES: ("case failed", "cases failed"),
    RuleCode.FLAKY: ("case is flaky", "cases are flaky"),
    RuleCode.REMOVED_CASES: (
        "case that passed in the baseline was removed",
        "cases that passed in the baseline were removed",
    ),
    RuleCode.CHANGED_CASES: (
        "case that passed in the baseline is evaluated differently",
        "cases that passed in the baseline are evaluated differently",
    ),
    RuleCode.LOOSENED_RULES: ("rule was loosened", "rules were loosened"),
    RuleCode.NEW_FAILURES: ("new or changed case failed", "new or changed cases failed"),
    RuleCode.STALE: ("suite is stale", "suites are stale"),
}
"""Sentences of rules that allow none, about one and about several."""


class GroundText(NamedTuple):
    """Words of one ground: the conclusion that the evidence of a case begins with, and what decided."""

    conclusion: str | None = None
    decision: str | None = None
    """What decided about one case; None if the counts show it."""
    unconfirmed: str | None = None
    """Why it is unknown whether the change is the cause, of several cases that make the gate inconclusive."""
    is_tested: bool = True
    """Whether a chance was computed that decided."""


GROUND_TEXTS: Final = {
    GroundKind.USUAL_RESULT: GroundText(is_tested=False),
    GroundKind.EVERY_RUN: GroundText(),
    GroundKind.MAIN_BROKE: GroundText(),
    GroundKind.EVIDENCE: GroundText("confirmed"),
    GroundKind.SUITE_DROP: GroundText("part of a suite drop"),
    GroundKind.MUST_PASS: GroundText("must-pass case"),
    GroundKind.BASE_AGENT: GroundText("not caused by this change"),
    GroundKind.RECOVERED: GroundText("inconclusive"),
    GroundKind.MIXED: GroundText("inconclusive"),
    GroundKind.MISSING_RERUNS: GroundText(
        "inconclusive", "its re-runs ended without a result", "the re-runs ended without a result", is_tested=False
    ),
    GroundKind.NOT_RERUN: GroundText(
        "inconclusive",
        "no command re-runs it",
        "no command re-runs it, and its own executions decide nothing",
        is_tested=False,
    ),
    GroundKind.BUDGET_USED: GroundText(
        "suspected",
        "not re-run, or not often enough: the rerun-budget is used up",
        "the re-run budget is used up",
        is_tested=False,
    ),
    GroundKind.RUN_SHARE: GroundText(
        "suspected",
        "executions of one run belong together here: if it fails in another run too, this change broke it",
        "they failed every time, but executions of one run belong together here: run the job again; if they fail "
        "again, fix or waive them: attempts are not added up, and no base agent is asked",
    ),
    GroundKind.GATE_FAILED: GroundText(
        "suspected",
        "not re-run, because the gate had failed already",
        "the gate had already failed",
        is_tested=False,
    ),
    GroundKind.AGENT_ERRORS: GroundText(
        "inconclusive",
        "other executions of this run or of its history have agent errors as well",
        is_tested=False,
    ),
}


def describe_count(code: RuleCode, count: int) -> str:
    """`3 cases failed (limit 0)`: what breaks a rule that allows none."""
    return f"{format_count(count, *_COUNT_SENTENCES[code])} (limit 0)"


class RegressionGroups(FrozenStruct):
    """Regressions by themselves, those that are part of a suite drop, and those that were not re-run."""

    single: tuple[CaseChange, ...]
    suite_drop: tuple[CaseChange, ...]
    suspects: tuple[CaseChange, ...]

    @property
    def is_suite_drop_alone(self) -> bool:
        """Whether all regressions are part of a suite drop, so that none of them is confirmed by itself."""
        return bool(self.suite_drop) and not self.single and not self.suspects


def group_regressions(changes: Iterable[CaseChange]) -> RegressionGroups:
    """Group the regressions and suspected regressions among the unwaived changes."""
    kinds = [(one, one.grounds.kind if one.grounds is not None else None) for one in changes]
    regressions = [(one, kind) for one, kind in kinds if one.change is CaseClass.REGRESSION]
    return RegressionGroups(
        single=tuple(one for one, kind in regressions if kind is not GroundKind.SUITE_DROP),
        suite_drop=tuple(one for one, kind in regressions if kind is GroundKind.SUITE_DROP),
        suspects=tuple(one for one, _ in kinds if one.counts_as_suspected),
    )


def describe_regressions(groups: RegressionGroups, run: RunResult) -> str | None:
    """Count the regressions, with agent errors, suspected regressions and cases of a suite drop among them."""
    permitted = _describe_ended_permissions([one.permitted for one in groups.single if one.permitted])
    return " and ".join(filter(None, [permitted, _describe_new_regressions(groups, run)])) or None


def _describe_new_regressions(groups: RegressionGroups, run: RunResult) -> str | None:
    # a suspect is counted whatever an earlier run permitted
    new = [*(one for one in groups.single if not one.permitted), *groups.suspects]
    number, in_drop = len(new), len(groups.suite_drop)
    if not number:
        return f"{describe_failed_cases(in_drop)} at first" if in_drop else None
    error_keys = {key for key, case in run.iter_cases() if case.status is Status.ERROR}
    errors = sum(one.key in error_keys for one in new)
    words = describe_failed_cases(number)
    if errors == number:
        words = f"{format_count(number, 'case that usually passes', 'cases that usually pass')} had an agent error"
    elif errors:
        words += f", {errors} of them with an agent error"
    return f"{words}, and {in_drop} more failed at first" if in_drop else words


def _describe_ended_permissions(permitted: Sequence[PermittedRegression]) -> str | None:
    """`2 waived regressions of the branch count again`: what permitted them has ended, or was taken back."""
    if not permitted:
        return None
    kind = " or ".join(dict.fromkeys(KIND_WORDS[one.waiver] if one.waiver else "allowed" for one in permitted))
    verb = "counts" if len(permitted) == 1 else "count"
    return f"{format_count(len(permitted), f'{kind} regression')} of the branch {verb} again"


def describe_failed_cases(number: int) -> str:
    """`3 cases that usually pass failed`."""
    return f"{format_count(number, 'case that usually passes', 'cases that usually pass')} failed"


def has_regression_by_itself(comparison: Comparison) -> bool:
    """Whether a case is a regression by itself, and not as a part of a suite drop."""
    grounds = [one.grounds for one in comparison.select_changes(CaseClass.REGRESSION)]
    return any(one is not None and one.kind is not GroundKind.SUITE_DROP for one in grounds)


def describe_suite_drop(finding: SuiteFinding, *, has_regressions: bool = False) -> str:
    """`6 of 60 cases failed at first (usually fewer than 1); chance without a real change: 1 in 10,000 (limit …)`.

    What the branch's own days make of it follows, and the base agent's result. `has_regressions`: some cases are
    regressions by themselves and are not among these.
    """
    cases = format_count(finding.cases, "other case" if has_regressions else "case")
    if finding.executions is not None:
        cases = f"{format_count(finding.executions, 'execution')} of {cases}"
    steady = " that seldom fail" if finding.steady_cases_only else ""
    usual = "fewer than 1" if finding.expected < 0.95 else f"about {round(finding.expected)}"
    drop = f"{finding.failures} of {cases}{steady} failed at first (usually {usual})"
    chance = _format_chance_and_limit(_round_odds(finding.chance), finding.limit)
    base_agent = None
    if finding.base_agent.executions:
        failures = f"{finding.base_agent.failures} of {finding.base_agent.executions}"
        base_agent = f"the base agent failed {failures} in the same minutes"
    return "; ".join(filter(None, [drop, chance, _describe_day_variation(finding), base_agent]))


def _describe_day_variation(finding: SuiteFinding) -> str | None:
    """Describe how the variation between the branch's own runs affects the chance of a suite drop."""
    chance = finding.chance_if_runs_equal
    if chance is None or chance * _NOTICEABLE_FACTOR > finding.chance:
        return None
    return f"1 in {_round_odds(chance):,} if the runs in the history did not differ from each other"


def describe_score_drop(finding: ScoreFinding) -> str:
    """`scores of 50 graded cases fell by 0.06 on average; 47 of 50 are lower; chance …`, and the limit."""
    fall = f"scores of {format_count(finding.cases, 'graded case')} fell by {finding.fall:.2f} on average"
    lower = f"{finding.lower_cases} of {finding.cases} are lower"
    difference = finding.base_agent_fall
    base_agent = (
        f"{difference:.2f} lower than with the base agent in the same minutes" if difference is not None else ""
    )
    chance = _format_chance_and_limit(finding.one_in, finding.limit)
    return "; ".join(filter(None, [fall, lower, chance, base_agent]))


def format_chance(one_in: int | None) -> str | None:
    """`chance without a real change: 1 in 50,000`; None where it is unknown or no small one."""
    return f"chance without a real change: 1 in {one_in:,}" if one_in is not None and one_in >= MIN_ODDS else None


def _format_chance_and_limit(one_in: int | None, limit: float) -> str:
    """`chance without a real change: 1 in 10,000 (limit 1 in 100)`."""
    chance = format_chance(one_in) or f"chance without a real change: more than 1 in {MIN_ODDS}"
    return f"{chance} (limit 1 in {round(1 / limit):,})" if 0 < limit <= 1 else chance


def _round_odds(chance: float) -> int:
    """Round odds as those of a case are rounded."""
    return Grounds(kind=GroundKind.SUITE_DROP, current=NO_EXECUTIONS, history=NO_EXECUTIONS, chance=chance).one_in or 1


def describe_unconfirmed(count: int, kind: GroundKind) -> str:
    """Describe how many failures the run neither confirms nor clears, and why."""
    if kind is GroundKind.GATE_FAILED:
        suspected = format_count(count, "suspected regression was", "suspected regressions were")
        return f"{suspected} not re-run, because {GROUND_TEXTS[kind].unconfirmed}"
    why = GROUND_TEXTS[kind].unconfirmed
    return f"{format_count(count, 'case')} failed, and it is unknown whether the change is the cause: {why}"


def describe_error_rise(finding: ErrorFinding) -> str:
    """Describe the agent errors of the whole run, and whether an outage explains them as well as the change."""
    first = f"{finding.errors} of {finding.executions} first executions ended in an agent error"
    rise, base_agent = f"{first}, usually {round(finding.expected)}", finding.base_agent
    if not base_agent.attempts:
        return f"{rise}: an outage, or the change"
    cause = ", so the change is the cause" if finding.is_caused_by_change else ""
    return f"{rise}; the base agent had {base_agent.agent_errors} in {base_agent.attempts} in the same minutes{cause}"


def format_error_kind_counts(error_kinds: Iterable[ErrorKind | None]) -> str:
    """`2 agent errors, 1 agent unreachable, 1 evaluation error`; errors without a recorded kind are left out."""
    numbers = Counter(error_kinds)
    return ", ".join(format_count(numbers[kind], *words) for kind, words in ERROR_KIND_WORDS.items() if numbers[kind])
