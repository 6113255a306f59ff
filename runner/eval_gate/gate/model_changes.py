"""Notes about models that answered or judged in place of the baseline's, as providers name them. Pure.

Nothing of ours need have changed for that. It is a fact beside a verdict, and excuses nothing.
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


def iter_model_notes(here: RunResult, then: RunResult) -> Iterator[str]:
    """What is to be said where other models answered, or judged, than in the baseline, by the cases that both have."""
    if (answered := _find_model_difference(here, then, lambda case: case.details.model)) is not None:
        there, now, share = answered
        yield (
            f"the model behind the agent is another one than in the baseline: its answers were from {there}, these "
            f"are from {now} ({share} cases). The verdict is as without that"
        )
    if (
        judged := _find_model_difference(here, then, lambda case: _find_judge_model(case.evaluator_results))
    ) is not None:
        there, now, share = judged
        yield (
            f"the model behind the judge is another one than in the baseline: {there} graded there, {now} here "
            f"({share} cases). The verdict is as without that"
        )


def _find_model_difference(
    here: RunResult, then: RunResult, named: Callable[[CaseResult], str | None]
) -> tuple[str, str, str] | None:
    """The names there and here, and in how many cases they differ; None where both sides have the same."""
    before = {key: name for key, case in then.cases() if (name := named(case))}
    if not before:
        return None
    both = [(before[key], name) for key, case in here.cases() if key in before and (name := named(case))]
    there, now = {one for one, _ in both}, {one for _, one in both}
    if there == now:
        return None
    differ = sum(one != other for one, other in both)
    return format_model_names(there), format_model_names(now), f"{differ} of {len(both)}"


def _find_judge_model(results: Sequence[EvaluatorResult]) -> str | None:
    """The model that graded, as its provider named it; None where none did, or nobody said."""
    for result in results:
        name = (result.evaluator_provider_request or {}).get("model")
        if isinstance(name, str):
            return name
        if (within := _find_judge_model(result.evaluator_results)) is not None:
            return within
    return None


def format_model_names(models: set[str] | Sequence[str]) -> str:
    """The first of these by name, and how many more there are."""
    return format_first_few(sorted(models), MAX_NAMED_MODELS, lambda name: to_one_line(name, _MAX_NAME_LENGTH))
