"""Detail levels that shorten a report until it fits its size limit; omitted parts are counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from eval_gate.struct import FrozenStruct

COMMENT_LIMIT: Final = 60_000
"""Characters of a comment: GitHub refuses more than 65,536."""


class DetailLevel(FrozenStruct):
    """Limits of one detail level: table rows, names in lists, warnings and responses."""

    rows: int
    names: int
    warnings: int
    responses: int = 0
    counts_only: bool = False


DETAIL_LEVELS: Final = (
    DetailLevel(rows=20, names=200, warnings=20, responses=3),
    DetailLevel(rows=20, names=200, warnings=20),
    DetailLevel(rows=20, names=50, warnings=10),
    DetailLevel(rows=10, names=20, warnings=5),
    DetailLevel(rows=5, names=5, warnings=2),
    DetailLevel(rows=0, names=0, warnings=0),
    DetailLevel(rows=0, names=0, warnings=0, counts_only=True),
)
"""From everything down to verdict and counts."""


def render_within_limit(
    render: Callable[[DetailLevel], str], limit: int, ladder: tuple[DetailLevel, ...] = DETAIL_LEVELS
) -> str:
    """Render the first level with at most `limit` characters, or the last one of `ladder`, truncated."""
    text = ""
    for detail in ladder:
        text = render(detail)
        if len(text) <= limit:
            return text
    return text[: max(limit - 2, 0)] + "…\n" if limit > 2 else text[:limit]
