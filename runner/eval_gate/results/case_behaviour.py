"""Behaviour of a case in one run: its calls, their parameters and its response, and a short digest for the history.

The digest of a run is a word without blanks: an execution each, separated by `/`. Each tool is `name x calls`, each
parameter `place = values`, all of them as the first digits of a hash, so that equal behaviour has equal words and
nothing of a response can be read from a history: `3fa9x1,0b1c2d=77ae`. A `?` after a tool means that its parameters are
unknown, `0` that no tool was called. At the end, `!` means that the response lost many of the words of the run before,
and `.` that it did not. The checked fields of the agent's JSON stand in it as parameters of a tool `FIELDS`.

In a conversation the name of a tool begins with the turn, `3:lookup`, and one response that lost words is enough. What
a simulated user says differs from execution to execution, so its conversations have tools without turns, and no
responses.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.model.execution import CaseDetails, Status, StoredCall
from eval_gate.model.limits import BEHAVIOUR_DEPTH, BEHAVIOUR_EXECUTIONS, BEHAVIOUR_PARAMETERS, BEHAVIOUR_TOOLS
from eval_gate.model.result import CaseResult
from eval_gate.results.turn_details import slice_turn
from eval_gate.struct import FrozenStruct, field
from eval_gate.text.digest import dump_sorted_json

FIELDS: Final = "\0fields"
"""Stands for the checked fields of the agent's JSON where other parameters have a tool."""
WHOLE_ARGUMENTS: Final = "arguments"
"""Place of arguments that are not a mapping."""
LOST_SHARE: Final = 0.45
"""Share of the baseline's words from which a response lost many: half of a text often keeps a little more than half."""
TURN_WORDS: Final = 8
"""Words from which a turn's response is compared: two ways to say "noted" share no word, and each turn is a chance."""
_WORD: Final = re.compile(
    # a character of a script without blanks between words, or a word
    r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)
_PASSED: Final = frozenset({Status.PASSED})
_SCORED: Final = frozenset({Status.PASSED, Status.FAILED})
_NO_CALLS: Final = "0"
_TURN_DIGITS: Final = 3
_TOOL_DIGITS, _PLACE_DIGITS, _VALUE_DIGITS = 4, 6, 4
_EXECUTION: Final = re.compile(r"(?P<items>[0-9a-f=x?,]+)(?P<lost>[!.]?)")
_TOOL_ITEM: Final = re.compile(r"(?P<tool>[0-9a-f]{4})x(?P<calls>\d{1,6})(?P<unknown>\??)")
_PARAMETER_ITEM: Final = re.compile(r"(?P<place>[0-9a-f]{6})=(?P<value>[0-9a-f]{4})")

Parameters = Mapping[str, tuple[str, ...]]
"""Values of each parameter of a tool over all of its calls, as JSON and sorted, because parallel calls have no order.

A call without the parameter has no value.
"""


class Behaviour(FrozenStruct):
    """Behaviour of one execution, as far as it is stored."""

    calls: Mapping[str, int]
    parameters: Mapping[str, Parameters | None]
    """Parameters by tool; None if they are unknown, truncated or too many."""
    responses: tuple[str, ...] | None
    """The complete response, or that of each turn of a conversation; None if one is not stored or truncated."""


class BehaviourDigest(FrozenStruct):
    """Behaviour of one execution in a history, with hashes instead of names and values."""

    calls: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()
    """Tools whose parameters are unknown."""
    lost_words: bool | None = None
    """Whether the response lost many of the words of the run before; None if unknown."""


def list_behaviours(case: CaseResult) -> list[Behaviour]:
    """List the behaviour of each passed execution whose details are stored."""
    return _list_behaviours(case, _PASSED)


def _list_behaviours(case: CaseResult, statuses: Collection[Status]) -> list[Behaviour]:
    return [one for details in _iter_details(case, statuses) if (one := _build_behaviour(details)) is not None]


