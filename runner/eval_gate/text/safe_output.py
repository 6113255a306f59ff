"""Make text safe to print in a CI log: neutralize workflow commands, reveal invisible characters.

A runner takes a line that begins with `::`, after any blanks, for a command, and `##[` wherever it stands in a line
(Azure Pipelines also `##vso[`, TeamCity `##teamcity[`). A carriage return ends a line, too.
"""

from __future__ import annotations

import json
import re
import unicodedata
from enum import StrEnum
from typing import Final

_COMMAND_START: Final = re.compile(r"(?:^|(?<=\r))([^\S\r\n]*)::", re.MULTILINE)
LEGACY_COMMAND: Final = re.compile(r"##(?=[a-z]*\[)", re.IGNORECASE)
INVISIBLE: Final = (
    r"\x7f-\x9f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f"
)
"""The one list of signs that hide, turn or end the text next to them, for a pattern's `[]`, without those of ASCII."""
_INVISIBLE_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of characters that break a line, or are not shown as what they are: these and a few that are harmless."""
_INVISIBLE_PATTERN: Final = re.compile(rf"[\x00-\x08\x0b-\x1f{INVISIBLE}]")
_INVISIBLE_IN_JSON: Final = re.compile(f"[{INVISIBLE}]")
_JOINERS: Final = re.compile(r"(?<=[^\x00-\x7f\s])([\u200c\u200d])(?=[^\x00-\x7f\s])")
"""The joiners where Hindi, Persian and emoji are written with them: between two signs that are not ASCII."""


class TextFormat(StrEnum):
    """Format of a text, which decides how workflow commands in it are neutralized."""

    TEXT = "text"
    JSON = "json"
    MARKUP = "markup"


def neutralize_text(text: str) -> str:
    """Neutralize a text for people: a blank breaks each command."""
    return _COMMAND_START.sub(r"\1: :", LEGACY_COMMAND.sub("# #", text))


def neutralize_json(text: str) -> str:
    """Neutralize JSON, or lines of it, by escapes of the same meaning: only a text in it can hold a command."""
    return _INVISIBLE_IN_JSON.sub(lambda sign: json.dumps(sign[0])[1:-1], LEGACY_COMMAND.sub(r"#\\u0023", text))


def neutralize_markup(text: str) -> str:
    """Neutralize XML or HTML by character references of the same meaning."""
    return _COMMAND_START.sub(r"\1&#58;:", LEGACY_COMMAND.sub("#&#35;", text))


def is_invisible(char: str) -> bool:
    """Whether a character cannot stand in a line of text as itself."""
    return unicodedata.category(char) in _INVISIBLE_CATEGORIES


def reveal_all_invisible(text: str) -> str:
    """Replace controls with pictures, and characters that turn or hide text with marks such as `[U+202E]`."""
    return _INVISIBLE_PATTERN.sub(_format_mark, text)


def reveal_invisible(text: str) -> str:
    """Replace invisible characters with visible marks, except for joiners within words."""
    return "".join(
        piece if place % 2 else reveal_all_invisible(piece) for place, piece in enumerate(_JOINERS.split(text))
    )


def _format_mark(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else f"[U+{code:04X}]"
