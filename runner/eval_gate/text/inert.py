"""Text that a CI runner would carry out, made inert, and signs that hide or turn what stands beside them, made visible.

A runner takes a line that begins with `::`, after any blanks, for a command, and `##[` wherever it stands in a line. A
carriage return ends a line, too.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import Final

_BEGIN: Final = re.compile(r"(?:^|(?<=\r))([^\S\r\n]*)::", re.MULTILINE)
_LEGACY: Final = "##["
UNSEEN: Final = (
    r"\x7f-\x9f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f"
)
"""The one list of signs that hide, turn or end what stands beside them, inside of a pattern's `[]`, but for ASCII's."""
_UNSEEN: Final = re.compile(rf"[\x00-\x08\x0b-\x1f{UNSEEN}]")
_UNSEEN_IN_JSON: Final = re.compile(f"[{UNSEEN}]")
_JOINERS: Final = re.compile(r"(?<=[^\x00-\x7f\s])([\u200c\u200d])(?=[^\x00-\x7f\s])")
"""The joiners where Hindi, Persian and emoji are written with them: between two signs that are not ASCII."""


class TextForm(StrEnum):
    """What a text is, as far as that decides how it is made inert."""

    TEXT = "text"
    JSON = "json"
    MARKUP = "markup"


def plain(text: str) -> str:
    """For people: a blank in what would be a command."""
    return _BEGIN.sub(r"\1: :", text.replace(_LEGACY, "# #["))


def json_text(text: str) -> str:
    """JSON, or lines of JSON, that means the same: only a text within it can hold the signs, and has them by number."""
    return _UNSEEN_IN_JSON.sub(lambda sign: json.dumps(sign[0])[1:-1], text.replace(_LEGACY, "#\\u0023["))


def markup(text: str) -> str:
    """XML or HTML that means the same, by character references."""
    return _BEGIN.sub(r"\1&#58;:", text.replace(_LEGACY, "#&#35;["))


def visible(text: str) -> str:
    """Controls and signs that turn or hide text, as marks: a picture of NUL, `[U+202E]` for what turns a line."""
    return _UNSEEN.sub(_mark, text)


def visible_text(text: str) -> str:
    """The text as people may see it: the same, with joiners within words as they are."""
    return "".join(piece if place % 2 else visible(piece) for place, piece in enumerate(_JOINERS.split(text)))


def _mark(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else f"[U+{code:04X}]"
