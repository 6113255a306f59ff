"""Text that a CI runner would carry out, made inert, and signs that hide or turn what stands beside them, made visible.

A runner takes a line that begins with `::` for a command, and `##[` wherever it stands in a line.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

_BEGIN: Final = re.compile(r"^([^\S\n]*)::", re.MULTILINE)
_LEGACY: Final = "##["
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)


class TextForm(StrEnum):
    """What a text is, as far as that decides how it is made inert."""

    TEXT = "text"
    JSON = "json"
    MARKUP = "markup"


def plain(text: str) -> str:
    """For people: a blank in what would be a command."""
    return _BEGIN.sub(r"\1: :", text.replace(_LEGACY, "# #["))


def json_text(text: str) -> str:
    """JSON, or lines of JSON, that means the same: only a text within it can hold the signs."""
    return text.replace(_LEGACY, "#\\u0023[")


def markup(text: str) -> str:
    """XML or HTML that means the same, by character references."""
    return _BEGIN.sub(r"\1&#58;:", text.replace(_LEGACY, "#&#35;["))


def visible(text: str) -> str:
    """Controls and signs that turn or hide text, as marks: a picture of NUL, `[U+202E]` for what turns a line."""
    return _UNSEEN.sub(_mark, text)


def _mark(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else f"[U+{code:04X}]"
