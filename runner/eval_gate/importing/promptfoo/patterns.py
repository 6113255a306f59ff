"""promptfoo's text checks as ECMAScript patterns without flags, which hold for exactly the same answers.

Where an exact pattern cannot be had (characters whose lower case depends on what stands around them), none is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from eval_gate.importing.imported import CannotCarryError

ANYTHING: Final = r"[\s\S]*"
_SPECIAL: Final = re.compile(r"[\\^$.*+?()\[\]{}|/]")
_BY_CONTEXT: Final = frozenset("σς\u0307")
"""Greek's final sigma; and the dot that `İ` leaves behind: their capitals become this only in some places."""
_CASED: Final = 0x1E944
"""Beyond it there are no letters with a capital."""


def literal(text: str) -> str:
    """A pattern for this text as it is."""
    return _SPECIAL.sub(r"\\\g<0>", text).replace("\n", r"\n").replace("\r", r"\r")


def any_case(text: str, *, forbidden: bool = False) -> str:
    """A pattern for what `toLowerCase()` makes equal to the text in lower case.

    `forbidden`: it says what must not be there, and rather finds too much: `İ` in lower case begins with an `i`.
    """
    lower = text.lower()
    if _BY_CONTEXT & set(lower):
        raise CannotCarryError("upper and lower case of this text depend on the letters beside it")
    return "".join(_one_case(sign, forbidden=forbidden) for sign in lower)


def _one_case(sign: str, *, forbidden: bool) -> str:
    same = {sign, *_capitals().get(sign, ())}
    if forbidden and sign == "i":
        same.add("İ")
    return literal(sign) if len(same) == 1 else f"[{''.join(sorted(same))}]"


@lru_cache(maxsize=1)
def _capitals() -> dict[str, str]:
    """Of every letter what else has it as lower case, where that is a single letter."""
    found: dict[str, str] = {}
    for number in range(_CASED):
        sign = chr(number)
        lower = sign.lower()
        if lower != sign and len(lower) == 1:
            found[lower] = found.get(lower, "") + sign
    return found


def whole_answer(pattern: str) -> str:
    """The answer is this and nothing else."""
    return f"^{pattern}$"


def begins(pattern: str) -> str:
    """The answer begins with this."""
    return f"^{pattern}"


def either(patterns: Sequence[str]) -> str:
    """One of these is in the answer."""
    return patterns[0] if len(patterns) == 1 else f"(?:{'|'.join(patterns)})"


def without(pattern: str) -> str:
    """This is nowhere in the answer."""
    return f"^(?!{ANYTHING}(?:{pattern}))"


def not_all(patterns: Iterable[str]) -> str:
    """At least one of these is not in the answer."""
    return f"^(?!{''.join(f'(?={ANYTHING}{pattern})' for pattern in patterns)})"


def not_from_the_start(pattern: str) -> str:
    """The answer does not match this, which is tied to its start."""
    return f"^(?!{pattern})"


def words(least: int, most: int | None) -> str:
    """The answer has so many words, parted by white space."""
    times = f"{{{least},}}" if most is None else f"{{{least},{most}}}"
    return rf"^\s*(?:\S+(?:\s+|$)){times}$"
