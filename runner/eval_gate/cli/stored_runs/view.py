"""`eval-gate view [RUN]`: opens the page of a stored run in the browser."""

from __future__ import annotations

import typer

from eval_gate.cli import options


def view(
    context: typer.Context,
    run: str = typer.Argument(
        "latest", metavar="RUN", help="Run to show: run id, results file, run folder, zip, or latest (the newest)."
    ),
    baseline: str | None = options.option(
        "Run with which to decide the gate again.  [default: the stored verdict]", metavar="RUN"
    ),
    output: str | None = options.option(
        "File for the report.  [default: in the run's folder]", "--output", "-o", metavar="FILE"
    ),
    browser: bool = options.option(
        "Open the report if there is a terminal and a screen.", "--open/--no-open", default=True
    ),
    output_dir: str | None = options.RESULTS_DIR,
) -> None:
    """Write the report of a stored run, print its path, and open it in the browser.

    RUN and --baseline may also be the zip that GitHub gives for a stored result. Runs nothing.

      eval-gate view

      eval-gate view latest --baseline main-runs/

      eval-gate view ~/Downloads/eval-gate-results.zip --no-open

    Exit codes: 0 written, whatever the verdict, 2 usage error.
    """
    from eval_gate.cli.stored_runs.run_page import open_page, write_page
    from eval_gate.cli.terminal.console import Verbosity, print_message, print_output

    page = write_page(run, baseline, output, options.select_given_settings({"outputDir": output_dir}))
    print_output(str(page))
    if browser and not open_page(page) and context.obj is Verbosity.VERBOSE:
        print_message("not opened: no terminal, no screen or no browser")
