"""Cases that could not be judged, by whose fault that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from eval_gate.model.result import Blame
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.words.blame import MEANS, ORDER, did

_TITLES: Final = {
    Blame.CRASHED: "Crashed case",
    Blame.UNREACHABLE: "Unreachable case",
    Blame.OURS: "Ungraded case",
    None: "Unjudged case",
}


@dataclass(frozen=True, slots=True)
class Errors:
    """Cases that could not be judged for the same reason."""

    did: str
    """`2 cases crashed`."""
    means: str
    """What that is, to be read after a colon."""
    title: str
    """Of one of them, over a column: `Crashed case`."""
    rows: tuple[CaseRow, ...]


def by_blame(rows: Sequence[CaseRow]) -> tuple[Errors, ...]:
    """What may be of the change's making first."""
    groups = ((blame, tuple(row for row in rows if row.blame is blame)) for blame in ORDER)
    return tuple(
        Errors(did(blame, len(found)), MEANS[blame], _TITLES[blame], found) for blame, found in groups if found
    )
