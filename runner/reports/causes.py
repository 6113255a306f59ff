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
    """The causes of (case id, failure) pairs, the most frequent first."""
    groups: dict[str, list[str]] = defaultdict(list)
    for case_id, what in failures:
        groups[normalised(what or "unknown")].append(case_id)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return tuple(Cause(what, len(ids), tuple(ids[:EXAMPLES])) for what, ids in ordered)


def normalised(failure: str) -> str:
    """A failure without what differs from case to case: numbers that measure, and values in quotes after them."""
    return re.sub(r"\b\d+(?:\.\d+)?\b", "N", failure)
