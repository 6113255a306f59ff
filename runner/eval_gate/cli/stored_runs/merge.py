"""`eval-gate merge RESULT…`: merges the results of shards or of several jobs into one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from eval_gate.model.result import RunResult


def merge(
    context: typer.Context,
    results: Annotated[
        list[str],
        typer.Argument(
            metavar="RESULT",
            help="Results files, run folders, zips, folders of shards, or ids of runs where `eval-gate run` writes them"
            " (outputDir): each part once.",
            show_default=False,
        ),
    ],
    output_dir: Annotated[
        str | None,
        typer.Option(
            "--output-dir",
            "-o",
            metavar="DIR",
            help="Where the run goes; nothing is looked up there.  [default: the configuration's outputDir]",
        ),
    ] = None,
) -> None:
    """Join the results of shards, or of several jobs, into one run, which `compare` and the action can judge.

    Prints the path of the run record. A shard that is missing is named, and makes the run incomplete: the record is
    written all the same, no gate passes on it, and the exit code is 3. Else it says only whether the results could be
    joined.
    """
    import uuid

    from eval_gate.cli.stored_runs.run_settings import find_results_folder
    from eval_gate.cli.terminal.console import Verbosity, print_message, print_output
    from eval_gate.errors import ExitCode
    from eval_gate.reports.wording.numbers import format_count
    from eval_gate.results.merge import describe_missing_shards, describe_part_differences
    from eval_gate.results.merge import merge_runs as merged
    from eval_gate.results.run_writer import write_result

    kept = find_results_folder(None, *(results if output_dir else ()))
    folder = Path(output_dir) if output_dir else kept
    runs = [run for result in results for run in _read_parts(result, kept)]
    run = merged(runs, str(uuid.uuid4()))
    record, run = write_result(folder, run)
    for difference in describe_part_differences(runs):
        print_message(f"warning: {difference}")
    if context.obj is not Verbosity.QUIET:
        missing = f"; {run.stop_reason}" if run.stop_reason else ""
        print_message(
            f"{format_count(len(runs), 'result')} joined: {format_count(run.summary.total_cases, 'case')}{missing}"
        )
    print_output(str(record))
    if describe_missing_shards(runs):
        raise typer.Exit(ExitCode.INCOMPLETE)


def _read_parts(reference: str, kept: Path) -> tuple[RunResult, ...]:
    """Read the run, or the shards, that `reference` names.

    Raises GateError, whose hint never suggests `-o` as the place to look.
    """
    from eval_gate.errors import GateError
    from eval_gate.results.result_names import LATEST
    from eval_gate.results.shards import read_parts

    try:
        return read_parts(reference, kept)
    except GateError as error:
        if reference == LATEST and error.code == "baseline-not-found":
            error.hint = "`eval-gate run --shard 1/2` makes a part there; RESULT also names one elsewhere, by its path"
        raise
