"""`eval-gate calibrate LABELS`: agreement of a stored run's judge with human labels."""

from __future__ import annotations

from typing import Annotated

import typer

from eval_gate.cli import options


def calibrate(
    labels: Annotated[
        list[str],
        typer.Argument(
            metavar="LABELS",
            help="What people say of the answers: JSONL or CSV with id and status (passed, failed).",
            show_default=False,
        ),
    ],
    *,
    run: Annotated[
        str, typer.Option("--run", metavar="RUN", help="Run id, results file, run folder, zip, or latest.")
    ] = "latest",
    evaluator: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only what this evaluator says.  [default: the verdicts of the cases]"),
    ] = None,
    pass_score: Annotated[
        float | None,
        typer.Option(min=0, max=1, metavar="SCORE", help="The score from which on it passes.  [default: the run's]"),
    ] = None,
    min_kappa: Annotated[
        float | None,
        typer.Option(min=-1, max=1, metavar="KAPPA", help="Exit 1 where kappa is lower, or cannot be told."),
    ] = None,
    save: Annotated[
        bool,
        typer.Option(
            "--save", help="Keep it in .eval-gate/judges.json: reports of later runs say how well it is known."
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
    output_dir: options.ResultsDir = None,
) -> None:
    """Compare a judge with people: agreement, kappa with its interval, and what the judge wrongly passes.

    Label answers of a stored run, some good and some bad ones, thirty or more: lines such as
    {"id": "refund-1", "status": "failed", "error": "promises a refund"}, or a CSV with these columns. `suite` is needed
    where two eval files have the same id; several people are lines with another `trial` each.

      eval-gate calibrate labels.csv --run latest --evaluator helpfulness --save

    Exit codes: 0 compared, 1 kappa is below --min-kappa, 2 the labels or options are wrong.
    """
    from datetime import UTC, datetime
    from pathlib import Path

    from eval_gate.analysis.judge_calibration import as_json, compare_with_people, iter_calibration_lines
    from eval_gate.analysis.judge_calibration import save_comparisons as saved
    from eval_gate.cli.stored_runs.run_settings import find_results_folder
    from eval_gate.cli.terminal.console import print_message, print_output
    from eval_gate.errors import ExitCode
    from eval_gate.gate.judge_agreement import JUDGES_PATH
    from eval_gate.reports.wording.numbers import format_count
    from eval_gate.results.run_reader import read_run
    from eval_gate.text.safe_output import TextFormat

    stored = read_run(run, find_results_folder(output_dir, run))
    found = compare_with_people(stored, labels, evaluator, pass_score)
    if json:
        print_output(as_json(found, stored.run_id, evaluator), TextFormat.JSON)
    else:
        who = f"evaluator {evaluator}" if evaluator else "the verdicts"
        print_output("\n".join(iter_calibration_lines(found, who, stored.run_id)))
    if save:
        kept = saved(found, stored.run_id, evaluator, Path.cwd(), datetime.now(UTC).date())
        print_message(
            f"{JUDGES_PATH}: {format_count(len(kept), 'judge')} written; commit it, so that reports say how well "
            "it is known"
        )
    kappa = found.agreement.kappa
    if min_kappa is not None and (kappa is None or kappa < min_kappa):
        raise typer.Exit(ExitCode.FAILED)
