"""Reports and exports as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from eval_gate.config.written import ReportRequest
from eval_gate.files.writing import write_atomically
from eval_gate.model.result import RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.render import render

DEFAULT_NAMES = {
    "md": "report.md",
    "html": "report.html",
    "junit": "junit.xml",
    "console": "report.txt",
    "json": "report.json",
}


def write_reports(
    requests: Sequence[ReportRequest], result: RunResult, context: ReportContext, folder: Path
) -> tuple[Path, ...]:
    """Write every report; where they are. Reports without a file name go to `folder`."""
    return write_each(requests, folder, DEFAULT_NAMES, lambda form: render(form, result, context))


def write_each(
    requests: Sequence[ReportRequest], folder: Path, names: Mapping[str, str], made: Callable[[str], str]
) -> tuple[Path, ...]:
    """Write what is made of each format that is asked for, under its usual name where none is said; where it is."""
    written = []
    for request in requests:
        written.append(request.file or folder / names[request.format])
        write_atomically(written[-1], made(request.format))
    return tuple(written)
