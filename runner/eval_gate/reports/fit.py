"""Sheds what matters least until a text fits its limit. What is left out is always counted in the text itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from eval_gate.struct import FrozenStruct

COMMENT_LIMIT: Final = 60_000
"""Characters of a comment: GitHub refuses more than 65,536."""


class Detail(FrozenStruct):
    """How much is shown: rows of tables, names in lists, warnings, cases with their answers, or only the counts."""

    rows: int
    names: int
    warnings: int
    answers: int = 0
    counts_only: bool = False


LADDER: Final = (
    Detail(rows=20, names=200, warnings=20, answers=3),
    Detail(rows=20, names=200, warnings=20),
    Detail(rows=20, names=50, warnings=10),
    Detail(rows=10, names=20, warnings=5),
    Detail(rows=5, names=5, warnings=2),
    Detail(rows=0, names=0, warnings=0),
    Detail(rows=0, names=0, warnings=0, counts_only=True),
)
"""From everything down to verdict and counts."""


def fit(render: Callable[[Detail], str], limit: int, ladder: tuple[Detail, ...] = LADDER) -> str:
    """The first step of the ladder whose text is at most `limit` characters; the last one is cut if even it is not."""
    text = ""
    for detail in ladder:
        text = render(detail)
        if len(text) <= limit:
            return text
    return text[: max(limit - 2, 0)] + "…\n" if limit > 2 else text[:limit]
