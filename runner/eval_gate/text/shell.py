"""Format a command line to copy and paste: shell-quoted words on one line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from eval_gate.text.safe_output import LEGACY_COMMAND, is_invisible


def format_shell_line(words: Iterable[str]) -> str:
    """Format words as one line that bash and zsh split into them again; `$'…'` escapes what is invisible."""
    return " ".join(map(_quote_word, words))


def _quote_word(text: str) -> str:
    if not any(map(is_invisible, text)) and LEGACY_COMMAND.search(text) is None:
        return shlex.quote(text)
    # a NUL would end the word, and a surrogate is half a character: neither can be in an argument
    plain = re.sub("[\\x00\\ud800-\\udfff]", "?", text).replace("\\", "\\\\").replace("'", "\\'")
    escaped = "".join(_escape_character(char) if is_invisible(char) else char for char in plain)
    return "$'" + LEGACY_COMMAND.sub(r"\\x23#", escaped) + "'"


def _escape_character(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x80 else f"\\U{code:08x}"
