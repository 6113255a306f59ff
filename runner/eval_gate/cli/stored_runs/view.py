"""`eval-gate view [RUN]`: opens the page of a stored run in the browser."""

from __future__ import annotations

from typing import Annotated

import typer

from eval_gate.cli import options


def view(
    context: typer.Context,
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="Run id, results file, run folder, zip, or latest: the newest.")
    ] = "latest",
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Judge it once more, against this run.  [default: show it as it was judged]",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where the page goes.  [default: the run's folder]"),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open it, where there is a terminal and a screen.")
    ] = True,
    output_dir: options.ResultsDir = None,
) -> None:
    """Write the page of a stored run and open it in the browser. Prints where it is. Asks nobody, and runs nothing.

    RUN may also be the zip that GitHub gives for a stored result, and so may the run that it is judged against.

      eval-gate view

      eval-gate view latest --baseline main-runs/

      eval-gate view ~/Downloads/eval-gate-results.zip --no-open

    The exit code says only whether the page was made, not whether the gate passed.
    """
    from eval_gate.cli.stored_runs.run_page import open_page, write_page
    from eval_gate.cli.terminal.console import Verbosity, print_message, print_output

    page = write_page(run, baseline, output, options.select_given_settings({"outputDir": output_dir}))
    print_output(str(page))
    if browser and not open_page(page) and context.obj is Verbosity.VERBOSE:
        print_message("not opened: there is no terminal, no screen or no browser here")