def _iter_details(case: CaseResult, statuses: Collection[Status]) -> Iterator[CaseDetails]:
    if not any(trial.decisive or trial.details is not None for trial in case.trials):
        if case.status in statuses:
            yield case.details
        return
    for trial in case.trials:
        if trial.status in statuses:
            details = case.details if trial.decisive else trial.details
            if details is not None:
                yield details


def _build_behaviour(details: CaseDetails) -> Behaviour | None:
    """Build the behaviour of an execution; None if it has too many tools to be compared."""
    by_turn = details.turns if details.user_end is None else ()
    parts = [(f"{turn}:", slice_turn(details, turn)) for turn in range(1, len(by_turn) + 1)] or [("", details)]
    calls = dict(sorted(Counter(place + tool for place, part in parts for tool in part.tools_called).items()))
    if len(calls) > BEHAVIOUR_TOOLS:
        return None
    by_tool: dict[str, list[StoredCall]] = {}
    for place, part in parts if len(details.tool_calls) == len(details.tools_called) else ():
        for call in part.tool_calls:
            by_tool.setdefault(place + call.name, []).append(call)
    parameters: dict[str, Parameters | None] = {}
    room = BEHAVIOUR_PARAMETERS
    for tool in calls:
        values = _collect_parameters(by_tool[tool], room) if tool in by_tool else None
        room -= len(values or ())
        parameters[tool] = values
    for place, part in parts:
        if part.fields and (room := room - len(part.fields)) >= 0:
            calls[place + FIELDS] = 1
            parameters[place + FIELDS] = {path: (dump_sorted_json(value),) for path, value in part.fields.items()}
    is_whole = not details.dropped_counts.get("characters") and not any(part.response_truncated for _, part in parts)
    texts = [part.response for _, part in parts if part.response is not None]
    is_known = is_whole and len(texts) == len(parts) and details.user_end is None
    return Behaviour(calls, parameters, tuple(texts) if is_known else None)


def split_tool(tool: str) -> tuple[int | None, str]:
    """Split the name of a tool in a conversation, such as `3:lookup`, into its turn and the tool."""
    turn, colon, name = tool.partition(":")
    return (int(turn), name) if colon and turn.isdecimal() and len(turn) <= _TURN_DIGITS else (None, tool)


def _collect_parameters(calls: Iterable[StoredCall], room: int) -> Parameters | None:
    """Collect the parameters of all calls of a tool; None if one is truncated, or if there are more than `room`."""
    by_place: dict[str, list[str]] = {}
    for call in calls:
        if "arguments" in call.truncated_parts:
            return None
        for place, value in _iter_values(call.arguments, "", 0):
            by_place.setdefault(place, []).append(value)
            if len(by_place) > room:
                return None
    return {place: tuple(sorted(values)) for place, values in by_place.items()}


