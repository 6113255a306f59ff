"""Render a run in any report format, as text or into files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from msgspec import json

from eval_gate.config.outputs import FORMATS, ReportRequest
from eval_gate.errors import GateError, format_suggestion
from eval_gate.files.writing import write_atomically
from eval_gate.model.result import RunResult
from eval_gate.reports.console.style import ConsoleStyle
from eval_gate.reports.console.summary import render_console
from eval_gate.reports.context import ReportContext
from eval_gate.reports.view.report_view import build_view
from eval_gate.text.safe_output import TextFormat, neutralize_json

_DEFAULT_FILES: Final = {name: one.file for name, one in FORMATS.items() if one.file}


def render(report_format: str, run: RunResult, context: ReportContext, *, style: ConsoleStyle | None = None) -> str:
    """Render a run in one of `FORMATS`.

    Each format without a branch of its own has a module of its name in `exports/`. Raises GateError `unknown-value`
    for an unknown format.
    """
    text = _render_text(report_format, run, context, style)
    return neutralize_json(text) if FORMATS[report_format].form is TextFormat.JSON else text


def _render_text(report_format: str, run: RunResult, context: ReportContext, style: ConsoleStyle | None) -> str:
    match report_format:
        case "md":
            from eval_gate.reports.markdown import render_comment

            return render_comment(build_view(run, context))
        case "html":
            from eval_gate.reports.page.html import render_html

            return render_html(build_view(run, context))
        case "console":
            return render_console(build_view(run, context), style or ConsoleStyle())
        case "json":
            return json.format(json.encode(run), indent=2).decode() + "\n"
        case _ if report_format in FORMATS:
            text: str = import_module(f"eval_gate.reports.exports.{report_format}").render(run, context)
            return text
    raise GateError(
        "unknown-value",
        f'there is no report "{report_format}"{format_suggestion(report_format, FORMATS)}',
        f"allowed: {', '.join(FORMATS)}",
    )


def write_reports(
    requests: Sequence[ReportRequest], result: RunResult, context: ReportContext, folder: Path
) -> tuple[Path, ...]:
    """Write every report, those without a file name to `folder`, and return the files."""
    return write_each(requests, folder, _DEFAULT_FILES, lambda form: render(form, result, context))


def write_each(
    requests: Sequence[ReportRequest], folder: Path, names: Mapping[str, str], render_format: Callable[[str], str]
) -> tuple[Path, ...]:
    """Write each requested report, under its usual name if none is given, and return the files."""
    files = []
    for request in requests:
        files.append(request.file or folder / names[request.format])
        write_atomically(files[-1], render_format(request.format))
    return tuple(files)
