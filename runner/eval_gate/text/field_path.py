"""Dotted paths of fields with indexes in brackets, such as `lines[0].amount` (AgentV).

Source: AgentV 4.42.4, fields of `field-accuracy` and `args_match`. Unlike the paths of other formats nothing is said of
where one ends that leads nowhere: a field that is not there is no mistake.
"""

from __future__ import annotations

import re
from typing import Any, Final

from eval_gate.model.base import JsonValue

NOWHERE: Final[Any] = object()
"""Stands for the value of a path that leads nowhere."""
_BETWEEN: Final = re.compile(r"[.\[\]]")


def value_at(value: JsonValue, path: str) -> JsonValue:
    """What stands at the path, or `NOWHERE`."""
    for step in _BETWEEN.split(path):
        if not step:
            continue
        if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            found: JsonValue = NOWHERE
            return found
    return value
