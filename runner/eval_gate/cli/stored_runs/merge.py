"""`eval-gate merge RESULT…`: merges the results of shards or of several jobs into one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eval_gate.cli import options

if TYPE_CHECKING:
    from eval_gate.model.result import RunResult


def merge(
    context: typer.Context,
    results: list[str] = options.argument(
        "RESULT",
        "Parts to merge, each once: results files, run folders, zips, folders of shards, or ids of "
        "runs in the configuration's outputDir.",
    ),
    output_dir: str | None = options.option(
        "Folder for the merged run; no parts are read from it.  [default: the configuration's outputDir]",
        "--output-dir",
        "-o",
        metavar="DIR",
    ),
) -> None:
    """Merge the results of shards, or of several jobs, into one run for `compare` and the action.

    Prints the path of the run result. If a shard is missing, the run is incomplete: the result is written, and no gate
    passes on it.

    Exit codes: 0 merged, 2 usage error, 3 merged, but a shard is missing.
    """
    import uuid

    from eval_gate.cli.stored_runs.run_settings import find_results_folder
    from eval_gate.cli.terminal.console import Verbosity, print_output, print_progress
    from eval_gate.errors import ExitCode
    from eval_gate.results.merge import describe_missing_shards, describe_part_differences, merge_runs
    from eval_gate.results.run_writer import write_result
    from eval_gate.text.escape import format_count

    results_folder = find_results_folder(None, *(results if output_dir else ()))
    folder = Path(output_dir) if output_dir else results_folder
    runs = [run for result in results for run in _read_parts(result, results_folder)]
    run = merge_runs(runs, str(uuid.uuid4()))
    record, run = write_result(folder, run)
    for difference in describe_part_differences(runs):
        print_progress(f"warning: {difference}")
    if context.obj is not Verbosity.QUIET:
        stop_note = f"; {run.stop_reason}" if run.stop_reason else ""
        print_progress(
            f"{format_count(len(runs), 'result')} merged: {format_count(run.summary.total_cases, 'case')}{stop_note}"
        )
    print_output(str(record))
    if describe_missing_shards(runs):
        raise typer.Exit(ExitCode.INCOMPLETE)


def _read_parts(reference: str, results_folder: Path) -> tuple[RunResult, ...]:
    """Read the run or shards that `reference` names; the hint of an error never suggests `-o` as the place to look."""
    from eval_gate.errors import GateError
    from eval_gate.results.merge import read_parts
    from eval_gate.results.result_names import LATEST

    try:
        return read_parts(reference, results_folder)
    except GateError as error:
        if reference == LATEST and error.code == "baseline-not-found":
            error.hint = "make a part there with `eval-gate run --shard 1/2`, or name a part elsewhere by its path"
        raise
