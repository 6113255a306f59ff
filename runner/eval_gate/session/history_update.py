"""Build the history that ends with a run: the history of its baseline, the run itself, and its levels.

Levels continue those of the run before, by the cases that both have. Only the drift alarm reads them; no verdict does.
A reused result is that of the run before, so that it moves no level; a run that executed nothing has none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Final, NamedTuple

from eval_gate.gate.case_matching import find_earlier_keys
from eval_gate.gate.pass_score import is_passing_trial
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import ErrorKind, Status, Trial
from eval_gate.model.execution_usage import measure_execution
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.results.baseline import Baseline, NoBaseline
from eval_gate.results.history import (
    EMPTY_HISTORY,
    History,
    build_target_key,
    compute_result_fingerprint,
    match_fingerprints,
)
from eval_gate.results.levels import LevelKind, RunLevels, list_models

DIGITS: Final = 6
LEAST_SHARED: Final = 0.5
"""Share of this run's cases that the run before must have too; otherwise a level restarts."""
LEAST_SAME_ANSWERS: Final = 3
"""Equal graded responses in both runs that a change of the judge needs."""
_COMPARED: Final = (LevelKind.FAILING, LevelKind.FAILING_BEFORE_RERUNS, LevelKind.SCORE, LevelKind.TIME, LevelKind.COST)


class _Case(NamedTuple):
    """Values of one case, in the order of `_COMPARED`, and data to match it with another run."""

    values: tuple[float | None, ...]
    case: CaseResult
    response: str | None
    """Graded response, if a graded case has one execution and responses are stored."""

    def has_same_setup(self, other: _Case) -> bool:
        """Whether both have the same evaluation setup."""
        return match_fingerprints(
            compute_result_fingerprint(self.case), compute_result_fingerprint(other.case)
        ).same_setup


def build_next_history(run: RunResult, baseline: Baseline | NoBaseline) -> History:
    """Build the history that ends with this run, from the history up to its baseline."""
    if isinstance(baseline, NoBaseline):
        return _add_levels(EMPTY_HISTORY.with_run(run), run, None, {})
    result, earlier = baseline.result, find_earlier_keys(baseline.result, run)
    return _add_levels(baseline.own_history.with_run(run, earlier, result), run, result, earlier)


def _add_levels(
    history: History, run: RunResult, baseline: RunResult | None, earlier: Mapping[CaseKey, CaseKey]
) -> History:
    """Add the levels of the run; `history` ends with `baseline`, where `earlier` has other keys of the same cases."""
    levels = history.levels
    if (
        any(one.run_id == run.run_id for one in levels)
        or not run.complete
        or run.eval_paths is None
        or run.shard is not None
    ):
        return history
    if baseline is not None and (not levels or not _continues(levels[0], baseline)):
        begun = _build_levels(baseline, None, None, {})  # it has no levels, or those of other runs are newer
        levels = (begun, *levels) if begun else levels
    last = levels[0] if baseline is not None and levels and _continues(levels[0], baseline) else None
    own_levels = _build_levels(run, baseline, last, earlier)
    return history.with_levels((own_levels, *levels)) if own_levels else history


def _continues(levels: RunLevels, baseline: RunResult) -> bool:
    """Whether these levels are those of the baseline: of itself, or of the last run that executed a case."""
    return levels.run_id == baseline.run_id or not baseline.without_reused.suites


