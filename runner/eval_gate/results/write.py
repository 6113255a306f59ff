"""Results on disk: `<outputDir>/<runId>/run.json`, one file per suite beside it, and `latest.json`.

Every file is written under a temporary name and renamed, so that a reader sees the old one or the new one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import nullcontext
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from eval_gate.errors import GateError
from eval_gate.files.writing import make_folder, replacing, write_atomically
from eval_gate.model.limits import RESULT_BYTES, RESULT_VALUES
from eval_gate.model.result import RunResult, SuiteResult
from eval_gate.results.ledger import LEDGER_NAME, Ledger, ledger_bytes
from eval_gate.results.names import LATEST_NAME, RUN_NAME, is_run_id
from eval_gate.results.pushes import PUSHES_NAME, Pushes, pushes_bytes
from eval_gate.results.record.fitting import LessenedRun, fitted_record, lessened_run, may_fit
from eval_gate.results.record.forms import FittedRecord, MeasuredJson, RecordTooLargeError, indented, suite_files
from eval_gate.text.quoting import quoted_name


def run_folder(output_dir: Path, run_id: str) -> Path:
    """The folder of a run, made if needed. Raises GateError `output-not-writable` and `output-outside`."""
    if not is_run_id(run_id):
        raise GateError(
            "bad-run-id",
            f"{quoted_name(run_id, or_digits=True)} cannot be the name of a run",
            "only A-Z a-z 0-9 . _ - are",
        )
    folder = output_dir / run_id
    make_folder(folder)
    return folder


class WrittenRun(NamedTuple):
    """Where the record is, and the run as it stands there: too much is left out of it, and a warning says what."""

    record: Path
    run: RunResult


def write_record(output_dir: Path, result: RunResult) -> Path:
    """Write the run record and point `latest.json` at it; the path of the record."""
    return _write_record(output_dir, fitted_record(result))


def write_ledger(output_dir: Path, run_id: str, ledger: Ledger) -> None:
    """Write the ledger that ends with this run: first of all, since it takes as much memory as the records do."""
    write_atomically(run_folder(output_dir, run_id) / LEDGER_NAME, ledger_bytes(ledger))


def write_result(output_dir: Path, result: RunResult | LessenedRun, pushes: Pushes | None = None) -> WrittenRun:
    """Write the record, every suite's EvalSuiteResult, and the pushes that end with this run."""
    names: set[str] = set()
    less = result if isinstance(result, LessenedRun) else lessened_run(result)
    folder = run_folder(output_dir, less.run.run_id)
    if pushes is not None:
        write_atomically(folder / PUSHES_NAME, pushes_bytes(pushes))
    if may_fit(less) and _written_in_one_go(output_dir, less.run):
        return WrittenRun(folder / RUN_NAME, less.run)
    record = fitted_record(less)
    for suite, pieces in suite_files(record):
        _write(folder / _suite_file(suite, names), pieces)
    return WrittenRun(_write_record(output_dir, record), record.run)


def _written_in_one_go(output_dir: Path, run: RunResult) -> bool:
    """Write record and suites with indents, piece by piece; False, and no record, where it turns out to be too large.

    Made at once they would be in memory as a whole, and the cases of the suites would be put into JSON twice.
    """
    folder, names = run_folder(output_dir, run.run_id), set[str]()
    sound = MeasuredJson(RESULT_BYTES, RESULT_VALUES)
    try:
        with replacing(folder / RUN_NAME) as write:
            for number, pieces in groupby(indented(run), key=lambda piece: piece.suite):
                with (
                    nullcontext(_nowhere)
                    if number is None
                    else replacing(folder / _suite_file(run.suites[number], names)) as write_own
                ):
                    for piece in pieces:
                        sound.add(piece.record)
                        write(piece.record)
                        write_own(piece.own)
    except RecordTooLargeError:
        return False
    _point_at(output_dir, run)
    return True


def _nowhere(_piece: bytes) -> None:
    """What is in no suite has no file beside the record."""


def _write_record(output_dir: Path, record: FittedRecord) -> Path:
    file = run_folder(output_dir, record.run.run_id) / RUN_NAME
    _write(file, record.pieces)
    _point_at(output_dir, record.run)
    return file


def _write(file: Path, pieces: Iterable[bytes]) -> None:
    with replacing(file) as write:
        for piece in pieces:
            write(piece)


def _point_at(output_dir: Path, run: RunResult) -> None:
    pointer = {"runId": run.run_id, "timestamp": run.timestamp, "path": f"{run.run_id}/{RUN_NAME}"}
    write_atomically(output_dir / LATEST_NAME, json.dumps(pointer, indent=2) + "\n")


def _suite_file(suite: SuiteResult, taken: set[str]) -> str:
    """`<eval file's stem>.json`, made safe and unique within the run."""
    stem = re.sub(r"[^\w.-]+", "-", Path(suite.eval_file).stem).strip(".-") or "suite"
    name, number = f"{stem}.json", 1
    while name.casefold() in taken or name in {RUN_NAME, LEDGER_NAME, PUSHES_NAME}:
        number += 1
        name = f"{stem}-{number}.json"
    taken.add(name.casefold())
    return name
