"""JSON that an agent, a judge or a server wrote: looked at before anything is built of it, so that it costs little.

A few bytes of JSON can stand for sixty times their size in memory, for a number that nothing can be computed with, or
for a depth that ends the process. Whoever reads an answer reads it here.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NoReturn

from eval_gate.model.base import JsonValue
from eval_gate.model.limits import ANSWER_VALUES, DEPTH, NUMBER_DIGITS
from eval_gate.text.foreign.well_formed import may_hold_halves, mend_halves

_NO_SIGNS: Final = bytes(set(range(256)) - set(b'[]{},"'))
_STEPS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_ONE_KIND: Final = bytes.maketrans(b"{}", b"[]")
_TIMES: Final = 32
_WINDOW: Final = 1 << 16
_FAR: Final = rb"-?(?:[0-9]{%d}|[0-9.]++[eE]\+?[0-9]{2})" % NUMBER_DIGITS
_HALF_A_NUMBER: Final = re.compile(r"\.|[eE][+-]?")
_FAR_AT_FIRST: Final = re.compile(_FAR)
_FAR_LATER: Final = re.compile(rb"[ \t\r\n,:\[]" + _FAR)
"""Behind what numbers stand behind: digests, of which results are full, have the same signs."""


class ForeignJsonError(ValueError):
    """Half a sentence about the text: `is not JSON`, or `is nested deeper than 200 levels`.

    `too_much`: it may well be JSON, but not of a size that is read. `cut_off`: it ends in the middle. `detail` are the
    parser's words, if it has any.
    """

    def __init__(self, said: str, *, too_much: bool, detail: str = "", cut_off: bool = False) -> None:
        super().__init__(said)
        self.too_much = too_much
        self.cut_off = cut_off
        self.detail = detail


def read_foreign(
    source: str | bytes,
    *,
    values: int = ANSWER_VALUES,
    depth: int = DEPTH,
    constant: Callable[[str], JsonValue] | None = None,
    pairs: Callable[[list[tuple[str, JsonValue]]], JsonValue] | None = None,
) -> JsonValue:
    """The value in the text, with U+FFFD for half a surrogate pair.

    `constant` stands for NaN and the infinities, which are no JSON unless it is given. `pairs` makes each object of its
    members; without it the last of two with one name counts.

    Raises ForeignJsonError for what is no JSON, holds more than so many values, is nested too deeply, or holds a
    number beyond the range that computers calculate with.
    """
    if isinstance(source, bytes) and (source.startswith((b"\xfe\xff", b"\xff\xfe")) or b"\x00" in source[:4]):
        source = source.decode(json.detect_encoding(source), "replace")  # what is counted below are bytes of UTF-8
    data = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    refuse_too_much(data, values, depth)
    far, halves = may_be_far(data), may_hold_halves(data)
    del data
    try:
        value: JsonValue
        if isinstance(source, bytes) and not far and constant is None and pairs is None:
            value = _usual(source.decode("utf-8", "surrogatepass").removeprefix("\ufeff"))
        else:
            value = json.loads(
                source,
                parse_constant=constant or refuse_constant,
                parse_int=_whole if far else None,
                parse_float=finite_number if far else None,
                object_pairs_hook=pairs,
            )
    except ForeignJsonError:
        raise
    except (ValueError, RecursionError) as error:
        cut = isinstance(error, json.JSONDecodeError) and ends_too_early(error.doc, error.pos, error.msg)
        raise ForeignJsonError("is not JSON", too_much=False, detail=str(error), cut_off=cut) from None
    return mend_halves(value) if halves else value


def ends_too_early(text: str, at: int, problem: str) -> bool:
    """Whether nothing is wrong with a text, in which a parser found this problem, but that it ends in the middle."""
    rest = text[at : at + _TIMES].strip()
    word = any(one.startswith(rest) for one in ("true", "false", "null", "-Infinity", "NaN"))
    return word or problem.startswith("Unterminated") or _HALF_A_NUMBER.fullmatch(rest) is not None


def refuse_too_much(data: bytes | Iterable[bytes], values: int = ANSWER_VALUES, depth: int = DEPTH) -> None:
    """Raise ForeignJsonError where these bytes of JSON, or of several lines of it, stand for too many values.

    They may come in pieces, none of which ends within a text.
    """
    if isinstance(data, bytes):
        opened = data.count(b"[") + data.count(b"{")
        if opened <= depth and opened + data.count(b",") <= values:
            return
        data = (data,)
    counted = CountedJson(values, depth)
    for piece in data:
        counted.add(piece)


class CountedJson:
    """The values and levels of JSON, or of several lines of it, that comes in pieces. No piece ends within a text."""

    def __init__(self, values: int, depth: int = DEPTH) -> None:
        """Allow so many values, and so many lists and mappings within each other."""
        self._values, self._depth = values, depth
        self._found = self._level = 0

    def add(self, piece: bytes) -> None:
        """Count one more piece. Raises ForeignJsonError as soon as there is too much."""
        for signs in _outside_of_texts(piece):
            self._found += signs.count(b"[") + signs.count(b"{") + signs.count(b",")
            if self._found > self._values:
                raise ForeignJsonError(f"holds more than {self._values:,} values", too_much=True)
            self._level = _level_after(signs, self._level, self._depth)


def _level_after(signs: bytes, level: int, depth: int) -> int:
    """How deep it is behind these signs, from this level on. Raises ForeignJsonError where it is too deep on the way.

    What is opened and closed at once is taken out, again and again: after so many times, nothing in what was taken out
    was deeper than that. Only where this leaves a doubt each sign is looked at, which takes twenty times as long.
    """
    left, times = signs.translate(_ONE_KIND, b',"'), 0
    while times < _TIMES and (less := left.replace(b"[]", b"")) != left:
        left, times = less, times + 1
    opened = left.count(b"[")
    if level + opened + times <= depth:
        return level + 2 * opened - len(left)
    for sign in signs:
        level += _STEPS.get(sign, 0)
        if level > depth:
            raise ForeignJsonError(f"is nested deeper than {depth} levels", too_much=True)
    return level


def _outside_of_texts(data: bytes) -> Iterator[bytes]:
    """Brackets, braces and commas that are no part of a text, some at a time: no object is made for each of them."""
    signs = data.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _NO_SIGNS)
    within = False
    for begin in range(0, len(signs), _WINDOW):
        parts = signs[begin : begin + _WINDOW].split(b'"')
        yield b"".join(parts[within::2])
        within ^= len(parts) % 2 == 0


def is_json(text: str) -> bool:
    """Whether it can be read as JSON."""
    try:
        read_foreign(text)
    except ForeignJsonError:
        return False
    return True


def may_be_no_json(data: bytes) -> bool:
    """Whether some of it may be what only some parsers take for JSON: NaN, infinities, numbers beyond all range."""
    return b"NaN" in data or b"Infinity" in data or may_be_far(data)


def may_be_far(data: bytes) -> bool:
    """Whether there may be a number beyond all range."""
    return _FAR_AT_FIRST.match(data) is not None or _FAR_LATER.search(data) is not None


def _whole(digits: str) -> int:
    if len(digits) > NUMBER_DIGITS:
        raise ForeignJsonError(f"holds a number of {len(digits):,} digits", too_much=True)
    return int(digits)


def finite_number(text: str) -> float:
    """For `parse_float` of whoever reads JSON: `1e400` is no number to calculate with. Raises ForeignJsonError."""
    value = float(text)
    if not math.isfinite(value):
        raise ForeignJsonError(f"holds the number {text[:20]}, which is beyond all range", too_much=True)
    return value


def refuse_constant(name: str) -> NoReturn:
    """For `parse_constant` of whoever reads JSON: NaN and the infinities are none. Raises ForeignJsonError."""
    raise ForeignJsonError("is not JSON", too_much=False, detail=f"{name} is not a JSON value")


def one_score(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """An object of a grader: which of two scores it means nobody knows. Raises ForeignJsonError for those."""
    found = dict(pairs)
    if len(found) < len(pairs) and sum(name == "score" for name, _ in pairs) > 1:
        raise ForeignJsonError("has `score` twice in one object", too_much=False)
    return found


def each_key_once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """An object of results. Raises ForeignJsonError for two members of one name: nobody knows which one is meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, often in Counter(name for name, _ in pairs).items() if often > 1)
        raise ForeignJsonError(f"has `{twice[:40]}` twice in one object", too_much=False)
    return found


_usual: Final = json.JSONDecoder(parse_constant=refuse_constant).decode
"""What `json.loads` makes anew for every answer."""
