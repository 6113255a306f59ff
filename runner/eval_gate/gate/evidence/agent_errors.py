"""Agent errors have a rate of their own: of a run first, and of a case only beyond that of the others. Pure.

An agent error (HTTP 5xx, broken off, malformed, timed out) is no response. So a case is scored by its responses, an
execution that ended in an error is repeated until there is one, and the errors are looked at by themselves:

- The run: the errors of its first executions, against main's runs and how much these differ (beta-binomial, by
  moments; at least a fifth, and more where there are fewer than ten runs). A burst that main has not had yet is allowed
  for by Laplace's rule, as a bad day is. More errors than that are an outage, or the change: one finding.
- A case that never responds is broken if its errors in a row are too many for the share that the executions of other
  cases of this very run show. How much main's runs say about that share, and that this one may be unlike any, are
  weighed by Bayes' rule. The chance of the row, times the number of cases, is the reverse of an e-value ("it always
  errs" against "it errs like the others"), so that re-runs may stop whenever it is small enough. Cases that never
  responded in all their re-runs are also looked at together, which tells in a small suite.
- Slow cases are late every time on a slow day. So cases that only time out count like all others where they are more
  than a third of the run.
- Where nothing responds at all, no case differs from the others. Then all are broken unless main's runs err as well.

What it moves (`benchmarks/verdict/errors.py`): errors of 30 % on main and here, nothing changed, not green 60 → 1 % at
60 cases; 60 % of the executions of one run err, 33 → 0.0 cases called broken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache, reduce
from statistics import fmean, variance
from typing import Final

from eval_gate.gate.evidence.rerun_decision import RerunCriteria
from eval_gate.model.evidence import BASE_AGENT_LIMIT, NO_EXECUTIONS, Counts, ErrorFinding, ErrorRun
from eval_gate.struct import FrozenStruct, replace

RUN_SHARE: Final = 0.08
"""The part of the false alarm rate that the test of the run may spend: 0.004 of 0.05."""
CASE_SHARE: Final = 0.15
"""The same of all cases together that never respond."""
MIN_ERRORS: Final = 3
"""Errors in a row from which on a case may be broken, one of a re-run among them; fewer if re-runs allow no more."""
_RELATIVE_SPREAD: Final = 0.2
"""Least standard deviation of the error share, from run to run and from case to case, relative to it."""
_ENOUGH_RUNS: Final = 10
"""Runs of the branch that show how much runs differ; fewer leave more open."""
_FIRST_BURST: Final = 0.02
"""Share of further errors in a burst that main has not had yet."""
_MOST_LATE: Final = 3
"""One case in this many may time out every time and be broken; of more, a slow day may be the cause."""
_MIN_STRENGTH: Final = 2.0
_BURST_STRENGTH: Final = 1000.0


class ErrorShare(FrozenStruct):
    """What the runs of the branch say about the error share of one more: a Beta distribution, and how they may fail.

    `observed` is the share of errors in these runs, `new` the chance that this run is unlike any of them.
    """

    errors: float
    responses: float
    observed: float = 0.0
    new: float = 0.5

    @property
    def mean(self) -> float:
        """Expected share, 0 to 1."""
        return self.errors / (self.errors + self.responses)

    def compute_row_chance(self, errors: int) -> float:
        """Compute the chance that this many executions in a row end in an error, in a run like those of the branch."""
        return math.exp(_compute_log_row(self.errors, self.responses, errors))


@lru_cache(maxsize=64)
def learn_error_share(runs: tuple[ErrorRun, ...]) -> ErrorShare:
    """Learn the error share of one more run from the runs of the branch."""
    errors, executions, number = sum(run.errors for run in runs), sum(run.executions for run in runs), len(runs)
    mean = (errors + 0.5) / (max(executions, _ENOUGH_RUNS) + 1)
    binomial = mean * (1 - mean)
    spread = 0.0
    if number > 1:
        by_chance = fmean(binomial / run.executions for run in runs)
        spread = max(variance(run.errors / run.executions for run in runs) - by_chance, 0.0)
    unknown = (_RELATIVE_SPREAD * mean) ** 2 * max(1.0, _ENOUGH_RUNS / max(number, 1))
    strength = max(binomial / (spread + unknown + binomial / max(executions, 1)) - 1, _MIN_STRENGTH)
    observed = errors / executions if executions else 0.0
    return ErrorShare(mean * strength, (1 - mean) * strength, observed, 1 / (number + 2))


def run_error_test(first: Counts, share: ErrorShare, false_alarm_rate: float) -> ErrorFinding:
    """Test whether the first executions of a run have more agent errors than the runs of the branch explain."""
    errors, number = first.agent_errors, first.attempts
    burst = min(share.mean + _FIRST_BURST, 1.0 - _FIRST_BURST) * _BURST_STRENGTH
    chance = (1 - share.new) * _compute_tail(errors, number, share.errors, share.responses)
    chance += share.new * _compute_tail(errors, number, burst, _BURST_STRENGTH - burst)
    return ErrorFinding(
        errors=errors,
        executions=number,
        expected=round(number * share.mean, 4),
        chance=min(chance, 1.0),
        limit=false_alarm_rate * RUN_SHARE,
    )


def recheck_error_finding(finding: ErrorFinding, base_agent: Iterable[Counts]) -> ErrorFinding:
    """Recheck unusual errors against the executions of the base agent in the same minutes, if there are any."""
    counts = reduce(Counts.add, base_agent, NO_EXECUTIONS)
    if not finding.is_unusual or not counts.attempts:
        return finding
    responses = finding.executions - finding.errors + 1.0
    chance = 1 - _compute_tail(counts.agent_errors + 1, counts.attempts, finding.errors + 1.0, responses)
    return replace(finding, base_agent=counts, base_agent_chance=chance)


def count_base_agent_executions(finding: ErrorFinding) -> int:
    """Count the executions of the base agent that tell an outage from a change, if none of them has an error."""
    responses = finding.executions - finding.errors + 1.0
    number = 1
    while math.exp(_compute_log_row(responses, finding.errors + 1.0, number)) > BASE_AGENT_LIMIT:
        number += 1
    return number


class RunErrors(FrozenStruct):
    """Agent errors among all executions of one run so far.

    `silent` cases have nothing but errors, `MIN_ERRORS` of them and one of a re-run. `late` ones have nothing but
    timeouts.
    """

    share: ErrorShare
    criteria: RerunCriteria
    other_executions: Counts = NO_EXECUTIONS
    cases: int = 0
    """Cases with a response or an agent error."""
    spent_cases: int = 0
    """Silent cases that have no re-run left."""
    spent_errors: int = 0
    late_cases: int = 0
    late_spent_cases: int = 0
    late_spent_errors: int = 0
    silent_errors: int = 0
    late_silent_errors: int = 0
    finding: ErrorFinding | None = None
    """The test of the run; None before it is made."""
    is_part: bool = False
    """The run is one of several parts, so that the whole may see another share of errors."""

    def add(self, executions: Counts, reruns: int, *, has_only_timeouts: bool = False) -> RunErrors:
        """Add all executions of a case, `reruns` of them re-runs."""
        errors, is_silent = executions.agent_errors, self._is_silent(executions, reruns)
        is_spent = is_silent and errors > self.criteria.max_reruns
        return replace(
            self,
            other_executions=self.other_executions if is_silent else self.other_executions.add(executions),
            cases=self.cases + (executions.attempts > 0),
            spent_cases=self.spent_cases + is_spent,
            spent_errors=self.spent_errors + errors * is_spent,
            late_cases=self.late_cases + has_only_timeouts,
            late_spent_cases=self.late_spent_cases + (is_spent and has_only_timeouts),
            late_spent_errors=self.late_spent_errors + errors * (is_spent and has_only_timeouts),
            silent_errors=self.silent_errors + errors * is_silent,
            late_silent_errors=self.late_silent_errors + errors * (is_silent and has_only_timeouts),
        )

    @property
    def has_response(self) -> bool:
        """Whether any execution of the run has a response."""
        return self.other_executions.executions > 0

    @property
    def _case_limit(self) -> float:
        return self.criteria.false_alarm_rate * CASE_SHARE

    @property
    def _are_too_many_late(self) -> bool:
        return self.late_cases * _MOST_LATE > self.cases

    def is_broken(
        self, executions: Counts, reruns: int, remaining: int, *, repeatable: bool, has_only_timeouts: bool
    ) -> bool:
        """Whether a case with nothing but agent errors is broken, whatever more re-runs show."""
        is_silent = self._is_silent(executions, reruns)
        if self.is_part and remaining:
            return False
        if not self.has_response:
            every = self.share.compute_row_chance(self.other_executions.agent_errors + self.silent_errors)
            return self.share.observed < 0.5 and (not remaining or (is_silent and every <= self._case_limit))
        if is_silent and not (has_only_timeouts and self._are_too_many_late):
            is_group_unlikely = not remaining and self._are_spent_unlikely()
            return is_group_unlikely or self._is_unlikely(1, executions.agent_errors)
        is_usual = self.finding is None or not self.finding.is_unusual
        return not repeatable and is_usual and self.share.observed <= self.criteria.false_alarm_rate

    def _are_spent_unlikely(self) -> bool:
        cases, errors = self.spent_cases, self.spent_errors
        if self._are_too_many_late:
            cases, errors = cases - self.late_spent_cases, errors - self.late_spent_errors
        return self._is_unlikely(cases, errors)

    def _is_unlikely(self, cases: int, errors: int) -> bool:
        """Whether `cases` with `errors` each, and nothing else, are too many for the share of the other cases."""
        among = max(self.criteria.cases, cases)
        ways = math.lgamma(among + 1) - math.lgamma(cases + 1) - math.lgamma(among - cases + 1)
        return cases > 0 and math.log(max(self.compute_row_chance(errors), _LEAST)) + ways <= math.log(self._case_limit)

    def compute_row_chance(self, errors: int, other_executions: Counts | None = None) -> float:
        """Compute the chance of `errors` in a row, given the executions of the other cases.

        This run is either like those of the branch, or like none, and then only its own executions say its share.
        """
        if other_executions is None:
            late = self.late_silent_errors if self._are_too_many_late else 0
            other_executions = self.other_executions.add(Counts(agent_errors=late))
        kinds = []
        for weight, a, b in ((1 - self.share.new, self.share.errors, self.share.responses), (self.share.new, 1.0, 1.0)):
            posterior = a + other_executions.agent_errors, b + other_executions.executions
            log = math.log(weight) + _compute_log_beta(*posterior) - _compute_log_beta(a, b)
            kinds.append((log, _compute_log_row(*_spread_over_cases(*posterior), errors)))
        most = max(log for log, _ in kinds)
        whole = math.fsum(math.exp(log - most) for log, _ in kinds)
        return math.fsum(math.exp(log - most + row) for log, row in kinds) / whole

    def explains(self, errors: int) -> bool:
        """Whether chance alone explains `errors` in a row of some case, in a usual run and in this one.

        An outage in the history makes any row usual; the responses of this run show whether there is one again.
        """
        chance = min(self.share.compute_row_chance(errors), self.compute_row_chance(errors, self.other_executions))
        return chance * self.criteria.cases > self._case_limit

    def _is_silent(self, executions: Counts, reruns: int) -> bool:
        least = min(MIN_ERRORS, self.criteria.max_reruns + 1)
        return reruns > 0 and not executions.executions and executions.agent_errors >= least


_LEAST: Final = 1e-300


def _spread_over_cases(errors: float, responses: float) -> tuple[float, float]:
    """Widen a Beta distribution of the run's share to that of one case."""
    mean = errors / (errors + responses)
    strength = max(min(errors + responses, (1 - mean) / (mean * _RELATIVE_SPREAD**2)), _MIN_STRENGTH)
    return mean * strength, (1 - mean) * strength


def _compute_log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _compute_log_row(a: float, b: float, number: int) -> float:
    """Compute the log chance of `number` results in a row, for a Beta distribution with `a` of them and `b` others."""
    return _compute_log_beta(a + number, b) - _compute_log_beta(a, b)


def _compute_tail(least: int, number: int, a: float, b: float) -> float:
    """Compute the chance of at least `least` of `number` results (beta-binomial)."""
    if least <= 0:
        return 1.0
    base = math.lgamma(number + 1) - _compute_log_beta(a, b)
    logs = (
        base - math.lgamma(many + 1) - math.lgamma(number - many + 1) + _compute_log_beta(a + many, b + number - many)
        for many in range(least, number + 1)
    )
    return min(1.0, math.fsum(math.exp(log) for log in logs))
