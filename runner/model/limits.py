"""How much of anything from outside is read: bytes, depth, values, numbers. docs/reliability.md shows this table."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

from pydantic import Field

DEPTH: Final = 200
"""Lists and mappings within each other, in whatever is read. Parsers recurse, and end the process where nobody stops
them."""
NUMBER_DIGITS: Final = 300
"""Digits of a whole number: more is beyond every range, and nothing can be computed with it."""
MAX_ANSWER_BYTES: Final = 10_000_000
"""One answer, unpacked; for an HTTP agent unless its target says otherwise."""
ANSWER_VALUES: Final = 250_000
"""Values of one answer. One byte of JSON costs up to sixty of memory."""
DOCUMENT_VALUES: Final = 1_000_000
"""Values of one JSON file."""
YAML_VALUES: Final = 50_000
"""Values of one YAML file, aliases written out: more is an alias bomb or not a file for a person. A larger suite is
several files, or JSON."""
SETTING_VALUES: Final = 50_000
"""Values of a JSON file with settings."""
REGISTRY_BYTES: Final = 16_000_000
"""A file of tool definitions."""
REGISTRY_VALUES: Final = 250_000
"""Values in it."""
CASES: Final = 100_000
"""Cases of one eval file."""
MISTAKES: Final = 1_000
"""Mistakes in the shape of one file that are named. Of more their number has to do."""
FINDINGS: Final = 500
"""Problems, or warnings, of one file that are named; the others are counted."""
MAX_COST_USD: Final = 1e9
MAX_TOKENS: Final = 10**15
MAX_DURATION_MS: Final = 1e12
"""Thirty years."""

Cost = Annotated[float, Field(ge=0, le=MAX_COST_USD)]
Tokens = Annotated[int, Field(ge=0, le=MAX_TOKENS)]


class Row(NamedTuple):
    """One line of the table that people read."""

    what: str
    limit: float
    unit: str


def in_range(value: object, most: float) -> float | None:
    """The number, where it is one between 0 and `most`; None for everything else, true and false among it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value <= most else None
