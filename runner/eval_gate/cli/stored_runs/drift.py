"""`eval-gate drift [RUN]`: whether the runs of a branch degraded, since when, and by how much."""

from __future__ import annotations

import typer

from eval_gate.cli import options

USED = ("passScore",)


def drift(
    run: str = options.argument(
        "RUN",
        "Newest run of the branch: run id, results file, run folder, folder of runs, zip, or latest.",
        default="latest",
    ),
    *,
    output_dir: str | None = options.RESULTS_DIR,
    as_json: bool = options.option("Print the drift as JSON.", "--json", default=False),
    **settings: object,
) -> None:
    """Check whether a branch got worse over its runs, since when, and by how much.

    Reads the history that each run takes over from its baseline, and finds cases, scores, judges, time and cost that
    get worse too slowly for a single run to show. Runs nothing. Uses passScore and history of the configuration.
    Without a real change, at most one of 200 runs is reported.

      eval-gate drift

      eval-gate drift main-runs/ --json

    Exit codes: 0 nothing got worse, 1 something got worse, 2 usage error, 3 too few runs in the history.
    """
    from eval_gate.analysis.drift.drift_report import iter_console_lines
    from eval_gate.cli.stored_runs.drift_lookup import as_data, choose_exit_code, find_drift_up_to
    from eval_gate.cli.terminal.console import print_output
    from eval_gate.text.safe_output import TextFormat

    branch_drift = find_drift_up_to(run, options.select_given_settings({"outputDir": output_dir, **settings}))
    if as_json:
        import json

        print_output(json.dumps(as_data(branch_drift), indent=2), TextFormat.JSON)
    else:
        print_output("\n".join(iter_console_lines(branch_drift)))
    raise typer.Exit(choose_exit_code(branch_drift))
