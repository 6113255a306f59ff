"""What the answers of the base branch's agent are worth. Pure.

It is asked only where the gate would be red, and can only clear. So it is believed as little as possible:

- only answers count that were judged. No connection, a crash, a time-out: whoever brings no answer says nothing.
- it has to show that it works: of what passes here and on record it must pass more than it fails.
- a case is cleared by two failed answers and less than two that passed. These failures must be unlikely for its record:
  else they are the flakes that the record knows of already, and it took them into account.
- a drop of all cases is cleared where it is none against fresh answers to all of them.

What asking it moves (`benchmarks/verdict/without.py`, without → with): its own agent lost a case since the branch's
newest run, red 100.0 → 0.8 ± 0.8 %; a bad day, failures × 3 (5 %), red 45.4 → 14.6 ± 6.7 %. Losses of 10 points are
found as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from eval_gate.gate.evidence.past import counts_of_executions
from eval_gate.gate.evidence.prior import Prior
from eval_gate.gate.evidence.repeats import FASTER, LEAST_MS
from eval_gate.gate.evidence.reruns import Confirmation
from eval_gate.gate.evidence.settle import CaseFacts, Settled, Settlement
from eval_gate.gate.evidence.suite.failures import Stratum, suite_finding
from eval_gate.gate.evidence.suite.scores import Scored, enough_of, score_finding
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass, Comparison
from eval_gate.model.execution import Status, Trial
from eval_gate.model.grounds import CONTROL_LIMIT, NO_RUNS, Counts, GroundKind, Grounds, ScoreFinding, SuiteFinding
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.results.ledger import executions
from eval_gate.struct import FrozenStruct, replace

MOST_OF_A_CASE: Final = 3
"""How often the base branch's agent is asked about one case at most."""
TWICE: Final = 2
"""Passes that leave a case red, and failures that may clear it; also how often it is asked about all cases."""
UNLIKELY: Final = 0.01
"""The chance up to which failures there are not just the ones that a case's record knows of."""
_MOSTLY: Final = 0.9
"""The share of the compared cases that has to be answered, so that nothing about all of them rests on some."""


class ControlStanding(StrEnum):
    """What the base branch's agent says of a case that failed here."""

    RED = "red"
    """It passes there, or its record, which knows that it flakes, keeps its word."""
    CLEARED = "cleared"
    """It fails there too."""
    OPEN = "open"
    """Not known yet, or nothing was said."""


def standing_of(answers: Counts, record: Counts, prior: Prior) -> ControlStanding:
    """By the answers so far; `record` and `prior` say how often the case fails when nothing has changed."""
    if answers.passes >= TWICE:
        return ControlStanding.RED
    if answers.failures < TWICE:
        return ControlStanding.OPEN
    if prior.after(record).chance_of_failures(answers) <= UNLIKELY:
        return ControlStanding.CLEARED
    return ControlStanding.RED if answers.runs >= MOST_OF_A_CASE else ControlStanding.OPEN


class Answers(FrozenStruct):
    """What the base branch's agent answered in a run, by case, and whether it showed that it works."""

    counts: Mapping[CaseKey, Counts]
    works: bool

    def of(self, key: CaseKey) -> Counts:
        """Passes and failures of one case; none where it was not asked, or brought nothing to judge."""
        return self.counts.get(key, NO_RUNS)


NO_ANSWERS: Final = Answers({}, works=False)


def answers_of(run: RunResult, settled: Sequence[Settled], pass_score: float) -> Answers:
    """The answers that the record of a run holds. `settled` says which cases pass here as they do on record."""
    if run.control is None:
        return NO_ANSWERS
    counts = {key: control_counts(case, pass_score) for key, case in run.cases() if case.control}
    vouching = [counts[one.key] for one in settled if one.key in counts and one.change is CaseClass.STILL_PASSING]
    return Answers(counts, sum(one.passes for one in vouching) > sum(one.failures for one in vouching))


def control_counts(case: CaseResult, pass_score: float) -> Counts:
    """Passes and failures among the judged answers of the base branch's agent to one case.

    A failure that came again from what looks like a cache was seen once: else that one would clear the case alone.
    """
    failed = next((one for one in case.control if one.status is Status.FAILED), None)
    seen = [one for one in case.control if failed is None or not _from_a_cache(one, failed)]
    return counts_of_executions(executions(seen, graded=case.graded), pass_score).answered


def _from_a_cache(one: Trial, failed: Trial) -> bool:
    return one.repeats and failed.duration_ms >= LEAST_MS and one.duration_ms * FASTER < failed.duration_ms


def with_answers(
    settlement: Settlement, facts: Sequence[CaseFacts], answers: Answers, confirmation: Confirmation
) -> Settlement:
    """What became of every case, and of all together, with what the base branch's agent said of it."""
    known = {one.key: one for one in facts}
    suite = _suite(settlement, facts, answers)
    cleared = settlement.suite.dropped and not suite.dropped
    cases = tuple(
        _settled(one, known[one.key], answers, confirmation, together=cleared) if one.key in known else one
        for one in settlement.cases
    )
    return replace(settlement, cases=cases, suite=suite)


