"""What a judging command leaves behind: the summary on standard output, and where the reports are."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from msgspec import json

from eval_gate.cli.terminal.console import Verbosity, ascii_only, colours, columns_of, out, say
from eval_gate.config.load import wrong_file
from eval_gate.errors import GateError
from eval_gate.model.result import RunResult
from eval_gate.reports.console.style import ConsoleStyle
from eval_gate.reports.context import ReportContext
from eval_gate.reports.render import render
from eval_gate.text.inert import TextForm


def print_result(result: RunResult, context: ReportContext, verbosity: Verbosity, *, as_json: bool) -> None:
    """The result on standard output: the summary for people, or the record for programs."""
    if as_json:
        out(json.format(json.encode(result), indent=2).decode(), TextForm.JSON)
        return
    out(render("console", result, context, style=style_of(verbosity)), end="")


def style_of(verbosity: Verbosity) -> ConsoleStyle:
    """How the summary is written to where standard output goes."""
    return ConsoleStyle(
        colour=colours(sys.stdout),
        ascii=ascii_only(sys.stdout),
        verbose=verbosity is Verbosity.VERBOSE,
        width=columns_of(sys.stdout),
    )


def refuse_place(output: str | None) -> None:
    """Raises GateError for what `--output` names where no file may be written."""
    if output is not None and (wrong := wrong_file(output, anywhere=True)):
        raise GateError("output-outside", f"--output: {wrong}", "name another file")


def say_written(files: Iterable[Path], verbosity: Verbosity) -> None:
    """Where the reports are, beside the result."""
    if verbosity is not Verbosity.QUIET:
        for file in files:
            say(f"written {file}")
