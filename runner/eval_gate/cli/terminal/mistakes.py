"""What is wrong with an option, in the words that the configuration has for the same mistake."""

from __future__ import annotations

from typing import Any, Final

import typer
from typer.core import TyperCommand

from eval_gate.text.quoting import quoted_number

_LIMITS: Final = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal"})


class OwnWords(TyperCommand):
    """A command that says so; the library says what pydantic says, which speaks of inputs and of parsing."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments that are left over. Raises BadParameter for an option that is wrong."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = _words(error.__cause__) or error.message
            raise


def _words(error: BaseException | None) -> str | None:
    """What pydantic found, in our words; None for an error that has words of its own."""
    from pydantic import ValidationError

    from eval_gate.text.sources.shape import mistakes, sentence

    if not isinstance(error, ValidationError):
        return None
    detail = mistakes(error)[0]
    # a number outside of its limits is one, although every value of a command line is a text
    return sentence(detail, quoted_number(detail["input"]) if detail["type"] in _LIMITS else None)
