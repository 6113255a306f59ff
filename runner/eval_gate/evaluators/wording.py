"""Wording of failures: expected and actual values, truncated to a limit."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from eval_gate.model.limits import KEPT_CHECK

MAX_VALUE = 120
MAX_LIST = 300
MAX_NAME = 80
"""Characters of a tool's or an evaluator's name in a sentence."""
MAX_MEMBERS = 20
"""Values of one line. More do not fit on it."""
MAX_ITEMS = 50
"""Hits, or misses, of one evaluator that are kept."""


def truncate(text: str, limit: int = MAX_VALUE) -> str:
    """At most `limit` characters, an ellipsis for the rest."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def single_quote(text: str) -> str:
    """`'Tokyo'`: an expected value, as the contract's sample writes it."""
    return f"'{truncate(text)}'"


def double_quote(text: str) -> str:
    """`"fetchedAt"`: a value that was found, as the contract's sample writes it."""
    return f'"{truncate(text)}"'


def format_names(values: Iterable[str]) -> str:
    """A list of names in a sentence, such as `[get_weather, get_forecast]`, bounded as a whole and each by itself."""
    # more than these cannot be shown, and there may be very many
    return f"[{truncate(', '.join(truncate(value, MAX_NAME) for value in islice(values, MAX_LIST)), MAX_LIST)}]"


def format_score(score: float) -> str:
    """`0.67`; never `1.00` for what is less."""
    text = f"{score:.2f}"
    return "just below 1" if text == "1.00" and score < 1 else text


def format_times(count: int) -> str:
    """How often something happened, as `1 time` or `3 times`."""
    return f"{count} time{'' if count == 1 else 's'}"


def limit_items(lines: Iterable[str], limit: int = MAX_ITEMS) -> tuple[str, ...]:
    """Hits or misses as they are kept: so many, and instead of the last one that there are more."""
    kept = tuple(islice(lines, limit + 1))
    return kept if len(kept) <= limit else (*kept[: limit - 1], "… and more")


def quote_one_line(text: str) -> str:
    """`"a text"` in one line, cut to what is kept of a check."""
    return f'"{" ".join(text[:KEPT_CHECK].splitlines())}{"…" if len(text) > KEPT_CHECK else ""}"'


def format_alternatives(values: Iterable[str]) -> str:
    """`a, b`: so many of the values as fit on a line."""
    return ", ".join(islice(values, MAX_MEMBERS))


def format_steps(steps: Iterable[str]) -> str:
    """`a, then b`: so many of the steps as fit on a line."""
    return ", then ".join(islice(steps, MAX_MEMBERS))
