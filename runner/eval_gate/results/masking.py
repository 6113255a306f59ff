"""Applies the team's `redact` patterns to the texts of a stored result.

The verdict uses the original texts, and only stored texts are masked: a pattern for personal data must not change a
verdict, for example if a response has to repeat a name. Names of tools, evaluators and cases are not masked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias, TypeVar

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message
from eval_gate.model.execution import BaselineResult, CaseDetails, EvaluatorResult
from eval_gate.model.result import CaseText
from eval_gate.struct import replace
from eval_gate.text.json_values import map_leaves
from eval_gate.text.mask import MASK

TextChange: TypeAlias = Callable[[str], str]
_Item = TypeVar("_Item")

MARGIN: Final = 500
"""Characters after a truncation that patterns also see, so that no half of a match remains before it."""


class TextMasking:
    """Collects texts in a first pass and replaces them by their redacted form in a second."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    @property
    def texts(self) -> list[str]:
        """Every different text that was found."""
        return list(self._known)

    def collect_text(self, text: str) -> str:
        """Collect a text and return it unchanged, as a `TextChange`."""
        return self._known.setdefault(text, text)

    def set_masked(self, masked: Iterable[str] | None) -> None:
        """Set the masked forms of `texts`, in order; None if unknown, so that every text is masked whole."""
        forms = [MASK] * len(self._known) if masked is None else masked
        self._known = dict(zip(self._known, forms, strict=True))

    def mask_text(self, text: str) -> str:
        """Return the masked form of a collected text, as a `TextChange`."""
        return self._known[text]


def map_details(details: CaseDetails, change: TextChange) -> CaseDetails:
    """Apply `change` to every text of a response, its conversation, turns, calls and trace, which then has no link."""
    trace = details.trace and change(details.trace)
    return replace(
        details,
        response=details.response and change(details.response),
        model=details.model and change(details.model),
        trace=trace,
        trace_url=details.trace_url if trace == details.trace else None,
        conversation=tuple(_map_message(message, change) for message in details.conversation),
        tool_calls=tuple(
            replace(call, arguments=map_value(call.arguments, change), result=map_value(call.result, change))
            for call in details.tool_calls
        ),
        fields={path: map_value(value, change) for path, value in details.fields.items()},
        turns=tuple(
            replace(
                turn,
                message=turn.message and change(turn.message),
                response=turn.response and change(turn.response),
                error=turn.error and change(turn.error),
                fields={path: map_value(value, change) for path, value in turn.fields.items()},
            )
            for turn in details.turns
        ),
    )


def map_results(results: Iterable[EvaluatorResult], change: TextChange) -> tuple[EvaluatorResult, ...]:
    """Apply `change` to every text of evaluators and LLM judges."""
    return tuple(
        replace(
            result,
            hits=tuple(map(change, result.hits)),
            misses=tuple(map(change, result.misses)),
            reasoning=result.reasoning and change(result.reasoning),
            evaluator_provider_request=result.evaluator_provider_request
            and {name: map_value(value, change) for name, value in result.evaluator_provider_request.items()},
            evaluator_results=map_results(result.evaluator_results, change),
        )
        for result in results
    )


def map_case_texts(text: CaseText, change: TextChange) -> CaseText:
    """Question and expectation, changed."""
    return replace(text, prompt=change(text.prompt), expectation=tuple(map(change, text.expectation)))


def map_baseline_side(side: BaselineResult, change: TextChange) -> BaselineResult:
    """Apply `change` to every text of the baseline's side, which may be older than a pattern."""
    return replace(
        side,
        error=side.error and change(side.error),
        details=map_details(side.details, change),
        evaluator_results=map_results(side.evaluator_results, change),
        expectation=tuple(map(change, side.expectation)),
    )


def _map_message(message: Message, change: TextChange) -> Message:
    calls = tuple(
        replace(call, params={change(name): map_value(value, change) for name, value in call.params.items()})
        for call in message.tool_calls
    )
    return replace(message, content=map_value(message.content, change), tool_calls=calls)


def map_value(value: JsonValue, change: TextChange) -> JsonValue:
    """Apply `change` to every text of a JSON value, keys included; a number whose text it alters becomes one."""

    def change_leaf(leaf: JsonValue) -> JsonValue:
        if leaf is None or isinstance(leaf, bool):
            return leaf
        text = leaf if isinstance(leaf, str) else json.dumps(leaf)
        changed = change(text)
        return leaf if changed == text else changed

    return map_leaves(value, change_leaf, change)
