"""What a program printed, within bounds: all of it, or its head and its tail."""

from __future__ import annotations

from typing import Protocol

from eval_gate.struct import FrozenStruct


class Mask(Protocol):
    """Takes out of bytes what nobody may see. `cut_before` and `cut_after`: something is missing there."""

    def __call__(self, data: bytes, *, cut_before: bool = False, cut_after: bool = False) -> bytes:
        """The same bytes without what nobody may see."""
        ...


class Captured(FrozenStruct):
    """Bytes that were kept of `total`. Where some are missing, `data` is the head up to `seam` and then the tail."""

    data: bytes
    total: int
    seam: int = 0

    @property
    def cut(self) -> bool:
        """Whether something is missing."""
        return self.total > len(self.data)

    def masked(self, mask: Mask) -> Captured:
        """The same without what nobody may see."""
        if not self.cut:
            data = mask(self.data)
            return self if data is self.data else Captured(data, len(data))
        head = mask(self.data[: self.seam], cut_after=True)
        tail = mask(self.data[self.seam :], cut_before=True)
        return Captured(head + tail, self.total - len(self.data) + len(head) + len(tail), len(head))

    def text(self, limit: int | None = None) -> str:
        """All as text, with a mark where something is missing; with a limit, at most so many characters and the mark.

        It is read as UTF-8, with a replacement character for what is none.
        """
        if self.cut:
            head, tail = _decoded(self.data[: self.seam]), _decoded(self.data[self.seam :])
        else:
            head, tail = _decoded(self.data), ""
        length = len(head) + len(tail)
        if limit is not None and length > limit:
            tail = (head + tail)[length - limit // 2 :]
            head = head[: limit - limit // 2]
        elif not self.cut:
            return head
        return f"{head}\n[… cut: {self.total:,} bytes in all …]\n{tail}"

    def last_words(self, limit: int) -> str:
        """Its end on one line, in at most so many characters; empty where nothing was printed."""
        words = " ".join(_decoded(self.data[-limit * 4 :]).split())
        return words if len(words) <= limit else f"…{words[len(words) - limit + 1 :]}"


class Capture:
    """Takes bytes without end and keeps at most `limit` of them; at times half as much again while it collects."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._tail_limit = limit // 2
        self._kept = bytearray()
        self._tail: bytearray | None = None
        self._total = 0

    @property
    def full(self) -> bool:
        """Whether more came than is kept."""
        return self._total > self._limit

    def add(self, data: bytes) -> None:
        """Take the next bytes: the first ones are kept as the head, the newest ones as the tail."""
        self._total += len(data)
        if self._tail is None:
            self._kept += data
            if len(self._kept) > self._limit:
                seam = self._limit - self._tail_limit
                self._tail = self._kept[seam:]
                del self._kept[seam:]
                self._trim(self._tail)
        else:
            self._tail += data
            if len(self._tail) > 2 * self._tail_limit:
                self._trim(self._tail)

    def captured(self) -> Captured:
        """What is kept so far; more may be added afterwards."""
        if self._tail is None:
            return Captured(bytes(self._kept), self._total)
        self._trim(self._tail)
        return Captured(bytes(self._kept + self._tail), self._total, len(self._kept))

    def _trim(self, tail: bytearray) -> None:
        del tail[: len(tail) - self._tail_limit]


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")
