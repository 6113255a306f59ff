"""Options shared by commands: one per setting, and options of a single call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, cast

import typer

from eval_gate.cli.terminal.console import Verbosity, is_in_ci, print_output
from eval_gate.cli.terminal.help import HELP_ALL
from eval_gate.config.setting import Panel
from eval_gate.config.settings import SETTINGS
from eval_gate.errors import GateError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from eval_gate.config.loader import FlagSource
    from eval_gate.config.setting import Setting


def option(
    help_text: str,
    *names: str,
    default: object = None,
    metavar: str | None = None,
    panel: str | None = None,
    **more: Any,
) -> Any:
    """Build an option: its help, its names unless it is called as its parameter, and its group in the help."""
    return typer.Option(default, *names, help=help_text, metavar=metavar, rich_help_panel=panel, **more)


def argument(metavar: str, help_text: str, default: object = ...) -> Any:
    """Build a positional parameter, which is required unless it has a default."""
    return typer.Argument(default, metavar=metavar, help=help_text, show_default=default not in {..., None})


def _set_verbose(context: typer.Context, value: bool) -> bool:
    if value:
        context.obj = Verbosity.VERBOSE
    return value


def _set_quiet(context: typer.Context, value: bool) -> bool:
    if value and context.obj is not Verbosity.VERBOSE:
        context.obj = Verbosity.QUIET
    return value


VERBOSE: Final = option("Show every case, warning and notice.", "--verbose", "-v", default=False, callback=_set_verbose)
QUIET: Final = option("Show only the result, without progress.", "--quiet", "-q", default=False, callback=_set_quiet)


def _show_all_options(context: typer.Context, value: bool) -> None:
    if value and not context.resilient_parsing:
        context.meta[HELP_ALL] = True
        print_output(context.get_help())
        raise typer.Exit


CONFIG: Final = option(
    "Configuration file.  [default: eval-gate.yaml, .yml or .json, from the working directory upward]",
    "--config",
    metavar="FILE",
    panel=Panel.RUN,
)
RESULTS_DIR: Final = option(
    "Folder in which to find runs by id or as latest.  "
    f"[default: outputDir of the configuration, or {SETTINGS['outputDir'].default}]",
    "--output-dir",
    metavar="DIR",
    panel=Panel.OUTPUT,
)
"""For commands that read stored runs: the folder into which `run` writes them."""
JSON: Final = option(
    "Print the run result as JSON instead of the summary.", "--json", default=False, panel=Panel.OUTPUT
)


def with_options(
    command: Callable[..., None], keys: Iterable[str] = (), *, has_short_help: bool = False
) -> Callable[..., None]:
    """Return the command with one option per setting in `keys` in place of its `**settings`.

    It also gets the two verbosity options, which are not passed on: the command reads them from its context. An
    option that the command declares itself, under the key's name, stays as it is. Options follow the command's
    positional parameters and come before its keyword-only ones. With `has_short_help` it also gets `--help-all`.
    """
    signature = inspect.signature(command, eval_str=True)
    own = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    first = [one for one in own if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    settings = [
        _build_parameter(row)
        for row in map(SETTINGS.__getitem__, keys)
        if row.option and row.key not in signature.parameters
    ]
    ordered = [
        one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for one in (*first, *settings, *own[len(first) :], *_VERBOSITY_OPTIONS, *([_HELP_ALL_OPTION] * has_short_help))
    ]

    @wraps(command)
    def call_command(*, verbose: bool, quiet: bool, help_all: bool = False, **arguments: object) -> None:
        command(**arguments)

    call_command.__signature__ = signature.replace(parameters=ordered)  # type: ignore[attr-defined]  # which functions have, and Callable does not say
    return call_command


def _build_flag(name: str, info: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=info, annotation=bool)


_VERBOSITY_OPTIONS = (_build_flag("verbose", VERBOSE), _build_flag("quiet", QUIET))
_HELP_ALL_OPTION = _build_flag(
    "help_all",
    option("Show all options and exit.", HELP_ALL, default=False, is_eager=True, callback=_show_all_options),
)


def select_given_settings(settings: Mapping[str, object]) -> dict[str, JsonValue]:
    """Select the settings of a command's `**settings` that have a value."""
    return {key: cast("JsonValue", value) for key, value in settings.items() if value not in (None, [], ())}


def find_option_source() -> FlagSource:
    """Find who sets the options: a person, or in CI a file of the repository."""
    from eval_gate.config.loader import BY_A_PERSON, BY_A_PROGRAM

    return BY_A_PROGRAM if is_in_ci() else BY_A_PERSON


def _build_parameter(row: Setting) -> inspect.Parameter:
    if not row.flag.startswith("--"):
        info = typer.Argument(None, help=row.help_text, metavar=row.flag)
    elif row.type is bool:
        info = typer.Option(
            None, f"{row.flag}/--no-{row.flag.removeprefix('--')}", help=row.help_text, rich_help_panel=row.panel
        )
    else:
        number = _build_number_parser(row.type) if row.type in {int, float} else None
        info = typer.Option(
            None,
            row.flag,
            *row.other_flags,
            help=row.help_text,
            metavar=row.effective_metavar,
            parser=number,
            rich_help_panel=row.panel,
        )
    return inspect.Parameter(row.key, inspect.Parameter.KEYWORD_ONLY, default=info, annotation=row.type | None)


def _build_number_parser(kind: type) -> Callable[[str], int | float | str]:
    """Build a parser that leaves what is no number unchanged: the configuration reports what it expected and got."""

    def read(text: str) -> int | float | str:
        for one in (int, kind):  # a whole number stays one, even if it need not be one
            try:
                return cast("int | float", one(text))
            except ValueError:
                continue
        return text

    return read


def split_commas(values: list[str] | None) -> tuple[str, ...]:
    """`--case 'a,b' --case c` are three globs. Raises GateError for `--case ''`, which would choose nothing or all."""
    if any(not value.strip(" ,") for value in values or []):
        raise GateError("no-selected-cases", '--case "" names no case', "omit --case to run all cases")
    return tuple(part.strip() for value in values or [] for part in value.split(",") if part.strip())
