"""Evaluator that asks an LLM judge to grade all dimensions of a tool-forge rubric.

Source: tool-forge eval case interfaces, "RubricEvalCase".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from eval_gate.evaluators.base import EvaluationContext, EvaluatorError, EvaluatorScore
from eval_gate.evaluators.judge.llm_judge import ask_judge, get_judge
from eval_gate.evaluators.judge.prompt import (
    MATERIAL_NOTICE,
    TEXT_SCHEMA,
    Prompts,
    build_object_schema,
    format_json,
    format_section,
    join_sections,
)
from eval_gate.evaluators.judge.reply import (
    MAX_ITEM,
    find_first_valid,
    fit_to_scale,
    format_raw_score,
    parse_number,
    parse_text,
)
from eval_gate.evaluators.wording import truncate
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response
from eval_gate.model.specs.evaluator import Rubric, RubricDimension
from eval_gate.struct import FrozenStruct
from eval_gate.text.javascript.strings import format_js_number

MAX_CALLS: Final = 100
"""Names of tool calls that are shown to the judge."""
MAX_NAME: Final = 80
TOLERANCE: Final = 1e-9
"""Rounding error of a share that `pass_at` allows: 2.4 of 3 is 0.7999999999999999."""

SYSTEM: Final = f"""\
You grade one answer of an AI assistant by a rubric, strictly and only by what you are given.

{MATERIAL_NOTICE}

rubric lists the dimensions, each with its highest score and with what its scores mean. Grade every dimension for \
itself, from 0 to its maxScore. Where there is reference_data it is the truth: compare the answer with this, not with \
your own knowledge, even where you know better.

Reply with a single JSON object and nothing else, in exactly this form, with one entry for every dimension of the \
rubric:
{{"dimensions": [{{"dimension": <name, as in the rubric>, "score": <number from 0 to its maxScore>, \
"reasoning": <one or two sentences>}}, …]}}"""

_GRADE_SCHEMA: Final = build_object_schema(
    {"dimension": dict(TEXT_SCHEMA), "score": {"type": "number"}, "reasoning": dict(TEXT_SCHEMA)}
)
SCHEMA: Final = build_object_schema({"dimensions": {"type": "array", "items": _GRADE_SCHEMA}})

_TASK: Final = "Grade candidate_answer, which answers question, in every dimension of rubric."
_CONVERSATION_TASK: Final = """\
Grade candidate_answer in every dimension of rubric. It is a whole conversation, each message indented under the role \
that wrote it: grade what the assistant says in it."""


class RubricScore(EvaluatorScore):
    """The score of a rubric, which can pass with less than the full score."""

    every_dimension_passed: bool = False

    @property
    def passed(self) -> bool:
        """Whether every dimension passed."""
        return self.every_dimension_passed


class DimensionGrade(FrozenStruct):
    """The judge's grade of one dimension; `has_verdict` is false where the reply does not mention it."""

    dimension: RubricDimension
    score: float
    reasoning: str | None
    has_verdict: bool = True
    raw_score: str | None = None
    """Score as the judge wrote it, if it is of another scale."""

    @property
    def share(self) -> float:
        """Score as a share of the dimension's maximum, 0..1."""
        return self.score / self.dimension.max_score

    def has_passed(self, pass_at: float) -> bool:
        """Whether the grade passes: the full score of a binary dimension, the share `pass_at` of a graded one."""
        return self.share >= (1.0 if self.dimension.binary else pass_at - TOLERANCE)

    @property
    def summary(self) -> str:
        """The grade in a sentence, such as `accuracy 2/3`."""
        name = truncate(self.dimension.name, MAX_NAME)
        return f"{name} {format_js_number(self.score)}/{format_js_number(self.dimension.max_score)}"

    def __str__(self) -> str:
        return f"{self.summary}: {self.reasoning}" if self.reasoning else self.summary


