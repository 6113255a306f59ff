"""Values in the responses of agents: texts, tokens, costs and arguments, each within its limits."""

from __future__ import annotations

from eval_gate.model.base import JsonValue
from eval_gate.model.limits import MAX_COST_USD, MAX_DURATION_MS, MAX_TOKENS, in_range


def extract_text(value: object, separator: str = "") -> str | None:
    """Extract the text of one message: a text, or the joined texts of parts such as `{"type": "text", "text": …}`."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return None
    texts = [text for part in value if isinstance(text := part.get("text") if isinstance(part, dict) else part, str)]
    return separator.join(texts) if texts else None


def parse_tokens(value: JsonValue) -> int | None:
    """Return a number of tokens, or None for a value that cannot be one."""
    return value if isinstance(value, int) and in_range(value, MAX_TOKENS) is not None else None


def sum_tokens(*counts: JsonValue) -> int | None:
    """Sum the numbers of tokens that are valid. Return None if none of them is."""
    valid_counts = [count for value in counts if (count := parse_tokens(value)) is not None]
    return min(sum(valid_counts), MAX_TOKENS) if valid_counts else None


def parse_cost(value: JsonValue) -> float | None:
    """Return a cost in US dollars, or None for a value that cannot be one."""
    cost = in_range(value, MAX_COST_USD)
    return None if cost is None else float(cost)


def parse_duration_ms(value: JsonValue) -> float | None:
    """Return a duration in milliseconds, or None for a value that cannot be one."""
    duration = in_range(value, MAX_DURATION_MS)
    return None if duration is None else float(duration)


def to_params(arguments: JsonValue, name: str = "input") -> dict[str, JsonValue]:
    """Convert the arguments of a call to parameters; arguments without names become the parameter `name`."""
    if arguments is None:
        return {}
    return arguments if isinstance(arguments, dict) else {name: arguments}
