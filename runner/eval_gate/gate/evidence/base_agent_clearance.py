"""Which suspected regressions the base branch's agent clears by its own results. Pure.

It runs only if the gate would be red, and can only clear. So it is believed as little as possible:

- only responses with a score count. A missing connection, an agent error or a time-out says nothing.
- it has to show that it works: of what passes here and in the history it must pass more than it fails.
- a case is cleared by two failed responses and less than two that passed. They must be unlikely for its history:
  else they are the flakes that the history knows of already, and it took them into account.
- a drop of all cases is cleared where it is none against fresh responses to all of them.

What running it moves (`benchmarks/verdict/without.py`, without → with): its own agent lost a case since the branch's
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
from eval_gate.model.evidence import (
    BASE_AGENT_LIMIT,
    NO_EXECUTIONS,
    Counts,
    GroundKind,
    ScoreFinding,
    SuiteFinding,
)
from eval_gate.model.execution import Status, Trial
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.results.history import build_executions
from eval_gate.struct import FrozenStruct, replace

MAX_CASE_EXECUTIONS: Final = 3
"""Maximum executions of one case by the base agent."""
DECISIVE_COUNT: Final = 2
"""Passes that keep a regression, or failures that may clear it; also the executions of each case of a suite drop."""
FLAKE_CHANCE_LIMIT: Final = 0.01
"""Chance up to which the base agent's failures are more than the history of a case explains."""
_MIN_SUITE_SHARE: Final = 0.9
"""Share of the compared cases that need a response before the suite as a whole is rechecked."""


class CaseClearance(StrEnum):
    """Whether the base agent clears a case that failed in this run."""

    RED = "red"
    """The base agent passes the case, or fails it no more often than its history explains."""
    CLEARED = "cleared"
    """The base agent fails the case too."""
    OPEN = "open"
    """There are too few results, or none."""


def decide_clearance(counts: Counts, history: Counts, prior: Prior) -> CaseClearance:
    """By the answers so far; `history` and `prior` say how often the case fails when nothing has changed."""
    if counts.passes >= DECISIVE_COUNT:
        return CaseClearance.RED
    if counts.failures < DECISIVE_COUNT:
        return CaseClearance.OPEN
    if prior.add_history(history).compute_failure_chance(counts) <= FLAKE_CHANCE_LIMIT:
        return CaseClearance.CLEARED
    return CaseClearance.RED if counts.executions >= MAX_CASE_EXECUTIONS else CaseClearance.OPEN


class BaseAgentResults(FrozenStruct):
    """Results of the base agent in a run, by case, and whether it showed that it works."""

    counts: Mapping[CaseKey, Counts]
    is_working: bool

    def get_counts(self, key: CaseKey) -> Counts:
        """Return the passes and failures of a case: zero if the base agent gave no response that could be scored."""
        return self.counts.get(key, NO_EXECUTIONS)


NO_BASE_AGENT_RESULTS: Final = BaseAgentResults({}, is_working=False)


def collect_base_agent_results(
    run: RunResult, settled: Sequence[ClassifiedCase], pass_score: float
) -> BaseAgentResults:
    """Collect the base agent's results from a run result.

    `settled` says which cases pass here as they do in their history. The base agent is working if it passes these
    more often than it fails them.
    """
    if run.base_agent is None:
        return NO_BASE_AGENT_RESULTS
    counts = {
        key: count_base_agent_results(case, pass_score).without_agent_errors
        for key, case in run.iter_cases()
        if case.base_agent_trials
    }
    vouching = [counts[one.key] for one in settled if one.key in counts and one.case_class is CaseClass.STILL_PASSING]
    return BaseAgentResults(counts, sum(one.passes for one in vouching) > sum(one.failures for one in vouching))


def count_base_agent_results(case: CaseResult, pass_score: float) -> Counts:
    """Count passes and failures of the base agent's scored responses to one case, and its agent errors.

    A failure that a cache seems to repeat counts once, or it would clear the case alone.
    """
    failed = next((one for one in case.base_agent_trials if one.status is Status.FAILED), None)
    trials = [one for one in case.base_agent_trials if failed is None or not _is_cached(one, failed)]
    return count_executions(build_executions(trials, graded=case.graded), pass_score)


def count_all_base_agent_executions(run: RunResult) -> list[Counts]:
    """Count the base agent's responses and agent errors, case by case."""
    return [count_base_agent_results(case, 1.0) for _, case in run.iter_cases() if case.base_agent_trials]


def _is_cached(one: Trial, failed: Trial) -> bool:
    return (
        one.repeats_first_failure
        and failed.duration_ms >= MIN_FIRST_MS
        and one.duration_ms * CACHE_SPEEDUP < failed.duration_ms
    )


def clear_cases(
    classification: Classification,
    facts: Sequence[CaseFacts],
    base_agent_results: BaseAgentResults,
    criteria: RerunCriteria,
) -> Classification:
    """Apply the base agent's results to the class of every case and to the suite finding."""
    by_key = {one.key: one for one in facts}
    suite = _recheck_suite_finding(classification, facts, base_agent_results)
    cleared = classification.suite_finding.is_drop and not suite.is_drop
    cases = tuple(
        _clear_case(one, by_key[one.key], base_agent_results, criteria, drop_cleared=cleared)
        if one.key in by_key
        else one
        for one in classification.cases
    )
    return replace(classification, cases=cases, suite_finding=suite)


