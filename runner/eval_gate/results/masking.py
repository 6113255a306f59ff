"""Which texts of a record a team's own patterns (`redact`) are held against, and how they come back.

Judged is what was said, and masked is what is stored: a pattern for personal data must not change a verdict, as it
would where an answer has to repeat a name. Names of tools, evaluators and cases are no texts of anybody's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message
from eval_gate.model.execution import BaselineSide, CaseDetails, EvaluatorResult, KeptCall
from eval_gate.model.result import AskedWords
from eval_gate.struct import replace
from eval_gate.text.secret import MASK

Change: TypeAlias = Callable[[str], str]
Thing = TypeVar("Thing")

MARGIN: Final = 500
"""Characters behind a cut that patterns may look at as well, so that no half of what they find is left before it."""


class TextMasking:
    """Finds the texts of things in one pass, and puts in their place, in a second one, what has become of them."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    @property
    def texts(self) -> list[str]:
        """Every different text that was found."""
        return list(self._known)

    def find(self, text: str) -> str:
        """A `Change` that only looks."""
        return self._known.setdefault(text, text)

    def learn(self, masked: Iterable[str] | None) -> None:
        """What has become of `texts`, in their order; None where nobody knows, and nothing of them may be kept."""
        told = [MASK] * len(self._known) if masked is None else masked
        self._known = dict(zip(self._known, told, strict=True))

    def put(self, text: str) -> str:
        """A `Change` that makes it so."""
        return self._known[text]


def details_with(details: CaseDetails, change: Change) -> CaseDetails:
    """What was answered, every text of it changed."""
    return replace(
        details,
        response=details.response and change(details.response),
        model=details.model and change(details.model),
        conversation=tuple(_message(message, change) for message in details.conversation),
        tool_calls=tuple(_call(call, change) for call in details.tool_calls),
    )


def results_with(results: Iterable[EvaluatorResult], change: Change) -> tuple[EvaluatorResult, ...]:
    """What evaluators and judges said, every text of it changed."""
    return tuple(
        replace(
            result,
            hits=tuple(map(change, result.hits)),
            misses=tuple(map(change, result.misses)),
            reasoning=result.reasoning and change(result.reasoning),
            evaluator_provider_request=_facts(result.evaluator_provider_request, change),
            evaluator_results=results_with(result.evaluator_results, change),
        )
        for result in results
    )


def asked_words_with(asked: AskedWords, change: Change) -> AskedWords:
    """Question and expectation, changed."""
    return replace(asked, question=change(asked.question), expectation=tuple(map(change, asked.expectation)))


def baseline_side_with(before: BaselineSide, change: Change) -> BaselineSide:
    """The baseline's side, which may have been stored when there was no such pattern."""
    return replace(
        before,
        error=before.error and change(before.error),
        details=details_with(before.details, change),
        evaluator_results=results_with(before.evaluator_results, change),
    )


def _message(message: Message, change: Change) -> Message:
    calls = tuple(replace(call, params=_params(call.params, change)) for call in message.tool_calls)
    return replace(message, content=value_with(message.content, change), tool_calls=calls)


def _params(params: Mapping[str, JsonValue], change: Change) -> dict[str, JsonValue]:
    return {change(name): value_with(value, change) for name, value in params.items()}


def _call(call: KeptCall, change: Change) -> KeptCall:
    return replace(call, arguments=value_with(call.arguments, change), result=value_with(call.result, change))


def _facts(facts: Mapping[str, Any] | None, change: Change) -> dict[str, Any] | None:
    return None if facts is None else {name: value_with(value, change) for name, value in facts.items()}


def value_with(value: JsonValue, change: Change) -> JsonValue:
    """A value with its texts changed, keys included. A number in which something is found is a text from then on."""
    match value:
        case str():
            return change(value)
        case bool() | None:
            return value
        case int() | float():
            written = json.dumps(value)
            told = change(written)
            return value if told == written else told
        case list():
            return [value_with(member, change) for member in value]
        case dict():
            return {change(key): value_with(member, change) for key, member in value.items()}
