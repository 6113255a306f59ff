"""`eval-gate merge RESULT…`: the results of shards or of several jobs become one run."""

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

    from eval_gate.cli.records.stored_runs import results_folder
    from eval_gate.cli.terminal.console import Verbosity, out, say
    from eval_gate.errors import ExitCode
    from eval_gate.reports.words.numbers import count
    from eval_gate.results.merge import differences_of_parts, missing_shards
    from eval_gate.results.merge import merge as merged
    from eval_gate.results.write import write_result

    kept = results_folder(None, *(results if output_dir else ()))
    folder = Path(output_dir) if output_dir else kept
    runs = [run for result in results for run in _parts(result, kept)]
    run = merged(runs, str(uuid.uuid4()))
    record, run = write_result(folder, run)
    for difference in differences_of_parts(runs):
        say(f"warning: {difference}")
    if context.obj is not Verbosity.QUIET:
        missing = f"; {run.stopped}" if run.stopped else ""
        say(f"{count(len(runs), 'result')} joined: {count(run.summary.total_cases, 'case')}{missing}")
    out(str(record))
    if missing_shards(runs):
        raise typer.Exit(ExitCode.INCOMPLETE)


def _parts(reference: str, kept: Path) -> tuple[RunResult, ...]:
    """The run, or the shards, that it leads to. Raises GateError, which never offers -o as the place to look."""
    from eval_gate.errors import GateError
    from eval_gate.results.names import LATEST
    from eval_gate.results.parts import read_parts

    try:
        return read_parts(reference, kept)
    except GateError as error:
        if reference == LATEST and error.code == "baseline-not-found":
            error.hint = "`eval-gate run --shard 1/2` makes a part there; RESULT also names one elsewhere, by its path"
        raise
