"""Captured output of a program: all of it, or its head and tail."""

from __future__ import annotations

from typing import Protocol

from eval_gate.struct import FrozenStruct


class Mask(Protocol):
    """Callable that masks secrets in bytes; `cut_before`, `cut_after`: the bytes were truncated there."""

    def __call__(self, data: bytes, *, cut_before: bool = False, cut_after: bool = False) -> bytes:
        """Return `data` with its secrets masked."""
        ...


class CapturedOutput(FrozenStruct):
    """Captured output of a program; when truncated, `data` is the head up to `seam`, then the tail."""

    data: bytes
    total: int
    seam: int = 0

    @property
    def is_truncated(self) -> bool:
        """Whether something is missing."""
        return self.total > len(self.data)

    def apply_mask(self, mask: Mask) -> CapturedOutput:
        """Return the output with its secrets masked; head and tail of a truncated one are masked separately."""
        if not self.is_truncated:
            data = mask(self.data)
            return self if data is self.data else CapturedOutput(data, len(data))
        head = mask(self.data[: self.seam], cut_after=True)
        tail = mask(self.data[self.seam :], cut_before=True)
        return CapturedOutput(head + tail, self.total - len(self.data) + len(head) + len(tail), len(head))

    def to_text(self, limit: int | None = None) -> str:
        """Decode the output as UTF-8, with a mark at a gap, in at most `limit` characters and the mark."""
        if self.is_truncated:
            head, tail = _decode_text(self.data[: self.seam]), _decode_text(self.data[self.seam :])
        else:
            head, tail = _decode_text(self.data), ""
        length = len(head) + len(tail)
        if limit is not None and length > limit:
            tail = (head + tail)[length - limit // 2 :]
            head = head[: limit - limit // 2]
        elif not self.is_truncated:
            return head
        return f"{head}\n[… cut: {self.total:,} bytes in all …]\n{tail}"

    def format_last_line(self, limit: int) -> str:
        """Format the end on one line of at most `limit` characters; empty if nothing was printed."""
        words = " ".join(_decode_text(self.data[-limit * 4 :]).split())
        return words if len(words) <= limit else f"…{words[len(words) - limit + 1 :]}"


class OutputCapture:
    """Collector of output that keeps the head and the tail, about `limit` bytes in all."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._tail_limit = limit // 2
        self._kept = bytearray()
        self._tail: bytearray | None = None
        self._total = 0

    @property
    def is_full(self) -> bool:
        """Whether the output exceeds the limit."""
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
                self._trim_tail(self._tail)
        else:
            self._tail += data
            if len(self._tail) > 2 * self._tail_limit:
                self._trim_tail(self._tail)

    def get_output(self) -> CapturedOutput:
        """Return what has been captured so far; the capture may continue afterwards."""
        if self._tail is None:
            return CapturedOutput(bytes(self._kept), self._total)
        self._trim_tail(self._tail)
        return CapturedOutput(bytes(self._kept + self._tail), self._total, len(self._kept))

    def _trim_tail(self, tail: bytearray) -> None:
        del tail[: len(tail) - self._tail_limit]


def _decode_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
