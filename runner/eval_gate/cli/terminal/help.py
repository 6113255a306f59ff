"""Help texts and usage errors in the words of this program instead of the library's."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import typer
from typer._click.exceptions import NoSuchOption
from typer.core import TyperCommand, TyperGroup

from eval_gate.config.setting import Panel
from eval_gate.config.settings import SETTINGS
from eval_gate.files.file_paths import find_path_problem
from eval_gate.text.quoting import quote_name, quote_number

if TYPE_CHECKING:
    from typer._click import Context
    from typer._click.formatting import HelpFormatter

HELP_ALL: Final = "--help-all"
"""The option that shows all options of a command whose `--help` shows the most used ones."""
_LIMITS: Final = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal"})
_NON_PATH_METAVARS: Final = frozenset(
    {
        *("ADDRESS", "CASE", "CMD", "DATE", "FORMAT", "GLOB", "I/N", "KIND", "NAME", "NAME=PATH"),
        *("RUN_ID", "TAG", "TEXT", "TIER", "TOOL", "URL"),
    }
)
"""Metavars of options, other than settings, whose values are no paths. All other values may be paths."""


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


def _iter_path_errors(parameter: Any, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the paths of a parameter; the configuration checks those of settings."""
    row = SETTINGS.get(parameter.name)
    if parameter.metavar in ({row.metavar, row.flag} if row else _NON_PATH_METAVARS):
        return
    value = values.get(parameter.name)
    for text in value if isinstance(value, list | tuple) else (value,):
        why = find_path_problem(text) if isinstance(text, str) else None
        if why is not None:
            yield f"{quote_name(text)} {why}"


def _format_validation_error(error: BaseException | None) -> str | None:
    """Describe an error of pydantic in the words of this program; any other error has words of its own."""
    from pydantic import ValidationError

    from eval_gate.text.sources.validation_errors import describe_error, list_errors

    if not isinstance(error, ValidationError):
        return None
    detail = list_errors(error)[0]
    # a number outside of its limits is one, although every value of a command line is a text
    return describe_error(detail, quote_number(detail["input"]) if detail["type"] in _LIMITS else None)


class FullHelpGroup(TyperGroup):
    """Command group whose help shows whole sentences, which the library would cut."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. Raises NoSuchOption, with the place of an option that commands have."""
        try:
            return super().parse_args(ctx, args)
        except NoSuchOption as error:
            if any(row.flag == error.option_name for row in SETTINGS.values()):
                error.message = f"{error.option_name} belongs behind a command, such as {ctx.command_path} run"
            raise

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the first sentence of the help of each command."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, " ".join(inspect.cleandoc(command.help or "").split("\n\n")[0].split()))
            for name, command in commands
            if command and not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class PlainCommand(CheckedCommand):
    """Command whose help shows arguments by name, without `<list[str]>`, and groups of options.

    Where `common_options` is not empty, `--help` shows these only, and `--help-all` all of them.
    """

    common_options: ClassVar[frozenset[str]] = frozenset()
    """Names of the parameters that `--help` shows."""

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the arguments, then the options by group."""
        parameters: Sequence[Any] = [one for one in self.get_params(ctx) if one.get_help_record(ctx)]
        extras = [one for one in parameters if self._is_hidden(one, ctx)]
        panels = _list_panels(parameters)
        rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], **{panel: [] for panel in panels}, "Options": []}
        for one in parameters:
            if one in extras:
                continue
            name, text = one.get_help_record(ctx)
            if one.param_type_name == "argument":
                rows["Arguments"].append((name.partition(" <")[0], text))
            else:
                panel = one.rich_help_panel if one.rich_help_panel in panels else "Options"
                rows[panel].append((name, text))
        for title, lines in rows.items():
            if lines:
                with formatter.section(f"Other {title.lower()}" if panels and title == "Options" else title):
                    formatter.write_dl(lines)
        if extras:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(f"{len(extras)} more options: `{ctx.command_path} {HELP_ALL}` shows them.")

    def _is_hidden(self, parameter: Any, ctx: Context) -> bool:
        """Whether this help leaves out the option."""
        if not self.common_options or ctx.meta.get(HELP_ALL) or parameter.param_type_name == "argument":
            return False
        return parameter.name not in self.common_options


def _list_panels(parameters: Sequence[Any]) -> list[str]:
    """List the groups of these options in their order; none if there are fewer than two."""
    panels = {getattr(one, "rich_help_panel", None): None for one in parameters}
    ordered_panels = [
        *(panel.value for panel in Panel if panel in panels),
        *(one for one in panels if one and one not in {*Panel}),
    ]
    return ordered_panels if len(ordered_panels) > 1 else []


def build_command_class(common: Collection[str]) -> type[PlainCommand]:
    """Build the class of a command whose `--help` shows only the options in `common`, by parameter name."""
    always = {"verbose", "quiet", "help", "help_all"}
    return type("ShortHelpCommand", (PlainCommand,), {"common_options": frozenset(common) | always})
