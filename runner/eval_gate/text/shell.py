"""A command line to be copied: words as a shell reads them, on one line, whatever they hold."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable
from typing import Final

_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of characters that break a line, or are not shown as what they are."""
_LOG_COMMAND: Final = "##["
"""What a runner takes for a command wherever it stands in a line of a log."""


def shell_line(words: Iterable[str]) -> str:
    """The words as one line for bash and zsh, which split it into the same words again.

    What a POSIX shell can only write with the character itself is written as `$'…'` does.
    """
    return " ".join(map(_word, words))


def is_hidden(char: str) -> bool:
    """Whether a character cannot stand in a line of text as itself."""
    return unicodedata.category(char) in _UNSEEN


def _word(text: str) -> str:
    if not any(map(is_hidden, text)) and _LOG_COMMAND not in text:
        return shlex.quote(text)
    # a NUL would end the word, and a surrogate is half a character: neither can be in an argument
    plain = re.sub("[\\x00\\ud800-\\udfff]", "?", text).replace("\\", "\\\\").replace("'", "\\'")
    shown = "".join(_escape(char) if is_hidden(char) else char for char in plain)
    return "$'" + shown.replace(_LOG_COMMAND, "\\x23#[") + "'"


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x80 else f"\\U{code:08x}"
