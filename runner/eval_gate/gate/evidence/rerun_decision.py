"""Whether to re-run a case that failed: its evidence against its record, and when to stop.

The evidence is an e-value: how much better "it is broken" explains what was seen than "nothing has changed" does. If
nothing has changed its mean is 1, whenever one stops, so a case may be run again *because* it failed, and evidence of
E comes by chance at most one time in E (Ville's inequality; Shafer, Shen, Vereshchagin and Vovk 2011, Statistical
Science 26, 84-101; Ramdas, Grünwald, Vovk and Shafer, arXiv:2210.01948). How much is enough, of so many cases with such
records, is worked out (`bars`).
"""

from __future__ import annotations

import math
from enum import StrEnum
from functools import lru_cache
from typing import Final

from eval_gate.config.policy import DEFAULT_CONFIRM, DEFAULT_ERROR_RATE
from eval_gate.gate.evidence.prior import DEFAULT_PRIOR, DayFactors, Prior
from eval_gate.gate.evidence.thresholds import ExecutionLimits, compute_alternative
from eval_gate.model.grounds import CaseRecord, Counts, Steadiness
from eval_gate.struct import FrozenStruct


class Suspicion(StrEnum):
    """What is suspected of a case after its first execution."""

    REGRESSION = "regression"
    """It fails, and the default branch passes it at least now and then."""
    NEW_PASS = "new-pass"  # noqa: S105 (a question, not a password)
    """It passes, and is flaky and mostly fails on the default branch: that may be luck."""
    MUST_PASS = "must-pass"  # noqa: S105
    """It fails and must pass, whatever its record."""


class RerunStep(StrEnum):
    """What to do next about a suspect."""

    CONFIRMED = "confirmed"
    UNSETTLED = "unsettled"
    """The evidence does not suffice, and the runs that are left cannot make it."""
    AGAIN = "again"
    """Run it once more."""


def find_suspicion(record: CaseRecord, first: Counts, *, must_pass: bool = False) -> Suspicion | None:
    """What is to be decided, if anything. `first` is the first execution, or the trials, of this run.

    A case without a record is taken to pass, as the prior says. One that never passed on record cannot be broken any
    more. What the newest run of the branch fails as well is not of this run's making, unless the case is known to come
    and go there: then that failure is part of its record like any other.
    """
    if not first.runs:
        return None
    if first.fails and must_pass:
        return Suspicion.MUST_PASS
    if first.fails:
        return None if is_known_failure(record) else Suspicion.REGRESSION
    lucky = record.steadiness is Steadiness.FLAKY and record.counts.failures > record.counts.passes
    return Suspicion.NEW_PASS if lucky else None


def is_known_failure(record: CaseRecord) -> bool:
    """Whether it is the branch that fails it, so that no failure here can be news."""
    if record.counts.runs and not record.counts.passes:
        return True
    before = record.before_newest
    often = before.failures >= _KNOWN_BY and before.failures * _OFTEN >= before.runs
    comes_and_goes = record.steadiness is Steadiness.FLAKY and often
    return record.newest_failed and not comes_and_goes


_KNOWN_BY, _OFTEN = 2, 3
"""A case comes and goes that failed twice, and one time in three, before the newest run: a solid one seldom does."""


def compute_e_value(prior: Prior, record: Counts, here: Counts, day: DayFactors = ()) -> float:
    """The evidence that a case fails more often than its record, from `here`, its first failure included.

    `day` is the one that this run is on: it may multiply failures though nothing has changed.

    The Bayes factor of "it got worse" (dead, passing half as often, or anything worse) against what suite and record
    let expect. It grows with every failure and shrinks with every pass, whatever came before.
    """
    return _compute_e_value(prior.add_record(record).adjust_to_day(day), here.passes, here.failures)


@lru_cache(50_000)
def _compute_e_value(unchanged: Prior, passes: int, failures: int) -> float:
    """Most cases of a suite have the same record, and where an agent is down they do the same here."""
    here = Counts(passes=passes, failures=failures)
    if not here.runs:
        return 1.0
    log = _build_worse_prior(unchanged).compute_log_chance(here) - unchanged.compute_log_chance(here)
    return math.exp(min(log, _MAX_LOG))


@lru_cache(20_000)
def _build_worse_prior(unchanged: Prior) -> Prior:
    return Prior(compute_alternative(unchanged))


_MAX_LOG: Final = 600.0
"""Beyond it a float has no room; nobody asks for so much."""


def is_unsteady(record: Counts) -> bool:
    """Whether a case fails on record more than one time in five."""
    return record.failures * _STEADY_RUNS > record.runs


_STEADY_RUNS: Final = 5


