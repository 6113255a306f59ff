"""Statistics of a run without waived cases: counts, pass rates, their intervals, and kinds of errors.

Words and rows are both made of these, and nothing here is a word.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from eval_gate.gate.case_comparison import has_no_response
from eval_gate.model.comparison import BaselineFacts, CaseChange, CaseClass, PassCount
from eval_gate.model.evidence import GroundKind
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.struct import FrozenStruct

_Z: Final = 1.959964
"""Standard deviations that hold 95 % of a normal distribution."""


def has_no_comparable_case(run: RunResult) -> bool:
    """Whether there is a baseline, but not one case that could be held against it."""
    return run.comparison is not None and not any(one.change.is_compared for one in run.comparison.changes)


def select_counted_changes(run: RunResult, *classes: CaseClass) -> list[CaseChange]:
    """Select the unwaived cases of these classes."""
    return exclude_waived(run, run.comparison.select_changes(*classes) if run.comparison else ())


def exclude_waived(run: RunResult, changes: Iterable[CaseChange]) -> list[CaseChange]:
    """Those of the changes whose failure counts."""
    waived = run.waived_keys
    return [one for one in changes if one.key not in waived]


def is_possible_regression(change: CaseChange) -> bool:
    """Whether a case is a regression, or failed and was not re-run because the gate had failed already."""
    suspected = change.grounds is not None and change.grounds.kind is GroundKind.GATE_FAILED
    return suspected or change.change is CaseClass.REGRESSION


def has_only_agent_errors(run: RunResult) -> bool:
    """Whether every case that ran has an agent error: the change, or an outage of something the agent needs."""
    asked = [case for _, case in run.iter_cases() if case.status.is_scored or case.status is Status.ERROR]
    return bool(asked) and all(case.error_kind is ErrorKind.AGENT_ERROR for case in asked)


def find_error_kinds(run: RunResult) -> tuple[ErrorKind | None, ...]:
    """Whose fault it is, of every case that could not be judged; None where none is recorded."""
    errored = [case for _, case in run.iter_cases() if case.status is Status.ERROR]
    silent = bool(errored) and has_no_response(run)
    return tuple(find_error_kind(case, silent=silent) for case in errored)


def find_error_kind(case: CaseResult, *, silent: bool) -> ErrorKind | None:
    """Whose fault it is; a target that hangs on everything (`silent`) is as good as unreachable."""
    if case.status is not Status.ERROR:
        return None
    return ErrorKind.AGENT_UNREACHABLE if silent and case.error_kind is ErrorKind.AGENT_ERROR else case.error_kind


class PassCounts(FrozenStruct):
    """How many of the cases that ran pass; a case with an error does not. `baseline` is None if not comparable."""

    passed: int
    ran: int
    baseline: PassCounts | None = None


def count_passing_cases(run: RunResult) -> PassCounts:
    """Count the passing cases among all that ran, here and in the baseline: the number that every report shows."""
    baseline = None
    if run.comparison is not None and not has_no_comparable_case(run):
        facts = run.comparison.baseline
        baseline = PassCounts(facts.passed, facts.total_cases if facts.ran_cases is None else facts.ran_cases)
    return PassCounts(run.summary.passed, run.summary.ran, baseline)


class PassRates(FrozenStruct):
    """Pass rate of the current run and of the baseline as the policy's rule counts it, without quarantined cases."""

    passed: int
    judged: int
    baseline: float | None = None
    quarantined: int = 0
    """Judged cases that are in quarantine."""

    @property
    def current(self) -> float | None:
        """The pass rate; None when nothing was judged."""
        return self.passed / self.judged if self.judged else None


def compute_pass_rates(run: RunResult) -> PassRates:
    """Compute the pass rates of the run and its baseline, without quarantined cases, as the verdict does."""
    quarantined = run.quarantined_keys
    facts = run.comparison.baseline if run.comparison else None
    summary = run.summary
    if not quarantined:
        return PassRates(summary.passed, summary.passed + summary.failed, facts.pass_rate if facts else None)
    aside = [case.passed for key, case in run.iter_cases() if case.status.is_scored and key in quarantined]
    judged = summary.passed + summary.failed - len(aside)
    changes = run.comparison.changes if run.comparison else ()
    then = [one.baseline for one in changes if one.key in quarantined and one.baseline is not None]
    return PassRates(summary.passed - sum(aside), judged, _compute_baseline_rate(facts, then), len(aside))


def _compute_baseline_rate(facts: BaselineFacts | None, aside: list[PassCount]) -> float | None:
    """Compute the pass rate of the baseline without the cases in `aside`.

    Return None if the rate is unknown or no case remains.
    """
    if facts is None or not facts.pass_rate:
        return facts.pass_rate if facts else None
    judged = round(facts.passed / facts.pass_rate) - len(aside)
    passed = facts.passed - sum(tally.passed for tally in aside)
    return passed / judged if 0 <= passed <= judged and judged else None


def pair_outcomes(run: RunResult) -> list[tuple[bool, bool]]:
    """Whether a case passed then, and here, of each that both runs judged by the same question."""
    passed = {key: case.passed for key, case in run.iter_cases()}
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
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))  # rounding leaves the ends out


def compute_paired_interval(worse: int, better: int, cases: int) -> tuple[float, float]:
    """Compute the 95 % interval of the change of a pass rate between two runs of the same cases, -1 to 1.

    Half a case is added to each cell of the table, which keeps the interval valid when few cases changed. Source:
    Agresti and Min 2005, Statistics in Medicine 24, 729-740.
    """
    size = cases + 2
    change = (better - worse) / size
    spread = _Z * math.sqrt((worse + better + 1) / size - change**2) / math.sqrt(size)
    return max(-1.0, change - spread), min(1.0, change + spread)
