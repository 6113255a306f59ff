"""Reads shards from disk as one run, and reports missing shards.

A single shard can pass by itself. A folder with seven of eight shards must not get the verdict of one.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from eval_gate.model.result import RunResult, Shard
from eval_gate.results.merge import merge_runs
from eval_gate.results.result_names import RUN_NAME
from eval_gate.results.run_reader import (
    ARTIFACT_RUN_GLOB,
    MAX_RUNS_READ,
    MAX_RUNS_SEARCHED,
    FileFilter,
    accept_any_file,
    read_run,
    read_runs,
)


def read_merged_run(
    references: Sequence[str], output_dir: Path, shard: Shard | None = None, taken: FileFilter = accept_any_file
) -> RunResult:
    """Read the run that these references name, and merge its shards.

    The run is incomplete if a shard is missing. `shard` selects one part by itself. In folders of runs, only files
    that `taken` accepts count. Raises GateError like `read_run` and `merge_runs`.
    """
    runs = [run for reference in references for run in read_parts(reference, output_dir, taken)]
    return merge_parts(runs, shard)


def merge_parts(runs: Sequence[RunResult], shard: Shard | None = None) -> RunResult:
    """Merge runs into one; a single requested run stays as it is. Raises GateError `conflicting-results`."""
    if len(runs) == 1 and runs[0].shard in (None, shard):
        return runs[0]
    return merge_runs(runs, str(uuid.uuid4()))


def read_parts(reference: str, output_dir: Path, taken: FileFilter = accept_any_file) -> tuple[RunResult, ...]:
    """Read the run that a reference names, or all shards of a folder that holds them.

    Each shard has a folder of its own: `RUN/run.json` if the artifacts were downloaded with `merge-multiple`,
    otherwise `ARTIFACT/RUN/run.json`.
    """
    path = Path(reference)
    if not path.is_dir() or (path / RUN_NAME).is_file():
        return (read_run(reference, output_dir, taken),)
    found = read_runs(path, taken=taken)
    if not found:
        return read_runs(path, ARTIFACT_RUN_GLOB, MAX_RUNS_SEARCHED, taken) or (read_run(reference, output_dir, taken),)
    if len(found) == MAX_RUNS_READ and found[0].shard is not None:
        found = read_runs(path, most=MAX_RUNS_SEARCHED, taken=taken)
    shards = tuple(takewhile(lambda run: run.shard is not None, found))  # newest first: what is older is done with
    return shards or (read_run(reference, output_dir, taken),)
