"""Lone surrogates in text: JSON may carry them, UTF-8 files and hashes cannot."""

from __future__ import annotations

import json
import re
from typing import Final

from eval_gate.model.base import JsonValue

_POSSIBLE_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")


def to_well_formed(text: str) -> str:
    """Replace every lone surrogate in the text with U+FFFD, as Node does."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_well_formed(text: str) -> bool:
    """Whether UTF-8 can hold the text: no half of a surrogate pair is in it."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def may_hold_surrogates(source: bytes) -> bool:
    """Whether a value read from this JSON may hold half a surrogate pair: it has at least something of one."""
    return _POSSIBLE_SURROGATE.search(source) is not None


def has_surrogates(value: JsonValue) -> bool:
    """Whether a text somewhere in the value, or a key, holds half a surrogate pair."""
    return not is_well_formed(json.dumps(value, ensure_ascii=False))


def replace_surrogates(value: JsonValue) -> JsonValue:
    """Replace lone surrogates in all texts of a value, and return it. Lists and mappings are changed in place."""
    whole: list[JsonValue] = [value]
    open_: list[list[JsonValue] | dict[str, JsonValue]] = [whole]
    while open_:
        one = open_.pop()
        if isinstance(one, dict) and not all(map(is_well_formed, one)):
            members = [(to_well_formed(key), member) for key, member in one.items()]
            one.clear()
            one.update(members)
        for place, member in enumerate(one) if isinstance(one, list) else one.items():
            if isinstance(member, str) and not is_well_formed(member):
                one[place] = to_well_formed(member)  # type: ignore[index]  # an index of a list, a key else
            elif isinstance(member, list | dict):
                open_.append(member)
    return whole[0]
