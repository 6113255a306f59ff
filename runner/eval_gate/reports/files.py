"""Reports and exports as files."""

from __future__ import annotations

from collections.abc import Sequence
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
    written = []
    for request in requests:
        file = request.file or folder / DEFAULT_NAMES[request.format]
        write_atomically(file, render(request.format, result, context))
        written.append(file)
    return tuple(written)
