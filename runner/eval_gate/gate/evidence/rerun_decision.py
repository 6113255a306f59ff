"""Whether to re-run a case that failed: its evidence against its history, and when to stop.

The evidence is an e-value: how much better "it is broken" explains what was seen than "nothing has changed" does. If
nothing has changed its mean is 1, whenever one stops, so a case may be run again *because* it failed, and evidence of
E comes by chance at most one time in E (Ville's inequality; Shafer, Shen, Vereshchagin and Vovk 2011, Statistical
Science 26, 84-101; Ramdas, Grünwald, Vovk and Shafer, arXiv:2210.01948). How much is enough, of so many cases with such
histories, is worked out (`bars`).
"""

from __future__ import annotations

import math
from enum import StrEnum
from functools import lru_cache
from typing import Final

from eval_gate.config.policy import DEFAULT_CONFIRM, DEFAULT_FALSE_ALARM_RATE
from eval_gate.gate.evidence.execution_groups import ExecutionGroup, compute_trial_share
from eval_gate.gate.evidence.prior import DEFAULT_PRIOR, DayFactors, Prior
from eval_gate.gate.evidence.thresholds import MAX_LOG, ExecutionLimits, compute_alternative
from eval_gate.model.evidence import NO_EXECUTIONS, CaseHistorySummary, Counts, Stability
from eval_gate.struct import FrozenStruct, replace


class Suspicion(StrEnum):
    """Suspicion about a case after its first execution."""

    REGRESSION = "regression"
    """It fails, and the default branch passes it at least now and then."""
    NEW_PASS = "new-pass"  # noqa: S105 (a question, not a password)
    """It passes, and is flaky and mostly fails on the default branch: that may be luck."""
    FIX = "fix"
    """It passes, and the newest run of the default branch failed it as most runs before did: it is probably fixed."""
    MUST_PASS = "must-pass"  # noqa: S105
    """It fails and must pass, whatever its history."""


MIN_RERUN_EVIDENCE: Final = 2.0
"""Minimum evidence at which a case that has passed in this run is re-run.

Most re-runs used to be of cases that failed once and then passed, which can seldom confirm anything. Without these,
twice the re-runs cost about the same (`benchmarks/verdict/long_reruns.py`, six re-runs and no minimum → twelve and this
one, 500 cases, ten runs of history): half-broken cases found 11.2 → 20.4 ± 0.1 %, dead cases 94.6 → 100 %, executions a
case 1.06 → 1.10. With six re-runs: 11.2 → 11.2 %.
"""
FIX_RERUNS: Final = 6
"""Maximum re-runs of a case that seems fixed: a row of passes of this length begins a new history."""


class RerunStep(StrEnum):
    """What to do next about a suspect."""

    CONFIRMED = "confirmed"
    INCONCLUSIVE = "inconclusive"
    """The evidence does not suffice, and the runs that are left cannot make it."""
    ANOTHER_RUN = "another-run"
    """It failed every time, which is no proof because executions of one run belong together: another run decides."""
    AGAIN = "again"
    """Run it once more."""


def find_suspicion(history: CaseHistorySummary, first: Counts, *, must_pass: bool = False) -> Suspicion | None:
    """Return what is suspected of a case after its first execution, or None.

    `first` is the first execution of this run, or its trials. A case without history is taken to pass, as the prior
    says. A case that never passed in its history cannot break any more. This run did not cause a failure that the
    newest run of the branch has too, unless the case is known to be flaky there. Then that failure is part of its
    history like any other.
    """
    if not first.executions:
        return None
    if first.is_failing and must_pass:
        return Suspicion.MUST_PASS
    if first.is_failing:
        return None if is_known_failure(history) else Suspicion.REGRESSION
    if history.counts.failures <= history.counts.passes:
        return None
    if history.stability is Stability.FLAKY:
        return Suspicion.NEW_PASS
    return Suspicion.FIX if history.newest_failed and history.counts.failures >= _KNOWN_BY else None


def is_known_failure(history: CaseHistorySummary) -> bool:
    """Whether it is the branch that fails it, so that no failure here can be news."""
    if history.counts.executions and not history.counts.passes:
        return True
    before = history.without_newest_run
    often = before.failures >= _KNOWN_BY and before.failures * _OFTEN >= before.executions
    comes_and_goes = history.stability is Stability.FLAKY and often
    return history.newest_failed and not comes_and_goes


_PASSING: Final = frozenset({Suspicion.NEW_PASS, Suspicion.FIX})
"""What is suspected of a case that passes."""
_KNOWN_BY, _OFTEN = 2, 3
"""A case comes and goes that failed twice, and one time in three, before the newest run: a solid one seldom does."""


