"""`eval-gate power [RUN]`: what the next run can detect, and what more data would add."""

from __future__ import annotations

import typer

from eval_gate.cli import options

USED = ("falseAlarmRate",)


def power(
    context: typer.Context,
    run: str = options.argument(
        "RUN",
        "Baseline of the next run: run id, results file, run folder, folder of runs, zip, or "
        "latest (the newest that passed).",
        default="latest",
    ),
    *,
    history_runs: int | None = options.option("Number of runs in the history to assume.", metavar="N", min=1, max=20),
    cases: int | None = options.option("Number of cases to assume.", metavar="N", min=1, max=100_000),
    reruns: int | None = options.option(
        "Maximum re-runs of a suspected regression to assume.", metavar="N", min=0, max=100
    ),
    output_dir: str | None = options.RESULTS_DIR,
    as_json: bool = options.option("Print the figures as JSON.", "--json", default=False),
    **settings: object,
) -> None:
    """Show how likely the next run detects a broken case, and the smallest loss in all cases that it detects.

    Also shows the figures for twice the history, twice the cases and twice the re-runs, or for the numbers that you
    assume. The figures come from the rules of the verdict, and assume that nothing else changes. Runs nothing.

      eval-gate power

      eval-gate power main-runs/ --reruns 12

    Exit codes: 0 shown, 2 usage error, or no history.
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
