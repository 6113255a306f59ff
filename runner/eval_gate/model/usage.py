"""Token counts, and sums over partly unknown numbers. An unknown number stays None and never becomes 0."""

from collections.abc import Iterable
from typing import Self, TypeVar

from eval_gate.model.base import Record

Number = TypeVar("Number", int, float)


def add_up(values: Iterable[Number | None]) -> Number | None:
    """Return the sum of the known values, or None if none is known."""
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else None


class Usage(Record, kw_only=True):
    """Tokens as the provider counted them, over all turns and trials; None if it does not report them."""

    input_tokens: int | None = None
    output_tokens: int | None = None

    @classmethod
    def add_up(cls, usages: Iterable[Self | None]) -> Self | None:
        """All of them together, as far as they are known; None when there is none."""
        known = [usage for usage in usages if usage is not None]
        if len(known) <= 1:
            return known[0] if known else None
        return cls(
            input_tokens=add_up(usage.input_tokens for usage in known),
            output_tokens=add_up(usage.output_tokens for usage in known),
        )
