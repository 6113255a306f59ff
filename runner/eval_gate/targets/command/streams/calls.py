"""Calls of tools and their results, which come as events of their own and are brought together by their ids."""

from __future__ import annotations

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import ToolCall
from eval_gate.model.limits import CALL_NAME
from eval_gate.targets.command.streams.lines import refuse_many_calls


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
        given = params if isinstance(params, dict) else {} if params is None else {"input": params}
        self._calls.append(ToolCall(name=name, params=given, id=known))
        refuse_many_calls(len(self._calls))
        return True

    def end(
        self, identity: JsonValue, result: JsonValue, *, success: bool | None, duration_ms: float | None = None
    ) -> None:
        """What the call of this id gave back."""
        place = self._places.get(identity) if isinstance(identity, str) else None
        if place is not None:
            told = {"result": result, "success": success, "duration_ms": duration_ms}
            self._calls[place] = self._calls[place].model_copy(update=told)

    @property
    def all(self) -> tuple[ToolCall, ...]:
        """Every call, with what became of it."""
        return tuple(self._calls)