def _settled(
    one: Settled, facts: CaseFacts, answers: Answers, confirmation: Confirmation, *, together: bool
) -> Settled:
    """A regression as the base branch's agent leaves it. What must pass has to pass, whoever else fails it."""
    grounds, seen = one.grounds, answers.of(one.key)
    if together and one.change is CaseClass.FLAKY and grounds is not None and grounds.why is GroundKind.SUITE:
        return replace(one, grounds=replace(grounds, why=GroundKind.MIXED, control=seen))
    if one.change is not CaseClass.REGRESSION or grounds is None or facts.must_pass:
        return one
    if grounds.why is GroundKind.SUITE:
        change = CaseClass.UNSETTLED if together else None
    else:
        found = standing_of(seen, facts.record.counts, confirmation.prior) if answers.works else ControlStanding.OPEN
        never = CaseClass.UNSETTLED if seen.passes else CaseClass.STILL_FAILING
        change = never if found is ControlStanding.CLEARED else None
    told = replace(grounds, control=seen)
    if change is None:
        return replace(one, grounds=told if seen.runs else grounds)
    return replace(one, change=change, grounds=_cleared(told))


def _cleared(grounds: Grounds) -> Grounds:
    """Nothing is left to be tested: whatever the record lets expect, this is not of the change."""
    return replace(
        grounds,
        why=GroundKind.CONTROL,
        chance=None,
        needed=None,
    )


def _suite(settlement: Settlement, facts: Sequence[CaseFacts], answers: Answers) -> SuiteFinding:
    """The finding over all cases held against fresh answers to all of them, where there are any."""
    found = settlement.suite
    if not found.dropped or not answers.works:
        return found
    alone = {
        one.key
        for one in settlement.cases
        if one.change is CaseClass.REGRESSION and (one.grounds is None or one.grounds.why is not GroundKind.SUITE)
    }
    asked = [one for one in facts if one.in_whole and one.key not in alone and one.first.answered.runs]
    both = [(answers.of(one.key), one.first.answered) for one in asked if answers.of(one.key).runs >= TWICE]
    if not both or len(both) < _MOSTLY * len(asked):
        return found
    again = suite_finding([Stratum.of(there, here) for there, here in both], CONTROL_LIMIT)
    there = Counts(passes=sum(one.passes for one, _ in both), failures=sum(one.failures for one, _ in both))
    return replace(found, control=there, control_chance=again.chance)


def scores_with_answers(
    found: ScoreFinding | None, scored: Sequence[Scored], run: RunResult, answers: Answers
) -> ScoreFinding | None:
    """The finding over all scores held against fresh ones of all of them, where there are any."""
    if found is None or not found.dropped or not answers.works:
        return found
    cases = run.by_key()
    fresh = {one.key: _scores(cases[one.key]) for one in scored}
    both = enough_of(Scored(one.key, one.here, fresh[one.key]) for one in scored if len(fresh[one.key]) >= TWICE)
    if not both or len(both) < _MOSTLY * len(scored):
        return found
    again = score_finding(both, CONTROL_LIMIT)
    return replace(found, control_fall=again.fall, control_chance=again.chance)


def _scores(case: CaseResult) -> tuple[float, ...]:
    found = (one.score for one in executions(case.control, graded=case.graded))
    return tuple(score for score in found if score is not None)


def _answered_as_here(run: RunResult) -> int:
    """How many cases that failed here it was asked about; 0 unless each answer to each of them is one given here."""
    suspects = [
        answers
        for _, case in run.cases()
        if any(one.status is not Status.PASSED for one in case.executions())
        and (answers := [one for one in case.control if one.status.judged])
    ]
    return len(suspects) if all(one.as_here for answers in suspects for one in answers) else 0


def notes_of_control(run: RunResult, now: Comparison) -> Iterator[str]:
    """What is to be said of asking the base branch's agent beside the cases: why it said nothing, what it cleared."""
    if run.control is None:
        return
    found, scores = now.suite_finding, now.score_finding
    if alike := _answered_as_here(run):
        which = "the case that failed" if alike == 1 else f"all {alike} cases that failed"
        yield (
            f"the base branch's agent gave the same response as this change's to {which} here, byte for byte: see that "
            f"{run.control.target.identity[:300]} is not this change's own agent, which would clear whatever it breaks"
        )
    cleared = [one for one in now.changes if one.grounds is not None and one.grounds.why is GroundKind.CONTROL]
    if run.control.trouble is not None:
        what = "was not asked about all that failed" if cleared else "clears nothing of what failed"
        yield f"the base branch's agent {what}: {run.control.trouble}"
    if found is not None and found.lower and not found.dropped:
        yield (
            f"all cases together failed more than their records: {found.failures} of {found.cases} at first. The base "
            "branch's agent, asked twice in the same minutes, failed "
            f"{found.control.failures} of {found.control.runs}: "
            "against it that is no drop"
        )
    if scores is not None and scores.lower_than_record and not scores.dropped:
        yield (
            f"scores of all cases together fell by {scores.fall:.2f} on average against their records, and by "
            f"{scores.control_fall or 0.0:.2f} against the base branch's agent in the same minutes: that is no drop"
        )
