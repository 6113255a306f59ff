"""Output formats of a run: reports for people and CI systems, exports for other tools."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from eval_gate.errors import format_suggestion
from eval_gate.files.file_paths import find_path_problem
from eval_gate.struct import FrozenStruct
from eval_gate.text.quoting import quote_name
from eval_gate.text.safe_output import TextFormat


class OutputFormat(NamedTuple):
    """One output format of a result."""

    file: str | None
    """Its usual name in the run's folder; None for what is for other programs, which always say where."""
    form: TextFormat = TextFormat.TEXT


FORMATS: Final[Mapping[str, OutputFormat]] = {
    "md": OutputFormat("report.md"),
    "html": OutputFormat("report.html", TextFormat.MARKUP),
    "junit": OutputFormat("junit.xml", TextFormat.MARKUP),
    "console": OutputFormat("report.txt"),
    "json": OutputFormat("report.json", TextFormat.JSON),
    "agentv": OutputFormat(None, TextFormat.JSON),
}
"""What a result can be rendered as, by name."""
REPORTS: Final = tuple(name for name, one in FORMATS.items() if one.file)
"""For people and for CI systems."""
EXPORTS: Final = tuple(name for name, one in FORMATS.items() if not one.file)
"""For other tools that know evals."""


class JunitFailures(StrEnum):
    """Cases that a JUnit file reports as failures."""

    BLOCKING = "blocking"
    """Those that keep the gate from passing; others that fail are skipped, with the reason."""
    ALL = "all"
    """All that failed or have no score, apart from those that are waived or quarantined."""


class ReportRequest(FrozenStruct):
    """A requested output file. `file` None means its default name in the run's folder."""

    format: str
    file: Path | None


def parse_report(text: str) -> ReportRequest:
    """`html` or `junit=out/junit.xml`. Raises ValueError with what is wrong."""
    name, equals, file = text.partition("=")
    if name in EXPORTS:
        raise ValueError(f'"{name}" is an export, not a report: use `exports` (--export)')
    if name not in REPORTS:
        raise ValueError(_describe_unknown_format(text, "FORMAT or FORMAT=FILE", REPORTS))
    if equals and not file:
        raise ValueError(f'"{text}" has no file: write {name}=FILE, or {name} for a file in the run\'s folder')
    return ReportRequest(name, _parse_path(file) if file else None)


def parse_export(text: str) -> ReportRequest:
    """`agentv=out/cases.jsonl`: an export always says where. Raises ValueError with what is wrong."""
    name, _, file = text.partition("=")
    if name in REPORTS:
        raise ValueError(f'"{name}" is a report, not an export: use `reports` (--report)')
    if name not in EXPORTS:
        raise ValueError(_describe_unknown_format(text, "FORMAT=FILE", EXPORTS))
    if not file:
        raise ValueError(f'"{text}" has no file: write {name}=FILE')
    return ReportRequest(name, _parse_path(file))


def _parse_path(file: str) -> Path:
    why = find_path_problem(file)
    if why is not None:
        raise ValueError(f'"{file[:200]}" {why}')
    return Path(file)


def _describe_unknown_format(text: str, form: str, names: Collection[str]) -> str:
    near = format_suggestion(text.partition("=")[0], names)
    return f"{quote_name(text)} is not known{near}; write {form}, where FORMAT is one of {', '.join(names)}"
