"""Two answers held against each other word by word, as much of them as somebody reads around the first difference.

Only a window of either text is ever compared, so that the time it takes is bounded, however long and hostile they are.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import islice, takewhile
from typing import Final, Literal, TypeAlias

from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import cut
from eval_gate.text.inert import visible

AROUND: Final = 300
"""Characters of each side that are shown."""
MAX_WORDS: Final = 500
"""Words, signs and runs of blanks of each side that are compared."""
MAX_PAIRS: Final = 40_000
"""Pairs of equal words that are looked at, which bounds the time: a text of a few words over and over has more."""
MIN_SAME: Final = 16
"""Equal characters between two differences that are worth a line of their own; fewer only tear a sentence apart."""
MAX_SAME: Final = 160
"""Characters of an equal part that are shown whole."""
WIDTH: Final = 88
_LEAD: Final = AROUND // 3
"""Equal characters before the first difference."""
_WORD: Final = re.compile(
    # a run of blanks; one character of a script without blanks between words; a word, or a piece of what is too long
    r"\s{1,40}|[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w{1,40}|[^\w\s]"
)
_WITHIN_END: Final = re.compile(r"(?<=\s)\S{1,30}\Z")
_WITHIN_BEGIN: Final = re.compile(r"\A\S{1,30}(?=\s)")
"""What is left of a word that was cut in two; one of a script without blanks between words stays."""

Sign: TypeAlias = Literal[" ", "-", "+"]


class TextPiece(FrozenStruct):
    """A part of the texts: in both (a blank), only in the first (`-`), only in the second (`+`)."""

    sign: Sign
    text: str


class TextDifference(FrozenStruct):
    """Both texts around their first difference. What stands before and behind is left out where the flags say so."""

    pieces: tuple[TextPiece, ...]
    begun: bool = False
    """Equal text stands before this."""
    more: bool = False
    """More of at least one of them stands behind this."""

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return all(piece.sign == " " for piece in self.pieces)

    def lines(self) -> tuple[str, ...]:
        """As lines of a unified difference: a sign and a blank before each, none longer than a screen is wide."""
        return tuple(_lines(self))


def difference(then: str, here: str, around: int = AROUND) -> TextDifference:
    """What differs, word by word; at most `around` characters of each side, from a little before the first difference.

    Controls, and signs that turn or hide text, are shown as marks. Equal texts are one piece.
    """
    then, here = (visible(text.replace("\r\n", "\n")) for text in (then, here))
    if then == here:
        return TextDifference((TextPiece(" ", then[:around]),), more=len(then) > around)
    start = _start(then, here)
    words = [[found[0] for found in islice(_WORD.finditer(text, start), MAX_WORDS)] for text in (then, here)]
    pieces, whole = _shown(_joined(_compared(*words)), around)
    read = [start + sum(map(len, side)) for side in words]
    return TextDifference(tuple(pieces), start > 0, not whole or read != [len(then), len(here)])


def _start(then: str, here: str) -> int:
    """Where the window begins: so many characters before the first difference, and not within a word."""
    shortest = min(len(then), len(here))
    first = next((place for place in range(shortest) if then[place] != here[place]), shortest)
    if first <= _LEAD:
        return 0
    blank = re.compile(r"\s").search(then, first - _LEAD, first)
    return blank.end() if blank else first - _LEAD


def _compared(then: list[str], here: list[str]) -> Iterator[TextPiece]:
    often, others = Counter(then), Counter(here)
    if sum(number * others[word] for word, number in often.items()) > MAX_PAIRS:
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(then, here, strict=False)))
        yield TextPiece(" ", "".join(then[:same]))
        yield from (TextPiece("-", "".join(then[same:])), TextPiece("+", "".join(here[same:])))
        return
    # blanks are words like all others: taken for junk they would end every equal stretch behind its first word
    found = SequenceMatcher(None, then, here, autojunk=False)
    for operation, low, high, begin, end in found.get_opcodes():
        if operation == "equal":
            yield TextPiece(" ", "".join(then[low:high]))
        else:
            yield from (TextPiece("-", "".join(then[low:high])), TextPiece("+", "".join(here[begin:end])))


def _joined(pieces: Iterable[TextPiece]) -> list[TextPiece]:
    """Differences with hardly anything between them as one, with what little is equal at the ends; nothing empty."""
    found = list(pieces)
    both = {piece.sign for piece in found if piece.sign != " " and piece.text.strip()} == {"-", "+"}
    made: list[TextPiece] = []
    for place, piece in enumerate(found):
        between = 0 < place < len(found) - 1
        if piece.sign == " " and len(piece.text.strip()) < MIN_SAME and (between or both):
            made += [TextPiece("-", piece.text), TextPiece("+", piece.text)]
        else:
            made.append(piece)
    return list(_merged(made))


def _merged(pieces: Iterable[TextPiece]) -> Iterator[TextPiece]:
    """One piece of each sign between two equal parts, the earlier text first."""
    gone = new = ""
    for piece in pieces:
        if piece.sign == "-":
            gone += piece.text
        elif piece.sign == "+":
            new += piece.text
        else:
            yield from _sides(gone, new)
            gone = new = ""
            yield piece
    yield from _sides(gone, new)


def _sides(gone: str, new: str) -> Iterator[TextPiece]:
    if gone:
        yield TextPiece("-", gone)
    if new:
        yield TextPiece("+", new)


def _shown(pieces: list[TextPiece], around: int) -> tuple[list[TextPiece], bool]:
    """As much as there is room for on both sides, and whether that is everything."""
    room: dict[Sign, int] = {"-": around, "+": around}
    made: list[TextPiece] = []
    for place, piece in enumerate(pieces):
        sides: tuple[Sign, ...] = ("-", "+") if piece.sign == " " else (piece.sign,)
        left = min(room[side] for side in sides)
        if piece.sign != "+" and min(room.values()) <= 0:
            return made, False  # both sides of a difference are shown, or none
        text = _folded(piece.text, last=place == len(pieces) - 1) if piece.sign == " " and place else piece.text
        made.append(TextPiece(piece.sign, cut(text, max(left, 1))))
        for side in sides:
            room[side] -= len(text)
    return made, min(room.values()) >= 0


def _folded(text: str, *, last: bool) -> str:
    """A long equal part without its middle, or without its end where nothing differs behind it."""
    if len(text) <= MAX_SAME:
        return text
    half = MAX_SAME // 2
    begin, end = _WITHIN_END.sub("", text[:half]), _WITHIN_BEGIN.sub("", text[-half:])
    return f"{begin.rstrip()} …" + ("" if last else f" {end.lstrip()}")


def _lines(found: TextDifference) -> Iterator[str]:
    lines = [f"{piece.sign} {line}".rstrip() for piece in found.pieces for line in _wrapped(piece)]
    if found.begun and lines:
        yield from ([f"  … {lines.pop(0)[2:]}"] if lines[0].startswith("  ") else ["  …"])
    yield from lines
    if found.more and not (lines and lines[-1].endswith("…")):
        yield "  …"


def _wrapped(piece: TextPiece) -> Iterator[str]:
    """Lines of the text, the long ones broken; a difference of blanks alone is made visible."""
    if piece.sign != " " and not piece.text.strip():
        yield piece.text.replace("\n", "⏎").replace(" ", "·").replace("\t", "→")
        return
    for line in piece.text.strip().split("\n"):
        yield from textwrap.wrap(line, WIDTH) or [""]
