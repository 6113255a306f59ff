"""The comment by which somebody may accept the regressions of a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from runner.gate.waivers_command import command_line
from runner.reports.context import ReportContext
from runner.reports.rows import CaseRow

MAX_CASES: Final = 10
"""Cases that are offered to be accepted: more than that is seldom meant."""
MAX_COMMAND: Final = 1_500
"""Characters of the command."""
REASON: Final = "<reason>"
"""What is to be replaced by whoever sends it."""


def accept_command(rows: Sequence[CaseRow], context: ReportContext) -> str | None:
    """The command for the first of these cases that a command can name; None where nobody could use it."""
    if not context.accept_hint or (context.accept_by_commit and context.head_sha is None):
        return None
    line, named = None, list[str]()
    for case_id in list(dict.fromkeys(row.id for row in rows))[:MAX_CASES]:
        longer = _line([*named, case_id], context)
        if longer is not None and len(longer) <= MAX_COMMAND:
            line, named = longer, [*named, case_id]
    return line


def _line(cases: list[str], context: ReportContext) -> str | None:
    try:
        return command_line(cases, REASON, commit=context.head_sha if context.accept_by_commit else None)
    except ValueError:
        return None
