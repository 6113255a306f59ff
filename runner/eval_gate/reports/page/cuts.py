"""What of a case the page can hold: cut so that it opens at once whatever the run was, and without hidden text."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from eval_gate.struct import FrozenStruct
from eval_gate.text.inert import json_text

_LONE: Final = re.compile("[\ud800-\udfff]")
_LIVE: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_LIVE_SIGNS: Final = re.compile("[<>&\u2028\u2029]")
Found = TypeVar("Found")

MANY_CASES: Final = 1_000
"""Cases above which a passing one is only its row."""
MOST_BYTES: Final = 1_900_000
"""Of a page, but for one of so many cases that their rows alone are more."""
MOST_PLAIN: Final = 700_000
"""Bytes of what is said of single cases that stand there to be read; more of it is packed."""
MOST_UNPACKED: Final = 16_000_000
"""Bytes that a browser is given to unpack."""
_LEAST_ROOM: Final = 200_000
_WORD: Final = 4 / 3
"""Characters of base64 for a byte."""


def without_lone(text: str) -> str:
    """The text without halves of characters, which no file can hold."""
    return _LONE.sub("\ufffd", text)


def island(data: Any) -> str:
    """The data as JSON on one line that ends no element, opens none, and is no command of a runner."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = _LIVE_SIGNS.sub(lambda match: _LIVE[match[0]], text)
    return json_text(_LONE.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


class PageCut(FrozenStruct):
    """What of one case stands on the page. None is everything there is."""

    text: int | None = None
    """Characters of one text: an answer, a message, what a tool gave back."""
    parts: int | None = None
    """Calls, messages or checks of one execution."""
    executions: bool = True
    """Whether the answers of the executions that did not decide are there."""


LADDER: Final = (
    PageCut(),
    PageCut(20_000, 200),
    PageCut(8_000, 100),
    PageCut(4_000, 60),
    PageCut(2_000, 40),
    PageCut(1_000, 20),
    PageCut(1_000, 20, executions=False),
    PageCut(600, 12, executions=False),
    PageCut(300, 6, executions=False),
)


class PageCases(FrozenStruct):
    """What the page says of single cases, as the JSON of one object by their places, and what was cut for it."""

    plain: str
    """Empty where it is packed."""
    packed: str
    """The same as gzip in base64; empty where it is plain."""
    cut: PageCut
    without: int = 0
    """Cases of which there was no room for anything but their row."""


def fitted(cases: Sequence[tuple[int, Found]], make: Callable[[Found, PageCut], Any], used: int) -> PageCases:
    """What there is to say of these cases, at the first step that has room for all; the most important case is first.

    Where not even the last step has, those at the end have nothing. `used` are the bytes of all else on the page.
    """
    room = max(MOST_BYTES - used, _LEAST_ROOM)
    for cut in LADDER:
        pack = _Pack(room)
        for place, one in cases:
            if not pack.takes(f'"{place}":{island(make(one, cut))}'):
                break
        if pack.count == len(cases) or cut is LADDER[-1]:
            return PageCases(*pack.both(), cut, len(cases) - pack.count)
    raise AssertionError("the ladder has a last step")


class _Pack:
    """The members of one JSON object, as far as there is room for them packed."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._members: list[str] = []
        self._plain = 0
        self._packer = _packer()
        self._packed = 0

    @property
    def count(self) -> int:
        return len(self._members)

    def takes(self, member: str) -> bool:
        """Whether there was room for one more."""
        data = member.encode()
        self._packed += len(self._packer.compress(data + b","))
        self._plain += len(data) + 1
        # what the packer still holds back is at most some 64 kB, and seldom more than a tenth of that
        if self._plain > MOST_UNPACKED or ((self._packed + _HELD) * _WORD > self._room and self._plain > self._room):
            return False
        self._members.append(member)
        return True

    def both(self) -> tuple[str, str]:
        """Plain and empty, or empty and packed."""
        text = "{" + ",".join(self._members) + "}"
        if self._plain <= min(MOST_PLAIN, self._room):
            return text, ""
        packer = _packer()
        return "", base64.b64encode(packer.compress(text.encode()) + packer.flush()).decode()


_HELD: Final = 16_000


def _packer() -> zlib._Compress:
    return zlib.compressobj(6, zlib.DEFLATED, 31)  # 31: the frame of gzip, without a time in it
