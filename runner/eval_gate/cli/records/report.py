"""`eval-gate report RESULT`: a stored result in another form."""

from __future__ import annotations

from typing import Annotated

import typer

from eval_gate.cli import options
from eval_gate.config.outputs import FORMATS, JunitFailures
from eval_gate.text.quoting import quoted

USED = ("junit",)
"""The settings that this command has options for."""


def report(
    result: Annotated[
        str,
        typer.Argument(
            metavar="RESULT",
            help="Run id, results file, run folder, zip, or latest: the newest.",
            show_default=False,
        ),
    ],
    report_format: Annotated[
        str, typer.Option("--format", metavar=f"<{'|'.join(FORMATS)}>", help="What to make of it.")
    ] = "md",
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Where to.  [default: standard output]")
    ] = None,
    output_dir: options.StoredIn = None,
    **settings: object,
) -> None:
    """Render a stored result: md is the pull request comment, html a page, junit for CI systems, agentv for AgentV.

    The exit code says only whether the report was made, not whether the gate passed.
    """
    from pathlib import Path

    from eval_gate.cli.records.stored_runs import results_folder
    from eval_gate.cli.terminal.console import Verbosity, out
    from eval_gate.cli.terminal.output import refuse_place, style_of
    from eval_gate.errors import GateError
    from eval_gate.files.writing import write_atomically
    from eval_gate.reports.context import ReportContext
    from eval_gate.reports.render import render
    from eval_gate.results.read import read_run

    refuse_place(output)
    which = str(settings["junit"] or JunitFailures.BLOCKING)
    if which not in list(JunitFailures):
        allowed = f"allowed: {', '.join(JunitFailures)}"
        raise GateError("unknown-value", f"--junit: {quoted(which)} is not known", allowed)
    junit = JunitFailures(which)
    stored = read_run(result, results_folder(output_dir, result))
    style = style_of(Verbosity.NORMAL) if output is None else None
    text = render(report_format, stored, ReportContext(junit=junit), style=style)
    if output is None:
        out(text, FORMATS[report_format].form, end="")
    else:
        write_atomically(Path(output), text)
