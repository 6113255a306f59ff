"""Which suspected regressions the base branch's agent clears by its own results. Pure.

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

from eval_gate.gate.evidence.case_classification import CaseFacts, Classification, ClassifiedCase
from eval_gate.gate.evidence.case_history import count_executions
from eval_gate.gate.evidence.identical_responses import CACHE_SPEEDUP, MIN_FIRST_MS
from eval_gate.gate.evidence.prior import Prior
from eval_gate.gate.evidence.rerun_decision import RerunCriteria
from eval_gate.gate.evidence.suite.failures import Stratum, compute_suite_finding
from eval_gate.gate.evidence.suite.score_drop import ScoredCase, compute_score_finding, select_testable_cases
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass, Comparison
from eval_gate.model.execution import Status, Trial
from eval_gate.model.grounds import CONTROL_LIMIT, NO_RUNS, Counts, GroundKind, Grounds, ScoreFinding, SuiteFinding
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.results.history import build_executions
from eval_gate.struct import FrozenStruct, replace

MAX_CASE_EXECUTIONS: Final = 3
"""How often the base branch's agent is asked about one case at most."""
DECISIVE_COUNT: Final = 2
"""Passes that leave a case red, and failures that may clear it; also how often it is asked about all cases."""
FLAKE_CHANCE_LIMIT: Final = 0.01
"""The chance up to which failures there are not just the ones that a case's record knows of."""
_MIN_SUITE_SHARE: Final = 0.9
"""The share of the compared cases that has to be answered, so that nothing about all of them rests on some."""


class CaseClearance(StrEnum):
    """Whether the base branch's agent clears a case that failed in this run."""

    RED = "red"
    """It passes there, or its record, which knows that it flakes, keeps its word."""
    CLEARED = "cleared"
    """It fails there too."""
    OPEN = "open"
    """Not known yet, or nothing was said."""


def decide_clearance(answers: Counts, record: Counts, prior: Prior) -> CaseClearance:
    """By the answers so far; `record` and `prior` say how often the case fails when nothing has changed."""
    if answers.passes >= DECISIVE_COUNT:
        return CaseClearance.RED
    if answers.failures < DECISIVE_COUNT:
        return CaseClearance.OPEN
    if prior.add_record(record).compute_failure_chance(answers) <= FLAKE_CHANCE_LIMIT:
        return CaseClearance.CLEARED
    return CaseClearance.RED if answers.runs >= MAX_CASE_EXECUTIONS else CaseClearance.OPEN


class BaseAgentResults(FrozenStruct):
    """Results of the base branch's agent in a run, by case, and whether it showed that it works."""

    counts: Mapping[CaseKey, Counts]
    is_working: bool

    def get_counts(self, key: CaseKey) -> Counts:
        """Passes and failures of one case; none where it was not asked, or brought nothing to judge."""
        return self.counts.get(key, NO_RUNS)


NO_BASE_AGENT_RESULTS: Final = BaseAgentResults({}, is_working=False)


def collect_base_agent_results(
    run: RunResult, settled: Sequence[ClassifiedCase], pass_score: float
) -> BaseAgentResults:
    """The answers that the record of a run holds. `settled` says which cases pass here as they do on record."""
    if run.control is None:
        return NO_BASE_AGENT_RESULTS
    counts = {key: count_base_agent_results(case, pass_score) for key, case in run.cases() if case.control}
    vouching = [counts[one.key] for one in settled if one.key in counts and one.case_class is CaseClass.STILL_PASSING]
    return BaseAgentResults(counts, sum(one.passes for one in vouching) > sum(one.failures for one in vouching))


def count_base_agent_results(case: CaseResult, pass_score: float) -> Counts:
    """Passes and failures among the judged answers of the base branch's agent to one case.

    A failure that came again from what looks like a cache was seen once: else that one would clear the case alone.
    """
    failed = next((one for one in case.control if one.status is Status.FAILED), None)
    seen = [one for one in case.control if failed is None or not _is_cached(one, failed)]
    return count_executions(build_executions(seen, graded=case.graded), pass_score).answered


def _is_cached(one: Trial, failed: Trial) -> bool:
    return one.repeats and failed.duration_ms >= MIN_FIRST_MS and one.duration_ms * CACHE_SPEEDUP < failed.duration_ms


def clear_cases(
    settlement: Classification, facts: Sequence[CaseFacts], answers: BaseAgentResults, confirmation: RerunCriteria
) -> Classification:
    """What became of every case, and of all together, with what the base branch's agent said of it."""
    known = {one.key: one for one in facts}
    suite = _recheck_suite_finding(settlement, facts, answers)
    cleared = settlement.suite_finding.dropped and not suite.dropped
    cases = tuple(
        _clear_case(one, known[one.key], answers, confirmation, together=cleared) if one.key in known else one
        for one in settlement.cases
    )
    return replace(settlement, cases=cases, suite_finding=suite)


