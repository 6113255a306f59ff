"""Which executions and cases pass: apply the policy's pass score to a run.

The status on disk stays what the specification says. A run that is `apply_pass_score` a pass score says what counts
here, and comparison, rules and reports are all made of it, so that none of them can have a threshold of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from eval_gate.model.case import decide_pass
from eval_gate.model.execution import ErrorCause, Status, Trial
from eval_gate.model.result import CaseResult, RunResult, Summary
from eval_gate.struct import replace


def is_passing_trial(trial: Trial, pass_score: float, *, graded: bool) -> bool:
    """Whether one execution passed: it says so, or it was graded and its score reaches `pass_score`.

    The one definition, for the engine's re-runs as for the verdict. An execution without a score never passes, nor one
    that misses something required.
    """
    if trial.status is Status.PASSED:
        return True
    return graded and trial.status is Status.FAILED and not trial.vetoed and trial.score >= pass_score


class PassRate(StrEnum):
    """What a pass rule says about the executions of a case; open if those without a score could decide."""

    MET = "met"
    MISSED = "missed"
    OPEN = "open"


_PASS_RATES: Final = {True: PassRate.MET, False: PassRate.MISSED, None: PassRate.OPEN}


def is_passing_case(case: CaseResult, pass_score: float) -> bool:
    """Whether the case counts as passing: more than half of its scored executions do, or as many as its rule says."""
    return case.status.is_scored and bool(decide_case(case, case.list_executions(), pass_score))


def decide_case(case: CaseResult, trials: Iterable[Trial], pass_score: float) -> bool | None:
    """Decide whether the case passes with these executions; None if more of them need a score for that."""
    scored = [trial for trial in trials if trial.status.is_scored]
    return decide_pass(case.pass_rule, [is_passing_trial(one, pass_score, graded=case.graded) for one in scored])


def find_pass_rate(case: CaseResult, trials: Iterable[Trial], pass_score: float) -> PassRate | None:
    """Find out whether the case meets its pass rule with these executions; None without a rule."""
    return None if case.pass_rule is None else _PASS_RATES[decide_case(case, trials, pass_score)]


def apply_pass_score(run: RunResult, pass_score: float) -> RunResult:
    """Apply the pass score to every case of a run, as the gate counts it.

    Nothing changes at 1.0, or if no case is graded. A case that passes by its score loses its error, since nothing
    is left to be explained; its evaluators still show what it misses.
    """
    if pass_score >= 1.0 or not any(case.graded for _, case in run.iter_cases()):
        return run
    ruled = {key: case for key, case in run.iter_cases() if case.graded and (case.status.is_scored or case.pass_rule)}
    graded = {key: case for key, case in ruled.items() if case.error_cause is not ErrorCause.MODEL_CALL_MISSING}
    at_pass_score = run.replace_cases({key: _apply_to_case(case, pass_score) for key, case in graded.items()})
    return recount_cases(run, at_pass_score)


def recount_cases(original: RunResult, changed: RunResult) -> RunResult:
    """Update the counts of a run and of its suites to other results of the same cases; others stay as they were."""
    pairs = list(zip(original.suites, changed.suites, strict=True))
    suites = tuple(replace(new, summary=_recount(old.summary, old.cases, new.cases)) for old, new in pairs)
    cases = ([case for suite in run.suites for case in suite.cases] for run in (original, changed))
    return replace(changed, suites=suites, summary=_recount(original.summary, *cases))


def _recount(summary: Summary, old_cases: Sequence[CaseResult], new_cases: Sequence[CaseResult]) -> Summary:
    difference = Counter(case.status for case in new_cases)
    difference.subtract(case.status for case in old_cases)
    passed, failed = summary.passed + difference[Status.PASSED], summary.failed + difference[Status.FAILED]
    return replace(
        summary,
        passed=passed,
        failed=failed,
        errored=summary.errored + difference[Status.ERROR],
        flaky=summary.flaky + sum(case.flaky for case in new_cases) - sum(case.flaky for case in old_cases),
        pass_rate=passed / (passed + failed) if passed + failed else None,
    )


def apply_recorded_pass_score(run: RunResult) -> RunResult:
    """Apply to a run the pass score of its own verdict; a run without a verdict does not change."""
    return apply_pass_score(run, run.verdict.pass_score) if run.verdict else run


def _apply_to_case(case: CaseResult, pass_score: float) -> CaseResult:
    if (passed := decide_case(case, case.list_executions(), pass_score)) is None:
        return case
    trials = tuple(_apply_to_trial(trial, pass_score) for trial in case.list_executions()) if case.trials else ()
    passes = [trial.status is Status.PASSED for trial in trials if trial.status.is_scored]
    return replace(
        case,
        passed=passed,
        status=Status.PASSED if passed else Status.FAILED,
        trials=trials,
        flaky=case.pass_rule is None and any(passes) and not all(passes) if passes else case.flaky,
        error=None if passed else case.error,
        failed_turn=None if passed else case.failed_turn,
    )


def _apply_to_trial(trial: Trial, pass_score: float) -> Trial:
    reaches = trial.status is Status.FAILED and is_passing_trial(trial, pass_score, graded=True)
    return replace(trial, status=Status.PASSED, failed_turn=None) if reaches else trial
