"""What is wrong with an option, in the words that the configuration has for the same mistake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import typer
from typer.core import TyperCommand

from eval_gate.config.settings import SETTINGS
from eval_gate.files.place import why_no_path
from eval_gate.text.quoting import quoted_name, quoted_number

_LIMITS: Final = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal"})
_NO_PLACES: Final = frozenset(
    {"CASE", "DATE", "GLOB", "I/N", "KIND", "NAME", "RUN_ID", "TAG", "TEXT", "TIER", "TOOL", "URL"}
)
"""What stands for a value that is no path, in the help of options that are no settings. Each other text may be one."""


class OwnWords(TyperCommand):
    """A command that says so; the library says what pydantic says, which speaks of inputs and of parsing."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments that are left over. Raises BadParameter for an option that is wrong."""
        try:
            rest = super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = _words(error.__cause__) or error.message
            raise
        parameters: Sequence[Any] = self.params
        for one in parameters:
            for why in _wrong_places(one, ctx.params):
                raise typer.BadParameter(why, ctx=ctx, param=one)
        return rest


def _wrong_places(parameter: Any, given: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the paths that were given for it, which is no setting: the configuration checks those."""
    row = SETTINGS.get(parameter.name)
    if parameter.metavar in ({row.metavar, row.flag} if row else _NO_PLACES):
        return
    value = given.get(parameter.name)
    for text in value if isinstance(value, list | tuple) else (value,):
        why = why_no_path(text) if isinstance(text, str) else None
        if why is not None:
            yield f"{quoted_name(text)} {why}"


def _words(error: BaseException | None) -> str | None:
    """What pydantic found, in our words; None for an error that has words of its own."""
    from pydantic import ValidationError

    from eval_gate.text.sources.shape import mistakes, sentence

    if not isinstance(error, ValidationError):
        return None
    detail = mistakes(error)[0]
    # a number outside of its limits is one, although every value of a command line is a text
    return sentence(detail, quoted_number(detail["input"]) if detail["type"] in _LIMITS else None)
