"""What a run is asked to write beside its record: reports for people and CI systems, exports for other programs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from eval_gate.errors import did_you_mean
from eval_gate.files.place import why_no_path
from eval_gate.struct import FrozenStruct
from eval_gate.text.inert import TextForm
from eval_gate.text.quoting import quoted_name


class OutputForm(NamedTuple):
    """One form of a result."""

    file: str | None
    """Its usual name in the run's folder; None for what is for other programs, which always say where."""
    form: TextForm = TextForm.TEXT


FORMATS: Final[Mapping[str, OutputForm]] = {
    "md": OutputForm("report.md"),
    "html": OutputForm("report.html", TextForm.MARKUP),
    "junit": OutputForm("junit.xml", TextForm.MARKUP),
    "console": OutputForm("report.txt"),
    "json": OutputForm("report.json", TextForm.JSON),
    "agentv": OutputForm(None, TextForm.JSON),
}
"""What a result can be rendered as, by name."""
REPORTS: Final = tuple(name for name, one in FORMATS.items() if one.file)
"""For people and for CI systems."""
EXPORTS: Final = tuple(name for name, one in FORMATS.items() if not one.file)
"""For other tools that know evals."""


class JunitFailures(StrEnum):
    """Which cases are failures in a JUnit file."""

    BLOCKING = "blocking"
    """Those that keep the gate from passing; others that fail are skipped, with the reason."""
    ALL = "all"
    """All that failed or could not be judged, apart from those that somebody accepted or set aside."""


class ReportRequest(FrozenStruct):
    """A file that was asked for; `file` None means its usual name in the run's folder."""

    format: str
    file: Path | None


def parse_report(text: str) -> ReportRequest:
    """`html` or `junit=out/junit.xml`. Raises ValueError with what is wrong."""
    name, equals, file = text.partition("=")
    if name in EXPORTS:
        raise ValueError(f'"{name}" is no report but an export: `exports` (--export) asks for it')
    if name not in REPORTS:
        raise ValueError(_unknown(text, "FORMAT or FORMAT=FILE", REPORTS))
    if equals and not file:
        raise ValueError(f'"{text}" names no file: {name}=FILE, or {name} for its usual place in the run\'s folder')
    return ReportRequest(name, _place(file) if file else None)


def parse_export(text: str) -> ReportRequest:
    """`agentv=out/cases.jsonl`: an export always says where. Raises ValueError with what is wrong."""
    name, _, file = text.partition("=")
    if name in REPORTS:
        raise ValueError(f'"{name}" is no export but a report: `reports` (--report) asks for it')
    if name not in EXPORTS:
        raise ValueError(_unknown(text, "FORMAT=FILE", EXPORTS))
    if not file:
        raise ValueError(f'"{text}" names no file: {name}=FILE')
    return ReportRequest(name, _place(file))


def _place(file: str) -> Path:
    why = why_no_path(file)
    if why is not None:
        raise ValueError(f'"{file[:200]}" {why}')
    return Path(file)


def _unknown(text: str, form: str, known: Collection[str]) -> str:
    near = did_you_mean(text.partition("=")[0], known)
    return f"{quoted_name(text)} is not known{near}; {form} with FORMAT one of {', '.join(known)}"
