"""`eval-gate calibrate LABELS`: agreement of a stored run's judge with human labels."""

from __future__ import annotations

import typer

from eval_gate.cli import options


def calibrate(
    labels: list[str] = options.argument(
        "LABELS", "Human labels of responses: JSONL or CSV files with id and status (passed or failed)."
    ),
    *,
    run: str = options.option(
        "Run whose responses are labeled: run id, results file, run folder, zip, or latest.",
        "--run",
        default="latest",
        metavar="RUN",
    ),
    evaluator: str | None = options.option(
        "Evaluator to compare.  [default: the results of the cases]", metavar="NAME"
    ),
    pass_score: float | None = options.option(
        "Score from which a case passes.  [default: the run's]", metavar="SCORE", min=0, max=1
    ),
    min_kappa: float | None = options.option(
        "Minimum kappa; exit with 1 if kappa is lower or unknown.", metavar="KAPPA", min=-1, max=1
    ),
    save: bool = options.option(
        "Store the agreement in .eval-gate/judges.json, for the reports of later runs.", "--save", default=False
    ),
    json: bool = options.option("Print the comparison as JSON.", "--json", default=False),
    output_dir: str | None = options.RESULTS_DIR,
) -> None:
    """Compare an LLM judge with human labels: agreement, kappa with its interval, and wrong passes of the judge.

    Label at least thirty responses of a stored run, good and bad ones, in lines such as
    {"id": "refund-1", "status": "failed", "error": "promises a refund"}, or in a CSV with these columns. Add `suite` if
    two eval files have the same id. Give each person a `trial` of their own.

      eval-gate calibrate labels.csv --run latest --evaluator helpfulness --save

    Exit codes: 0 compared, 1 kappa is below --min-kappa, 2 the labels or options are wrong.
    """
    from datetime import UTC, datetime
    from pathlib import Path

    from eval_gate.analysis import judge_calibration
    from eval_gate.cli.stored_runs.run_settings import find_results_folder
    from eval_gate.cli.terminal.console import print_message, print_output
    from eval_gate.errors import ExitCode
    from eval_gate.gate.judge_agreement import JUDGES_PATH
    from eval_gate.results.run_reader import read_run
    from eval_gate.text.escape import format_count
    from eval_gate.text.safe_output import TextFormat

    stored = read_run(run, find_results_folder(output_dir, run))
    calibration = judge_calibration.compare_with_people(stored, labels, evaluator, pass_score)
    if json:
        print_output(judge_calibration.as_json(calibration, stored.run_id, evaluator), TextFormat.JSON)
    else:
        who = f"evaluator {evaluator}" if evaluator else "the results of the cases"
        print_output("\n".join(judge_calibration.iter_calibration_lines(calibration, who, stored.run_id)))
    if save:
        today = datetime.now(UTC).date()
        records = judge_calibration.save_comparisons(calibration, stored.run_id, evaluator, Path.cwd(), today)
        print_message(
            f"{JUDGES_PATH}: {format_count(len(records), 'judge')} written; commit the file, so that reports show the "
            "agreement"
        )
    kappa = calibration.agreement.kappa
    if min_kappa is not None and (kappa is None or kappa < min_kappa):
        raise typer.Exit(ExitCode.FAILED)
