"""How the score of a graded case differs from the baseline's, and whether that exceeds a limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from eval_gate.model.comparison import CaseClass
from eval_gate.model.execution import EvaluatorResult
from eval_gate.model.result import CaseResult

_DIGITS: Final = 6
"""Decimals that a difference of scores has: 0.8 - 0.7 is not more than 0.1."""


def build_score_fields(
    change: CaseClass, baseline: float | None, baseline_case: CaseResult | None, current: CaseResult, tolerance: float
) -> Mapping[str, Any]:
    """Build the score fields of a CaseChange of this class; there are none for a case that is not graded.

    `baseline` is the score that the case is compared with. `baseline_case` has the evaluators that are shown.
    """
    if not current.graded:
        return {}
    if baseline is None or not change.is_compared or not current.status.is_scored:
        return {"graded": True}
    difference = round(clamp_score(current.score) - clamp_score(baseline), _DIGITS) + 0.0  # never -0.0
    earlier = _find_changed_scores(baseline_case, current) if baseline_case else {}
    fell = exceeds_limit(-difference, tolerance) or bool(find_fallen_evaluators(current, earlier, tolerance))
    return {
        "graded": True,
        "score_change": difference,
        "score_drop": fell,
        "baseline_evaluator_scores": earlier,
    }


def find_fallen_evaluators(case: CaseResult, earlier: Mapping[str, float], tolerance: float) -> list[str]:
    """Find the evaluators that count and whose score fell by more than `tolerance`; `earlier` are scores by name."""
    return [
        one.name
        for one in case.evaluator_results
        if one.weight > 0 and exceeds_limit(earlier.get(one.name, one.score) - clamp_score(one.score), tolerance)
    ]


def exceeds_limit(drop: float, limit: float) -> bool:
    """Whether a score fell by more than `limit`."""
    return round(drop - limit, _DIGITS) > 0


def format_limit(value: float) -> str:
    """Format a limit or a value compared with it, such as `0.23` or `0.2250`, without rounding it to another limit."""
    digits = next(digits for digits in (2, 4, _DIGITS) if round(value, digits) == round(value, _DIGITS))
    return f"{value:.{digits}f}"


def _find_changed_scores(baseline: CaseResult, current: CaseResult) -> dict[str, float]:
    """Earlier scores by name, where they are others now; not for a name that stands for several evaluators."""
    old, new = _index_by_name(baseline.evaluator_results), _index_by_name(current.evaluator_results)
    return {name: score for name, score in old.items() if round(new.get(name, score) - score, _DIGITS) != 0}


def _index_by_name(results: Iterable[EvaluatorResult]) -> dict[str, float]:
    results = tuple(results)
    counts = Counter(result.name for result in results)
    return {result.name: clamp_score(result.score) for result in results if counts[result.name] == 1}


def clamp_score(score: float) -> float:
    """From 0 to 1, as every evaluator's is; a record that came from elsewhere may say anything."""
    return min(max(score, 0.0), 1.0)
