"""Quote configured values in messages, or describe them where they are long or look like a key.

A value at the wrong place may be an unknown secret, and redaction does not find a part of a known one. So nothing here
is cut: a value that is long, or looks like a key, is described instead.
"""

from __future__ import annotations

import re
from typing import Final

MAX_QUOTED: Final = 24
"""Characters of a value of a wrong type that are repeated: a misspelt word, a number, a date."""
MAX_NAME: Final = 200
"""Characters of what is looked up, such as a path, that are repeated."""
_MAX_SEARCHED: Final = 4_096
_PIECE: Final = re.compile(r"[A-Za-z0-9]{16,}")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_DIGITS: Final = re.compile(r"(?=[a-fA-F]*[0-9])[0-9A-Fa-f]{32,}")
_LONGEST_WORD: Final = 32
_SWITCH: Final = re.compile(r"(?<=[A-Za-z])[0-9]|(?<=[0-9])[A-Za-z]")
_CAPITAL: Final = re.compile(r"[A-Z]")

_WORD: Final = re.compile(r"[a-z]+(?:[-'’][a-z]+)*[.,:;]?")


def quote_value(text: str, *, prefix: str = "") -> str:
    """Quote a value, with a `prefix`: `"onn"`; or describe a long one or a key: `a text of 60 characters`."""
    return f'{prefix}"{text}"' if _is_quotable(text, MAX_QUOTED) else _describe_text(text)


def quote_number(value: object) -> str:
    """Quote a number for a message: `the number 7`, or `a number of 60 digits` if it is long."""
    text = str(value)
    return f"the number {text}" if len(text) <= MAX_QUOTED else f"a number of {len(text):,} digits"


def quote_name(name: str, *, or_digits: bool = False) -> str:
    """Quote a name or path that is looked up, or describe it if it looks like a key.

    The name may be long. `or_digits`: the name may be a commit or a run, which are hexadecimal digits or a
    UUID, as many keys are.
    """
    return f'"{name}"' if _is_plain_name(name, or_digits=or_digits) else _describe_text(name)


def describe_name(name: str) -> str:
    """Format a name for a message as `quote_name` does, but without quotation marks."""
    return name if _is_plain_name(name) else _describe_text(name)


def looks_like_key(text: str) -> bool:
    """Whether a part of it is no word that people write: letters, digits and capitals mixed, or a very long one."""
    return any(is_mixed(piece) and not _COMMIT.fullmatch(piece) for piece in _PIECE.findall(text[:_MAX_SEARCHED]))


def _is_quotable(text: str, most: int) -> bool:
    return len(text) <= most and not looks_like_key(text)


def _is_plain_name(text: str, *, or_digits: bool = False) -> bool:
    return _is_quotable(text, MAX_NAME) and (or_digits or not _DIGITS.fullmatch(text.replace("-", "").strip()))


def _describe_text(text: str) -> str:
    return f"a text of {len(text):,} characters"


def is_mixed(piece: str) -> bool:
    """Whether letters and digits are no word: they alternate, many of them are capitals, or they are very many."""
    capitals = len(_CAPITAL.findall(piece))
    mixed = not piece.isupper() and capitals > len(piece) / 4
    return len(piece) >= _LONGEST_WORD or mixed or len(_SWITCH.findall(piece)) > 1


def capitalize_first(words: str) -> str:
    """Capitalize the first letter of a sentence, unless the first word is an identifier, whose case has a meaning.

    An identifier has something that no word has: a digit, a sign, a capital letter. A hyphen is no such sign, but in
    the name of this program.
    """
    first = words.partition(" ")[0]
    is_word = _WORD.fullmatch(first) and first != "eval-gate"
    return f"{words[:1].upper()}{words[1:]}" if is_word else words