def _clear_case(
    one: ClassifiedCase, facts: CaseFacts, answers: BaseAgentResults, confirmation: RerunCriteria, *, together: bool
) -> ClassifiedCase:
    """A regression as the base branch's agent leaves it. What must pass has to pass, whoever else fails it."""
    grounds, seen = one.grounds, answers.get_counts(one.key)
    if together and one.case_class is CaseClass.FLAKY and grounds is not None and grounds.why is GroundKind.SUITE:
        return replace(one, grounds=replace(grounds, why=GroundKind.MIXED, control=seen))
    if one.case_class is not CaseClass.REGRESSION or grounds is None or facts.must_pass:
        return one
    if grounds.why is GroundKind.SUITE:
        change = CaseClass.UNSETTLED if together else None
    else:
        found = (
            decide_clearance(seen, facts.record.counts, confirmation.prior)
            if answers.is_working
            else CaseClearance.OPEN
        )
        never = CaseClass.UNSETTLED if seen.passes else CaseClass.STILL_FAILING
        change = never if found is CaseClearance.CLEARED else None
    told = replace(grounds, control=seen)
    if change is None:
        return replace(one, grounds=told if seen.runs else grounds)
    return replace(one, case_class=change, grounds=_build_cleared_grounds(told))


def _build_cleared_grounds(grounds: Grounds) -> Grounds:
    """Nothing is left to be tested: whatever the record lets expect, this is not of the change."""
    return replace(
        grounds,
        why=GroundKind.CONTROL,
        chance=None,
        needed=None,
    )


def _recheck_suite_finding(
    settlement: Classification, facts: Sequence[CaseFacts], answers: BaseAgentResults
) -> SuiteFinding:
    """The finding over all cases held against fresh answers to all of them, where there are any."""
    found = settlement.suite_finding
    if not found.dropped or not answers.is_working:
        return found
    alone = {
        one.key
        for one in settlement.cases
        if one.case_class is CaseClass.REGRESSION and (one.grounds is None or one.grounds.why is not GroundKind.SUITE)
    }
    asked = [one for one in facts if one.is_in_suite_test and one.key not in alone and one.first.answered.runs]
    both = [
        (answers.get_counts(one.key), one.first.answered)
        for one in asked
        if answers.get_counts(one.key).runs >= DECISIVE_COUNT
    ]
    if not both or len(both) < _MIN_SUITE_SHARE * len(asked):
        return found
    again = compute_suite_finding([Stratum.from_counts(there, here) for there, here in both], CONTROL_LIMIT)
    there = Counts(passes=sum(one.passes for one, _ in both), failures=sum(one.failures for one, _ in both))
    return replace(found, control=there, control_chance=again.chance)


def recheck_score_finding(
    found: ScoreFinding | None, scored: Sequence[ScoredCase], run: RunResult, answers: BaseAgentResults
) -> ScoreFinding | None:
    """The finding over all scores held against fresh ones of all of them, where there are any."""
    if found is None or not found.dropped or not answers.is_working:
        return found
    cases = run.by_key()
    fresh = {one.key: _list_scores(cases[one.key]) for one in scored}
    both = select_testable_cases(
        ScoredCase(one.key, one.score, fresh[one.key]) for one in scored if len(fresh[one.key]) >= DECISIVE_COUNT
    )
    if not both or len(both) < _MIN_SUITE_SHARE * len(scored):
        return found
    again = compute_score_finding(both, CONTROL_LIMIT)
    return replace(found, control_fall=again.fall, control_chance=again.chance)


def _list_scores(case: CaseResult) -> tuple[float, ...]:
    found = (one.score for one in build_executions(case.control, graded=case.graded))
    return tuple(score for score in found if score is not None)


def _count_identical_responses(run: RunResult) -> int:
    """How many cases that failed here it was asked about; 0 unless each answer to each of them is one given here."""
    suspects = [
        answers
        for _, case in run.cases()
        if any(one.status is not Status.PASSED for one in case.executions())
        and (answers := [one for one in case.control if one.status.judged])
    ]
    return len(suspects) if all(one.as_here for answers in suspects for one in answers) else 0


def iter_base_agent_notes(run: RunResult, now: Comparison) -> Iterator[str]:
    """What is to be said of asking the base branch's agent beside the cases: why it said nothing, what it cleared."""
    if run.control is None:
        return
    found, scores = now.suite_finding, now.score_finding
    if alike := _count_identical_responses(run):
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
