"""Which model answered and which judged, as their providers name them, here beside the baseline. Pure.

Nothing of ours need have changed for that. It is a fact beside a verdict, and excuses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from eval_gate.model.execution import EvaluatorResult
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.text.escape import first_few, one_line

NAMED: Final = 3
"""Models that a sentence names of one side."""
_LONGEST: Final = 80


def notes_of_models(here: RunResult, then: RunResult) -> Iterator[str]:
    """What is to be said where other models answered, or judged, than in the baseline, by the cases that both have."""
    if (answered := _differing(here, then, lambda case: case.details.model)) is not None:
        there, now, share = answered
        yield (
            f"the model behind the agent is another one than in the baseline: its answers were from {there}, these "
            f"are from {now} ({share} cases). The verdict is as without that"
        )
    if (judged := _differing(here, then, lambda case: _judge_of(case.evaluator_results))) is not None:
        there, now, share = judged
        yield (
            f"the model behind the judge is another one than in the baseline: {there} graded there, {now} here "
            f"({share} cases). The verdict is as without that"
        )


def _differing(
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
    return names(there), names(now), f"{differ} of {len(both)}"


def _judge_of(results: Sequence[EvaluatorResult]) -> str | None:
    """The model that graded, as its provider named it; None where none did, or nobody said."""
    for result in results:
        name = (result.evaluator_provider_request or {}).get("model")
        if isinstance(name, str):
            return name
        if (within := _judge_of(result.evaluator_results)) is not None:
            return within
    return None


def names(models: set[str] | Sequence[str]) -> str:
    """The first of these by name, and how many more there are."""
    return first_few(sorted(models), NAMED, lambda name: one_line(name, _LONGEST))
