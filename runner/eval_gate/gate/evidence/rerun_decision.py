"""Whether to re-run a case that failed: its evidence against its history, and when to stop.

The evidence is an e-value: how much better "it is broken" explains what was seen than "nothing has changed" does. If
nothing has changed its mean is 1, whenever one stops, so a case may be run again *because* it failed, and evidence of
E comes by chance at most one time in E (Ville's inequality; Shafer, Shen, Vereshchagin and Vovk 2011, Statistical
Science 26, 84-101; Ramdas, Grünwald, Vovk and Shafer, arXiv:2210.01948). `thresholds` computes how much is enough, from
the number of cases and their histories.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final

from eval_gate.config.policy import DEFAULT_FALSE_ALARM_RATE, DEFAULT_RERUNS
from eval_gate.gate.evidence.execution_groups import compute_trial_share
from eval_gate.gate.evidence.prior import DEFAULT_PRIOR, DayFactors, Prior
from eval_gate.gate.evidence.thresholds import (
    MAX_LOG,
    EvidenceThresholds,
    ExecutionLimits,
    build_worse_prior,
    compute_run_thresholds,
)
from eval_gate.model.case import PassRule
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


def find_suspicion(
    history: CaseHistorySummary, first: Counts, *, must_pass: bool = False, is_failing: bool | None = None
) -> Suspicion | None:
    """Return what is suspected of a case after its first execution (or trials), or None.

    `is_failing` is what the pass rule of the case says; by default, more than half of its executions have to pass.
    A case without history is taken to pass, as the prior says. A case that never passed cannot break any more. This run
    did not cause a failure that the newest run of the branch has too, unless the case is known to be flaky there.
    """
    if not first.executions:
        return None
    is_failing = first.is_failing if is_failing is None else is_failing
    if is_failing and must_pass:
        return Suspicion.MUST_PASS
    if is_failing:
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
    earlier = history.without_newest_run
    often = earlier.failures >= _KNOWN_BY and earlier.failures * _OFTEN >= earlier.executions
    comes_and_goes = history.stability is Stability.FLAKY and often
    return history.newest_failed and not comes_and_goes


_PASSING: Final = frozenset({Suspicion.NEW_PASS, Suspicion.FIX})
"""What is suspected of a case that passes."""
_KNOWN_BY, _OFTEN = 2, 3
"""A case comes and goes that failed twice, and one time in three, before the newest run: a solid one seldom does."""


def compute_e_value(
    prior: Prior, history: Counts, first: Counts, day: DayFactors = (), reruns: Counts = NO_EXECUTIONS
) -> float:
    """Compute the evidence that a case fails more often than its history, from the results of this run.

    It is the Bayes factor of "it got worse" (dead, passing half as often, or anything worse) against what the suite and
    the history let expect on such a `day`. It grows with every failure and shrinks with every pass.
    """
    return _compute_e_value(prior.add_history(history).adjust_to_day(day), first, reruns)


@lru_cache(50_000)
def _compute_e_value(unchanged: Prior, first: Counts, reruns: Counts) -> float:
    """Most cases of a suite have the same history, and where an agent is down they do the same here."""
    if not first.executions + reruns.executions:
        return 1.0
    log = build_worse_prior(unchanged).compute_log_chance(first, reruns) - unchanged.compute_log_chance(first, reruns)
    return math.exp(min(log, MAX_LOG))


def is_unsteady(history: Counts) -> bool:
    """Whether a case fails in the history more than one time in five."""
    return history.failures * _STEADY_RUNS > history.executions


_STEADY_RUNS: Final = 5


class RerunCriteria(FrozenStruct):
    """Criteria of a run's re-runs: evidence that a case needs, and when another one can decide.

    `cases` is the number of cases in the run, `false_alarm_rate` the accepted chance that a run without a real change
    has a regression by this evidence. With 0 `max_reruns`, every failure that the default branch does not share is a
    regression. Without `thresholds`, cases / `false_alarm_rate` applies. `day` is the estimated effect of this day, and
    `trials` the number of executions of each case before any re-run.
    """

    cases: int
    prior: Prior = DEFAULT_PRIOR
    false_alarm_rate: float = DEFAULT_FALSE_ALARM_RATE
    max_reruns: int = DEFAULT_RERUNS
    thresholds: EvidenceThresholds | None = None
    day: DayFactors = ()
    trials: int = 1
    pass_rule: PassRule | None = None
    """The most frequent pass rule of the cases; None if none has one."""
    run_share: float = 0.0
    """Share of a case's variance that re-runs without a wait have in common with the first execution."""

    def add_thresholds(self, histories: Mapping[tuple[int, int], int], day: DayFactors = ()) -> RerunCriteria:
        """Return the criteria of this day, with the thresholds for cases that have these passes and failures."""
        limits = ExecutionLimits(self.max_reruns, self.trials)
        inputs = self.prior, histories, self.cases
        thresholds = compute_run_thresholds(*inputs, limits, self.false_alarm_rate, day)
        if thresholds is not None and (rule := self.pass_rule) is not None:  # a case fails its trials more easily then
            limits = ExecutionLimits(self.max_reruns, rule.trials, rule.passes)
            ruled = compute_run_thresholds(*inputs, limits, self.false_alarm_rate, day) or thresholds
            thresholds = replace(thresholds, threshold=max(thresholds.threshold, ruled.threshold))
        return replace(self, day=day, thresholds=thresholds)

    @property
    def trial_share(self) -> float:
        """The mean share of a case's variance that its trials in one run have in common."""
        return compute_trial_share(self.prior.shares)

    @property
    def threshold(self) -> float:
        """The evidence that the error rate asks of one case in one run, by default N / α: enough for any belief."""
        return max(self.cases, 1) / self.false_alarm_rate if self.thresholds is None else self.thresholds.threshold

    def compute_chance(
        self, suspicion: Suspicion, history: Counts, first: Counts, reruns: Counts = NO_EXECUTIONS
    ) -> float:
        """Compute the chance of these results, or worse ones, in as many executions if nothing changed."""
        unchanged, first, reruns = self._turn_to_failures(suspicion, history, first, reruns)
        return unchanged.compute_failure_chance(first, reruns)

    def has_enough_evidence(
        self, suspicion: Suspicion, history: Counts, first: Counts, reruns: Counts = NO_EXECUTIONS
    ) -> bool:
        """Whether the evidence is as much as the error rate asks for, and not just all there can be."""
        return _compute_e_value(*self._turn_to_failures(suspicion, history, first, reruns)) >= self.threshold

    def count_needed_failures(self, history: Counts) -> int | None:
        """Count the failures in a row, with the first execution, that are enough evidence; None if no number is."""
        for number in range(max(2, self.trials), self.trials + self.max_reruns + 1):
            first, reruns = Counts(failures=self.trials), Counts(failures=number - self.trials)
            if compute_e_value(self.prior, history, first, self.day, reruns) >= self.threshold:
                return number
        return None

    def decide_next_step(
        self,
        suspicion: Suspicion,
        history: Counts,
        first: Counts,
        remaining: int,
        *,
        reruns: Counts = NO_EXECUTIONS,
        reruns_ended: bool = False,
    ) -> RerunStep:
        """Decide the next step after these executions, with `remaining` re-runs left.

        A case is confirmed if its evidence reaches `threshold`, or the lower `_get_all_failed_threshold` if it failed
        every time: a dead case must not pass. It is given up if further failures would not suffice, or if it has passed
        and its evidence is below `MIN_RERUN_EVIDENCE`. One failure confirms nothing while a re-run is possible. With
        `reruns_ended`, the executions so far decide, unless even failing all of them could not have been enough.
        """
        further = 0 if reruns_ended else remaining
        if suspicion in _WITHOUT_EVIDENCE:
            return _decide_without_evidence(suspicion, first.add(reruns), further)
        unchanged, first, reruns = self._turn_to_failures(suspicion, history, first, reruns)
        current = first.add(reruns)
        twice = current.failures >= min(2, current.executions + further)
        all_failed = self._get_all_failed_threshold(suspicion, history, current.executions + remaining)
        trials, possible = Counts(failures=first.executions), reruns.executions + remaining
        if _compute_e_value(unchanged, trials, Counts(failures=possible)) < min(self.threshold, all_failed):
            # failing every time would confirm it, did executions of one run not belong together
            if unchanged.shares and not current.passes and not is_unsteady(history) and (further or twice):
                return RerunStep.AGAIN if further else RerunStep.ANOTHER_RUN
            return RerunStep.INCONCLUSIVE
        most = _compute_e_value(unchanged, trials, Counts(failures=reruns.executions + further))
        needed = min(self.threshold, most) if reruns_ended or most >= all_failed else self.threshold
        evidence = _compute_e_value(unchanged, first, reruns)
        if twice and evidence >= needed:
            return RerunStep.CONFIRMED
        reachable = (
            _compute_e_value(unchanged, first, reruns.add(Counts(failures=further))) >= needed
            and (suspicion is Suspicion.REGRESSION or current.is_failing)
            and (not current.passes or evidence >= MIN_RERUN_EVIDENCE)
        )
        return RerunStep.AGAIN if further and reachable else RerunStep.INCONCLUSIVE

    def _get_all_failed_threshold(self, suspicion: Suspicion, history: Counts, planned: int) -> float:
        """Return the evidence that confirms a case that failed all executions: among many, some do by chance."""
        if suspicion is not Suspicion.REGRESSION or not self.max_reruns:
            return 0.0
        whole = planned >= self.trials + self.max_reruns  # else fewer executions than were assumed
        if not history.failures:
            never_failed = 0.0 if self.thresholds is None else self.thresholds.never_failed_threshold
            return never_failed if whole or not never_failed else self.threshold
        if whole and self.thresholds is not None and self.thresholds.all_failed_threshold is not None:
            return self.thresholds.all_failed_threshold
        return self.threshold if is_unsteady(history) else 0.0

    def _turn_to_failures(
        self, suspicion: Suspicion, history: Counts, first: Counts, reruns: Counts
    ) -> tuple[Prior, Counts, Counts]:
        """Turn the question to one about failing: the prior with history and day, and the executions.

        The suite's histories, and a bad day, say nothing about passing too often.
        """
        if suspicion in _PASSING:
            return DEFAULT_PRIOR.add_history(history.inverse), first.inverse, reruns.inverse
        return self.prior.add_history(history).adjust_to_day(self.day), first, reruns


_WITHOUT_EVIDENCE: Final = frozenset({Suspicion.MUST_PASS, Suspicion.FIX})


def _decide_without_evidence(suspicion: Suspicion, executions: Counts, further: int) -> RerunStep:
    """Confirm a must-pass case at its second failure; run a fix until it fails, as only a row of passes shows one."""
    reachable = executions.is_failing
    if suspicion is Suspicion.FIX:
        reachable = not executions.failures and executions.executions <= FIX_RERUNS
    elif reachable and executions.failures >= min(2, executions.executions + further):
        return RerunStep.CONFIRMED
    return RerunStep.AGAIN if further and reachable else RerunStep.INCONCLUSIVE
