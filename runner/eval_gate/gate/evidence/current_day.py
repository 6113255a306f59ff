"""The day that a run shows itself to be on, so that a bad day is not many single regressions. Pure.

Where the branch has good and bad days (`days`), how many of the others failed at first tells which of them this is: by
Bayes' rule, from what the record says of one more day and from first executions only, which are there before anything
is run again. Of a single case "nothing has changed" then means that it fails as often as on such a day.

A day never makes a case steadier than its record, and where the record shows no differences between days nothing here
counts: how many failed is then left to the test of all cases.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Final

from eval_gate.gate.evidence.bars import bars_of
from eval_gate.gate.evidence.days import Days
from eval_gate.gate.evidence.prior import Day
from eval_gate.gate.evidence.reruns import Confirmation
from eval_gate.gate.evidence.settle import CaseFacts
from eval_gate.struct import replace

STEPS: Final = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0)
"""The factors that are told apart; each other one counts as the one next to it."""
_LEAST_WEIGHT: Final = 1e-4
_AS_NEWEST: Final = 1.0


def on_this_day(confirmation: Confirmation, cases: Iterable[CaseFacts], days: Days) -> Confirmation:
    """How cases are confirmed on the day that these show, those that are suspects left out by one failure each."""
    if not (days.differ or days.lost) or not confirmation.confirm:
        return confirmation
    known = [case for case in cases if case.in_whole and case.record.counts.runs]
    day = day_of(known, days)
    if not day:
        return confirmation
    records = Counter((case.record.counts.passes, case.record.counts.failures) for case in known)
    asked = bars_of(
        confirmation.prior, records, confirmation.cases, confirmation.executions, confirmation.error_rate, day
    )
    if asked is None:
        return replace(confirmation, day=day)
    return replace(confirmation, day=day, sure=asked.sure, every=asked.every)


def day_of(cases: Iterable[CaseFacts], days: Days) -> Day:
    """By how much this day multiplies failures, in `STEPS`; none where it surely does not.

    Of a suspect only the others may say it, so one failure is left out.
    """
    kinds = Counter(
        (case.record.counts.answered, case.first.answered) for case in cases if case.record.counts.answered.runs
    )
    rates = [(first, record.failures / record.runs, number) for (record, first), number in kinds.items()]
    failures = sum(first.failures * number for first, _, number in rates) - 1
    mean = math.fsum(first.runs * rate * number for first, rate, number in rates)
    variance = math.fsum(first.runs * rate * (1 - rate) * number for first, rate, number in rates)
    if variance <= 0.0 or failures <= mean:
        return ()
    rare = failures - (mean - variance)
    likely = [(1.0, math.log(max(days.calm, _LEAST_WEIGHT)) + _log_chance(rare, variance))]
    likely += [(factor, math.log(weight) + _log_chance(rare, variance * factor)) for factor, weight in days.factors]
    if days.lost:  # where the branch itself became worse, this is as likely a day like its newest run
        likely.append((days.newest, math.log(_AS_NEWEST) + _log_chance(rare, variance * days.newest)))
    most = max(log for _, log in likely)
    weights = [0.0] * len(STEPS)
    for factor, log in likely:
        weights[_nearest(factor)] += math.exp(log - most)
    whole = math.fsum(weights)
    shares = [(step, weight / whole) for step, weight in zip(STEPS, weights, strict=True)]
    day = tuple((step, share) for step, share in shares if share >= _LEAST_WEIGHT)
    return day if any(step > 1.0 for step, _ in day) else ()


def _nearest(factor: float) -> int:
    return min(range(len(STEPS)), key=lambda at: abs(math.log(STEPS[at] / factor)))


def _log_chance(failures: float, mean: float) -> float:
    """Of so many rare events, but for what does not depend on the mean."""
    return failures * math.log(mean) - mean
