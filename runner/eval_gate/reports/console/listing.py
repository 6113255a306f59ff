"""A suite's cases below each other: id, description, time and result in columns that fit together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from eval_gate.reports.console.fit import padded, width
from eval_gate.reports.console.style import MAX_DESCRIPTION, MAX_ID, ConsoleStyle

Cells: TypeAlias = tuple[str, str, str, str]
"""Id, description, time, result."""
_BEFORE: Final = 4
"""Columns of the sign before each line."""
_GAP: Final = "  "
_LEAST: Final = 8
"""Columns below which a description says nothing and is left out."""


def case_lines(rows: Sequence[Cells], style: ConsoleStyle) -> Iterator[str]:
    """A line for each. Where room is short, ids lose their middle and descriptions their end."""
    if not rows:
        return
    times, results = (max(width(style.plain(row[place])) for row in rows) for place in (2, 3))
    results = min(results, style.width // 2)
    behind = sum(len(_GAP) + columns for columns in (times, results) if columns)
    room = style.width - _BEFORE - behind
    ids = min(max(width(style.plain(row[0])) for row in rows), MAX_ID)
    words = min(max(width(style.plain(row[1])) for row in rows), MAX_DESCRIPTION)
    if words and ids + len(_GAP) + words > room:
        narrow = min(ids, max(room - len(_GAP) - words, room * 3 // 5))
        left = room - len(_GAP) - narrow
        ids, words = (narrow, left) if left >= _LEAST else (ids, 0)
    ids = max(min(ids, room), 1)
    for name, description, time, result in rows:
        cells = [padded(style.cut_name(name, ids), ids)]
        cells += [padded(style.cut(description, words), words)] if words else []
        cells += [padded(time, times, right=True)] if times else []
        cells += [style.cut(result, results)] if results else []
        yield _GAP.join(cells).rstrip()
