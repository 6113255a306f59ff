"""Word-by-word comparison of two texts, limited to a window around the first difference.

The window bounds the time, however long or hostile the texts are.
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
"""Pairs of equal words, above which the texts are not compared word by word: repetitive texts have more."""
MIN_EQUAL: Final = 16
"""Fewest equal characters between two differences that get a line of their own."""
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
"""Rest of a word that truncation divides, in scripts with blanks between words."""

Sign: TypeAlias = Literal[" ", "-", "+"]


class TextPiece(FrozenStruct):
    """Piece of a text comparison: in both texts (` `), only in the first (`-`), or in the second (`+`)."""

    sign: Sign
    text: str


class TextDifference(FrozenStruct):
    """Pieces of both texts around their first difference; flags mark text omitted before and after them."""

    pieces: tuple[TextPiece, ...]
    has_text_before: bool = False
    """Whether equal text precedes the pieces."""
    has_text_after: bool = False
    """Whether more text of either side follows the pieces."""

    @property
    def is_equal(self) -> bool:
        """Whether nothing differs."""
        return all(piece.sign == " " for piece in self.pieces)

    def to_lines(self) -> tuple[str, ...]:
        """Return the lines of a unified difference, wrapped to the width of a screen, each after a sign and a space."""
        lines = [f"{piece.sign} {line}".rstrip() for piece in self.pieces for line in _wrap_piece(piece)]
        if self.has_text_before and lines:
            lines[:1] = [f"  … {lines[0][2:]}"] if lines[0].startswith("  ") else ["  …", lines[0]]
        more = self.has_text_after and not (lines and lines[-1].endswith("…"))
        return (*lines, *(["  …"] if more else []))


def compare_texts(baseline: str, current: str, limit: int = CONTEXT_CHARACTERS) -> TextDifference:
    """Compare `baseline` with `current` word by word, from shortly before the first difference.

    At most `limit` characters of each side are kept. Control characters, and characters that reverse or hide text,
    are shown as marks. Equal texts give one piece.
    """
    baseline, current = (reveal_all_invisible(text.replace("\r\n", "\n")) for text in (baseline, current))
    if baseline == current:
        return TextDifference((TextPiece(" ", baseline[:limit]),), has_text_after=len(baseline) > limit)
    start = _find_start(baseline, current)
    words = [[match[0] for match in islice(_WORD.finditer(text, start), MAX_WORDS)] for text in (baseline, current)]
    pieces, whole = _limit_pieces(_join_pieces(_compare_words(*words)), limit)
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
    baseline_counts, current_counts = Counter(baseline), Counter(current)
    if sum(number * current_counts[word] for word, number in baseline_counts.items()) > MAX_PAIRS:
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(baseline, current, strict=False)))
        yield TextPiece(" ", "".join(baseline[:same]))
        yield from (TextPiece("-", "".join(baseline[same:])), TextPiece("+", "".join(current[same:])))
        return
    # without `autojunk=False`, frequent words such as blanks would end every equal stretch
    matcher = SequenceMatcher(None, baseline, current, autojunk=False)
    for operation, low, high, begin, end in matcher.get_opcodes():
        if operation == "equal":
            yield TextPiece(" ", "".join(baseline[low:high]))
        else:
            yield from (TextPiece("-", "".join(baseline[low:high])), TextPiece("+", "".join(current[begin:end])))


def _join_pieces(pieces: Iterable[TextPiece]) -> list[TextPiece]:
    """Join differences that have little equal text between them, and drop empty pieces."""
    listed = list(pieces)
    both = {piece.sign for piece in listed if piece.sign != " " and piece.text.strip()} == {"-", "+"}
    joined: list[TextPiece] = []
    for place, piece in enumerate(listed):
        between = 0 < place < len(listed) - 1
        if piece.sign == " " and len(piece.text.strip()) < MIN_EQUAL and (between or both):
            joined += [TextPiece("-", piece.text), TextPiece("+", piece.text)]
        else:
            joined.append(piece)
    return list(_merge_pieces(joined))


def _merge_pieces(pieces: Iterable[TextPiece]) -> Iterator[TextPiece]:
    """Merge the pieces between two equal parts into one of each sign, the baseline's first."""
    old = new = ""
    for piece in pieces:
        if piece.sign == "-":
            old += piece.text
        elif piece.sign == "+":
            new += piece.text
        else:
            yield from _build_pieces(old, new)
            old = new = ""
            yield piece
    yield from _build_pieces(old, new)


def _build_pieces(old: str, new: str) -> Iterator[TextPiece]:
    if old:
        yield TextPiece("-", old)
    if new:
        yield TextPiece("+", new)


def _limit_pieces(pieces: list[TextPiece], limit: int) -> tuple[list[TextPiece], bool]:
    """Return the pieces that fit on both sides, and whether these are all."""
    room: dict[Sign, int] = {"-": limit, "+": limit}
    fitting: list[TextPiece] = []
    for place, piece in enumerate(pieces):
        sides: tuple[Sign, ...] = ("-", "+") if piece.sign == " " else (piece.sign,)
        space = min(room[side] for side in sides)
        if piece.sign != "+" and min(room.values()) <= 0:
            return fitting, False  # show both sides of a difference, or neither
        text = _shorten_equal(piece.text, last=place == len(pieces) - 1) if piece.sign == " " and place else piece.text
        fitting.append(TextPiece(piece.sign, truncate_text(text, max(space, 1))))
        for side in sides:
            room[side] -= len(text)
    return fitting, min(room.values()) >= 0


def _shorten_equal(text: str, *, last: bool) -> str:
    """Drop the middle of a long equal part, or its end if it is the last part."""
    if len(text) <= MAX_EQUAL:
        return text
    half = MAX_EQUAL // 2
    begin, end = _PARTIAL_WORD_END.sub("", text[:half]), _PARTIAL_WORD_START.sub("", text[-half:])
    return f"{begin.rstrip()} …" + ("" if last else f" {end.lstrip()}")


def _wrap_piece(piece: TextPiece) -> Iterator[str]:
    """Wrap a piece to lines; a difference of blanks alone becomes visible signs."""
    if piece.sign != " " and not piece.text.strip():
        yield piece.text.replace("\n", "⏎").replace(" ", "·").replace("\t", "→")
        return
    for line in piece.text.strip().split("\n"):
        yield from textwrap.wrap(line, WIDTH) or [""]
