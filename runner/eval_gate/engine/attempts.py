"""Joins several attempts into one execution of a case, as `execution.trials` of an AgentV 4 file defines.

The gate counts executions, and its tests assume that the executions of a case are equal and independent. Attempts are
neither, because `pass_at_k` ends at the first that passes. Therefore all attempts together are one execution: it passes
by the file's rule, and `trials`, re-runs and the history count it once.

Source: AgentV 4.42.4, `runEvalCaseWithTrials` and `aggregateTrials`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean, stdev
from typing import Final

from eval_gate.engine.case_result import TrialTotals
from eval_gate.engine.journal import TrialRecord
from eval_gate.evaluators.weighted_mean import is_full, reaches_pass_score
from eval_gate.evaluators.wording import format_score
from eval_gate.model.case import AttemptRule, AttemptStrategy
from eval_gate.model.execution import EvaluatorResult, Status
from eval_gate.struct import replace

FINAL_SCORE: Final = 0.8
"""Score of an attempt after which `pass_at_k` makes no further one, whatever the threshold is."""
_CRITICAL_T: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11, 2.101, 2.093, 2.086),
    *(2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045),
)
"""Student's t for 95 %, two-sided, from one degree of freedom on; 1.96 for more than these."""
_MANY_T: Final = 1.96


def has_veto(results: Iterable[EvaluatorResult]) -> bool:
    """Whether a counting evaluator says that something required is missing."""
    return any(result.vetoed and result.weight > 0 for result in results)


def needs_attempt(rule: AttemptRule, records: Sequence[TrialRecord]) -> bool:
    """Whether an execution needs another attempt after these."""
    if not records:
        return True
    newest = records[-1]
    if len(records) >= rule.count or newest.status is Status.SKIPPED:
        return False
    if rule.max_cost_usd is not None and sum(one.cost_usd or 0.0 for one in records) >= rule.max_cost_usd:
        return False
    if rule.strategy is AttemptStrategy.PASS_AT_K:
        return not (newest.status.is_scored and newest.score >= FINAL_SCORE and not has_veto(newest.evaluator_results))
    return newest.status.is_scored  # without the score of one of them there is none of all


def join_attempts(rule: AttemptRule, pass_score: float | None, records: Sequence[TrialRecord]) -> TrialRecord:
    """Join the attempts of one execution, at least one.

    `pass_score` is the one that the eval file sets. The details are those of the best attempt if the execution passes
    or one attempt is enough, else of the worst. An execution has no score if none of its attempts has one, or if one
    has none and all of them count.
    """
    if len(records) == 1:
        return records[0]
    scored = [one for one in records if one.status.is_scored]
    if not scored or (rule.strategy is not AttemptStrategy.PASS_AT_K and len(scored) < len(records)):
        return _add_totals(next(one for one in records if not one.status.is_scored), records, joins_scores=True)
    best = max(scored, key=lambda one: (one.status is Status.PASSED, not one.vetoed, one.score))
    if rule.strategy is AttemptStrategy.PASS_AT_K:
        return _add_totals(_describe_failure(best, f"best of {len(records)} attempts"), records, joins_scores=False)
    score = _combine_scores(rule.strategy, [one.score for one in scored])
    # a required assertion that is missed makes the score of its attempt 0, and counts for no more than that
    vetoed = any(one.score > 0 and has_veto(one.evaluator_results) for one in scored)
    passed = not vetoed and (is_full(score) if pass_score is None else reaches_pass_score(score, pass_score))
    decisive = best if passed else min(scored, key=lambda one: (one.score, one.status is Status.PASSED))
    joined = replace(
        decisive,
        status=Status.PASSED if passed else Status.FAILED,
        score=score,
        vetoed=not passed and (vetoed or pass_score is not None),
        error=None if passed else decisive.error,
        failed_turn=None if passed else decisive.failed_turn,
    )
    summary = f"{rule.strategy.value.replace('_', ' ')} of {len(records)} attempts {format_score(score)}"
    return _add_totals(_describe_failure(joined, summary), records, joins_scores=True)


def _combine_scores(strategy: AttemptStrategy, scores: Sequence[float]) -> float:
    if all(is_full(score) for score in scores):
        return 1.0
    mean = fmean(scores)
    if strategy is AttemptStrategy.MEAN or len(scores) < 2:
        return mean
    freedom = len(scores) - 1
    critical = _CRITICAL_T[freedom - 1] if freedom <= len(_CRITICAL_T) else _MANY_T
    return min(max(mean - critical * stdev(scores) / math.sqrt(len(scores)), 0.0), 1.0)


def _describe_failure(trial_record: TrialRecord, attempts: str) -> TrialRecord:
    """Say in the error of a failed execution which attempts it speaks of."""
    if trial_record.status is Status.PASSED:
        return trial_record
    return replace(trial_record, error=": ".join(filter(None, (attempts, trial_record.error))))


def _add_totals(chosen: TrialRecord, records: Sequence[TrialRecord], *, joins_scores: bool) -> TrialRecord:
    whole = TrialTotals.from_records(records)
    # unknown tool calls of any attempt count, unless the chosen one passes and is enough
    decisive = (chosen,) if chosen.status is Status.PASSED and not joins_scores else (chosen, *records)
    failed = sum(one.status is not Status.PASSED for one in records)
    mixed = chosen.status is Status.PASSED and failed
    notes = (f"passes by its rule: {failed} of {len(records)} attempts did not pass",) if mixed else ()
    return replace(
        chosen,
        duration_ms=whole.duration_ms,
        attempts=whole.attempts,
        usage=whole.usage,
        cost_usd=whole.cost_usd,
        judge_usage=whole.judge_usage,
        judge_cost_usd=whole.judge_cost_usd,
        warnings=(*whole.warnings, *notes),
        calls_listed=any(one.calls_listed for one in records) or None,
        missing_calls=next((one.missing_calls for one in decisive if one.missing_calls), None),
    )
