"""ECMAScript patterns without flags that match exactly what promptfoo's text checks accept.

Where an exact pattern cannot be had (characters whose lower case depends on what stands around them), none is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from eval_gate.importers.import_result import NotImportableError

ANYTHING: Final = r"[\s\S]*"
_SPECIAL: Final = re.compile(r"[\\^$.*+?()\[\]{}|/]")
_CONTEXT_DEPENDENT: Final = frozenset("σς\u0307")
"""Greek's final sigma; and the dot that `İ` leaves behind: their capitals become this only in some places."""
_CASED_CODE_POINTS: Final = 0x1E944
"""Beyond it there are no letters with a capital."""


def escape_literal(text: str) -> str:
    """Build a pattern that matches this text literally."""
    return _SPECIAL.sub(r"\\\g<0>", text).replace("\n", r"\n").replace("\r", r"\r")


def match_any_case(text: str, *, forbidden: bool = False) -> str:
    """Build a pattern that matches the text in any case.

    It matches everything that `toLowerCase()` turns into the text in lower case. With `forbidden`, the text must
    not occur, so the pattern may match too much: the lower case of `İ` begins with an `i`. Raises
    NotImportableError if the case of a letter depends on its neighbors.
    """
    lower = text.lower()
    if _CONTEXT_DEPENDENT & set(lower):
        raise NotImportableError("upper and lower case of this text depend on neighboring letters")
    return "".join(_match_sign(sign, forbidden=forbidden) for sign in lower)


def _match_sign(sign: str, *, forbidden: bool) -> str:
    same = {sign, *_map_capitals().get(sign, ())}
    if forbidden and sign == "i":
        same.add("İ")
    return escape_literal(sign) if len(same) == 1 else f"[{''.join(sorted(same))}]"


@lru_cache(maxsize=1)
def _map_capitals() -> dict[str, str]:
    """Of every letter what else has it as lower case, where that is a single letter."""
    found: dict[str, str] = {}
    for number in range(_CASED_CODE_POINTS):
        sign = chr(number)
        lower = sign.lower()
        if lower != sign and len(lower) == 1:
            found[lower] = found.get(lower, "") + sign
    return found


def match_whole(pattern: str) -> str:
    """Build a pattern that matches a response consisting only of this pattern."""
    return f"^{pattern}$"


def match_start(pattern: str) -> str:
    """Build a pattern that matches a response beginning with this pattern."""
    return f"^{pattern}"


def match_any(patterns: Sequence[str]) -> str:
    """One of these is in the answer."""
    return patterns[0] if len(patterns) == 1 else f"(?:{'|'.join(patterns)})"


def match_absence(pattern: str) -> str:
    """Build a pattern that matches a response in which this pattern does not occur."""
    return f"^(?!{ANYTHING}(?:{pattern}))"


def match_not_all(patterns: Iterable[str]) -> str:
    """At least one of these is not in the answer."""
    return f"^(?!{''.join(f'(?={ANYTHING}{pattern})' for pattern in patterns)})"


def match_not_at_start(pattern: str) -> str:
    """Build a pattern that matches a response that does not begin with this pattern."""
    return f"^(?!{pattern})"


def match_word_count(least: int, most: int | None) -> str:
    """Build a pattern that matches a response of `least` to `most` words separated by white space.

    If `most` is None, the number of words has no upper limit.
    """
    times = f"{{{least},}}" if most is None else f"{{{least},{most}}}"
    return rf"^\s*(?:\S+(?:\s+|$)){times}$"
