"""`eval-gate merge RESULT…`: the results of shards or of several jobs become one run."""

from __future__ import annotations

from typing import Annotated

import typer


def merge(
    context: typer.Context,
    results: Annotated[
        list[str],
        typer.Argument(
            metavar="RESULT",
            help="Results files, run folders, zips, folders of shards, or ids of runs in DIR: each part once.",
            show_default=False,
        ),
    ],
    output_dir: Annotated[
        str, typer.Option("--output-dir", "-o", metavar="DIR", help="Where the run goes.")
    ] = "evals/results",
) -> None:
    """Join the results of shards, or of several jobs, into one run, which `compare` and the action can judge.

    Prints the path of the run record. A shard that is missing is named, and makes the run incomplete: the record is
    written all the same, no gate passes on it, and the exit code is 3. Else it says only whether the results could be
    joined.
    """
    import uuid
    from pathlib import Path

    from eval_gate.cli.terminal.console import Verbosity, out, say
    from eval_gate.errors import ExitCode
    from eval_gate.reports.words.numbers import count
    from eval_gate.results.merge import merge as merged
    from eval_gate.results.merge import missing_shards
    from eval_gate.results.parts import read_parts
    from eval_gate.results.write import write_result

    folder = Path(output_dir)
    runs = [run for result in results for run in read_parts(result, folder)]
    run = merged(runs, str(uuid.uuid4()))
    record, run = write_result(folder, run)
    if context.obj is not Verbosity.QUIET:
        missing = f"; {run.stopped}" if run.stopped else ""
        say(f"{count(len(runs), 'result')} joined: {count(run.summary.total_cases, 'case')}{missing}")
    out(str(record))
    if missing_shards(runs):
        raise typer.Exit(ExitCode.INCOMPLETE)
