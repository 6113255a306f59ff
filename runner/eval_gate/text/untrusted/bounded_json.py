"""Parse untrusted JSON within limits of size, depth and range of numbers.

A few bytes of JSON can stand for sixty times their size in memory, for a number that nothing can be computed with, or
for a depth that ends the process. Every response is parsed here.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NoReturn

from eval_gate.model.base import JsonValue
from eval_gate.model.limits import DEPTH, NUMBER_DIGITS, RESPONSE_VALUES
from eval_gate.text.untrusted.surrogates import may_hold_surrogates, replace_surrogates

_FENCE: Final = "```"
_NON_STRUCTURAL: Final = bytes(set(range(256)) - set(b'[]{},"'))
_STEPS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_ONE_KIND: Final = bytes.maketrans(b"{}", b"[]")
_TIMES: Final = 32
_WINDOW: Final = 1 << 16
_HUGE_NUMBER: Final = rb"-?(?:[0-9]{%d}|[0-9.]++[eE]\+?[0-9]{2})" % NUMBER_DIGITS
_PARTIAL_NUMBER: Final = re.compile(r"\.|[eE][+-]?")
_HUGE_NUMBER_AT_START: Final = re.compile(_HUGE_NUMBER)
_HUGE_NUMBER_WITHIN: Final = re.compile(rb"[ \t\r\n,:\[]" + _HUGE_NUMBER)
"""After a sign that a number follows: the many digests in results have the same characters."""


class UntrustedJsonError(ValueError):
    """Untrusted JSON that is refused; the message is a predicate, such as `is not JSON`.

    `too_much` means that the JSON exceeds a limit, `cut_off` that it is truncated. `detail` is the parser's message, if
    any.
    """

    def __init__(self, message: str, *, too_much: bool, detail: str = "", cut_off: bool = False) -> None:
        super().__init__(message)
        self.too_much = too_much
        self.cut_off = cut_off
        self.detail = detail


def parse_untrusted_json(
    source: str | bytes,
    *,
    values: int = RESPONSE_VALUES,
    depth: int = DEPTH,
    constant: Callable[[str], JsonValue] | None = None,
    pairs: Callable[[list[tuple[str, JsonValue]]], JsonValue] | None = None,
) -> JsonValue:
    """Parse untrusted JSON within limits, and return its value.

    Half a surrogate pair becomes U+FFFD. `constant` converts NaN and the infinities, which are not JSON unless
    it is given. `pairs` makes each object from its members; without it, the last of two members with one name
    counts.

    Raises UntrustedJsonError for text that is not JSON, has more than `values` values, is nested deeper than
    `depth`, or holds a number beyond the range that computers calculate with.
    """
    if isinstance(source, bytes) and (source.startswith((b"\xfe\xff", b"\xff\xfe")) or b"\x00" in source[:4]):
        source = source.decode(json.detect_encoding(source), "replace")  # what is counted below are bytes of UTF-8
    data = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    check_json_size(data, values, depth)
    far, halves = may_hold_huge_number(data), may_hold_surrogates(data)
    del data
    try:
        value: JsonValue
        if isinstance(source, bytes) and not far and constant is None and pairs is None:
            value = _decode_strictly(source.decode("utf-8", "surrogatepass").removeprefix("\ufeff"))
        else:
            value = json.loads(
                source,
                parse_constant=constant or refuse_constant,
                parse_int=_parse_int if far else None,
                parse_float=parse_finite_number if far else None,
                object_pairs_hook=pairs,
            )
    except UntrustedJsonError:
        raise
    except (ValueError, RecursionError) as error:
        cut = isinstance(error, json.JSONDecodeError) and is_truncated_json(error.doc, error.pos, error.msg)
        raise UntrustedJsonError("is not JSON", too_much=False, detail=str(error), cut_off=cut) from None
    return replace_surrogates(value) if halves else value


def is_truncated_json(text: str, at: int, problem: str) -> bool:
    """Whether nothing is wrong with a text, in which a parser found this problem, but that it ends in the middle."""
    rest = text[at : at + _TIMES].strip()
    word = any(one.startswith(rest) for one in ("true", "false", "null", "-Infinity", "NaN"))
    return word or problem.startswith("Unterminated") or _PARTIAL_NUMBER.fullmatch(rest) is not None


def check_json_size(data: bytes | Iterable[bytes], values: int = RESPONSE_VALUES, depth: int = DEPTH) -> None:
    """Raise UntrustedJsonError for too many values, in bytes or in pieces; none ends within a text."""
    if isinstance(data, bytes):
        opened = data.count(b"[") + data.count(b"{")
        if opened <= depth and opened + data.count(b",") <= values:
            return
        data = (data,)
    counted = JsonSizeCounter(values, depth)
    for piece in data:
        counted.add_piece(piece)


class JsonSizeCounter:
    """Counter of the values and levels of JSON that arrives in pieces."""

    def __init__(self, values: int, depth: int = DEPTH) -> None:
        """Allow at most `values` values, and lists and mappings up to `depth` levels."""
        self._values, self._depth = values, depth
        self._found = self._level = 0

    def add_piece(self, piece: bytes) -> None:
        """Count one more piece. Raises UntrustedJsonError as soon as there are too many."""
        for signs in _iter_structural_signs(piece):
            self._found += signs.count(b"[") + signs.count(b"{") + signs.count(b",")
            if self._found > self._values:
                raise UntrustedJsonError(f"has more than {self._values:,} values", too_much=True)
            self._level = _compute_level(signs, self._level, self._depth)


def _compute_level(signs: bytes, level: int, depth: int) -> int:
    """Return the depth after these characters, from this level on."""
    rest, times = signs.translate(_ONE_KIND, b',"'), 0
    # pairs are taken out again and again: after `times` rounds, nothing in them was deeper than that
    while times < _TIMES and (less := rest.replace(b"[]", b"")) != rest:
        rest, times = less, times + 1
    opened = rest.count(b"[")
    if level + opened + times <= depth:
        return level + 2 * opened - len(rest)
    # where that leaves a doubt, each sign is looked at, which takes twenty times as long
    for sign in signs:
        level += _STEPS.get(sign, 0)
        if level > depth:
            raise UntrustedJsonError(f"is nested deeper than {depth} levels", too_much=True)
    return level


def _iter_structural_signs(data: bytes) -> Iterator[bytes]:
    """Yield brackets, braces and commas outside of texts, many at a time: an object for each would be slow."""
    signs = data.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _NON_STRUCTURAL)
    in_text = False
    for begin in range(0, len(signs), _WINDOW):
        parts = signs[begin : begin + _WINDOW].split(b'"')
        yield b"".join(parts[in_text::2])
        in_text ^= len(parts) % 2 == 0


def strip_fence(text: str) -> str:
    """Return the JSON of a text that is a single fenced block, or any other text as it is."""
    first, _, rest = text.strip().partition("\n")
    language = first.removeprefix(_FENCE).strip().lower()
    if not first.startswith(_FENCE) or language not in {"", "json"} or not rest.endswith(_FENCE):
        return text
    return rest.removesuffix(_FENCE)


def is_json(text: str) -> bool:
    """Whether it can be read as JSON."""
    try:
        parse_untrusted_json(text)
    except UntrustedJsonError:
        return False
    return True


def may_hold_non_json(data: bytes) -> bool:
    """Whether some of it may be what only some parsers take for JSON: NaN, infinities, numbers beyond all range."""
    return b"NaN" in data or b"Infinity" in data or may_hold_huge_number(data)


def may_hold_huge_number(data: bytes) -> bool:
    """Whether there may be a number beyond all range."""
    return _HUGE_NUMBER_AT_START.match(data) is not None or _HUGE_NUMBER_WITHIN.search(data) is not None


def _parse_int(digits: str) -> int:
    if len(digits) > NUMBER_DIGITS:
        raise UntrustedJsonError(f"contains a number of {len(digits):,} digits", too_much=True)
    return int(digits)


def parse_finite_number(text: str) -> float:
    """Parse a number for `parse_float` of a JSON reader. Raises UntrustedJsonError for infinity, such as `1e400`."""
    value = float(text)
    if not math.isfinite(value):
        raise UntrustedJsonError(f"contains the number {text[:20]}, which is out of range", too_much=True)
    return value


def refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and infinities, for `parse_constant` of a JSON reader. Raises UntrustedJsonError."""
    raise UntrustedJsonError("is not JSON", too_much=False, detail=f"{name} is not a JSON value")


def require_single_score(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """Build an object of a grader. Raises UntrustedJsonError for two scores: it is unclear which is meant."""
    members = dict(pairs)
    if len(members) < len(pairs) and sum(name == "score" for name, _ in pairs) > 1:
        raise UntrustedJsonError("has `score` twice in one object", too_much=False)
    return members


def require_unique_keys(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """Build an object of results. Raises UntrustedJsonError for two members of one name."""
    members = dict(pairs)
    if len(members) < len(pairs):
        twice = next(name for name, often in Counter(name for name, _ in pairs).items() if often > 1)
        raise UntrustedJsonError(f"has `{twice[:40]}` twice in one object", too_much=False)
    return members


_decode_strictly: Final = json.JSONDecoder(parse_constant=refuse_constant).decode
"""Made once: `json.loads` makes one at every call."""
