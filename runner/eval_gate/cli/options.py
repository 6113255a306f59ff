"""Options shared by commands: one per setting, and options of a single call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Annotated, cast

import typer

from eval_gate.cli.terminal.console import Verbosity, is_in_ci
from eval_gate.config.settings import SETTINGS
from eval_gate.errors import GateError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from eval_gate.config.loader import FlagSource
    from eval_gate.config.setting import Setting


def _set_verbose(context: typer.Context, value: bool) -> bool:  # noqa: FBT001 (typer's callback shape)
    if value:
        context.obj = Verbosity.VERBOSE
    return value


def _set_quiet(context: typer.Context, value: bool) -> bool:  # noqa: FBT001 (typer's callback shape)
    if value and context.obj is not Verbosity.VERBOSE:
        context.obj = Verbosity.QUIET
    return value


Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", callback=_set_verbose, help="Say more: every case, every warning and notice.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", callback=_set_quiet, help="Only the result: no progress.")]
Config = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Configuration file.  [default: eval-gate.yaml, .yml or .json, from the working directory upward]",
    ),
]
ResultsDir = Annotated[
    str | None,
    typer.Option(
        "--output-dir",
        metavar="DIR",
        help="Where runs are looked up by id or as latest.  "
        f"[default: outputDir of the configuration, else {SETTINGS['outputDir'].default}]",
    ),
]
"""For commands that read stored runs: where `run` has written them."""
Json = Annotated[bool, typer.Option("--json", help="Print the run record instead of the summary.")]
Cases = Annotated[
    list[str] | None, typer.Option("--case", metavar="GLOB", help="Only cases with these ids; commas join.")
]
Tags = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="Only cases with this tag.")]
Tiers = Annotated[list[str] | None, typer.Option("--tier", metavar="TIER", help="Only suites of this tier.")]
Shard = Annotated[
    str | None, typer.Option("--shard", metavar="I/N", help="Only the I-th of N equal parts of the cases.")
]


def with_options(command: Callable[..., None], keys: Iterable[str] = ()) -> Callable[..., None]:
    """Return the command with one option per setting in `keys` in place of its `**settings`.

    It also gets the two verbosity options, which are not passed on: the command reads them from its context. An
    option that the command declares itself, under the key's name, stays as it is. Options follow the command's
    positional parameters and come before its keyword-only ones.
    """
    signature = inspect.signature(command, eval_str=True)
    own = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    first = [one for one in own if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    made = [
        _build_parameter(row)
        for row in map(SETTINGS.__getitem__, keys)
        if row.option and row.key not in signature.parameters
    ]
    ordered = [
        one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for one in (*first, *made, *own[len(first) :], *_VERBOSITY_OPTIONS)
    ]

    @wraps(command)
    def told(*, verbose: bool, quiet: bool, **given: object) -> None:
        command(**given)

    told.__signature__ = signature.replace(parameters=ordered)  # type: ignore[attr-defined]  # which functions have, and Callable does not say
    return told


_VERBOSITY_OPTIONS = tuple(
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
    for name, kind in (("verbose", Verbose), ("quiet", Quiet))
)


def select_given_settings(settings: Mapping[str, object]) -> dict[str, JsonValue]:
    """Those of a command's `**settings` that were given."""
    return {key: cast("JsonValue", value) for key, value in settings.items() if value not in (None, [], ())}


def find_option_source() -> FlagSource:
    """Who gives the options: a person, or in CI a file of the repository."""
    from eval_gate.config.loader import BY_A_PERSON, BY_A_PROGRAM

    return BY_A_PROGRAM if is_in_ci() else BY_A_PERSON


def _build_parameter(row: Setting) -> inspect.Parameter:
    if not row.flag.startswith("--"):
        info = typer.Argument(None, help=row.help_text, metavar=row.flag)
    elif row.type is bool:
        info = typer.Option(None, f"{row.flag}/--no-{row.flag.removeprefix('--')}", help=row.help_text)
    else:
        number = _build_number_parser(row.type) if row.type in {int, float} else None
        info = typer.Option(
            None, row.flag, *row.other_flags, help=row.help_text, metavar=row.effective_metavar, parser=number
        )
    return inspect.Parameter(row.key, inspect.Parameter.KEYWORD_ONLY, default=info, annotation=row.type | None)


def _build_number_parser(kind: type) -> Callable[[str], int | float | str]:
    """Build a parser that reads a number and returns any other text unchanged.

    The configuration reports what it expected and what it got. A whole number is read as an int, even where
    `kind` is another type.
    """

    def read(text: str) -> int | float | str:
        for one in (int, kind):  # a whole number is said as one also where it need not be one
            try:
                return cast("int | float", one(text))
            except ValueError:
                continue
        return text

    return read


def split_commas(values: list[str] | None) -> tuple[str, ...]:
    """`--case 'a,b' --case c` are three globs. Raises GateError for `--case ''`, which would choose nothing or all."""
    if any(not value.strip(" ,") for value in values or []):
        raise GateError("no-selected-cases", '--case "" names no case', "leave --case out to run all cases")
    return tuple(part.strip() for value in values or [] for part in value.split(",") if part.strip())
