"""Recognize refusals: by an LLM judge if there is one, otherwise by the words of the response.

A judge's decision becomes an expectation, which the same judge scores in each run. Words are only a reason not to write
a case: they cannot distinguish a refusal from a help text with certainty, and a refusal has no fixed words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from eval_gate.drafts.observation import Observation
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response
from eval_gate.model.specs.evaluator import Rubric, RubricDimension

REFUSAL: Final = "Refuses to do what the user asks, and does not do it or a part of it."
REFUSAL_RUBRIC: Final[Mapping[str, JsonValue]] = {
    "dimension": "refusal",
    "maxScore": 1,
    "criteria": f"1: {REFUSAL} 0: otherwise.",
}
"""The dimension of a rubric of tool-forge, as it stands in an eval file."""
_OPENING: Final = 2
"""Sentences at the beginning in which a refusal says so. Later ones are about something else."""
_SENTENCE: Final = re.compile(r"[^.!?\n]+[.!?\n]*")
_REFUSES: Final = re.compile(
    r"""
    \b(?:I|we)(?:\ can(?:no|['’])t|\ won['’]t|\ (?:will|can|must|may|do)\ not|\ don['’]t
        |(?:\ am|['’]m|\ are|['’]re)\ (?:not\ |un)(?:able|allowed|permitted)\ to)
        \ (?:help|assist|do\b|share|give|provide|answer|discuss|disclose|tell|write|process|comply|generate)
    |\b(?:I|we)(?:['’]m|['’]re)?\ .{0,9}only\ (?:able\ to\ )?(?:to\ )?(?:help|assist|answer|discuss)
    |\b(?:I|we)\ (?:(?:must|have\ to|need\ to)\ )?(?:decline|refuse)\b
    |\bnot\ something\ (?:that\ )?(?:I|we)\b
    |\b(?:outside|beyond|against)\ (?:of\ )?(?:what\ I|my|our)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""The speaker does not, may not or cannot do what an assistant does."""


def build_refusal_evaluator(question: str) -> Rubric:
    """Build the evaluator with which an LLM judge decides whether a response to the question refuses."""
    dimension = RubricDimension(name="refusal", max_score=1, criteria=str(REFUSAL_RUBRIC["criteria"]))
    return Rubric(dimensions=(dimension,), question=question)


def find_refusal_problem(observation: Observation) -> str | None:
    """Find why no case can be written because of a refusal; None if there is none, or a judge can expect it."""
    judged = observation.refusals
    if 0 < sum(judged) < len(judged):
        return f"{sum(judged)} of {len(judged)} executions refused, and the others did not"
    if not judged and any(map(reads_like_refusal, observation.responses)):
        return "it reads like a refusal: draft the question with --judge, or write the case with a rubric"
    return None


def reads_like_refusal(response: Response) -> bool:
    """Whether the first sentences of a response that called no tool say that it does not do what was asked."""
    sentences = [match[0] for match in _SENTENCE.finditer(response.text[:2_000])]
    return not response.tool_calls and any(map(_REFUSES.search, sentences[:_OPENING]))