def compute_e_value(
    prior: Prior, counts: Counts, first: Counts, day: DayFactors = (), reruns: Counts = NO_EXECUTIONS
) -> float:
    """Compute the evidence that a case fails more often than its history, from the results of this run.

    `first` includes the first failure; the difference to `reruns` matters only if executions of one run belong together
    (`Prior.shares`). `day` has the factors of the day of this run, which may multiply failures
    without a change.

    The evidence is the Bayes factor of "it got worse" (dead, passing half as often, or anything worse) against what
    the suite and the history let expect. It grows with every failure and shrinks with every pass, whatever came
    before.
    """
    return _compute_e_value(prior.add_history(counts).adjust_to_day(day), ExecutionGroup.from_counts(first, reruns))


@lru_cache(50_000)
def _compute_e_value(unchanged: Prior, group: ExecutionGroup) -> float:
    """Most cases of a suite have the same history, and where an agent is down they do the same here."""
    if not any(group):
        return 1.0
    first = Counts(passes=group.passes, failures=group.failures)
    reruns = Counts(passes=group.rerun_passes, failures=group.rerun_failures)
    log = _build_worse_prior(unchanged).compute_log_chance(first, reruns) - unchanged.compute_log_chance(first, reruns)
    return math.exp(min(log, MAX_LOG))


@lru_cache(20_000)
def _build_worse_prior(unchanged: Prior) -> Prior:
    return replace(unchanged, weights=compute_alternative(unchanged))


def is_unsteady(counts: Counts) -> bool:
    """Whether a case fails in the history more than one time in five."""
    return counts.failures * _STEADY_RUNS > counts.executions


_STEADY_RUNS: Final = 5


