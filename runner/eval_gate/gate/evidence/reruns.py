"""Whether a case that failed is worse than its record: the evidence, and when to stop running it again.

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
from eval_gate.gate.evidence.bars import Executions, alternative
from eval_gate.gate.evidence.prior import UNKNOWN, Day, Prior
from eval_gate.model.grounds import CaseRecord, Counts, Steadiness
from eval_gate.struct import FrozenStruct


class Doubt(StrEnum):
    """What is to be decided about a case after its first execution."""

    REGRESSION = "regression"
    """It fails, and the default branch passes it at least now and then."""
    NEW_PASS = "new-pass"  # noqa: S105 (a question, not a password)
    """It passes, and is flaky and mostly fails on the default branch: that may be luck."""
    MUST_PASS = "must-pass"  # noqa: S105
    """It fails and must pass, whatever its record."""


class RerunStep(StrEnum):
    """What to do about a doubtful case."""

    CONFIRMED = "confirmed"
    UNSETTLED = "unsettled"
    """The evidence does not suffice, and the runs that are left cannot make it."""
    AGAIN = "again"
    """Run it once more."""


def doubt(record: CaseRecord, first: Counts, *, must_pass: bool = False) -> Doubt | None:
    """What is to be decided, if anything. `first` is the first execution, or the trials, of this run.

    A case without a record is taken to pass, as the prior says. One that never passed on record cannot be broken any
    more. What the newest run of the branch fails as well is not of this run's making, unless the case is known to come
    and go there: then that failure is part of its record like any other.
    """
    if not first.runs:
        return None
    if first.fails and must_pass:
        return Doubt.MUST_PASS
    if first.fails:
        return None if known_to_fail(record) else Doubt.REGRESSION
    lucky = record.steadiness is Steadiness.FLAKY and record.counts.failures > record.counts.passes
    return Doubt.NEW_PASS if lucky else None


def known_to_fail(record: CaseRecord) -> bool:
    """Whether it is the branch that fails it, so that no failure here can be news."""
    if record.counts.runs and not record.counts.passes:
        return True
    before = record.before_newest
    often = before.failures >= _KNOWN_BY and before.failures * _OFTEN >= before.runs
    comes_and_goes = record.steadiness is Steadiness.FLAKY and often
    return record.newest_failed and not comes_and_goes


_KNOWN_BY, _OFTEN = 2, 3
"""A case comes and goes that failed twice, and one time in three, before the newest run: a solid one seldom does."""


def e_value(prior: Prior, record: Counts, here: Counts, day: Day = ()) -> float:
    """The evidence that a case fails more often than its record, from `here`, its first failure included.

    `day` is the one that this run is on: it may multiply failures though nothing has changed.

    The Bayes factor of "it got worse" (dead, passing half as often, or anything worse) against what suite and record
    let expect. It grows with every failure and shrinks with every pass, whatever came before.
    """
    return _e_value(prior.after(record).on(day), here.passes, here.failures)


@lru_cache(50_000)
def _e_value(unchanged: Prior, passes: int, failures: int) -> float:
    """Most cases of a suite have the same record, and where an agent is down they do the same here."""
    here = Counts(passes=passes, failures=failures)
    if not here.runs:
        return 1.0
    log = _worse(unchanged).log_chance(here) - unchanged.log_chance(here)
    return math.exp(min(log, _MOST_LOG))


@lru_cache(20_000)
def _worse(unchanged: Prior) -> Prior:
    return Prior(alternative(unchanged))


_MOST_LOG: Final = 600.0
"""Beyond it a float has no room; nobody asks for so much."""


def unsteady(record: Counts) -> bool:
    """Whether a case fails on record more than one time in five."""
    return record.failures * _STEADY_RUNS > record.runs


_STEADY_RUNS: Final = 5


class Confirmation(FrozenStruct):
    """The re-runs of one run: how much evidence a case needs, and whether it is to be run again.

    `cases` are all cases of the run, `confirm` the most re-runs of one case, `error_rate` the accepted chance that a
    run in which nothing has changed has a regression by this evidence. 0 re-runs make every failure that the default
    branch does not share a regression.

    `sure` is the evidence worked out for the records of these cases, `every` that of a case that failed every time here
    and now and then on record; None where no records are known, and N / α has to do. `day` is the one that this run
    shows itself to be on, where the branch has such days. `trials` is how often a case is executed whatever happens.
    """

    cases: int
    prior: Prior = UNKNOWN
    error_rate: float = DEFAULT_ERROR_RATE
    confirm: int = DEFAULT_CONFIRM
    sure: float | None = None
    every: float | None = None
    day: Day = ()
    trials: int = 1

    @property
    def executions(self) -> Executions:
        """How often a case is executed."""
        return Executions(self.confirm, self.trials)

    @property
    def bar(self) -> float:
        """The evidence that the error rate asks of one case in one run."""
        return self.full_bar if self.sure is None else min(self.sure, self.full_bar)

    @property
    def full_bar(self) -> float:
        """N / α, which is enough whatever is believed, and however often one looks."""
        return max(self.cases, 1) / self.error_rate

    def chance(self, doubt: Doubt, record: Counts, here: Counts) -> float:
        """How likely such results, or worse ones, are in so many executions when nothing has changed."""
        prior, record, here = self._as_failing(doubt, record, here)
        return prior.after(record).on(self._day(doubt)).chance_of_failures(here)

    def suffices(self, doubt: Doubt, record: Counts, here: Counts) -> bool:
        """Whether the evidence is as much as the error rate asks for, and not just all there can be."""
        return self._evidence(doubt, record, here) >= self.bar

    def needed(self, record: Counts) -> int | None:
        """The failures in a row that are sure, the first execution included; None where no allowed number is."""
        rows = (Counts(failures=number) for number in range(max(2, self.trials), self.executions.most + 1))
        return next((row.failures for row in rows if e_value(self.prior, record, row, self.day) >= self.bar), None)

    def next_step(
        self, doubt: Doubt, record: Counts, here: Counts, remaining: int, *, ended: bool = False
    ) -> RerunStep:
        """What to do after `here` (first execution and re-runs together), with `remaining` re-runs left.

        The bar is `bar`. A case that failed every time as often as was allowed counts with less, as `_every_time` says:
        a gate that lets a dead case through would be worse. One failure alone confirms nothing as long as there is a
        re-run to be had. A case is let go when failing from now on would not be enough, not before: three failures
        of seven are proof where nothing ever fails. A case that must pass needs no evidence, only a second failure
        before it passes more often than it fails. Where re-runs have `ended` because nothing more could be learnt,
        none is left, and what was seen has to do, unless even all of them could not have been enough.
        """
        every = self._every_time(doubt, record, here.runs + remaining)
        prior, record, here = self._as_failing(doubt, record, here)
        day = self._day(doubt)
        most = e_value(prior, record, Counts(failures=here.runs + remaining), day)
        remaining = 0 if ended else remaining
        planned = here.runs + remaining
        twice = here.failures >= min(2, planned)
        if doubt is Doubt.MUST_PASS:
            confirmed, reachable = twice and here.fails, here.fails
        elif most < min(self.bar, every):
            confirmed, reachable = False, False
        else:
            all_failures = e_value(prior, record, Counts(failures=planned), day)
            needed = min(self.bar, all_failures) if ended or all_failures >= every else self.bar
            confirmed = twice and e_value(prior, record, here, day) >= needed
            reachable = e_value(prior, record, here.plus(Counts(failures=remaining)), day) >= needed
            reachable = reachable and (doubt is Doubt.REGRESSION or here.fails)
        if confirmed:
            return RerunStep.CONFIRMED
        return RerunStep.AGAIN if remaining and reachable else RerunStep.UNSETTLED

    def _every_time(self, doubt: Doubt, record: Counts, planned: int) -> float:
        """The evidence from which on failing every time, in so many executions, is a regression without the bar.

        None is asked of a case that never failed on record. Of one that did as much as is worked out for its like,
        since among many such cases some fail every time by chance; where there are not as many executions as
        that took for granted, a case that is `unsteady` is held to the bar.
        """
        if doubt is not Doubt.REGRESSION or not self.confirm or not record.failures:
            return 0.0
        if self.every is not None and planned >= self.executions.most:
            return self.every
        return self.bar if unsteady(record) else 0.0

    def _evidence(self, doubt: Doubt, record: Counts, here: Counts) -> float:
        return e_value(*self._as_failing(doubt, record, here), self._day(doubt))

    def _day(self, doubt: Doubt) -> Day:
        """A bad day does not make a case pass."""
        return () if doubt is Doubt.NEW_PASS else self.day

    def _as_failing(self, doubt: Doubt, record: Counts, here: Counts) -> tuple[Prior, Counts, Counts]:
        """The question as one about failing. About passing too often a suite's own record says nothing."""
        if doubt is Doubt.NEW_PASS:
            return UNKNOWN, record.swapped, here.swapped
        return self.prior, record, here
