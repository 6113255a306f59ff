"""A model grades several dimensions of the answer in one question.

Source: tool-forge eval case interfaces, "RubricEvalCase".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from eval_gate.evaluators.base import Evaluation, EvaluationContext, EvaluatorError
from eval_gate.evaluators.judge.judge import ask, judge_of
from eval_gate.evaluators.judge.prompt import MATERIAL, TEXT, Prompts, close, json_text, object_schema, section
from eval_gate.evaluators.judge.reply import MAX_ITEM, first_valid, number, on_scale, shown_score, text_of
from eval_gate.evaluators.wording import cut
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response
from eval_gate.model.specs.evaluator import Rubric, RubricDimension
from eval_gate.struct import FrozenStruct
from eval_gate.text.javascript.strings import js_number

MAX_CALLS: Final = 100
"""Names of tool calls that are shown to the judge."""
MAX_NAME: Final = 80
TOLERANCE: Final = 1e-9
"""What a share may miss `pass_at` by: 2.4 of 3 is 0.7999999999999999."""

SYSTEM: Final = f"""\
You grade one answer of an AI assistant by a rubric, strictly and only by what you are given.

{MATERIAL}

rubric lists the dimensions, each with its highest score and with what its scores mean. Grade every dimension for \
itself, from 0 to its maxScore. Where there is reference_data it is the truth: compare the answer with this, not with \
your own knowledge, even where you know better.

