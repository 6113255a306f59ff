"""Reports and exports as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from eval_gate.config.outputs import FORMATS, ReportRequest
from eval_gate.files.writing import write_atomically
from eval_gate.model.result import RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.render import render

_USUAL: Final = {name: one.file for name, one in FORMATS.items() if one.file}


def write_reports(
    requests: Sequence[ReportRequest], result: RunResult, context: ReportContext, folder: Path
) -> tuple[Path, ...]:
    """Write every report; where they are. Reports without a file name go to `folder`."""
    return write_each(requests, folder, _USUAL, lambda form: render(form, result, context))


def write_each(
    requests: Sequence[ReportRequest], folder: Path, names: Mapping[str, str], made: Callable[[str], str]
) -> tuple[Path, ...]:
    """Write what is made of each format that is asked for, under its usual name where none is said; where it is."""
    written = []
    for request in requests:
        written.append(request.file or folder / names[request.format])
        write_atomically(written[-1], made(request.format))
    return tuple(written)