async def evaluate_rubric(spec: Rubric, context: EvaluationContext) -> EvaluatorScore:
    """Score the mean of the dimensions' shares; it passes if every dimension does.

    A dimension that the judge leaves out scores 0. Raises EvaluatorError if no reply grades any, and for a score of
    another scale.
    """
    judge = get_judge(spec.name, context)
    text = context.judged_response.text
    task = _TASK if context.case.conversation is None else _CONVERSATION_TASK
    outcome = await ask_judge(
        spec.name,
        judge,
        render_prompts(spec, context.judged_response, task),
        lambda reply: read_grades(reply, spec.dimensions, text),
        SCHEMA,
    )
    if outcome.verdict is None:
        raise outcome.build_error(outcome.describe_failure(spec.name))
    grades = outcome.verdict
    if outside := next((grade for grade in grades if grade.raw_score), None):
        raise EvaluatorError(
            f"{truncate(spec.name)}: the judge's score {outside.raw_score} for "
            f"{truncate(outside.dimension.name, MAX_NAME)} is "
            f"outside of its scale, which is 0 to {format_js_number(outside.dimension.max_score)}",
            usage=outcome.usage,
            cost_usd=outcome.cost_usd,
        )
    failed = [grade for grade in grades if not grade.has_passed(spec.pass_at)]
    return RubricScore(
        score=math.fsum(grade.share for grade in grades) / len(grades),
        hits=tuple(str(grade) for grade in grades if grade.has_passed(spec.pass_at)),
        misses=tuple(str(grade) for grade in failed),
        error=f"{spec.type}: {truncate(', '.join(grade.summary for grade in failed), 300)}" if failed else None,
        checks_run=len(grades),
        provider_request=outcome.request | {"dimensions": [_grade_to_json(grade) for grade in grades]},
        usage=outcome.usage,
        cost_usd=outcome.cost_usd,
        every_dimension_passed=not failed,
    )


def _grade_to_json(grade: DimensionGrade) -> JsonValue:
    return {
        "dimension": grade.dimension.name,
        "score": grade.score,
        "maxScore": grade.dimension.max_score,
        "given": grade.has_verdict,
    }


def render_prompts(spec: Rubric, response: Response, task: str = _TASK) -> Prompts:
    """Build the prompts of this rubric for this response."""
    dimensions: list[JsonValue] = [
        {"dimension": dimension.name, "maxScore": _simplify_number(dimension.max_score), "criteria": dimension.criteria}
        for dimension in spec.dimensions
    ]
    sections = [task, format_section("question", spec.question), format_section("rubric", format_json(dimensions))]
    if spec.reference_data is not None:
        sections.append(format_section("reference_data", format_json(spec.reference_data)))
    if response.tool_calls:
        sections.append(format_section("tools_called", _format_calls(response)))
    return Prompts(SYSTEM, join_sections(*sections, format_section("candidate_answer", response.text)))


def _format_calls(response: Response) -> str:
    names: list[JsonValue] = [truncate(call.name, MAX_NAME) for call in response.tool_calls]
    rest = len(names) - MAX_CALLS
    listed = format_json(names[:MAX_CALLS])
    return f"{listed}\nand {rest} more" if rest > 0 else listed


def _simplify_number(value: float) -> JsonValue:
    """Write `3` and not `3.0`, because a judge copies it."""
    return int(value) if float(value).is_integer() else value


def read_grades(
    reply: str, dimensions: Sequence[RubricDimension], candidate: str = ""
) -> tuple[DimensionGrade, ...] | None:
    """Parse a grade for every dimension, whatever the case of its name; the first of two counts. None without any."""

    def read(document: dict[str, JsonValue]) -> tuple[DimensionGrade, ...] | None:
        entries = _index_entries(document.get("dimensions"))
        grades = tuple(_build_grade(dimension, entries) for dimension in dimensions)
        return grades if any(grade.has_verdict for grade in grades) else None

    return find_first_valid(reply, candidate, read)


def _index_entries(value: JsonValue) -> dict[str, Mapping[str, JsonValue]]:
    entries: dict[str, Mapping[str, JsonValue]] = {}
    for entry in value if isinstance(value, list) else []:
        name = entry.get("dimension") if isinstance(entry, dict) else None
        if isinstance(entry, dict) and isinstance(name, str) and parse_number(entry.get("score")) is not None:
            entries.setdefault(_normalize_name(name), entry)
    return entries


def _normalize_name(name: str) -> str:
    return name.strip().casefold()


def _build_grade(dimension: RubricDimension, entries: Mapping[str, Mapping[str, JsonValue]]) -> DimensionGrade:
    entry = entries.get(_normalize_name(dimension.name))
    score = None if entry is None else parse_number(entry.get("score"))
    if entry is None or score is None:
        return DimensionGrade(dimension, 0.0, "the judge gave no score for it", has_verdict=False)
    held, reasoning = fit_to_scale(score, dimension.max_score), parse_text(entry.get("reasoning"), MAX_ITEM)
    if held is None:
        return DimensionGrade(dimension, 0.0, reasoning, raw_score=format_raw_score(score))
    return DimensionGrade(dimension, held, reasoning)