Reply with a single JSON object and nothing else, in exactly this form, with one entry for every dimension of the \
rubric:
{{"dimensions": [{{"dimension": <name, as in the rubric>, "score": <number from 0 to its maxScore>, \
"reasoning": <one or two sentences>}}, …]}}"""

_GRADE: Final = object_schema({"dimension": dict(TEXT), "score": {"type": "number"}, "reasoning": dict(TEXT)})
SCHEMA: Final = object_schema({"dimensions": {"type": "array", "items": _GRADE}})
"""The form of the reply, for providers that hold a model to it."""

_TASK: Final = "Grade candidate_answer, which answers question, in every dimension of rubric."


class RubricEvaluation(Evaluation):
    """A rubric may pass below its full score: graded dimensions need a share of theirs only."""

    every_dimension_passed: bool = False

    @property
    def passed(self) -> bool:
        """Whether every dimension passed."""
        return self.every_dimension_passed


class DimensionGrade(FrozenStruct):
    """One dimension and what the judge said of it; `given` is false where it said nothing."""

    dimension: RubricDimension
    score: float
    reasoning: str | None
    given: bool = True
    outside: str | None = None
    """The score as it was given, where it is of another scale."""

    @property
    def share(self) -> float:
        """The score as a share of what the dimension can have, 0..1."""
        return self.score / self.dimension.max_score

    def passes(self, pass_at: float) -> bool:
        """A binary dimension at its full score, a graded one at `pass_at` of it."""
        return self.share >= (1.0 if self.dimension.binary else pass_at - TOLERANCE)

    @property
    def short(self) -> str:
        """The grade in a sentence, such as `accuracy 2/3`."""
        name = cut(self.dimension.name, MAX_NAME)
        return f"{name} {js_number(self.score)}/{js_number(self.dimension.max_score)}"

    def __str__(self) -> str:
        return f"{self.short}: {self.reasoning}" if self.reasoning else self.short


async def rubric(spec: Rubric, context: EvaluationContext) -> Evaluation:
    """Score is the mean of the dimensions' shares; it passes when every dimension does.

    A dimension the judge leaves out scores 0 and says so. Raises EvaluatorError when no reply grades any, and for a
    score of another scale.
    """
    judge = judge_of(spec.name, context)
    answer = context.response.text
    asked = await ask(
        spec.name,
        judge,
        render(spec, context.response),
        lambda reply: read_grades(reply, spec.dimensions, answer),
        SCHEMA,
    )
    if asked.verdict is None:
        raise asked.no_verdict(spec.name)
    grades = asked.verdict
    if outside := next((grade for grade in grades if grade.outside), None):
        raise EvaluatorError(
            f"{cut(spec.name)}: the judge's score {outside.outside} for {cut(outside.dimension.name, MAX_NAME)} is "
            f"outside of its scale, which is 0 to {js_number(outside.dimension.max_score)}",
            usage=asked.usage,
            cost_usd=asked.cost_usd,
        )
    failed = [grade for grade in grades if not grade.passes(spec.pass_at)]
    return RubricEvaluation(
        score=math.fsum(grade.share for grade in grades) / len(grades),
        hits=tuple(str(grade) for grade in grades if grade.passes(spec.pass_at)),
        misses=tuple(str(grade) for grade in failed),
        error=f"{spec.type}: {cut(', '.join(grade.short for grade in failed), 300)}" if failed else None,
        checks_run=len(grades),
        provider_request=asked.request | {"dimensions": [_facts(grade) for grade in grades]},
        usage=asked.usage,
        cost_usd=asked.cost_usd,
        every_dimension_passed=not failed,
    )


def _facts(grade: DimensionGrade) -> JsonValue:
    return {
        "dimension": grade.dimension.name,
        "score": grade.score,
        "maxScore": grade.dimension.max_score,
        "given": grade.given,
    }


def render(spec: Rubric, response: Response) -> Prompts:
    """Both prompts of this rubric for this response."""
    dimensions: list[JsonValue] = [
        {"dimension": dimension.name, "maxScore": _plain(dimension.max_score), "criteria": dimension.criteria}
        for dimension in spec.dimensions
    ]
    sections = [_TASK, section("question", spec.question), section("rubric", json_text(dimensions))]
    if spec.reference_data is not None:
        sections.append(section("reference_data", json_text(spec.reference_data)))
    if response.tool_calls:
        sections.append(section("tools_called", _calls(response)))
    return Prompts(SYSTEM, close(*sections, section("candidate_answer", response.text)))


def _calls(response: Response) -> str:
    names: list[JsonValue] = [cut(call.name, MAX_NAME) for call in response.tool_calls]
    rest = len(names) - MAX_CALLS
    shown = json_text(names[:MAX_CALLS])
    return f"{shown}\nand {rest} more" if rest > 0 else shown


def _plain(value: float) -> JsonValue:
    """`3` and not `3.0`: a judge copies what it sees."""
    return int(value) if float(value).is_integer() else value


def read_grades(
    reply: str, dimensions: Sequence[RubricDimension], candidate: str = ""
) -> tuple[DimensionGrade, ...] | None:
    """A grade for every dimension, in the rubric's order; None when the reply grades none of them.

    Names are compared without case and surrounding blanks; of two entries for one dimension the first counts.
    """

    def read(found: dict[str, JsonValue]) -> tuple[DimensionGrade, ...] | None:
        entries = _entries(found.get("dimensions"))
        grades = tuple(_grade(dimension, entries) for dimension in dimensions)
        return grades if any(grade.given for grade in grades) else None

    return first_valid(reply, candidate, read)


def _entries(value: JsonValue) -> dict[str, Mapping[str, JsonValue]]:
    entries: dict[str, Mapping[str, JsonValue]] = {}
    for entry in value if isinstance(value, list) else []:
        name = entry.get("dimension") if isinstance(entry, dict) else None
        if isinstance(entry, dict) and isinstance(name, str) and number(entry.get("score")) is not None:
            entries.setdefault(_key(name), entry)
    return entries


def _key(name: str) -> str:
    return name.strip().casefold()


def _grade(dimension: RubricDimension, entries: Mapping[str, Mapping[str, JsonValue]]) -> DimensionGrade:
    entry = entries.get(_key(dimension.name))
    score = None if entry is None else number(entry.get("score"))
    if entry is None or score is None:
        return DimensionGrade(dimension, 0.0, "the judge gave no score for it", given=False)
    held, reasoning = on_scale(score, dimension.max_score), text_of(entry.get("reasoning"), MAX_ITEM)
    if held is None:
        return DimensionGrade(dimension, 0.0, reasoning, outside=shown_score(score))
    return DimensionGrade(dimension, held, reasoning)
