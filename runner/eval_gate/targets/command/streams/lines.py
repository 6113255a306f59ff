"""The events in what a program printed, one JSON object a line or one document for all, and the tool calls in them."""

from __future__ import annotations

import re
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import ToolCall
from eval_gate.model.limits import ANSWER_CALLS, CALL_NAME, MAX_COST_USD, MAX_TOKENS, in_range
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.text.foreign.json import ForeignJsonError, read_foreign, refuse_too_much

Event = dict[str, JsonValue]

_LINE: Final = re.compile(r"[^\s][^\n]*")
"""A line that is not empty, without the blanks before it. No other line breaks: JSON's texts may hold U+2028."""
_OPENED: Final = re.compile(r"^[^\S\n]*[{\[][^\n]*", re.MULTILINE)
"""A line that may be an event."""
_WORDS: Final = 10_000
"""Characters of a program's own reason that are kept, of which fewer are shown."""


class StreamEvents(FrozenStruct):
    """The events, in order; `foreign` lines were none: a warning of a library, or a line that was cut short."""

    events: tuple[Event, ...]
    foreign: int = 0


def read_lines(content: str) -> StreamEvents:
    """All events. Raises TargetError (malformed) for an output beyond all bounds."""
    text = content.removeprefix("\ufeff").strip()
    try:
        whole = _parsed(text)  # one document may be written over many lines
        if whole is not None:
            return StreamEvents(whole)
        # line by line: what is no event may hold a quote that does not end
        refuse_too_much(match.group().encode("utf-8", "replace") for match in _OPENED.finditer(text))
        found: list[Event] = []
        foreign = 0
        for match in _LINE.finditer(text):
            events = _parsed(match.group())
            found += events or ()
            foreign += events is None
    except ForeignJsonError as error:
        raise malformed(f"what the program printed {error}") from error
    return StreamEvents(tuple(found), foreign)


def _parsed(text: str) -> tuple[Event, ...] | None:
    """The objects in a JSON object or list; None for any other text. Raises ForeignJsonError for one too large."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = read_foreign(text)
    except ForeignJsonError as error:
        if error.too_much:
            raise
        return None
    members = value if isinstance(value, list) else [value]
    return tuple(member for member in members if isinstance(member, dict))


def member(event: JsonValue, *keys: str) -> JsonValue:
    """What stands below these keys; None where one of them is missing."""
    for key in keys:
        event = event.get(key) if isinstance(event, dict) else None
    return event


def text_of(value: JsonValue) -> str | None:
    """A text, or the texts of a list of parts; None for what is neither."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return None
    texts = [part if isinstance(part, str) else member(part, "text") for part in value]
    return "\n".join(text for text in texts if isinstance(text, str))


def words_of(value: JsonValue) -> str:
    """A program's own reason on one line; empty where it gives none."""
    return " ".join(value[:_WORDS].split()) if isinstance(value, str) else ""


def tokens(*counts: JsonValue) -> int | None:
    """The sum of the counts that are some; None where none is."""
    known = [count for count in counts if isinstance(count, int) and in_range(count, MAX_TOKENS) is not None]
    return min(sum(known), MAX_TOKENS) if known else None


def dollars(value: JsonValue) -> float | None:
    """A cost in US dollars; None for what cannot be one."""
    cost = in_range(value, MAX_COST_USD)
    return None if cost is None else float(cost)


def refuse_many_calls(number: int) -> None:
    """Raise TargetError (malformed) for more calls than any agent makes."""
    if number > ANSWER_CALLS:
        raise malformed(f"the program reports {number:,} tool calls, more than {ANSWER_CALLS:,}")


def malformed(what: str) -> TargetError:
    """An output in which there is no answer."""
    return TargetError(what, fault=TargetFault.MALFORMED)


class StreamCalls:
    """Calls in the order in which they began. A result belongs to the last call of its id; one without call is none."""

    def __init__(self) -> None:
        self._calls: list[ToolCall] = []
        self._places: dict[str, int] = {}

    def begin(self, name: JsonValue, params: JsonValue, identity: JsonValue) -> bool:
        """Add a call; False for one without a name that can be one. Raises TargetError for too many."""
        if not isinstance(name, str) or not 0 < len(name) <= CALL_NAME:
            return False
        known = identity if isinstance(identity, str) and 0 < len(identity) <= CALL_NAME else None
        if known is not None:
            self._places[known] = len(self._calls)
        given: dict[str, JsonValue] = (
            params if isinstance(params, dict) else {} if params is None else {"input": params}
        )
        self._calls.append(ToolCall(name=name, params=given, id=known))
        refuse_many_calls(len(self._calls))
        return True

    def end(
        self, identity: JsonValue, result: JsonValue, *, success: bool | None, duration_ms: float | None = None
    ) -> None:
        """What the call of this id gave back."""
        place = self._places.get(identity) if isinstance(identity, str) else None
        if place is not None:
            self._calls[place] = replace(self._calls[place], result=result, success=success, duration_ms=duration_ms)

    @property
    def all(self) -> tuple[ToolCall, ...]:
        """Every call, with what became of it."""
        return tuple(self._calls)
