"""Re-runs that answered byte for byte as the first failure did: they are not independent, and count once.

Three things look like that: a cache between us and the model, an agent without chance in it (temperature 0, a seed),
and a case that is dead and says the same words each time. Of the first two, one failure is all that was seen, however
often it was fetched. So the re-runs add nothing to the evidence, and the case counts because it failed every time: a
dead one is never let through for being monotonous.

Where the record says that the case fails more than one time in five, failing every time does not suffice. Then its
answers are known to vary from run to run, and the same answer again and again is as good as others would be, unless
it came so much faster than the first that nobody can have thought about it: what looks cached counts once there too.
"""

from __future__ import annotations

from typing import Final

from eval_gate.gate.evidence.reruns import unsteady
from eval_gate.gate.evidence.settle import CaseFacts
from eval_gate.model.execution import Status
from eval_gate.model.grounds import NO_RUNS, Grounds, Repeats
from eval_gate.model.result import CaseResult, RerunEnd
from eval_gate.struct import replace

FASTER: Final = 5
"""So many times faster than the first answer is no second answer."""
LEAST_MS: Final = 200
"""A first answer that took less may have been slow for any reason, such as a connection that was opened."""


def repeats_of(case: CaseResult) -> Repeats | None:
    """What there is to say of re-runs that all repeat the first failure; None where any of them says something else."""
    trials = case.executions()
    first, again = trials[: len(trials) - case.reruns], trials[len(trials) - case.reruns :]
    failed = next((one for one in first if one.status is Status.FAILED), None)
    if not again or failed is None or any(one.status is Status.PASSED for one in first):
        return None
    if not all(one.repeats for one in again):
        return None
    slowest = max(one.duration_ms for one in again)
    cached = failed.duration_ms >= LEAST_MS and slowest * FASTER < failed.duration_ms
    return Repeats(reruns=len(again), slowest_ms=slowest, first_ms=failed.duration_ms, cached=cached)


def without_repeats(facts: CaseFacts, found: Repeats | None) -> CaseFacts:
    """The facts without re-runs that only repeat: nothing more could be had than the first executions.

    Where re-runs that would have decided were never made, they are missing as before.
    """
    over = facts.end in {RerunEnd.DECIDED, RerunEnd.IMPOSSIBLE}
    if found is None or not over or (unsteady(facts.record.counts) and not found.cached):
        return facts
    return replace(facts, again=NO_RUNS, end=RerunEnd.IMPOSSIBLE)


def with_repeats(grounds: Grounds, facts: CaseFacts, found: Repeats) -> Grounds:
    """What decided, with every execution in the counts again, and what is to be said of the re-runs."""
    return replace(
        grounds,
        here=facts.here,
        reruns=facts.again.runs,
        repeats=found,
    )
