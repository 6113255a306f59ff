"""What judges cost, summed: tokens and money, as far as they are known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from eval_gate.model.conversation import Usage

Number = TypeVar("Number", int, float)


def total(values: Iterable[Number | None]) -> Number | None:
    """The sum of the known values; None when none is known (the rule of `engine.totals`)."""
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else None


def total_usage(usages: Iterable[Usage | None]) -> Usage | None:
    """Tokens of all judges that were asked; None when none was, or none says."""
    known = [usage for usage in usages if usage is not None]
    if not known:
        return None
    return Usage(
        input_tokens=total(usage.input_tokens for usage in known),
        output_tokens=total(usage.output_tokens for usage in known),
    )
