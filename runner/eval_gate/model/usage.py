"""Token counts, and sums over partly unknown numbers. An unknown number stays None and never becomes 0."""

from collections.abc import Iterable
from typing import Self, TypeVar

from eval_gate.model.base import Record

Number = TypeVar("Number", int, float)


def add_up(values: Iterable[Number | None]) -> Number | None:
    """Return the sum of the known values, or None if none is known."""
    numbers = [value for value in values if value is not None]
    return sum(numbers[1:], numbers[0]) if numbers else None


class Usage(Record, kw_only=True):
    """Tokens as the provider counted them, over all turns and trials; None if it does not report them."""

    input_tokens: int | None = None
    output_tokens: int | None = None

    @classmethod
    def add_up(cls, usages: Iterable[Self | None]) -> Self | None:
        """Add up the usages that are known; None if there is none."""
        stated = [usage for usage in usages if usage is not None]
        if len(stated) <= 1:
            return stated[0] if stated else None
        return cls(
            input_tokens=add_up(usage.input_tokens for usage in stated),
            output_tokens=add_up(usage.output_tokens for usage in stated),
        )