def _build_levels(
    run: RunResult, baseline: RunResult | None, last: RunLevels | None, earlier: Mapping[CaseKey, CaseKey]
) -> RunLevels | None:
    target = build_target_key(run)
    old_cases = (
        dict(_iter_cases(baseline)) if baseline is not None and last is not None and last.target == target else {}
    )
    levels: dict[LevelKind, float] = {}
    restarted: list[LevelKind] = []
    columns: list[list[float]] = [[] for _ in _COMPARED]
    pairs: list[tuple[_Case, _Case]] = []
    number, executed = 0, run.without_reused
    for key, one in _iter_cases(run):
        number += 1
        for column, value in zip(columns, one.values, strict=True):
            if value is not None:
                column.append(value)
        if (old_case := old_cases.get(earlier.get(key, key))) is not None and old_case.has_same_setup(one):
            pairs.append((old_case, one))
    if not number or not any(True for _ in _iter_cases(executed)):
        return None
    for at, kind in enumerate(_COMPARED):
        values = columns[at]
        if not values:
            continue
        moves = [
            new - old
            for old_case, one in pairs
            if (new := one.values[at]) is not None and (old := old_case.values[at]) is not None
        ]
        level = last.levels.get(kind) if last else None
        if level is not None and moves and len(moves) >= LEAST_SHARED * len(values):
            levels[kind] = round(level + fmean(moves), DIGITS)
        else:
            levels[kind] = round(fmean(values), DIGITS)
            restarted.append(kind)
    _add_judge_level(pairs, last, levels, restarted)
    return RunLevels(
        run_id=run.run_id,
        timestamp=run.timestamp,
        sha=run.sha,
        target=target,
        cases=number,
        levels=levels,
        restarted_levels=tuple(restarted),
        executed_since=min((suite.reused.timestamp for suite in run.suites if suite.reused), default=None),
        models=list_models(executed),
    )


def _add_judge_level(
    pairs: list[tuple[_Case, _Case]], last: RunLevels | None, levels: dict[LevelKind, float], restarted: list[LevelKind]
) -> None:
    """Set the level of the grading: it begins at the mean score, and only a change in grading moves it."""
    at = _COMPARED.index(LevelKind.SCORE)
    moves = [
        new - old
        for old_case, one in pairs
        if one.response is not None
        and one.response == old_case.response
        and (new := one.values[at]) is not None
        and (old := old_case.values[at]) is not None
    ]
    level = last.levels.get(LevelKind.JUDGE) if last else None
    if level is not None and len(moves) >= LEAST_SAME_ANSWERS:
        levels[LevelKind.JUDGE] = round(level + fmean(moves), DIGITS)
    elif LevelKind.SCORE in levels:
        levels[LevelKind.JUDGE] = levels[LevelKind.SCORE]
        restarted.append(LevelKind.JUDGE)


def _iter_cases(run: RunResult) -> Iterator[tuple[CaseKey, _Case]]:
    """Yield the cases that say something about the agent."""
    pass_score = run.policy.pass_score if run.policy else 1.0
    for key, case in run.iter_cases():
        if (one := _case(case, pass_score)) is not None:
            yield key, one


def _case(case: CaseResult, pass_score: float) -> _Case | None:
    trials = case.list_executions()
    first = trials[: max(len(trials) - case.reruns, 0)]
    failing = _compute_failing_share(trials, pass_score, graded=case.graded)
    if failing is None:
        return None
    scores = [one.score for one in first if case.graded and one.status.is_scored]
    alone = len(trials) == 1 and bool(scores)
    took = first[0].duration_ms if first and first[0].status.is_scored and not case.details.replayed else 0.0
    cost = (measure_execution(case).cost_usd or 0.0) if not case.details.replayed else 0.0
    values = (
        # as a case counts: by its rule, or it passes when more than half of its executions do
        float(failing >= 0.5 if case.pass_rule is None else not case.passed),
        _compute_failing_share(first, pass_score, graded=case.graded),
        fmean(scores) if scores else None,
        math.log(took) if took > 0 else None,
        math.log(cost) if cost > 0 else None,
    )
    return _Case(values, case, case.details.response if alone else None)


def _compute_failing_share(trials: tuple[Trial, ...], pass_score: float, *, graded: bool) -> float | None:
    """Compute the share of these executions that fail or end in an agent error, from 0 to 1."""
    failures = [
        not is_passing_trial(one, pass_score, graded=graded) for one in trials if _is_scored_or_agent_error(one)
    ]
    return sum(failures) / len(failures) if failures else None


def _is_scored_or_agent_error(trial: Trial) -> bool:
    return trial.status.is_scored or (
        trial.status is Status.ERROR and (trial.timed_out or trial.error_kind is ErrorKind.AGENT_ERROR)
    )
