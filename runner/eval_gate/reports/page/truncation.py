"""Truncation of case data, so that the page stays small enough to open at once."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from eval_gate.struct import FrozenStruct
from eval_gate.text.safe_output import neutralize_json

_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_HTML_ESCAPES: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_HTML_SIGNS: Final = re.compile("[<>&\u2028\u2029]")
Found = TypeVar("Found")

MANY_CASES: Final = 1_000
"""Number of cases above which passing ones have no details."""
MAX_PAGE_BYTES: Final = 1_900_000
"""Maximum bytes of a page, unless the rows alone are larger."""
MAX_PLAIN_BYTES: Final = 700_000
"""Maximum bytes of case details as plain JSON; larger details are compressed."""
MAX_UNPACKED_BYTES: Final = 16_000_000
"""Maximum bytes of case details after decompression."""
_MIN_ROOM: Final = 200_000
_BASE64_RATIO: Final = 4 / 3
"""Characters of base64 for a byte."""


def replace_lone_surrogates(text: str) -> str:
    """Replace lone surrogates, which no file can store, by the replacement character."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def encode_island(data: Any) -> str:
    """Encode `data` as JSON on one line that is safe to embed in HTML.

    The text neither ends nor opens an element, and a GitHub runner reads no workflow command in it.
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = _HTML_SIGNS.sub(lambda match: _HTML_ESCAPES[match[0]], text)
    return neutralize_json(_LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


class PageTruncation(FrozenStruct):
    """Limits for the data of one case on the page; None means no limit."""

    max_characters: int | None = None
    """Characters of one text: a response, a message, a tool result."""
    max_parts: int | None = None
    """Calls, messages or checks of one execution."""
    executions: bool = True
    """Whether the responses of executions that did not decide are included."""


TRUNCATION_STEPS: Final = (
    PageTruncation(),
    PageTruncation(20_000, 200),
    PageTruncation(8_000, 100),
    PageTruncation(4_000, 60),
    PageTruncation(2_000, 40),
    PageTruncation(1_000, 20),
    PageTruncation(1_000, 20, executions=False),
    PageTruncation(600, 12, executions=False),
    PageTruncation(300, 6, executions=False),
)


class PageCases(FrozenStruct):
    """Encoded case data of the page, as plain or compressed JSON, and what was truncated or omitted."""

    plain: str
    """Empty if the data is packed."""
    packed: str
    """The same as gzip in base64; empty if the data is plain."""
    truncation: PageTruncation
    omitted_count: int = 0
    """Cases without data except for their rows."""


def truncate_cases(
    cases: Sequence[tuple[int, Found]], make: Callable[[Found, PageTruncation], Any], used: int
) -> PageCases:
    """Encode the data of cases at the first truncation step at which all of them fit.

    The most important case comes first. If not even the last step fits, the cases at the end have no data. `used`
    is the size in bytes of everything else on the page.
    """
    room = max(MAX_PAGE_BYTES - used, _MIN_ROOM)
    for cut in TRUNCATION_STEPS:
        pack = _CasePacker(room)
        for place, one in cases:
            if not pack.try_add(f'"{place}":{encode_island(make(one, cut))}'):
                break
        if pack.count == len(cases) or cut is TRUNCATION_STEPS[-1]:
            return PageCases(*pack.encode_members(), cut, len(cases) - pack.count)
    raise AssertionError("the ladder has a last step")


class _CasePacker:
    """Members of one JSON object, as far as they fit in compressed form."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._members: list[str] = []
        self._plain = 0
        self._packer = _build_compressor()
        self._packed = 0

    @property
    def count(self) -> int:
        return len(self._members)

    def try_add(self, member: str) -> bool:
        """Add a member if it fits; return whether it did."""
        data = member.encode()
        self._packed += len(self._packer.compress(data + b","))
        self._plain += len(data) + 1
        # the compressor buffers at most some 64 kB, and seldom more than a tenth of that
        if self._plain > MAX_UNPACKED_BYTES or (
            (self._packed + _COMPRESSOR_BUFFER) * _BASE64_RATIO > self._room and self._plain > self._room
        ):
            return False
        self._members.append(member)
        return True

    def encode_members(self) -> tuple[str, str]:
        """Return the data as plain text or packed; the other text is empty."""
        text = "{" + ",".join(self._members) + "}"
        if self._plain <= min(MAX_PLAIN_BYTES, self._room):
            return text, ""
        packer = _build_compressor()
        return "", base64.b64encode(packer.compress(text.encode()) + packer.flush()).decode()


_COMPRESSOR_BUFFER: Final = 16_000


def _build_compressor() -> zlib._Compress:
    return zlib.compressobj(6, zlib.DEFLATED, 31)  # 31: the frame of gzip, without a time in it
