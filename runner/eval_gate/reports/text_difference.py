"""Word-by-word comparison of two texts, limited to a window around the first difference.

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
from eval_gate.text.escape import truncate_text
from eval_gate.text.safe_output import reveal_all_invisible

CONTEXT_CHARACTERS: Final = 300
"""Characters of each side that are shown."""
MAX_WORDS: Final = 500
"""Words, signs and runs of blanks of each side that are compared."""
MAX_PAIRS: Final = 40_000
"""Pairs of equal words that are looked at, which bounds the time: a text of a few words over and over has more."""
MIN_EQUAL: Final = 16
"""Equal characters between two differences that are worth a line of their own; fewer only tear a sentence apart."""
MAX_EQUAL: Final = 160
"""Characters of an equal part that are shown whole."""
WIDTH: Final = 88
_LEAD: Final = CONTEXT_CHARACTERS // 3
"""Equal characters before the first difference."""
_WORD: Final = re.compile(
    # a run of blanks; one character of a script without blanks between words; a word, or a piece of what is too long
    r"\s{1,40}|[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w{1,40}|[^\w\s]"
)
_PARTIAL_WORD_END: Final = re.compile(r"(?<=\s)\S{1,30}\Z")
_PARTIAL_WORD_START: Final = re.compile(r"\A\S{1,30}(?=\s)")
"""What is left of a word that was cut in two; one of a script without blanks between words stays."""

Sign: TypeAlias = Literal[" ", "-", "+"]


class TextPiece(FrozenStruct):
    """Piece of a text comparison: in both texts (` `), only in the first (`-`), or in the second (`+`)."""

    sign: Sign
    text: str


class TextDifference(FrozenStruct):
    """Pieces of both texts around their first difference; flags mark text omitted before and after them."""

    pieces: tuple[TextPiece, ...]
    has_text_before: bool = False
    """Equal text stands before this."""
    has_text_after: bool = False
    """More of at least one of them stands behind this."""

    @property
    def is_equal(self) -> bool:
        """Whether nothing differs."""
        return all(piece.sign == " " for piece in self.pieces)

    def to_lines(self) -> tuple[str, ...]:
        """Return the lines of a unified difference, wrapped to the width of a screen, each after a sign and a space."""
        return tuple(_format_lines(self))


def compare_texts(baseline: str, current: str, around: int = CONTEXT_CHARACTERS) -> TextDifference:
    """Compare `baseline` with `current` word by word, from shortly before the first difference.

    At most `around` characters of each side are kept. Control characters, and characters that reverse or hide text,
    are shown as marks. Equal texts give one piece.
    """
    baseline, current = (reveal_all_invisible(text.replace("\r\n", "\n")) for text in (baseline, current))
    if baseline == current:
        return TextDifference((TextPiece(" ", baseline[:around]),), has_text_after=len(baseline) > around)
    start = _find_start(baseline, current)
    words = [[found[0] for found in islice(_WORD.finditer(text, start), MAX_WORDS)] for text in (baseline, current)]
    pieces, whole = _limit_pieces(_join_pieces(_compare_words(*words)), around)
    read = [start + sum(map(len, side)) for side in words]
    return TextDifference(tuple(pieces), start > 0, not whole or read != [len(baseline), len(current)])


def _find_start(baseline: str, current: str) -> int:
    """Find where the window begins: some characters before the first difference, at the start of a word."""
    shortest = min(len(baseline), len(current))
    first = next((place for place in range(shortest) if baseline[place] != current[place]), shortest)
    if first <= _LEAD:
        return 0
    blank = re.compile(r"\s").search(baseline, first - _LEAD, first)
    return blank.end() if blank else first - _LEAD


def _compare_words(baseline: list[str], current: list[str]) -> Iterator[TextPiece]:
    often, others = Counter(baseline), Counter(current)
    if sum(number * others[word] for word, number in often.items()) > MAX_PAIRS:
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(baseline, current, strict=False)))
        yield TextPiece(" ", "".join(baseline[:same]))
        yield from (TextPiece("-", "".join(baseline[same:])), TextPiece("+", "".join(current[same:])))
        return
    # blanks are words like all others: taken for junk they would end every equal stretch behind its first word
    found = SequenceMatcher(None, baseline, current, autojunk=False)
    for operation, low, high, begin, end in found.get_opcodes():
        if operation == "equal":
            yield TextPiece(" ", "".join(baseline[low:high]))
        else:
            yield from (TextPiece("-", "".join(baseline[low:high])), TextPiece("+", "".join(current[begin:end])))


def _join_pieces(pieces: Iterable[TextPiece]) -> list[TextPiece]:
    """Differences with hardly anything between them as one, with what little is equal at the ends; nothing empty."""
    found = list(pieces)
    both = {piece.sign for piece in found if piece.sign != " " and piece.text.strip()} == {"-", "+"}
    made: list[TextPiece] = []
    for place, piece in enumerate(found):
        between = 0 < place < len(found) - 1
        if piece.sign == " " and len(piece.text.strip()) < MIN_EQUAL and (between or both):
            made += [TextPiece("-", piece.text), TextPiece("+", piece.text)]
        else:
            made.append(piece)
    return list(_merge_pieces(made))


def _merge_pieces(pieces: Iterable[TextPiece]) -> Iterator[TextPiece]:
    """One piece of each sign between two equal parts, the earlier text first."""
    gone = new = ""
    for piece in pieces:
        if piece.sign == "-":
            gone += piece.text
        elif piece.sign == "+":
            new += piece.text
        else:
            yield from _build_pieces(gone, new)
            gone = new = ""
            yield piece
    yield from _build_pieces(gone, new)


def _build_pieces(gone: str, new: str) -> Iterator[TextPiece]:
    if gone:
        yield TextPiece("-", gone)
    if new:
        yield TextPiece("+", new)


def _limit_pieces(pieces: list[TextPiece], around: int) -> tuple[list[TextPiece], bool]:
    """Return the pieces that fit on both sides, and whether these are all."""
    room: dict[Sign, int] = {"-": around, "+": around}
    made: list[TextPiece] = []
    for place, piece in enumerate(pieces):
        sides: tuple[Sign, ...] = ("-", "+") if piece.sign == " " else (piece.sign,)
        left = min(room[side] for side in sides)
        if piece.sign != "+" and min(room.values()) <= 0:
            return made, False  # both sides of a difference are shown, or none
        text = _shorten_equal(piece.text, last=place == len(pieces) - 1) if piece.sign == " " and place else piece.text
        made.append(TextPiece(piece.sign, truncate_text(text, max(left, 1))))
        for side in sides:
            room[side] -= len(text)
    return made, min(room.values()) >= 0


def _shorten_equal(text: str, *, last: bool) -> str:
    """Drop the middle of a long equal part, or its end if it is the last part."""
    if len(text) <= MAX_EQUAL:
        return text
    half = MAX_EQUAL // 2
    begin, end = _PARTIAL_WORD_END.sub("", text[:half]), _PARTIAL_WORD_START.sub("", text[-half:])
    return f"{begin.rstrip()} …" + ("" if last else f" {end.lstrip()}")


def _format_lines(found: TextDifference) -> Iterator[str]:
    lines = [f"{piece.sign} {line}".rstrip() for piece in found.pieces for line in _wrap_piece(piece)]
    if found.has_text_before and lines:
        yield from ([f"  … {lines.pop(0)[2:]}"] if lines[0].startswith("  ") else ["  …"])
    yield from lines
    if found.has_text_after and not (lines and lines[-1].endswith("…")):
        yield "  …"


def _wrap_piece(piece: TextPiece) -> Iterator[str]:
    """Lines of the text, the long ones broken; a difference of blanks alone is made visible."""
    if piece.sign != " " and not piece.text.strip():
        yield piece.text.replace("\n", "⏎").replace(" ", "·").replace("\t", "→")
        return
    for line in piece.text.strip().split("\n"):
        yield from textwrap.wrap(line, WIDTH) or [""]
