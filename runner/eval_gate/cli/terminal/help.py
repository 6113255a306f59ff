"""Help texts and usage errors in our wording instead of the library's."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from eval_gate.config.settings import SETTINGS
from eval_gate.files.file_paths import find_path_problem
from eval_gate.text.quoting import quote_name, quote_number

if TYPE_CHECKING:
    from typer._click import Context
    from typer._click.formatting import HelpFormatter

_LIMITS: Final = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal"})
_NON_PATH_METAVARS: Final = frozenset(
    {"CASE", "DATE", "GLOB", "I/N", "KIND", "NAME", "RUN_ID", "TAG", "TEXT", "TIER", "TOOL", "URL"}
)
"""What stands for a value that is no path, in the help of options that are no settings. Each other text may be one."""


class CheckedCommand(TyperCommand):
    """Command that words usage errors as the configuration does, instead of quoting pydantic."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, and return the arguments that are left over.

        Raises BadParameter for an invalid option.
        """
        try:
            rest = super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = _format_validation_error(error.__cause__) or error.message
            raise
        parameters: Sequence[Any] = self.params
        for one in parameters:
            for why in _iter_path_errors(one, ctx.params):
                raise typer.BadParameter(why, ctx=ctx, param=one)
        return rest


def _iter_path_errors(parameter: Any, given: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the paths that were given for a parameter.

    A parameter that is a setting is skipped, because the configuration checks its paths.
    """
    row = SETTINGS.get(parameter.name)
    if parameter.metavar in ({row.metavar, row.flag} if row else _NON_PATH_METAVARS):
        return
    value = given.get(parameter.name)
    for text in value if isinstance(value, list | tuple) else (value,):
        why = find_path_problem(text) if isinstance(text, str) else None
        if why is not None:
            yield f"{quote_name(text)} {why}"


def _format_validation_error(error: BaseException | None) -> str | None:
    """Describe an error of pydantic in the words of this program.

    Return None for any other error, which has words of its own.
    """
    from pydantic import ValidationError

    from eval_gate.text.sources.validation_errors import describe_error, list_errors

    if not isinstance(error, ValidationError):
        return None
    detail = list_errors(error)[0]
    # a number outside of its limits is one, although every value of a command line is a text
    return describe_error(detail, quote_number(detail["input"]) if detail["type"] in _LIMITS else None)


class FullHelpGroup(TyperGroup):
    """Command group whose help shows whole sentences, which the library would cut."""

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write a line or two of help for each command."""
        shown = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, _get_first_paragraph(command.help or ""))
            for name, command in shown
            if command and not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class PlainCommand(CheckedCommand):
    """Command whose help shows arguments by name, without `<list[str]>`."""

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Arguments, then options."""
        rows: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for one in self.get_params(ctx):
            if record := one.get_help_record(ctx):
                name, said = record
                plain = name.partition(" <")[0] if one.param_type_name == "argument" else name
                rows[one.param_type_name].append((plain, said))
        for kind, shown in rows.items():
            if shown:
                with formatter.section(f"{kind.capitalize()}s"):
                    formatter.write_dl(shown)


def _get_first_paragraph(text: str) -> str:
    """Return the first paragraph on one line."""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
