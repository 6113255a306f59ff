"""Output of commands that decide a verdict: the summary, and the paths of reports."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from msgspec import json

from eval_gate.cli.terminal.console import (
    Verbosity,
    get_width,
    is_ascii_only,
    print_message,
    print_output,
    should_colour,
)
from eval_gate.config.loader import find_file_problem
from eval_gate.errors import GateError
from eval_gate.model.result import RunResult
from eval_gate.reports.console.style import ConsoleStyle
from eval_gate.reports.context import ReportContext
from eval_gate.reports.rendering import render
from eval_gate.text.safe_output import TextFormat


def print_result(result: RunResult, context: ReportContext, verbosity: Verbosity, *, as_json: bool) -> None:
    """Print the result on standard output: the summary for people, or the run result as JSON."""
    if as_json:
        print_output(json.format(json.encode(result), indent=2).decode(), TextFormat.JSON)
        return
    print_output(render("console", result, context, style=build_style(verbosity)), end="")


def build_style(verbosity: Verbosity) -> ConsoleStyle:
    """Build the style of the summary for standard output."""
    return ConsoleStyle(
        colour=should_colour(sys.stdout),
        ascii=is_ascii_only(sys.stdout),
        verbose=verbosity is Verbosity.VERBOSE,
        width=get_width(sys.stdout),
    )


def check_output_path(output: str | None) -> None:
    """Check the path of `--output`. Raises GateError `output-outside-working-directory`."""
    if output is not None and (wrong := find_file_problem(output, anywhere=True)):
        raise GateError("output-outside-working-directory", f"--output: {wrong}", "name another file")


def print_written_files(files: Iterable[Path], verbosity: Verbosity) -> None:
    """Print the paths of the written reports on standard error."""
    if verbosity is not Verbosity.QUIET:
        for file in files:
            print_message(f"wrote {file}")
