"""A rule about one scorer of another tool, such as `policy>=0.7`: from where on its score passes."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

_RULE: Final = re.compile(r"\s*(?P<name>.+?)\s*(?P<sign>>=|<=|>|<|=)\s*(?P<value>[-+]?(\d+\.?\d*|\.\d+))\s*")
_SIGNS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}


@dataclass(frozen=True, slots=True)
class ScoreRule:
    """One scorer's rule, such as `policy>=0.7`."""

    name: str
    sign: str
    value: float

    def holds(self, value: float | None) -> bool:
        """Whether the score is good enough; one that is missing is not."""
        return value is not None and _SIGNS[self.sign](value, self.value)

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{self.value:g}"


def parse_rule(text: str) -> ScoreRule:
    """`policy>=0.7`. Raises ValueError with what is wrong, for a person."""
    match = _RULE.fullmatch(text)
    if match is None:
        raise ValueError(f'"{text[:80]}" is not a rule such as policy>=0.7')
    return ScoreRule(match["name"], match["sign"], float(match["value"]))