def _iter_values(value: JsonValue, place: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value and depth < BEHAVIOUR_DEPTH:
        for name, one in value.items():
            yield from _iter_values(one, f"{place}.{name}" if place else name, depth + 1)
    elif place or value not in (None, {}):
        yield place or WHOLE_ARGUMENTS, dump_sorted_json(value)


def split_words(text: str) -> list[str]:
    """Split a text into its words, in lower case."""
    return _WORD.findall(text.lower())


def find_lost_words(baseline: Sequence[str], current: Sequence[str]) -> int | None:
    """Find the first response, counted from 1, that lost many of the words that the baseline's response has.

    Of a conversation, responses shorter than `TURN_WORDS` in the baseline are not compared.
    """
    least = TURN_WORDS if len(baseline) > 1 else 0
    both = enumerate(zip(baseline, current, strict=False), 1)
    long = ((turn, texts) for turn, texts in both if not least or len(split_words(texts[0])) >= least)
    return next((turn for turn, texts in long if _has_lost_words(*texts)), None)


def _has_lost_words(baseline: str, current: str) -> bool:
    if baseline == current:
        return False
    # of most responses this is known from their words as they stand, which are split in a fifth of the time
    if _compute_lost_share(baseline.split(), current.split()) <= LOST_SHARE / 2:
        return False
    return _compute_lost_share(split_words(baseline), split_words(current)) >= LOST_SHARE


def _compute_lost_share(baseline: list[str], current: list[str]) -> float:
    """Compute the share of words that are missing from the second list; 0 if the first is empty."""
    numbers = Counter(current)
    shared = sum(min(number, numbers.get(word, 0)) for word, number in Counter(baseline).items())
    return 1 - shared / len(baseline) if baseline else 0.0


# Digests


def hash_tool(tool: str) -> str:
    """Return the hash that stands for a tool in a digest."""
    return _hash(tool, _TOOL_DIGITS)


def hash_place(tool: str, place: str) -> str:
    """Return the hash that stands for a parameter of a tool in a digest."""
    return _hash(f"{tool}\0{place}", _PLACE_DIGITS)


def hash_values(values: tuple[str, ...]) -> str:
    """Return the hash that stands for the values of a parameter in a digest."""
    return _hash("\0".join(values), _VALUE_DIGITS)


def _hash(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def encode_behaviour(case: CaseResult, earlier_case: CaseResult | None) -> str:
    """Encode the behaviour of a case in one run; the text is empty if nothing is known of a passed execution.

    Of a graded case every scored execution counts, because the score that passes may change. `earlier_case` is the
    same case in the run before, if it is known.
    """
    behaviours = _list_known_behaviours(case)
    lost = _has_lost_words_since(behaviours, earlier_case) if earlier_case is not None else None
    mark = "" if lost is None else "!" if lost else "."
    return "/".join(list(dict.fromkeys(f"{_encode_items(one)}{mark}" for one in behaviours))[:BEHAVIOUR_EXECUTIONS])


def _list_known_behaviours(case: CaseResult) -> list[Behaviour]:
    return _list_behaviours(case, _SCORED if case.graded else _PASSED)


def _has_lost_words_since(behaviours: Iterable[Behaviour], earlier_case: CaseResult) -> bool | None:
    earlier = [one.responses for one in _list_known_behaviours(earlier_case) if one.responses is not None]
    responses = [one.responses for one in behaviours if one.responses is not None]
    return find_lost_words(earlier[0], responses[0]) is not None if earlier and responses else None


def _encode_items(behaviour: Behaviour) -> str:
    items = []
    for tool, calls in behaviour.calls.items():
        parameters = behaviour.parameters[tool]
        items.append(f"{hash_tool(tool)}x{calls}{'?' if parameters is None else ''}")
        items += [f"{hash_place(tool, place)}={hash_values(values)}" for place, values in (parameters or {}).items()]
    return ",".join(items) or _NO_CALLS


def decode_behaviour(word: str) -> tuple[BehaviourDigest, ...]:
    """Decode the behaviour of a case in one run. Return nothing for a word that is not valid."""
    executions = [_decode_execution(text) for text in word.split("/")[:BEHAVIOUR_EXECUTIONS]]
    return tuple(one for one in executions if one is not None) if None not in executions else ()


def _decode_execution(text: str) -> BehaviourDigest | None:
    match = _EXECUTION.fullmatch(text)
    if match is None:
        return None
    lost = {"!": True, ".": False}.get(match["lost"])
    if match["items"] == _NO_CALLS:
        return BehaviourDigest(lost_words=lost)
    calls, values, unknown = dict[str, int](), dict[str, str](), set[str]()
    for item in match["items"].split(","):
        if tool := _TOOL_ITEM.fullmatch(item):
            calls[tool["tool"]] = int(tool["calls"])
            unknown |= {tool["tool"]} if tool["unknown"] else set()
        elif parameter := _PARAMETER_ITEM.fullmatch(item):
            values[parameter["place"]] = parameter["value"]
        else:
            return None
    return BehaviourDigest(calls, values, frozenset(unknown), lost)
