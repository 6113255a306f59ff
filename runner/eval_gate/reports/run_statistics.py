"""Statistics of a run without waived cases: counts, pass rates, their intervals, and kinds of errors.

Texts and rows are built from these numbers.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

from eval_gate.gate import score_changes
from eval_gate.gate.failure_causes import get_group_key
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import BaselineFacts, CaseChange, CaseClass, PassCount
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.results.turn_details import PARTS_OF_CONVERSATION
from eval_gate.struct import FrozenStruct

_Z: Final = 1.959964
"""Standard deviations that hold 95 % of a normal distribution."""


def list_executed_cases(run: RunResult) -> list[CaseResult]:
    """List the cases of the suites that this run executed, and did not reuse."""
    return [case for suite in run.suites if suite.reused is None for case in suite.cases]


def has_no_comparable_case(run: RunResult) -> bool:
    """Whether there is a baseline, but no case is comparable with it."""
    return run.comparison is not None and not any(one.change.is_compared for one in run.comparison.changes)


def select_counted_changes(run: RunResult, *classes: CaseClass) -> list[CaseChange]:
    """Select the unwaived cases of these classes."""
    return exclude_waived(run, run.comparison.select_changes(*classes) if run.comparison else ())


def exclude_waived(run: RunResult, changes: Iterable[CaseChange]) -> list[CaseChange]:
    """Return the changes of cases that are not waived."""
    waived = run.waived_keys
    return [one for one in changes if one.key not in waived]


def is_possible_regression(change: CaseChange) -> bool:
    """Whether a case is a regression, or failed and was not re-run because the gate had failed already."""
    return change.counts_as_suspected or change.change is CaseClass.REGRESSION


def has_only_agent_errors(run: RunResult) -> bool:
    """Whether every case that ran has an agent error: the change, or an outage of something the agent needs."""
    ran = [case for case in list_executed_cases(run) if case.status.is_scored or case.status is Status.ERROR]
    return bool(ran) and all(case.error_kind is ErrorKind.AGENT_ERROR for case in ran)


class FallenEvaluator(FrozenStruct):
    """Evaluator whose score fell by more than the tolerance in several cases."""

    name: str
    cases: int
    scored: int
    """Cases that it scored in this run."""


def find_fallen_evaluators(run: RunResult) -> tuple[FallenEvaluator, ...]:
    """Find the evaluators that fell by more than the tolerance in two graded cases or more, the most frequent first.

    Turns of conversations are none: those of two cases have only their numbers in common.
    """
    if run.comparison is None:
        return ()
    cases, tolerance = run.index_cases(), run.comparison.score_tolerance
    fell = Counter(
        name
        for one in exclude_waived(run, run.comparison.changes)
        if one.score_drop and one.key in cases
        for name in score_changes.find_fallen_evaluators(cases[one.key], one.baseline_evaluator_scores, tolerance)
    )
    scored = Counter(
        one.name
        for case in cases.values()
        if case.status.is_scored
        for one in case.evaluator_results
        if one.type not in PARTS_OF_CONVERSATION
    )
    counts = ((name, number) for name, number in fell.most_common() if number > 1 and name in scored)
    return tuple(FallenEvaluator(name, number, scored[name]) for name, number in counts)


class Outage(FrozenStruct):
    """Agent error that many cases share, so that it counts as one outage and not as a regression of each."""

    status: int | None
    """HTTP status of the agent's response; None for another error."""
    timed_out: bool
    cases: frozenset[CaseKey]
    ran: int
    usual: float | None
    """How many of these cases have an agent error on the baseline's branch; None without a history."""


MIN_OUTAGE_CASES: Final = 3
"""Fewest cases of an outage, unless no other case ran."""
_OUTAGE_SHARE: Final = 0.25
"""Smallest share of an outage of all cases that ran."""


def find_outage(run: RunResult) -> Outage | None:
    """Find the agent error that most executed cases without a pass share; None if none is that frequent.

    It is at least a quarter of the cases that ran, and three of them, or all.
    """
    waived, groups, failing = run.waived_keys, defaultdict[str, list[CaseKey]](list), 0
    reused = run.reused_suites
    cases = {key: case for key, case in run.iter_cases() if key.suite not in reused}
    for key, case in cases.items():
        if key in waived or case.passed or case.status not in {Status.FAILED, Status.ERROR}:
            continue
        failing += 1
        if case.error_kind is ErrorKind.AGENT_ERROR and case.error:
            groups[str(case.http_status or get_group_key(case.error))].append(key)
    largest = max(groups.values(), key=len, default=[])
    most, ran = len(largest), sum(one.status.is_scored or one.status is Status.ERROR for one in cases.values())
    if not most or most * 2 <= failing or (most < ran and (most < MIN_OUTAGE_CASES or most < ran * _OUTAGE_SHARE)):
        return None
    shared = [cases[key] for key in largest]
    return Outage(
        status=shared[0].http_status,
        timed_out=all(any(trial.timed_out for trial in case.trials) for case in shared),
        cases=frozenset(largest),
        ran=ran,
        usual=_count_usual_errors(run, frozenset(largest)),
    )


