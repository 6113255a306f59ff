"""`eval-gate power [RUN]`: what the next run can detect, and what more data would add."""

from __future__ import annotations

from typing import Annotated

import typer

from eval_gate.cli import options

USED = ("falseAlarmRate",)
"""The settings that this command has options for."""


def power(
    context: typer.Context,
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="What the next run is compared with: run id, results file, run folder, folder of runs, zip, or "
            "latest: the newest that passed.",
        ),
    ] = "latest",
    *,
    history_runs: Annotated[
        int | None, typer.Option(min=1, max=20, metavar="N", help="Suppose that the record holds so many runs.")
    ] = None,
    cases: Annotated[
        int | None, typer.Option(min=1, max=100_000, metavar="N", help="Suppose that there are so many cases.")
    ] = None,
    reruns: Annotated[
        int | None,
        typer.Option(min=0, max=100, metavar="N", help="Suppose so many re-runs of a case in doubt at most."),
    ] = None,
    output_dir: options.ResultsDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    **settings: object,
) -> None:
    """Say how likely the next run finds a case that breaks, and the smallest loss of all cases that it finds.

    Beside that: with twice the history, twice the cases and twice the re-runs; or with what is supposed instead. The
    figures come from the same decisions as verdicts, and suppose that nothing else changes. Runs nothing.

      eval-gate power

      eval-gate power main-runs/ --reruns 12

    The exit code says only whether there was a record to look at.
    """
    from eval_gate.cli.stored_runs.forecast import Supposition, as_data, build_forecast_rows, iter_table_lines
    from eval_gate.cli.terminal.console import Verbosity, print_output
    from eval_gate.text.safe_output import TextFormat

    supposed = Supposition(history_runs, cases, reruns)
    rows = build_forecast_rows(run, supposed, output_dir, options.select_given_settings(settings))
    if as_json:
        import json

        print_output(json.dumps(as_data(rows), indent=2), TextFormat.JSON)
    else:
        print_output("\n".join(iter_table_lines(rows, every=context.obj is Verbosity.VERBOSE)))
