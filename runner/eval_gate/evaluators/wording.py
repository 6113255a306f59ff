"""Wording of failures: expected and actual values, truncated to a limit."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from eval_gate.model.limits import STORED_CHECK
from eval_gate.text.escape import format_count
from eval_gate.text.number_search import iter_numbers

MAX_VALUE = 120
MAX_LIST = 300
MAX_NAME = 80
"""Characters of a tool's or an evaluator's name in a sentence."""
MAX_MEMBERS = 20
"""Values of one line. More do not fit on it."""
MAX_ITEMS = 50
"""Maximum hits, or misses, of one evaluator."""


def truncate(text: str, limit: int = MAX_VALUE) -> str:
    """Truncate to `limit` characters, with an ellipsis for the rest."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def single_quote(text: str) -> str:
    """`'Tokyo'`: an expected value, as the contract's sample writes it."""
    return f"'{truncate(text)}'"


def double_quote(text: str) -> str:
    """`"fetchedAt"`: a value that was found, as the contract's sample writes it."""
    return f'"{truncate(text)}"'


def format_names(values: Iterable[str]) -> str:
    """Format names as `[get_weather, get_forecast]`, each of them and the whole list truncated."""
    # more than these cannot be shown, and there may be very many
    return f"[{truncate(', '.join(truncate(value, MAX_NAME) for value in islice(values, MAX_LIST)), MAX_LIST)}]"


def format_score(score: float) -> str:
    """`0.67`; never `1.00` for what is less."""
    text = f"{score:.2f}"
    return "just below 1" if text == "1.00" and score < 1 else text


def describe_missing_number(number: str, response: str) -> str:
    """Say that a response lacks a number, and which ones it has instead: `expected 21; response has 12, 3`."""
    numbers = dict.fromkeys(truncate(token.text, MAX_NAME) for token in islice(iter_numbers(response), MAX_LIST))
    listed = truncate(", ".join(numbers), MAX_LIST) if numbers else "none"
    return f"expected the number {truncate(number)}; response has {listed}"


def format_times(count: int) -> str:
    """Format a count, such as `1 time` or `3 times`."""
    return format_count(count, "time")


def limit_items(lines: Iterable[str], limit: int = MAX_ITEMS) -> tuple[str, ...]:
    """Keep at most `limit` hits or misses; if there are more, the last line says so."""
    items = tuple(islice(lines, limit + 1))
    return items if len(items) <= limit else (*items[: limit - 1], "… and more")


def quote_one_line(text: str) -> str:
    """Quote a text in one line, truncated to the stored length of a check."""
    return f'"{" ".join(text[:STORED_CHECK].splitlines())}{"…" if len(text) > STORED_CHECK else ""}"'


def format_alternatives(values: Iterable[str]) -> str:
    """Join as many values as fit on a line, such as `a, b`."""
    return ", ".join(islice(values, MAX_MEMBERS))


def format_steps(steps: Iterable[str]) -> str:
    """Join as many steps as fit on a line, such as `a, then b`."""
    return ", then ".join(islice(steps, MAX_MEMBERS))
