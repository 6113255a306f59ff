"""Groups failures by what they have in common: a list of a hundred names is often one broken tool."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

EXAMPLES = 2


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause, with how many cases it has and the first of them."""

    what: str
    count: int
    examples: tuple[str, ...]


def group_causes(failures: Iterable[tuple[str, str | None]]) -> tuple[Cause, ...]:
    """The causes of (case, failure) pairs, the most frequent first.

    A cause whose failures are the same to the letter is shown as it is, else without what differs.
    """
    groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for case, what in failures:
        said = what or "no reason was given"
        groups[normalised(said)].append((case, said))
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return tuple(
        Cause(
            what=members[0][1] if len({said for _, said in members}) == 1 else common,
            count=len(members),
            examples=tuple(case for case, _ in members[:EXAMPLES]),
        )
        for common, members in ordered
    )


def normalised(failure: str) -> str:
    """A failure without the numbers that were measured, which differ from case to case."""
    return re.sub(r"\b\d+(?:\.\d+)?(?=(?:ms|s)?\b)", "N", failure)
