"""The program `eval-gate`: its commands, and how an error becomes a message and an exit code."""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer

from runner import __version__
from runner.cli import (
    accept,
    action,
    agent_evals,
    compare,
    demo,
    init,
    merge,
    options,
    report,
    run,
    schema,
    validate,
)
from runner.cli.console import Verbosity, prepare_streams, print_crash, print_error
from runner.errors import ExitCode, GateError
from runner.process.hidden import hide

app = typer.Typer(
    name="eval-gate",
    help="Did this change break anything your agent could do yesterday, and can you believe the answer?",
    epilog="Exit codes: 0 gate passed, 1 gate failed, 2 usage or configuration error, 3 could not be completed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


def _version(value: bool) -> None:  # noqa: FBT001 (typer's callback shape)
    if value:
        typer.echo(f"eval-gate {__version__}")
        raise typer.Exit


@app.callback()
def _everywhere(
    context: typer.Context,
    _version_asked: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
) -> None:
    context.obj = context.obj or Verbosity.NORMAL


run.add_to(app)
compare.add_to(app)
accept.add_to(app)
report.add_to(app)
merge.add_to(app)
validate.add_to(app)
schema.add_to(app)
init.add_to(app)
demo.add_to(app)
agent_evals.add_to(app)
action.add_to(app)


def main() -> NoReturn:
    """Run the program and exit: the only place where an exception ends, and the only `except Exception`."""
    hide()
    prepare_streams()
    # looking for plugins of other packages costs 15 ms, and none of them has a say in our validation
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        # standalone mode is how usage errors become exit 2 with the command's own usage line
        code: object = app(prog_name="eval-gate", standalone_mode=True)
    except GateError as error:
        print_error(error)
        code = error.exit_code
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except Exception as error:  # noqa: BLE001 (a defect of ours: said as such, never a pass)
        print_crash(error)
        code = ExitCode.INCOMPLETE
    sys.exit(int(code) if isinstance(code, int) else ExitCode.PASSED)
