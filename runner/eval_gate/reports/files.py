"""Reports and exports as files: which were asked for, and writing them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eval_gate.errors import GateError, did_you_mean
from eval_gate.files.writing import write_atomically
from eval_gate.model.result import RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.render import EXPORTS, REPORTS, render

if TYPE_CHECKING:
    from eval_gate.config.settings import RunConfig

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


def asked_for(config: RunConfig) -> tuple[ReportRequest, ...]:
    """All files that a configuration wants beside the record. Raises GateError `unknown-value`."""
    return (*parse_reports(config.reports), *parse_exports(config.exports))


def parse_exports(texts: Iterable[str]) -> tuple[ReportRequest, ...]:
    """`agentv=out/cases.jsonl`: an export always says where. Raises GateError `unknown-value`."""
    requests = []
    for text in texts:
        name, _, file = text.partition("=")
        if name not in EXPORTS or not file:
            raise GateError(
                "unknown-value",
                f'--export: "{text[:200]}" is not known{did_you_mean(name, EXPORTS)}',
                f"FORMAT=FILE with FORMAT one of {', '.join(EXPORTS)}",
            )
        requests.append(ReportRequest(name, Path(file)))
    return tuple(requests)


def parse_reports(texts: Iterable[str]) -> tuple[ReportRequest, ...]:
    """`html` and `junit=out/junit.xml`. Raises GateError `unknown-value` for an unknown format."""
    requests = []
    for text in texts:
        name, equals, file = text.partition("=")
        if name not in REPORTS or (equals and not file):
            raise GateError(
                "unknown-value",
                f'--report: "{text}" is not known{did_you_mean(name, REPORTS)}',
                f"FORMAT or FORMAT=FILE with FORMAT one of {', '.join(REPORTS)}",
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
        write_atomically(file, render(request.format, result, context))
        written.append(file)
    return tuple(written)
