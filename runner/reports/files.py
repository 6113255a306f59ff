"""Reports as files: which were asked for, and writing them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.engine.store import write_atomically
from runner.errors import GateError, did_you_mean
from runner.model.result import RunResult
from runner.reports.context import ReportContext
from runner.reports.render import FORMATS, render

DEFAULT_NAMES = {
    "md": "report.md",
    "html": "report.html",
    "junit": "junit.xml",
    "console": "report.txt",
    "json": "report.json",
}


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """A report that was asked for; `file` None means its usual name in the run's folder."""

    format: str
    file: Path | None


def parse_reports(texts: Iterable[str]) -> tuple[ReportRequest, ...]:
    """`html` and `junit=out/junit.xml`. Raises GateError `unknown-value` for an unknown format."""
    requests = []
    for text in texts:
        name, equals, file = text.partition("=")
        if name not in FORMATS or (equals and not file):
            raise GateError(
                "unknown-value",
                f'--report: "{text}" is not known{did_you_mean(name, FORMATS)}',
                f"FORMAT or FORMAT=FILE with FORMAT one of {', '.join(FORMATS)}",
            )
        requests.append(ReportRequest(name, Path(file) if file else None))
    return tuple(requests)


def write_reports(
    requests: Sequence[ReportRequest], result: RunResult, context: ReportContext, folder: Path
) -> tuple[Path, ...]:
    """Write every report; where they are. Reports without a file name go to `folder`."""
    written = []
    for request in requests:
        file = request.file or folder / DEFAULT_NAMES[request.format]
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, render(request.format, result, context))
        written.append(file)
    return tuple(written)
