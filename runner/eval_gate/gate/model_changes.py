"""Notes about models that responded or judged in place of the baseline's, as providers name them. Pure.

Repository and setup may be the same. The notes change no verdict and excuse nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from eval_gate.model.execution import EvaluatorResult
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.text.escape import format_first_few, to_one_line

MAX_NAMED_MODELS: Final = 3
"""Models that a sentence names of one side."""
_MAX_NAME_LENGTH: Final = 80


def iter_model_notes(current: RunResult, baseline: RunResult) -> Iterator[str]:
    """Yield a note if other models responded than in the baseline, and one if others scored, in cases of both runs."""
    kinds: tuple[tuple[str, Callable[[CaseResult], str | None]], ...] = (
        ("agent", lambda case: case.details.model),
        ("judge", lambda case: _find_judge_model(case.evaluator_results)),
    )
    for whose, get_name in kinds:
        if (difference := _find_model_difference(current, baseline, get_name)) is not None:
            old, new, share = difference
            yield (
                f"the model behind the {whose} changed since the baseline: from {old} to {new} ({share} cases). "
                "This does not affect the verdict"
            )


def _find_model_difference(
    current: RunResult, baseline: RunResult, get_name: Callable[[CaseResult], str | None]
) -> tuple[str, str, str] | None:
    old = {key: name for key, case in baseline.iter_cases() if (name := get_name(case))}
    if not old:
        return None
    both = [(old[key], name) for key, case in current.iter_cases() if key in old and (name := get_name(case))]
    old_names, new_names = {one for one, _ in both}, {one for _, one in both}
    if old_names == new_names:
        return None
    differ = sum(one != other for one, other in both)
    return format_model_names(old_names), format_model_names(new_names), f"{differ} of {len(both)}"


def _find_judge_model(results: Sequence[EvaluatorResult]) -> str | None:
    """Find the model that scored, as its provider names it, or None."""
    for result in results:
        name = (result.evaluator_provider_request or {}).get("model")
        if isinstance(name, str):
            return name
        if (model := _find_judge_model(result.evaluator_results)) is not None:
            return model
    return None


def format_model_names(models: set[str] | Sequence[str]) -> str:
    """Format the first few model names in alphabetical order, and the number of the others."""
    return format_first_few(sorted(models), MAX_NAMED_MODELS, lambda name: to_one_line(name, _MAX_NAME_LENGTH))