class RerunCriteria(FrozenStruct):
    """Criteria of a run's re-runs: evidence that a case needs, and when another one can decide.

    `cases` are all cases of the run, `max_reruns` the most re-runs of one case, `error_rate` the accepted chance that a
    run in which nothing has changed has a regression by this evidence. 0 re-runs make every failure that the default
    branch does not share a regression.

    `computed_threshold` is the evidence worked out for the records of these cases, `all_failed_threshold` that of a
    case that failed every time here
    and now and then on record; None where no records are known, and N / α has to do. `day` is the one that this run
    shows itself to be on, where the branch has such days. `trials` is how often a case is executed whatever happens.
    """

    cases: int
    prior: Prior = DEFAULT_PRIOR
    error_rate: float = DEFAULT_ERROR_RATE
    max_reruns: int = DEFAULT_CONFIRM
    computed_threshold: float | None = None
    all_failed_threshold: float | None = None
    day: DayFactors = ()
    trials: int = 1

    @property
    def execution_limits(self) -> ExecutionLimits:
        """How often a case is executed."""
        return ExecutionLimits(self.max_reruns, self.trials)

    @property
    def threshold(self) -> float:
        """The evidence that the error rate asks of one case in one run."""
        return (
            self.max_threshold if self.computed_threshold is None else min(self.computed_threshold, self.max_threshold)
        )

    @property
    def max_threshold(self) -> float:
        """N / α, which is enough whatever is believed, and however often one looks."""
        return max(self.cases, 1) / self.error_rate

    def compute_chance(self, doubt: Suspicion, record: Counts, here: Counts) -> float:
        """How likely such results, or worse ones, are in so many executions when nothing has changed."""
        prior, record, here = self._to_failing_question(doubt, record, here)
        return prior.add_record(record).adjust_to_day(self._get_day(doubt)).compute_failure_chance(here)

    def has_enough_evidence(self, doubt: Suspicion, record: Counts, here: Counts) -> bool:
        """Whether the evidence is as much as the error rate asks for, and not just all there can be."""
        return self._compute_evidence(doubt, record, here) >= self.threshold

    def count_needed_failures(self, record: Counts) -> int | None:
        """The failures in a row that are sure, the first execution included; None where no allowed number is."""
        rows = (Counts(failures=number) for number in range(max(2, self.trials), self.execution_limits.max_total + 1))
        return next(
            (row.failures for row in rows if compute_e_value(self.prior, record, row, self.day) >= self.threshold), None
        )

    def decide_next_step(
        self, doubt: Suspicion, record: Counts, here: Counts, remaining: int, *, ended: bool = False
    ) -> RerunStep:
        """What to do after `here` (first execution and re-runs together), with `remaining` re-runs left.

        The bar is `threshold`. A case that failed every time as often as was allowed counts with less, as
        `_get_all_failed_threshold` says:
        a gate that lets a dead case through would be worse. One failure alone confirms nothing as long as there is a
        re-run to be had. A case is let go when failing from now on would not be enough, not before: three failures
        of seven are proof where nothing ever fails. A case that must pass needs no evidence, only a second failure
        before it passes more often than it fails. Where re-runs have `ended` because nothing more could be learnt,
        none is left, and what was seen has to do, unless even all of them could not have been enough.
        """
        every = self._get_all_failed_threshold(doubt, record, here.runs + remaining)
        prior, record, here = self._to_failing_question(doubt, record, here)
        day = self._get_day(doubt)
        most = compute_e_value(prior, record, Counts(failures=here.runs + remaining), day)
        remaining = 0 if ended else remaining
        planned = here.runs + remaining
        twice = here.failures >= min(2, planned)
        if doubt is Suspicion.MUST_PASS:
            confirmed, reachable = twice and here.fails, here.fails
        elif most < min(self.threshold, every):
            confirmed, reachable = False, False
        else:
            all_failures = compute_e_value(prior, record, Counts(failures=planned), day)
            needed = min(self.threshold, all_failures) if ended or all_failures >= every else self.threshold
            confirmed = twice and compute_e_value(prior, record, here, day) >= needed
            reachable = compute_e_value(prior, record, here.plus(Counts(failures=remaining)), day) >= needed
            reachable = reachable and (doubt is Suspicion.REGRESSION or here.fails)
        if confirmed:
            return RerunStep.CONFIRMED
        return RerunStep.AGAIN if remaining and reachable else RerunStep.UNSETTLED

    def _get_all_failed_threshold(self, doubt: Suspicion, record: Counts, planned: int) -> float:
        """The evidence from which on failing every time, in so many executions, is a regression without the bar.

        None is asked of a case that never failed on record. Of one that did as much as is worked out for its like,
        since among many such cases some fail every time by chance; where there are not as many executions as
        that took for granted, a case that is `is_unsteady` is held to the bar.
        """
        if doubt is not Suspicion.REGRESSION or not self.max_reruns or not record.failures:
            return 0.0
        if self.all_failed_threshold is not None and planned >= self.execution_limits.max_total:
            return self.all_failed_threshold
        return self.threshold if is_unsteady(record) else 0.0

    def _compute_evidence(self, doubt: Suspicion, record: Counts, here: Counts) -> float:
        return compute_e_value(*self._to_failing_question(doubt, record, here), self._get_day(doubt))

    def _get_day(self, doubt: Suspicion) -> DayFactors:
        """A bad day does not make a case pass."""
        return () if doubt is Suspicion.NEW_PASS else self.day

    def _to_failing_question(self, doubt: Suspicion, record: Counts, here: Counts) -> tuple[Prior, Counts, Counts]:
        """The question as one about failing. About passing too often a suite's own record says nothing."""
        if doubt is Suspicion.NEW_PASS:
            return DEFAULT_PRIOR, record.swapped, here.swapped
        return self.prior, record, here
