"""How failures are worded: what was expected, what was seen, cut to a bounded length."""

from __future__ import annotations

from collections.abc import Iterable

MAX_VALUE = 120
MAX_LIST = 300


def cut(text: str, limit: int = MAX_VALUE) -> str:
    """At most `limit` characters, an ellipsis for the rest."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def single(text: str) -> str:
    """`'Tokyo'`: an expected value, as the contract's sample writes it."""
    return f"'{cut(text)}'"


def double(text: str) -> str:
    """`"fetchedAt"`: a value that was found, as the contract's sample writes it."""
    return f'"{cut(text)}"'


def names(values: Iterable[str]) -> str:
    """`[get_weather, get_forecast]`."""
    return f"[{cut(', '.join(cut(value, 80) for value in values), MAX_LIST)}]"