class RerunCriteria(FrozenStruct):
    """Criteria of a run's re-runs: evidence that a case needs, and when another one can decide.

    `cases` is the number of cases in the run, `max_reruns` the maximum re-runs of one case, `false_alarm_rate` the
    accepted chance that a run without a real change has a regression by this evidence. With 0 re-runs, every failure
    that the default branch does not share is a regression. `computed_threshold` is the evidence calculated for the
    histories of these cases, `all_failed_threshold` that of a case that failed every time in this run and occasionally
    in its history, `never_failed_threshold` that of one that failed every time and never in its history. The first two
    are None without histories, and cases / `false_alarm_rate` applies. `day` is the estimated day
    effect of this run, if the branch has such effects. `trials` is the number of executions of each case before any
    re-run.
    """

    cases: int
    prior: Prior = DEFAULT_PRIOR
    false_alarm_rate: float = DEFAULT_FALSE_ALARM_RATE
    max_reruns: int = DEFAULT_CONFIRM
    computed_threshold: float | None = None
    all_failed_threshold: float | None = None
    day: DayFactors = ()
    trials: int = 1
    never_failed_threshold: float = 0.0
    run_share: float = 0.0
    """Share of a case's variance that re-runs without a wait have in common with the first execution."""

    @property
    def trial_share(self) -> float:
        """The mean share of a case's variance that its trials in one run have in common."""
        return compute_trial_share(self.prior.shares)

    @property
    def execution_limits(self) -> ExecutionLimits:
        """How often a case is executed."""
        return ExecutionLimits(self.max_reruns, self.trials)

    @property
    def threshold(self) -> float:
        """The evidence that the error rate asks of one case in one run."""
        return self.max_threshold if self.computed_threshold is None else self.computed_threshold

    @property
    def max_threshold(self) -> float:
        """N / α, which is enough whatever is believed, and however often one looks."""
        return max(self.cases, 1) / self.false_alarm_rate

    def compute_chance(self, doubt: Suspicion, counts: Counts, current: Counts, first: Counts | None = None) -> float:
        """Compute the chance of these results, or worse ones, in as many executions if nothing changed.

        Of all executions in `current`, `first` were the trials; None if all were.
        """
        prior, counts, current, first = self._to_failing_suspicion(doubt, counts, current, first)
        unchanged = prior.add_history(counts).adjust_to_day(self._get_day(doubt))
        return unchanged.compute_failure_chance(first, _subtract(current, first))

    def has_enough_evidence(
        self, doubt: Suspicion, counts: Counts, current: Counts, first: Counts | None = None
    ) -> bool:
        """Whether the evidence is as much as the error rate asks for, and not just all there can be."""
        prior, counts, current, first = self._to_failing_suspicion(doubt, counts, current, first)
        reruns = _subtract(current, first)
        return compute_e_value(prior, counts, first, self._get_day(doubt), reruns) >= self.threshold

    def count_needed_failures(self, counts: Counts) -> int | None:
        """Count the failures in a row that are enough evidence, the first execution included.

        Return None if no allowed number of failures is enough.
        """
        for number in range(max(2, self.trials), self.execution_limits.max_total + 1):
            first, reruns = Counts(failures=self.trials), Counts(failures=number - self.trials)
            if compute_e_value(self.prior, counts, first, self.day, reruns) >= self.threshold:
                return number
        return None

    def decide_next_step(
        self,
        doubt: Suspicion,
        counts: Counts,
        current: Counts,
        remaining: int,
        *,
        first: Counts | None = None,
        ended: bool = False,
    ) -> RerunStep:
        """Decide the next step after the executions in `current`, with `remaining` re-runs left.

        `current` has the first execution and the re-runs together; `first` tells the trials apart from the re-runs
        where that matters (`Prior.shares`), and is all of them if None. The evidence has to reach `threshold`. A case
        that failed in every allowed execution needs less, as `_get_all_failed_threshold` says: a gate that lets a
        dead case through would be worse. One failure alone confirms nothing while a re-run is possible. A case is
        given up if failing from now on would not be enough, and if it has passed and its evidence is below
        `MIN_RERUN_EVIDENCE`. A must-pass case needs no evidence, only a second failure before it passes more often
        than it fails. A fix is run until it fails, because only a row of passes begins a new history on the branch.
        If re-runs have `ended` because nothing more could be learned, no re-runs are left. Then the executions so
        far decide, unless even all of them failing could not have been enough.
        """
        every = self._get_all_failed_threshold(doubt, counts, current.executions + remaining)
        prior, counts, current, first = self._to_failing_suspicion(doubt, counts, current, first)
        day, reruns, trials = self._get_day(doubt), _subtract(current, first), Counts(failures=first.executions)
        most = compute_e_value(prior, counts, trials, day, Counts(failures=reruns.executions + remaining))
        remaining = 0 if ended else remaining
        planned = current.executions + remaining
        twice = current.failures >= min(2, planned)
        if doubt is Suspicion.MUST_PASS:
            confirmed, reachable = twice and current.is_failing, current.is_failing
        elif doubt is Suspicion.FIX:
            confirmed, reachable = False, not current.passes and current.executions <= FIX_RERUNS
        elif most < min(self.threshold, every):
            confirmed, reachable = False, _needs_another_run(prior, counts, current)
            if reachable and twice and not remaining:
                return RerunStep.ANOTHER_RUN
        else:
            all_failures = compute_e_value(prior, counts, trials, day, Counts(failures=planned - first.executions))
            needed = min(self.threshold, all_failures) if ended or all_failures >= every else self.threshold
            evidence = compute_e_value(prior, counts, first, day, reruns)
            confirmed = twice and evidence >= needed
            reachable = compute_e_value(prior, counts, first, day, reruns.add(Counts(failures=remaining))) >= needed
            reachable = reachable and (doubt is Suspicion.REGRESSION or current.is_failing)
            reachable = reachable and (not current.passes or evidence >= MIN_RERUN_EVIDENCE)
        if confirmed:
            return RerunStep.CONFIRMED
        return RerunStep.AGAIN if remaining and reachable else RerunStep.INCONCLUSIVE

    def _get_all_failed_threshold(self, doubt: Suspicion, counts: Counts, planned: int) -> float:
        """Return the evidence that confirms a case that failed all executions: among many, some do by chance."""
        if doubt is not Suspicion.REGRESSION or not self.max_reruns:
            return 0.0
        whole = planned >= self.execution_limits.max_total
        if not counts.failures:
            return self.never_failed_threshold if whole or not self.never_failed_threshold else self.threshold
        if self.all_failed_threshold is not None and whole:
            return self.all_failed_threshold
        return self.threshold if is_unsteady(counts) else 0.0  # fewer executions than were assumed

    def _get_day(self, doubt: Suspicion) -> DayFactors:
        """Return the factors of the day, or none for a new pass: a bad day does not make a case pass."""
        return () if doubt in _PASSING else self.day

    def _to_failing_suspicion(
        self, doubt: Suspicion, counts: Counts, current: Counts, first: Counts | None
    ) -> tuple[Prior, Counts, Counts, Counts]:
        """Turn the question to one about failing; the suite's histories say nothing about passing too often."""
        first = current if first is None else first
        if doubt in _PASSING:
            return DEFAULT_PRIOR, counts.inverse, current.inverse, first.inverse
        return self.prior, counts, current, first


def _subtract(current: Counts, first: Counts) -> Counts:
    return Counts(passes=current.passes - first.passes, failures=current.failures - first.failures)


def _needs_another_run(prior: Prior, counts: Counts, current: Counts) -> bool:
    """Whether a case would be confirmed by failing every time, did executions of one run not belong together."""
    return bool(prior.shares) and not current.passes and not is_unsteady(counts)