def _clear_case(
    one: ClassifiedCase,
    facts: CaseFacts,
    base_agent_results: BaseAgentResults,
    criteria: RerunCriteria,
    *,
    drop_cleared: bool,
) -> ClassifiedCase:
    """Reclassify a regression by the base agent's results, which with `drop_cleared` explain the drop of the suite."""
    grounds, counts = one.grounds, base_agent_results.get_counts(one.key)
    if drop_cleared and one.case_class is CaseClass.FLAKY and grounds and grounds.kind is GroundKind.SUITE_DROP:
        return replace(one, grounds=replace(grounds, kind=GroundKind.MIXED, base_agent=counts))
    if one.case_class is not CaseClass.REGRESSION or grounds is None or facts.must_pass:
        return one
    if grounds.kind is GroundKind.SUITE_DROP:
        change = CaseClass.INCONCLUSIVE if drop_cleared else None
    else:
        is_cleared = (
            base_agent_results.is_working
            and decide_clearance(counts, facts.history.counts, criteria.prior) is CaseClearance.CLEARED
        )
        never = CaseClass.INCONCLUSIVE if counts.passes else CaseClass.STILL_FAILING
        change = never if is_cleared else None
    new_grounds = replace(grounds, base_agent=counts)
    if change is None:
        return replace(one, grounds=new_grounds if counts.executions else grounds)
    # without the test result: the change is not the cause, whatever the history lets expect
    new_grounds = replace(new_grounds, kind=GroundKind.BASE_AGENT, chance=None, required_failures=None)
    return replace(one, case_class=change, grounds=new_grounds)


def _recheck_suite_finding(
    classification: Classification, facts: Sequence[CaseFacts], base_agent_results: BaseAgentResults
) -> SuiteFinding:
    """Recheck a drop of the suite against the base agent's fresh results, if it has them for enough of the cases."""
    finding = classification.suite_finding
    if not finding.is_drop or not base_agent_results.is_working:
        return finding
    alone = {
        one.key
        for one in classification.cases
        if one.case_class is CaseClass.REGRESSION
        and (one.grounds is None or one.grounds.kind is not GroundKind.SUITE_DROP)
    }
    tested = [one for one in facts if one.is_in_suite_test and one.key not in alone]
    pairs = [(base_agent_results.get_counts(one.key), one.first) for one in tested]
    both = [(base, current) for base, current in pairs if base.executions >= DECISIVE_COUNT]
    if not both or len(both) < _MIN_SUITE_SHARE * len(tested):
        return finding
    recheck = compute_suite_finding([Stratum.from_counts(base, current) for base, current in both], BASE_AGENT_LIMIT)
    base = Counts(passes=sum(one.passes for one, _ in both), failures=sum(one.failures for one, _ in both))
    return replace(finding, base_agent=base, base_agent_chance=recheck.chance)


def recheck_score_finding(
    finding: ScoreFinding | None,
    scored: Sequence[ScoredCase],
    cases: Mapping[CaseKey, CaseResult],
    base_agent_results: BaseAgentResults,
) -> ScoreFinding | None:
    """Recheck a drop of all scores against the base agent's fresh scores, if it works and has enough of them."""
    if finding is None or not finding.is_drop or not base_agent_results.is_working:
        return finding
    by_key = {one.key: cases[one.key] for one in scored}
    executions = {key: build_executions(case.base_agent_trials, graded=case.graded) for key, case in by_key.items()}
    fresh = {key: tuple(one.score for one in some if one.score is not None) for key, some in executions.items()}
    both = select_testable_cases(
        ScoredCase(one.key, one.score, fresh[one.key]) for one in scored if len(fresh[one.key]) >= DECISIVE_COUNT
    )
    if not both or len(both) < _MIN_SUITE_SHARE * len(scored):
        return finding
    recheck = compute_score_finding(both, BASE_AGENT_LIMIT)
    return replace(finding, base_agent_fall=recheck.fall, base_agent_chance=recheck.chance)


def _count_identical_responses(run: RunResult) -> int:
    """Count the failed cases that the base agent ran; 0 unless it only returned responses that this run has too."""
    suspects = [
        answers
        for _, case in run.iter_cases()
        if any(one.status is not Status.PASSED for one in case.list_executions())
        and (answers := [one for one in case.base_agent_trials if one.status.is_scored])
    ]
    return len(suspects) if all(one.same_as_current for answers in suspects for one in answers) else 0


def iter_base_agent_notes(run: RunResult, current: Comparison) -> Iterator[str]:
    """Yield the notes about the base agent that concern no single case."""
    if run.base_agent is None:
        return
    passes, scores = current.suite_finding, current.score_finding
    if count := _count_identical_responses(run):
        which = "the failing case" if count == 1 else f"all {count} failing cases"
        yield (
            f"the base agent gave the same response as the evaluated agent in {which}, byte for byte: "
            f"check that {run.base_agent.target.identity[:300]} is not the evaluated agent, which would clear "
            "every regression"
        )
    cleared = [one for one in current.changes if one.grounds is not None and one.grounds.kind is GroundKind.BASE_AGENT]
    if run.base_agent.problem is not None:
        what = "did not run all failing cases" if cleared else "cleared no failing case"
        yield f"the base agent {what}: {run.base_agent.problem}"
    if passes is not None and passes.is_lower and not passes.is_drop:
        yield (
            f"all cases together failed more often than in their history: {passes.failures} of {passes.cases} before "
            "re-runs. The base agent ran them twice in the same minutes and failed "
            f"{passes.base_agent.failures} of {passes.base_agent.executions}: "
            "compared with it, this is not a drop"
        )
    if scores is not None and scores.is_lower and not scores.is_drop:
        yield (
            f"scores of all cases together fell by {scores.fall:.2f} on average compared with their history, and by "
            f"{scores.base_agent_fall or 0.0:.2f} compared with the base agent in the same minutes: this is not a drop"
        )
