"""The events of `codex exec --json`, read as the target `codex` reads them."""

from __future__ import annotations

from collections.abc import Sequence

from eval_gate.model.conversation import Response
from eval_gate.targets.codex.items import calls_of, usage_of
from eval_gate.targets.codex.output import answer_of
from eval_gate.targets.command.streams.lines import Event, malformed, refuse_many_calls


def read(events: Sequence[Event]) -> Response:
    """The last message of a turn that ended, and all calls. Raises TargetError (malformed) where there is none."""
    answer = answer_of(events)
    turns = [event["type"] for event in events if str(event.get("type")).startswith("turn.")]
    if answer is None or not turns or turns[-1] != "turn.completed":
        raise malformed("codex printed no answer of a completed turn: its output ends before it was done")
    calls = calls_of(events)
    refuse_many_calls(len(calls))
    return Response(text=answer, tool_calls=tuple(call.seen for call in calls), usage=usage_of(events))
