"""Scores of graded cases: shortfalls of evaluators, mean scores of suites, rubric grades."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from eval_gate.gate.failure_causes import MAX_EVALUATOR_NAME, find_low_evaluators, find_low_members, list_evaluators
from eval_gate.model.comparison import CaseChange
from eval_gate.model.execution import EvaluatorResult
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.reports.wording.numbers import format_score, format_score_change
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import to_one_line

MAX_EVALUATORS: Final = 3
MAX_MISSES: Final = 2
MAX_MISS: Final = 160
"""Characters of one miss."""


class MeanScore(FrozenStruct):
    """Mean score of the graded cases of a suite, and its change since the baseline."""

    mean: float
    change: float | None

    def __str__(self) -> str:
        return f"{format_score(self.mean)}{format_score_change(self.change)}"


def compute_mean_score(cases: Iterable[CaseResult], changes: Iterable[CaseChange]) -> MeanScore | None:
    """Compute the mean score of a suite, without cases that have no score; None if no case is graded."""
    scores = [case.score for case in cases if case.graded and case.status.is_scored]
    if not scores:
        return None
    differences = [change.score_change for change in changes if change.score_change is not None]
    change = sum(differences) / len(differences) if differences else None
    return MeanScore(sum(scores) / len(scores), change)


def describe_shortfalls(case: CaseResult, baseline: Mapping[str, float] | None = None) -> tuple[str, ...]:
    """`style 0.90 → 0.40: too long; no greeting`: the evaluators below 1, the one that costs most first.

    One that misses a required criterion comes first. Empty for a case without grades; evaluators without weight are
    left out. `baseline` has earlier scores by name.
    """
    low = find_low_evaluators(case)
    texts = [_describe_evaluator(result, (baseline or {}).get(result.name)) for result in low[:MAX_EVALUATORS]]
    rest = len(low) - len(texts)
    return (*texts, *([f"{rest} more below 1"] if rest else []))


def _describe_evaluator(result: EvaluatorResult, baseline: float | None) -> str:
    name = to_one_line(result.name, MAX_EVALUATOR_NAME)
    current = format_score(result.score)
    scored = (
        f"{name} {current}"
        if baseline is None or format_score(baseline) == current
        else f"{name} {format_score(baseline)} → {current}"
    )
    scored += ", required" if result.vetoed else ""
    words = _list_misses(result) or [
        f"{to_one_line(member.name, MAX_EVALUATOR_NAME)}: {miss}"
        for member in find_low_members(result)[:MAX_MISSES]
        for miss in _list_misses(member) or [format_score(member.score)]
    ]
    return f"{scored}: {'; '.join(words)}" if words else scored


def _list_misses(result: EvaluatorResult) -> list[str]:
    misses = result.misses[:MAX_MISSES] or ([result.reasoning] if result.reasoning else [])
    words = [to_one_line(miss, MAX_MISS) for miss in misses if miss.strip()]
    if len(result.misses) > MAX_MISSES:
        words.append(f"{len(result.misses) - MAX_MISSES} more")
    return words


class RubricGrade(FrozenStruct):
    """Grade of one case in one dimension of a rubric; `score` is text such as `2/3`."""

    case: str
    dimension: str
    score: str
    reasoning: str


def list_grades(run: RunResult) -> tuple[RubricGrade, ...]:
    """List all grades of a run, in the order of its cases."""
    return tuple(grade for _, case in run.iter_cases() for grade in _iter_grades(case))


def _iter_grades(case: CaseResult) -> Iterator[RubricGrade]:
    for result in list_evaluators(case):
        if result.type != "rubric" or result.evaluator_provider_request is None:
            continue
        reasonings = dict(_split_reasoning(line) for line in (*result.hits, *result.misses))
        dimensions = result.evaluator_provider_request.get("dimensions")
        for one in dimensions if isinstance(dimensions, list) else []:
            if isinstance(one, dict):
                score = f"{_format_number(one.get('score'))}/{_format_number(one.get('maxScore'))}"
                name = str(one.get("dimension"))
                yield RubricGrade(case.id, name, score, reasonings.get(f"{name} {score}", ""))


def _split_reasoning(line: str) -> tuple[str, str]:
    """Split `accuracy 2/3: nearly` into its two parts."""
    head, _, reasoning = line.partition(": ")
    return head, reasoning


def _format_number(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else "?"
