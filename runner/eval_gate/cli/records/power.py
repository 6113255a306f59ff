"""`eval-gate power [RUN]`: what the next run can see, and what more history, cases or re-runs would buy."""

from __future__ import annotations

from typing import Annotated

import typer

from eval_gate.cli import options

USED = ("errorRate",)
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
    history: Annotated[
        int | None, typer.Option(min=1, max=20, metavar="N", help="Suppose that the record holds so many runs.")
    ] = None,
    cases: Annotated[
        int | None, typer.Option(min=1, max=100_000, metavar="N", help="Suppose that there are so many cases.")
    ] = None,
    confirm: Annotated[
        int | None,
        typer.Option(min=0, max=100, metavar="N", help="Suppose so many re-runs of a case in doubt at most."),
    ] = None,
    output_dir: options.StoredIn = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    **settings: object,
) -> None:
    """Say how likely the next run finds a case that breaks, and the smallest loss of all cases that it finds.

    Beside that: with twice the history, twice the cases and twice the re-runs; or with what is supposed instead. The
    figures come from the same decisions as verdicts, and suppose that nothing else changes. Runs nothing.

      eval-gate power

      eval-gate power main-runs/ --confirm 12

    The exit code says only whether there was a record to look at.
    """
    from eval_gate.cli.records.forecast import Supposition, as_data, forecast_rows, table
    from eval_gate.cli.terminal.console import Verbosity, out
    from eval_gate.text.inert import TextForm

    supposed = Supposition(history, cases, confirm)
    rows = forecast_rows(run, supposed, output_dir, options.given_settings(settings))
    if as_json:
        import json

        out(json.dumps(as_data(rows), indent=2), TextForm.JSON)
    else:
        out("\n".join(table(rows, every=context.obj is Verbosity.VERBOSE)))
