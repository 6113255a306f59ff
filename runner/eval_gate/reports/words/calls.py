"""What a case's tool calls are now, beside what they were, in half sentences. Names stand in backticks.

Whoever shows the words escapes them (`phrases.prose`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.model.execution import CaseDetails, KeptCall
from eval_gate.reports.words.numbers import count, in_backticks
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import first_few

MAX_CALLS: Final = 100
"""Calls of each side that are held against each other."""
MAX_SAID: Final = 4
"""Half sentences; what is left is counted."""
MAX_VALUES: Final = 200
"""Single values in the arguments of one call that are compared."""
MAX_DEPTH: Final = 8
MAX_NAME: Final = 60
MAX_VALUE: Final = 50


class _Call(FrozenStruct):
    """A call by its name; `arguments` is None where only names are kept."""

    name: str
    kept: KeptCall | None


def call_words(then: CaseDetails, here: CaseDetails) -> tuple[str, ...]:
    """Half sentences such as "called `escalate` in place of `issue_refund`", "`issue_refund`: `id` `"A17"` → `"A71"`".

    Nothing where the calls are the same, as far as they are kept.
    """
    before, after = _calls(then), _calls(here)
    said = list(_differences(before, after))
    rest = len(said) - MAX_SAID
    return (*said[:MAX_SAID], *([f"{count(rest, 'more difference')} in the calls"] if rest > 0 else []))


def _calls(details: CaseDetails) -> list[_Call]:
    if details.tool_calls:
        return [_Call(call.name, call) for call in details.tool_calls[:MAX_CALLS]]
    return [_Call(name, None) for name in details.tools_called[:MAX_CALLS]]


def _differences(before: Sequence[_Call], after: Sequence[_Call]) -> Iterator[str]:
    names = ([call.name for call in before], [call.name for call in after])
    for operation, low, high, begin, end in SequenceMatcher(None, *names, autojunk=False).get_opcodes():
        were, are = before[low:high], after[begin:end]
        match operation:
            case "equal":
                for one, other in zip(were, are, strict=True):
                    yield from _arguments(one, other)
            case "replace":
                yield f"called {_names(are)} in place of {_names(were)}"
            case "delete":
                yield f"did not call {_names(were)}{' again' if _among(were, after) else ''}"
            case "insert":
                yield f"called {_names(are)} {'once more' if _among(are, before) else 'as well'}"


def _among(calls: Sequence[_Call], others: Sequence[_Call]) -> bool:
    """Whether the other side has calls of these names too."""
    return {call.name for call in calls} <= {call.name for call in others}


def _arguments(then: _Call, here: _Call) -> Iterator[str]:
    if then.kept is None or here.kept is None or then.kept.arguments == here.kept.arguments:
        return
    if "arguments" in (*then.kept.cut, *here.kept.cut):
        yield f"{in_backticks(here.name, MAX_NAME)}: other arguments"
        return
    before, after = _values(then.kept.arguments), _values(here.kept.arguments)
    said = [
        f"{in_backticks(place, MAX_NAME)} {_value(before.get(place))} → {_value(after.get(place))}"
        for place in dict.fromkeys((*before, *after))
        if before.get(place) != after.get(place)
    ]
    if not said:
        yield f"{in_backticks(here.name, MAX_NAME)}: other arguments"  # beyond the values that are looked at
        return
    yield f"{in_backticks(here.name, MAX_NAME)}: {first_few(said, 2)}"


def _value(value: str | None) -> str:
    return "nothing" if value is None else in_backticks(value, MAX_VALUE)


def _values(arguments: JsonValue) -> dict[str, str]:
    """Every single value by its place, such as `order.items[0].id`, as JSON."""
    return dict(islice(_leaves(arguments, "", 0), MAX_VALUES))


def _leaves(value: JsonValue, place: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value and depth < MAX_DEPTH:
        for name, one in value.items():
            yield from _leaves(one, f"{place}.{name}" if place else name, depth + 1)
    elif isinstance(value, list) and value and depth < MAX_DEPTH:
        for number, one in enumerate(value):
            yield from _leaves(one, f"{place}[{number}]", depth + 1)
    else:
        yield place or "arguments", json.dumps(value, ensure_ascii=False)


def _names(calls: Sequence[_Call]) -> str:
    """The names in the order of their first calls, `lookup` 3 times."""
    often = Counter(call.name for call in calls)
    return first_few(list(often), 3, lambda name: in_backticks(name, MAX_NAME) + _times(often[name]))


def _times(number: int) -> str:
    return f" {number} times" if number > 1 else ""
