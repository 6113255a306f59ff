"""Parse the output of Gemini CLI (`--output-format stream-json` or `json`).

The response is the text after the last call. Text before it, such as "I look it up", is not part of it. Each event has
a time, so each call has a duration.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response
from eval_gate.model.limits import MAX_DURATION_MS, in_range
from eval_gate.targets.command.streams.events import (
    Event,
    StreamCalls,
    build_malformed_error,
    build_usage,
    find_result,
    format_reason,
    get_member,
)
from eval_gate.targets.response.extraction import extract_text, sum_tokens


def read(events: Sequence[Event]) -> Response:
    """Read text and tool calls. Raises TargetError (malformed) if the agent was not done at the end."""
    result = find_result(events)
    if result is None:
        return _read_object(events)
    calls, said, begun = StreamCalls(), list[str](), dict[str, JsonValue]()
    answer = ""
    for event in events:
        match event.get("type"):
            case "tool_use":
                identity = event.get("tool_id")
                calls.begin_call(event.get("tool_name"), event.get("parameters"), identity)
                begun[str(identity)] = event.get("timestamp")
                answer, said = "".join(said) or answer, []
            case "tool_result":
                identity, error = event.get("tool_id"), event.get("error")
                calls.end_call(
                    identity,
                    event.get("output") if error is None else {"error": error},
                    success={"success": True, "error": False}.get(str(event.get("status"))),
                    duration_ms=_compute_duration_ms(begun.get(str(identity)), event.get("timestamp")),
                )
            case "message" if event.get("role") == "assistant":
                said.append(extract_text(event.get("content"), "\n") or "")
    stats = result.get("stats")
    models = (event.get("model") for event in events if event.get("type") == "init")
    return Response(
        text="".join(said) or answer,
        tool_calls=calls.all,
        usage=build_usage(*(sum_tokens(get_member(stats, f"{kind}_tokens")) for kind in ("input", "output"))),
        model=next((model for model in models if isinstance(model, str)), None),
        warnings=calls.warnings,
    )


def find_failure(events: Sequence[Event]) -> str | None:
    """Why it failed, in its own words; None where it did not, or does not say that it did."""
    result = find_result(events)
    if result is not None and result.get("status") == "success":
        return None
    error = next((event["error"] for event in reversed(events) if event.get("error") and _is_final(event)), None)
    if result is None and error is None:
        return None
    return format_reason(get_member(error, "message")) or format_reason(error) or "without a reason"


def _is_final(event: Event) -> bool:
    """Whether an error in this event is that of the whole answer, and not of one call."""
    return event.get("type") in ("result", None)


def _read_object(events: Sequence[Event]) -> Response:
    """Read the single object of `--output-format json`, which counts tool calls but does not list them."""
    streamed = any("type" in event for event in events)  # a stream that was cut has no answer, whatever stands in it
    whole = next((one for one in reversed(events) if isinstance(one.get("response"), str) and not streamed), None)
    answer = whole.get("response") if whole is not None else None
    if whole is None or not isinstance(answer, str):
        raise build_malformed_error("Gemini CLI printed no result: its output ends early")
    models = get_member(whole, "stats", "models")
    used = list(models.values()) if isinstance(models, dict) else []
    made = (get_member(model, "tokens", kind) for model in used for kind in ("candidates", "thoughts"))
    given = sum_tokens(*(get_member(model, "tokens", "prompt") for model in used))
    only = next(iter(models)) if isinstance(models, dict) and len(models) == 1 else None
    return Response(text=answer, usage=build_usage(given, sum_tokens(*made)), model=only, tool_calls_known=False)


def _compute_duration_ms(begun: JsonValue, ended: JsonValue) -> float | None:
    """Milliseconds between two times in ISO 8601; None where one is none, or they stand the wrong way round."""
    first, last = _parse_time(begun), _parse_time(ended)
    if first is None or last is None:
        return None
    passed = in_range((last - first).total_seconds() * 1000, MAX_DURATION_MS)
    return None if passed is None else float(passed)


def _parse_time(moment: JsonValue) -> datetime | None:
    try:
        found = datetime.fromisoformat(moment) if isinstance(moment, str) else None
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found is not None and found.tzinfo is None else found