def _count_usual_errors(run: RunResult, cases: frozenset[CaseKey]) -> float | None:
    """Count how many of these cases have an agent error in a usual run; None if no history is known."""
    changes = run.comparison.changes if run.comparison else ()
    histories = [one.grounds.history for one in changes if one.key in cases and one.grounds]
    counted = [counts for counts in histories if counts.attempts]
    return sum(counts.agent_errors / counts.attempts for counts in counted) if counted else None


class PassCounts(FrozenStruct):
    """How many of the cases that ran pass; a case with an error does not. `baseline` is None if not comparable."""

    passed: int
    ran: int
    baseline: PassCounts | None = None


def count_passing_cases(run: RunResult) -> PassCounts:
    """Count the passing cases among all that ran, here and in the baseline: the number that every report shows."""
    baseline = None
    is_executed = any(suite.reused is None for suite in run.suites)  # else the baseline's count is the same
    if run.comparison is not None and is_executed and not has_no_comparable_case(run):
        facts = run.comparison.baseline
        baseline = PassCounts(facts.passed, facts.total_cases if facts.ran_cases is None else facts.ran_cases)
    return PassCounts(run.summary.passed, run.summary.ran, baseline)


class PassRates(FrozenStruct):
    """Pass rate of the current run and of the baseline as the policy's rule counts it, without quarantined cases."""

    passed: int
    judged: int
    baseline: float | None = None
    quarantined: int = 0
    """Cases with a score that are in quarantine."""

    @property
    def current(self) -> float | None:
        """The pass rate; None if no case has a score."""
        return self.passed / self.judged if self.judged else None


def compute_pass_rates(run: RunResult) -> PassRates:
    """Compute the pass rates of the run and its baseline, without quarantined cases, as the verdict does."""
    quarantined = run.quarantined_keys
    facts = run.comparison.baseline if run.comparison else None
    summary = run.summary
    if not quarantined:
        return PassRates(summary.passed, summary.passed + summary.failed, facts.pass_rate if facts else None)
    excluded = [case.passed for key, case in run.iter_cases() if case.status.is_scored and key in quarantined]
    judged = summary.passed + summary.failed - len(excluded)
    changes = run.comparison.changes if run.comparison else ()
    counts = [one.baseline for one in changes if one.key in quarantined and one.baseline is not None]
    return PassRates(summary.passed - sum(excluded), judged, _compute_baseline_rate(facts, counts), len(excluded))


def _compute_baseline_rate(facts: BaselineFacts | None, excluded: list[PassCount]) -> float | None:
    """Compute the pass rate of the baseline without the `excluded` cases."""
    if facts is None or not facts.pass_rate:
        return facts.pass_rate if facts else None
    judged = round(facts.passed / facts.pass_rate) - len(excluded)
    passed = facts.passed - sum(tally.passed for tally in excluded)
    return passed / judged if 0 <= passed <= judged and judged else None


def pair_outcomes(run: RunResult) -> list[tuple[bool, bool]]:
    """Return for each comparable case with a score of its own whether it passed in the baseline, and here."""
    passed = {key: case.passed for key, case in run.without_reused.iter_cases()}
    quarantined = run.quarantined_keys
    return [
        (one.baseline.passed, passed[one.key])
        for one in (run.comparison.changes if run.comparison else ())
        if one.change.is_compared and one.key in passed and one.key not in quarantined and one.baseline is not None
    ]


def compute_wilson_interval(passed: int, judged: int) -> tuple[float, float]:
    """Compute the 95 % Wilson interval of a share, from 0 to 1.

    Without cases with a score, the interval is 0 to 1. Source: Wilson 1927, Journal of the American Statistical
    Association 22, 209-212.
    """
    if not judged:
        return 0.0, 1.0
    share, z2 = passed / judged, _Z**2
    middle = (share + z2 / (2 * judged)) / (1 + z2 / judged)
    half = _Z / (1 + z2 / judged) * math.sqrt(share * (1 - share) / judged + z2 / (4 * judged**2))
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))  # rounding may exclude the share


def compute_paired_interval(worse: int, better: int, cases: int) -> tuple[float, float]:
    """Compute the 95 % interval of the change of a pass rate between two runs of the same cases, -1 to 1.

    Half a case is added to each cell of the table, which keeps the interval valid when few cases changed. Source:
    Agresti and Min 2005, Statistics in Medicine 24, 729-740.
    """
    size = cases + 2
    change = (better - worse) / size
    spread = _Z * math.sqrt((worse + better + 1) / size - change**2) / math.sqrt(size)
    return max(-1.0, change - spread), min(1.0, change + spread)
