"""Pass rules for scorers of other tools, such as `policy>=0.7`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Final

from eval_gate.struct import FrozenStruct
from eval_gate.text.quoting import quote_value

_NUMBER: Final = re.compile(r"[-+]?(\d{1,15}(\.\d{0,15})?|\.\d{1,15})")
_SIGNS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}


class ScoreRule(FrozenStruct):
    """Pass rule of one scorer, such as `policy>=0.7`."""

    name: str
    sign: str
    value: float

    def is_met(self, value: float | None) -> bool:
        """Whether the score is good enough; one that is missing is not."""
        return value is not None and _SIGNS[self.sign](value, self.value)

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{self.value:g}"


def parse_score_rule(text: str) -> ScoreRule:
    """`policy>=0.7`. Raises ValueError with what is wrong, for a person."""
    # the longer signs come first: `>=` holds `>` and `=`
    sign = next((sign for sign in _SIGNS if sign in text), "=")
    name, _, value = (part.strip() for part in text.rpartition(sign))
    if name and _NUMBER.fullmatch(value):
        return ScoreRule(name, sign, float(value))
    raise ValueError(f"{quote_value(text)} is not a rule such as policy>=0.7")
