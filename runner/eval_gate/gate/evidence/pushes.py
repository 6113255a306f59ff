"""A change remembers: what earlier pushes saw of a case adds to the evidence of this one. Pure.

A case that fails half of the time here passes the first execution of every other push, and a few re-runs of one push
are seldom proof. Several pushes together are. If nothing has changed, all of them, and the runs of the default branch,
are executions of one case, so those of earlier pushes may be counted together with those of this one: whoever stops,
and for whatever reason, the evidence keeps its mean of 1.

A fix must not be paid for with what came before it, and a change may have broken the case only later. So the pushes are
counted from each of the possible starts on, those before the start among the record, and the evidence is the mean over
all starts (a Shiryaev-Roberts detector, normalised; Shin, Ramdas and Rinaldo, arXiv:2203.03532). There are as many
starts as pushes that can be known, this one among them, each with the same weight whether it was made or not: over so
many pushes the mean over the starts that were not made yet and those that were is a martingale, and by Ville's
inequality the evidence of E comes by chance in one of E changes, not in one of E pushes.

What a run shows by itself counts in full beside that. So earlier pushes can make a verdict stricter and never milder.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile
from typing import Final

from eval_gate.gate.evidence.past import counts_of_executions
from eval_gate.gate.evidence.reruns import Confirmation, Doubt, RerunStep, e_value
from eval_gate.model.case import CaseKey
from eval_gate.model.grounds import NO_RUNS, Counts
from eval_gate.model.limits import PUSHES
from eval_gate.model.result import RunResult
from eval_gate.results.ledger import Ledger, alike, target_of, yardstick_of

Earlier = tuple[Counts, ...]
"""A case in earlier pushes, the oldest first, from the first that it failed on; first executions and re-runs."""

STARTS: Final = PUSHES + 1
SUSPICIOUS: Final = 2.0
"""The evidence from the best start among earlier pushes on, from which a case is looked at again in this one."""


def evidence(confirmation: Confirmation, record: Counts, earlier: Earlier, here: Counts) -> float:
    """The mean over all starts of the evidence from there on, by all executions of these pushes and `here`."""
    return math.fsum(_from_each_start(confirmation, record, (*earlier[-PUSHES:], here))) / STARTS


def suspected(confirmation: Confirmation, record: Counts, earlier: Earlier, here: Counts) -> bool:
    """Whether earlier pushes and what was seen here speak for a broken case, so that it is worth another look."""
    *before, _now = _from_each_start(confirmation, record, (*earlier[-PUSHES:], here))
    return max(before, default=0.0) >= SUSPICIOUS


def _from_each_start(confirmation: Confirmation, record: Counts, pushes: Earlier) -> Iterator[float]:
    """What was before a start is on record, so that what it says is taken into account before anything new is seen."""
    for start in range(len(pushes)):
        known = _together(record, *pushes[:start])
        yield e_value(confirmation.prior, known, _together(*pushes[start:]), confirmation.day)


def _together(*pushes: Counts) -> Counts:
    total = NO_RUNS
    for one in pushes:
        total = total.plus(one)
    return total


def next_step(
    confirmation: Confirmation, record: Counts, earlier: Earlier, here: Counts, remaining: int, alone: RerunStep
) -> RerunStep:
    """What to do about a case that is suspected of failing, when `alone` is what this run by itself says.

    It is called a regression as in one run: it fails here as often as it passes, and twice. Until then it is run again
    as long as earlier pushes and this one speak for that and so many failures more would be enough, also where it
    passed at first: whether it was mended or only lucky nobody knows.
    """
    if not earlier or not confirmation.confirm or alone is RerunStep.CONFIRMED:
        return alone
    if here.fails and here.failures >= _TWICE and shows(confirmation, record, earlier, here):
        return RerunStep.CONFIRMED
    again = here.plus(Counts(failures=remaining))
    open_ = remaining and shows(confirmation, record, earlier, again)
    return RerunStep.AGAIN if open_ and suspected(confirmation, record, earlier, here) else alone


_TWICE: Final = 2


def shows(confirmation: Confirmation, record: Counts, earlier: Earlier, here: Counts) -> bool:
    """Whether these pushes together, or this one alone, are as much evidence as the error rate asks for."""
    if not earlier:
        return False
    alone = confirmation.suffices(Doubt.REGRESSION, record, here)
    return alone or evidence(confirmation, record, earlier, here) >= confirmation.full_bar


def needed(confirmation: Confirmation, record: Counts, earlier: Earlier) -> int | None:
    """The failures in a row here that are sure, with what came before or alone; None where no allowed number is."""
    alone = confirmation.needed(record)
    most = confirmation.executions.most if alone is None else alone - 1
    rows = range(max(_TWICE, confirmation.trials), most + 1)
    return next((row for row in rows if shows(confirmation, record, earlier, Counts(failures=row))), alone)


def chance(confirmation: Confirmation, record: Counts, earlier: Earlier, here: Counts) -> float:
    """How likely so many failures, or more, are in all of these executions when nothing has changed."""
    return confirmation.chance(Doubt.REGRESSION, record, _together(*earlier, here))


def earlier_of(pushes: Ledger, run: RunResult, pass_score: float) -> Mapping[CaseKey, Earlier]:
    """What these pushes say of the cases of this run, of the same target and by the same yardstick only.

    A push in which fewer than half of the cases were judged was an outage and says nothing. Cases that failed on none
    of them are not here.
    """
    usable = [
        place
        for place, push in enumerate(pushes.runs)
        if push.run_id != run.run_id and push.target == target_of(run) and push.judged * 2 >= push.cases
    ][:PUSHES]
    found = {}
    for key, case in run.cases():
        known = pushes.case(key)
        if not usable or not known.runs:
            continue
        yardstick, entries = yardstick_of(case), known.entries()
        seen = [
            _together(counts_of_executions(entry.first, pass_score), counts_of_executions(entry.again, pass_score))
            for place in reversed(usable)
            if place < len(entries)
            and (entry := entries[place]) is not None
            and alike(known.yardsticks[entry.place], yardstick).all
        ]
        if earlier := tuple(dropwhile(lambda push: not push.failures, filter(_judged, seen))):
            found[key] = earlier
    return found


def _judged(push: Counts) -> bool:
    return push.runs > 0


def pooled(earlier: Sequence[Counts]) -> Counts:
    """All executions of these pushes, counted together."""
    return _together(*earlier)
