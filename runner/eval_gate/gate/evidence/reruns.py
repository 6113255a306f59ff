"""Whether a case that failed is worse than its record: the evidence, and when to stop running it again.

The evidence is an e-value: how much better "it is broken" explains what was seen than "nothing has changed" does. If
nothing has changed its mean is 1, whenever one stops, so a case may be run again *because* it failed, and evidence of
E comes by chance at most one time in E (Ville's inequality; Shafer, Shen, Vereshchagin and Vovk 2011, Statistical
Science 26, 84-101; Ramdas, Grünwald, Vovk and Shafer, arXiv:2210.01948). With N cases in a run each has to bring N
times as much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

from eval_gate.config.policy import DEFAULT_CONFIRM, DEFAULT_ERROR_RATE
from eval_gate.gate.evidence.prior import UNKNOWN, Prior
from eval_gate.model.grounds import CaseRecord, Counts, Steadiness

DEAD_PASS_RATE: Final = 0.05


class Doubt(StrEnum):
    """What is to be decided about a case after its first execution."""

    REGRESSION = "regression"
    """It fails, and the default branch passes it more often than not."""
    NEW_PASS = "new-pass"  # noqa: S105 (a question, not a password)
    """It passes, and is flaky and mostly fails on the default branch: that may be luck."""
    MUST_PASS = "must-pass"  # noqa: S105
    """It fails and must pass, whatever its record."""


class Step(StrEnum):
    """What to do about a doubtful case."""

    CONFIRMED = "confirmed"
    UNSETTLED = "unsettled"
    """The evidence does not suffice, and the runs that are left cannot make it."""
    AGAIN = "again"
    """Run it once more."""


def doubt(record: CaseRecord, first: Counts, *, must_pass: bool = False) -> Doubt | None:
    """What is to be decided, if anything. `first` is the first execution, or the trials, of this run.

    A case without a record is taken to pass, as the prior says. As often passed as failed is neither. What the newest
    run of the branch fails as well is not of this run's making, whatever it did before.
    """
    if not first.runs:
        return None
    if first.fails and must_pass:
        return Doubt.MUST_PASS
    if first.fails:
        return None if record.counts.fails or record.newest_failed else Doubt.REGRESSION
    lucky = record.steadiness is Steadiness.FLAKY and record.counts.failures > record.counts.passes
    return Doubt.NEW_PASS if lucky else None


def e_value(prior: Prior, record: Counts, here: Counts) -> float:
    """The evidence that a case fails more often than its record, from `here`, its first failure included.

    The even mixture of two Bayes factors against the beta-binomial prediction of the record: that the case is dead
    (passes 1 time in 20) and that it passes half as often as before, each believed as strongly as the record. Equal
    strength makes the evidence grow with every failure and shrink with every pass, whatever came before.
    """
    return _e_value(prior.after(record), here.passes, here.failures)


@lru_cache(10_000)
def _e_value(unchanged: Prior, passes: int, failures: int) -> float:
    """Most cases of a suite have the same record, and where an agent is down they do the same here."""
    here = Counts(passes=passes, failures=failures)
    half = unchanged.pass_rate / 2
    log_unchanged = unchanged.log_chance(here)
    broken = [unchanged.moved_to(rate).log_chance(here) for rate in (min(DEAD_PASS_RATE, half), half)]
    return math.fsum(math.exp(min(log - log_unchanged, _MOST_LOG)) for log in broken) / len(broken)


_MOST_LOG: Final = 600.0
"""Beyond it a float has no room; nobody asks for so much."""


def unsteady(record: Counts) -> bool:
    """Whether a case fails on record more than one time in five."""
    return record.failures * _STEADY_RUNS > record.runs


_STEADY_RUNS: Final = 5


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The re-runs of one run: how much evidence a case needs, and whether it is to be run again.

    `cases` are all cases of the run, `confirm` the most re-runs of one case, `error_rate` the accepted chance that a
    run in which nothing has changed has a regression by this evidence. 0 re-runs make every failure that the default
    branch does not share a regression.
    """

    cases: int
    prior: Prior = UNKNOWN
    error_rate: float = DEFAULT_ERROR_RATE
    confirm: int = DEFAULT_CONFIRM

    @property
    def bar(self) -> float:
        """The evidence that the error rate asks of one case."""
        return max(self.cases, 1) / self.error_rate

    def chance(self, doubt: Doubt, record: Counts, here: Counts) -> float:
        """How likely such results, or worse ones, are in so many executions when nothing has changed."""
        prior, record, here = self._as_failing(doubt, record, here)
        return prior.after(record).chance_of_failures(here)

    def suffices(self, doubt: Doubt, record: Counts, here: Counts) -> bool:
        """Whether the evidence is as much as the error rate asks for, and not just all there can be."""
        return e_value(*self._as_failing(doubt, record, here)) >= self.bar

    def needed(self, record: Counts) -> int | None:
        """The failures in a row that are sure, the first execution included; None where no allowed number is."""
        rows = (Counts(failures=number) for number in range(2, self.confirm + 2))
        return next((row.failures for row in rows if e_value(self.prior, record, row) >= self.bar), None)

    def next_step(self, doubt: Doubt, record: Counts, here: Counts, remaining: int, *, ended: bool = False) -> Step:
        """What to do after `here` (first execution and re-runs together), with `remaining` re-runs left.

        The bar is `bar`, or the evidence of failing every time where so few executions cannot bring more: a case that
        never passes here is a regression, however few re-runs there are. One that is `unsteady` on record is held to
        the bar all the same, since among many such cases some fail every time by chance. One failure alone
        confirms nothing as long as there is a re-run to be had. A case is let go when it passes more often than it
        fails, or when failing from now on would not be enough. A case that must pass needs no evidence, only a second
        failure before that. Where re-runs have `ended` because nothing more could be learnt, none is left, and what
        was seen has to do, unless even all of them could not have been enough.
        """
        held = self.confirm and doubt is Doubt.REGRESSION and unsteady(record)
        prior, record, here = self._as_failing(doubt, record, here)
        most = e_value(prior, record, Counts(failures=here.runs + remaining))
        remaining = 0 if ended else remaining
        planned = here.runs + remaining
        twice = here.failures >= min(2, planned)
        if doubt is Doubt.MUST_PASS:
            confirmed, reachable = twice and here.fails, True
        elif held and most < self.bar:
            confirmed, reachable = False, False
        else:
            needed = min(self.bar, e_value(prior, record, Counts(failures=planned)))
            confirmed = twice and e_value(prior, record, here) >= needed
            reachable = e_value(prior, record, here.plus(Counts(failures=remaining))) >= needed
        if confirmed:
            return Step.CONFIRMED
        return Step.AGAIN if remaining and here.fails and reachable else Step.UNSETTLED

    def _as_failing(self, doubt: Doubt, record: Counts, here: Counts) -> tuple[Prior, Counts, Counts]:
        """The question as one about failing. About passing too often a suite's own record says nothing."""
        if doubt is Doubt.NEW_PASS:
            return UNKNOWN, record.swapped, here.swapped
        return self.prior, record, here
