"""Text within so many columns of a terminal: measured, cut, and laid out in lines. Wide characters take two."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

_NARROW: Final = re.compile("[ -~¡-¬®-˿‐-‧←-⇿─-╿✓✗]*").fullmatch
"""European letters and the signs of our own words, each of which takes one column."""


def width(text: str) -> int:
    """Columns the text takes on a terminal."""
    if _NARROW(text):
        return len(text)
    from wcwidth import wcswidth  # a fifteenth of the time of a run of one case

    return max(wcswidth(text), 0)


def padded(text: str, columns: int, *, right: bool = False) -> str:
    """The text with blanks behind it up to so many columns; `right`: before it."""
    blanks = " " * (columns - width(text))
    return blanks + text if right else text + blanks


def cut_end(text: str, columns: int, sign: str = "…") -> str:
    """The beginning of the text, and the sign where something is missing."""
    if width(text) <= columns:
        return text
    return text[: _reach(text, columns - width(sign))].rstrip() + sign


def cut_middle(text: str, columns: int, sign: str = "…") -> str:
    """Both ends of the text, and the sign between them where something is missing: names differ at either end."""
    if width(text) <= columns:
        return text
    room = columns - width(sign)
    tail = _reach(text[::-1], room // 2)
    return text[: _reach(text, room - room // 2)] + sign + (text[-tail:] if tail else "")


def flow(
    parts: Iterable[str],
    columns: int,
    *,
    begin: str = "",
    indent: str = "  ",
    between: str = " ",
    whole: bool = False,
) -> Iterator[str]:
    """Lines of the parts one after another, the first line behind `begin`, all others behind `indent`.

    A part that is longer than a line is broken, at a blank where it has one, unless it is to stay `whole` because
    somebody may copy it.
    """
    line, empty = begin, True
    for gap, word in _words(parts, columns - width(indent), between, whole=whole):
        rest = word
        if not empty and width(line) + width(gap) + width(rest) > columns:
            yield line
            line, empty = indent, True
        elif empty and line.strip() and width(line) + width(rest) > columns >= width(indent) + width(rest):
            yield line.rstrip()
            line = indent
        rest = _no_command(line, rest)
        while empty and not whole and width(line) + width(rest) > columns:
            fits = max(_reach(rest, columns - width(line)), 1)
            yield line + rest[:fits]
            line, rest = indent, _no_command(indent, rest[fits:])
        line, empty = line + ("" if empty else gap) + rest, False
    if not empty:
        yield line


def _words(parts: Iterable[str], room: int, between: str, *, whole: bool) -> Iterator[tuple[str, str]]:
    """What stays together on a line, and what comes before it."""
    for part in parts:
        if whole or width(part) <= room:
            yield between, part
        else:
            yield from ((between if place == 0 else " ", word) for place, word in enumerate(part.split()))


def _no_command(line: str, rest: str) -> str:
    """A runner takes a line of its log that begins with `::` for a command."""
    return f": :{rest[2:]}" if rest.startswith("::") and not line.strip() else rest


def _reach(text: str, columns: int) -> int:
    """How many characters of the text fit."""
    if text.isascii():
        return max(columns, 0)
    return bisect_right(range(1, len(text) + 1), max(columns, 0), key=lambda end: width(text[:end]))
