"""Sheds what matters least until a text fits its limit. What is left out is always counted in the text itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

COMMENT_LIMIT: Final = 60_000
"""Characters of a comment: GitHub refuses more than 65,536."""


@dataclass(frozen=True, slots=True)
class Detail:
    """How much is shown: rows of tables, names in lists, warnings, and the folded parts."""

    rows: int
    names: int
    warnings: int
    folded: bool = True


LADDER: Final = (
    Detail(rows=20, names=200, warnings=20),
    Detail(rows=20, names=50, warnings=10),
    Detail(rows=10, names=20, warnings=5),
    Detail(rows=5, names=5, warnings=2),
    Detail(rows=0, names=0, warnings=0, folded=False),
)


def fit(render: Callable[[Detail], str], limit: int, start: int = 0) -> str:
    """The first step of the ladder, from `start` on, whose text fits; the last one is cut if even it does not."""
    text = ""
    for detail in LADDER[start:]:
        text = render(detail)
        if len(text) <= limit:
            return text
    return text[: max(limit - 2, 0)] + "…\n" if limit > 2 else text[:limit]
