"""What `--help` says: of each command its whole first sentence, of arguments no type of Python."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from typer.core import TyperGroup

from eval_gate.cli.terminal.mistakes import OwnWords

if TYPE_CHECKING:
    from typer._click import Context
    from typer._click.formatting import HelpFormatter


class WholeSentences(TyperGroup):
    """The commands with what they do, which the library cuts where the line ends."""

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """A line or two for each command."""
        shown = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, _first(command.help or "")) for name, command in shown if command and not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class PlainCommand(OwnWords):
    """A command whose arguments are said by their names; the library adds `<list[str]>`."""

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


def _first(text: str) -> str:
    """The first paragraph, in one line."""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
