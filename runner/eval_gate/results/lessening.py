"""How what is kept of a case becomes less, where not everything is to be kept. Pure; what is lost is counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

from eval_gate.model.base import JsonValue
from eval_gate.model.execution import CaseDetails, EvaluatorResult, KeptCall
from eval_gate.model.limits import OTHER_ANSWER, OTHER_CALL, OTHER_CALLS
from eval_gate.text.javascript.strings import compact_json

PROMPTS: Final = ("systemPrompt", "userPrompt")
"""Facts of a judgement that hold what a judge was told."""
PROMPT_CUT: Final = "promptCut"
"""The fact that names those of them of which only the beginning is kept."""
Part = Literal["arguments", "result"]


def beginning(value: JsonValue, limit: int) -> JsonValue:
    """The value itself, or the beginning of its JSON text where that is longer than `limit` characters."""
    if value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= limit - 2):
        return value
    text = compact_json(value)
    return value if len(text) <= limit else text[:limit]


def cut_parts(arguments: bool, result: bool) -> tuple[Part, ...]:  # noqa: FBT001 (the two parts of a call)
    """The names of the parts that are cut."""
    return (*(("arguments",) if arguments else ()), *(("result",) if result else ()))


def lesser(details: CaseDetails) -> CaseDetails:
    """What an execution keeps that did not decide its case: less of answer and calls, and no exchange."""
    answer = details.response
    left_out = details.left_out | {
        "toolCalls": details.left_out.get("toolCalls", 0) + max(len(details.tool_calls) - OTHER_CALLS, 0),
        "messages": details.left_out.get("messages", 0) + len(details.conversation),
        "characters": max(details.response_length - OTHER_ANSWER, 0) if answer is not None else 0,
    }
    return details.model_copy(
        update={
            "response": answer and answer[:OTHER_ANSWER],
            "response_truncated": answer is not None and details.response_length > OTHER_ANSWER,
            "conversation": (),
            "tool_calls": tuple(_lesser_call(call) for call in details.tool_calls[:OTHER_CALLS]),
            "left_out": {what: count for what, count in left_out.items() if count > 0},
        }
    )


def _lesser_call(call: KeptCall) -> KeptCall:
    arguments, result = (
        value[:OTHER_CALL] if part in call.cut and isinstance(value, str) else beginning(value, OTHER_CALL)
        for part, value in (("arguments", call.arguments), ("result", call.result))
    )
    cut = cut_parts(
        "arguments" in call.cut or arguments is not call.arguments, "result" in call.cut or result is not call.result
    )
    return call.model_copy(update={"arguments": arguments, "result": result, "cut": cut})


def without_prompts(results: Iterable[EvaluatorResult]) -> tuple[EvaluatorResult, ...]:
    """What the evaluators said, without what judges were told: that differs only by the answer from what is kept."""
    return tuple(
        result
        if result.evaluator_provider_request is None and not result.evaluator_results
        else result.model_copy(
            update={
                "evaluator_provider_request": _without(result.evaluator_provider_request, PROMPTS),
                "evaluator_results": without_prompts(result.evaluator_results),
            }
        )
        for result in results
    )


def _without(facts: dict[str, Any] | None, names: Iterable[str]) -> dict[str, Any] | None:
    return facts and {name: value for name, value in facts.items() if name not in names}
