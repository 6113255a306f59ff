"""What a run is asked to write beside its record: reports for people and CI systems, exports for other programs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from eval_gate.errors import did_you_mean


class ReportFormat(StrEnum):
    """What a result can be rendered as."""

    MD = "md"
    HTML = "html"
    JUNIT = "junit"
    CONSOLE = "console"
    JSON = "json"
    AGENTV = "agentv"
    JSONL = "jsonl"


class JunitFailures(StrEnum):
    """Which cases are failures in a JUnit file."""

    BLOCKING = "blocking"
    """Those that keep the gate from passing; others that fail are skipped, with the reason."""
    ALL = "all"
    """All that failed or could not be judged, apart from those that somebody accepted or set aside."""


EXPORTS: Final = (ReportFormat.AGENTV, ReportFormat.JSONL)
"""For other tools that know evals, and for `eval-gate judge`."""
REPORTS: Final = tuple(one for one in ReportFormat if one not in EXPORTS)
"""For people and for CI systems."""


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """A file that was asked for; `file` None means its usual name in the run's folder."""

    format: str
    file: Path | None


def parse_report(text: str) -> ReportRequest:
    """`html` or `junit=out/junit.xml`. Raises ValueError with what is wrong."""
    name, equals, file = text.partition("=")
    if name not in REPORTS or (equals and not file):
        raise ValueError(_unknown(text, "FORMAT or FORMAT=FILE", REPORTS))
    return ReportRequest(name, Path(file) if file else None)


def parse_export(text: str) -> ReportRequest:
    """`agentv=out/cases.jsonl`: an export always says where. Raises ValueError with what is wrong."""
    name, _, file = text.partition("=")
    if name not in EXPORTS or not file:
        raise ValueError(_unknown(text, "FORMAT=FILE", EXPORTS))
    return ReportRequest(name, Path(file))


def _unknown(text: str, form: str, known: Collection[str]) -> str:
    near = did_you_mean(text.partition("=")[0], known)
    return f'"{text[:200]}" is not known{near}; {form} with FORMAT one of {", ".join(known)}'
