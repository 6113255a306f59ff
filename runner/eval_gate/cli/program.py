"""The commands of `eval-gate`, and the conversion of errors to messages and exit codes."""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterable
from typing import Final

import typer

from eval_gate import __version__
from eval_gate.cli import options
from eval_gate.cli.repository import draft, init, measures, schema, validate, waive
from eval_gate.cli.runs import action, agent_evals, demo, run
from eval_gate.cli.stored_runs import calibrate, check, compare, drift, merge, power, publish, report, trend, view
from eval_gate.cli.terminal.console import Verbosity, hide_keys, print_error, print_internal_error, print_message
from eval_gate.cli.terminal.help import FullHelpGroup, PlainCommand, build_command_class
from eval_gate.errors import ExitCode, GateError, find_exhaustion_error, get_signal_exit_code
from eval_gate.process.signals import end_programs, handle_signal

_MAX_CAUSES: Final = 20

app = typer.Typer(
    name="eval-gate",
    cls=FullHelpGroup,
    help="Run the evals of your LLM agent and find out which cases a change broke.",
    epilog="Exit codes: 0 gate passed, 1 gate failed, 2 usage or configuration error, 3 inconclusive.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"eval-gate {__version__}")
        raise typer.Exit


@app.callback()
def _set_default_verbosity(
    context: typer.Context,
    _show_version: bool = options.option(
        "Show the version and exit.", "--version", default=False, callback=_print_version, is_eager=True
    ),
    verbose: bool = options.VERBOSE,
    quiet: bool = options.QUIET,
) -> None:
    if context.obj is None:  # --quiet and --verbose are read before
        context.obj = Verbosity.NORMAL


for _decide, _used, _common in (
    (run.run, run.USED, run.COMMON),
    (compare.compare, compare.USED, compare.COMMON),
    (check.check, check.USED, check.COMMON),
):
    app.command(cls=build_command_class(_common))(options.with_options(_decide, _used, has_short_help=True))
for _command in (
    options.with_options(waive.waive),
    options.with_options(report.report, report.USED),
    options.with_options(view.view),
    options.with_options(power.power, power.USED),
    options.with_options(drift.drift, drift.USED),
    options.with_options(trend.trend, trend.USED),
    options.with_options(merge.merge),
    options.with_options(calibrate.calibrate),
    options.with_options(validate.validate, validate.USED),
    options.with_options(measures.measures, measures.USED),
    options.with_options(schema.schema),
    options.with_options(init.init, init.USED),
    options.with_options(demo.demo),
    options.with_options(action.action),
    options.with_options(publish.publish),
):
    app.command(cls=PlainCommand)(_command)
app.command(cls=build_command_class(draft.COMMON))(options.with_options(draft.draft, draft.USED, has_short_help=True))
app.command(cls=agent_evals.AgentEvalsCommand)(options.with_options(agent_evals.agent_evals))
_COMMANDS: Final = {
    one.name or typer.main.get_command_name(one.callback.__name__): one
    for one in app.registered_commands
    if one.callback is not None
}


def run_program(listening: Iterable[int] = ()) -> int:
    """Run the program, and return its exit code. Catches every exception but those about one case of a run.

    `listening` are the signals, of SIGINT and SIGTERM, that end it from here on; others are left as they are.
    """
    try:
        try:
            return _run_app(listening)
        finally:
            end_programs()
    except KeyboardInterrupt as late:  # after all was done, or while another signal was reported
        end_programs()
        return _report_signal(late)


def _run_app(listening: Iterable[int]) -> int:
    # searching for plugins of other packages takes 15 ms, and none may change the validation
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        for number in listening:
            signal.signal(number, handle_signal)
        app.registered_commands = _select_commands(sys.argv[1:])
        # standalone mode is how usage errors become exit 2 with the command's own usage line
        app(prog_name="eval-gate", standalone_mode=True)
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # the library would exit with 1: "the gate failed"
            return _report_internal_error(stop.__context__)
        by_signal = _find_signal(stop)
        return _report_signal(by_signal) if by_signal else stop.code if isinstance(stop.code, int) else ExitCode.PASSED
    except KeyboardInterrupt as interrupt:
        return _report_signal(interrupt)
    except GateError as error:
        return _report_error(error)
    except Exception as error:  # noqa: BLE001 (a defect of this program: reported, never a pass)
        by_signal = _find_signal(error)
        return _report_signal(by_signal) if by_signal else _report_internal_error(error)
    return ExitCode.PASSED


def _select_commands(words: list[str]) -> list[typer.models.CommandInfo]:
    """Select the command that `words` names, or all: reading the options of all commands takes a while."""
    name = next((word for word in words if not word.startswith("-")), "")
    return [_COMMANDS[name]] if name in _COMMANDS else list(_COMMANDS.values())


def _report_error(error: GateError) -> int:
    error.mask(hide_keys)
    print_error(error)
    return error.exit_code


def _report_internal_error(error: Exception) -> int:
    """Report an exhausted resource, or else a defect of this program."""
    if refusal := find_exhaustion_error(error):
        # half-built objects would print errors when they are destroyed, after the message of this error
        sys.unraisablehook = _ignore_unraisable
        warnings.simplefilter("ignore")
        # the failed call may hold the last available file descriptor, and the report has to load a module
        traceback.clear_frames(error.__traceback__)
        gc.collect()
        return _report_error(refusal)
    print_internal_error(error)
    return ExitCode.INCOMPLETE


def _ignore_unraisable(_: object) -> None:
    """Ignore an exception that cannot be caught."""


def _report_signal(by_signal: KeyboardInterrupt) -> int:
    code = get_signal_exit_code(by_signal)
    print_message("terminated (SIGTERM)" if code is ExitCode.TERMINATED else "interrupted")
    return code


def _find_signal(error: BaseException) -> KeyboardInterrupt | None:
    """Find the signal that a library turned into this error, among up to `_MAX_CAUSES` causes and contexts."""
    cause: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if cause is None or isinstance(cause, KeyboardInterrupt):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None
