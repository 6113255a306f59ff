"""Results on disk: `<outputDir>/<runId>/run.json`, one file per suite beside it, and `latest.json`.

Every file is written under a temporary name and renamed, so that a reader sees the old one or the new one.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

from eval_gate.errors import GateError
from eval_gate.files.writing import make_folder, write_atomically
from eval_gate.model.result import RunResult, SuiteResult
from eval_gate.results.fitting import Lessened, fitted
from eval_gate.results.forms import Fitted, suite_files
from eval_gate.results.ledger import LEDGER_NAME, Ledger, ledger_bytes
from eval_gate.results.names import LATEST_NAME, RUN_NAME, is_run_id
from eval_gate.results.pushes import PUSHES_NAME, Pushes, pushes_bytes


def run_folder(output_dir: Path, run_id: str) -> Path:
    """The folder of a run, made if needed. Raises GateError `output-not-writable` and `output-outside`."""
    if not is_run_id(run_id):
        raise GateError("bad-run-id", f'"{run_id[:80]}" cannot be the name of a run', "only A-Z a-z 0-9 . _ - are")
    folder = output_dir / run_id
    make_folder(folder)
    return folder


class Written(NamedTuple):
    """Where the record is, and the run as it stands there: too much is left out of it, and a warning says what."""

    record: Path
    run: RunResult


def write_record(output_dir: Path, result: RunResult) -> Path:
    """Write the run record and point `latest.json` at it; the path of the record."""
    return _write_record(output_dir, fitted(result))


def write_ledger(output_dir: Path, run_id: str, ledger: Ledger) -> None:
    """Write the ledger that ends with this run: first of all, since it takes as much memory as the records do."""
    write_atomically(run_folder(output_dir, run_id) / LEDGER_NAME, ledger_bytes(ledger))


def write_result(
    output_dir: Path, result: RunResult | Lessened, ledger: Ledger | None = None, pushes: Pushes | None = None
) -> Written:
    """Write the record, every suite's EvalSuiteResult, and the ledger and the pushes that end with this run."""
    names: set[str] = set()
    run_id = (result.run if isinstance(result, Lessened) else result).run_id
    folder = run_folder(output_dir, run_id)
    if ledger is not None:
        write_ledger(output_dir, run_id, ledger)
        del ledger
    if pushes is not None:
        write_atomically(folder / PUSHES_NAME, pushes_bytes(pushes))
    record = fitted(result)
    for suite, pieces in suite_files(record):
        write_atomically(folder / _suite_file(suite, names), pieces)
    return Written(_write_record(output_dir, record), record.run)


def _write_record(output_dir: Path, record: Fitted) -> Path:
    run = record.run
    file = run_folder(output_dir, run.run_id) / RUN_NAME
    write_atomically(file, record.pieces)
    pointer = {"runId": run.run_id, "timestamp": run.timestamp, "path": f"{run.run_id}/{RUN_NAME}"}
    write_atomically(output_dir / LATEST_NAME, json.dumps(pointer, indent=2) + "\n")
    return file


def _suite_file(suite: SuiteResult, taken: set[str]) -> str:
    """`<eval file's stem>.json`, made safe and unique within the run."""
    stem = re.sub(r"[^\w.-]+", "-", Path(suite.eval_file).stem).strip(".-") or "suite"
    name, number = f"{stem}.json", 1
    while name.casefold() in taken or name in {RUN_NAME, LEDGER_NAME, PUSHES_NAME}:
        number += 1
        name = f"{stem}-{number}.json"
    taken.add(name.casefold())
    return name
