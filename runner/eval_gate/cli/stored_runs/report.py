"""`eval-gate report RESULT`: renders a stored result in another format."""

from __future__ import annotations

import typer

from eval_gate.cli import options
from eval_gate.config.outputs import FORMATS, JunitFailures
from eval_gate.text.quoting import quote_value

USED = ("junitFailures",)


def report(
    context: typer.Context,
    result: str = options.argument(
        "RESULT", "Run to render: run id, results file, run folder, zip, or latest (the newest)."
    ),
    report_format: str = options.option(
        "Format of the report.", "--format", default="md", metavar=f"<{'|'.join(FORMATS)}>"
    ),
    output: str | None = options.option("File to write.  [default: standard output]", "--output", "-o", metavar="FILE"),
    output_dir: str | None = options.RESULTS_DIR,
    **settings: object,
) -> None:
    """Render a stored result as md (the pull request comment), html, junit, console, json or agentv.

    Exit codes: 0 rendered, whatever the verdict, 2 usage error.
    """
    from pathlib import Path

    from eval_gate.cli.stored_runs.run_settings import find_results_folder
    from eval_gate.cli.terminal.console import print_output
    from eval_gate.cli.terminal.result_output import build_style, check_output_path
    from eval_gate.errors import GateError
    from eval_gate.files.writing import write_atomically
    from eval_gate.reports.context import ReportContext
    from eval_gate.reports.rendering import render
    from eval_gate.results.run_reader import read_run

    check_output_path(output)
    which = str(settings["junitFailures"] or JunitFailures.BLOCKING)
    if which not in list(JunitFailures):
        allowed = f"allowed: {', '.join(JunitFailures)}"
        raise GateError("unknown-value", f"--junit-failures: {quote_value(which)} is not known", allowed)
    junit = JunitFailures(which)
    stored = read_run(result, find_results_folder(output_dir, result))
    style = build_style(context.obj) if output is None else None
    text = render(report_format, stored, ReportContext(junit=junit), style=style)
    if output is None:
        print_output(text, FORMATS[report_format].form, end="")
    else:
        write_atomically(Path(output), text)
