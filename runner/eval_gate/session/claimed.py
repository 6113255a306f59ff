"""Re-runs that a file of results claims for itself: they count against a case, and never for it.

A re-run clears a case because the gate asked for it and saw what came. What a file says of re-runs may have been made
until one passed, or written by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eval_gate.model.execution import Status
from eval_gate.reports.words.numbers import count
from eval_gate.result_formats.load import Brought
from eval_gate.result_formats.rows import Row

_AGAINST = frozenset({Status.FAILED, Status.ERROR})


def without_claims(brought: Brought) -> Brought:
    """The results without the re-runs of every case that one of them would clear; a note says of how many cases."""
    cleared = [key for key, rows in brought.cases.items() if len(rows) > 1 and _clears(rows)]
    if not cleared:
        return brought
    cases = {**brought.cases, **{key: _first(brought.cases[key]) for key in cleared}}
    said = (
        f"of {count(len(cleared), 'case')} the results say that it was run again and did not fail "
        f"({cleared[0].case_id[:80]}): that counts only where a command for re-runs asked for it"
    )
    return replace(brought, cases=cases, notes=(*brought.notes, said))


def _clears(rows: Sequence[Row]) -> bool:
    return any(row.rerun and row.status not in _AGAINST for row in rows)


def _first(rows: Sequence[Row]) -> list[Row]:
    """Its first executions; where all are said to be re-runs, the one that was written first."""
    return [row for row in rows if not row.rerun] or [*rows[:1]]
