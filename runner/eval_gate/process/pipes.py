"""Pipes for the three standard streams of a program, which it may also open by name.

No function here waits, so that no cancellation can interrupt the opening of a pipe.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from eval_gate.process.captured_output import CapturedOutput, OutputCapture
from eval_gate.process.identity import Identity

_READ_BYTES: Final = 262_144
"""Bytes of one read: more than a pipe usually holds, so that one read empties it."""


class ProgramOutput:
    """An output stream of a program, read as it arrives and kept within a limit."""

    def __init__(self, limit: int, watch: Callable[[bytes], object] | None = None) -> None:
        """`watch` gets the output as it arrives."""
        self._watch = watch
        self.closed = asyncio.Event()
        self.when_full: Callable[[], object] | None = None
        self._capture = OutputCapture(limit)
        self._loop = asyncio.get_running_loop()
        self._source: int | None = None

    def open(self, identity: Identity | None, stack: ExitStack) -> int:
        """Open the pipe, start reading, and return the program's end, which `stack` closes. Raises OSError."""
        self._source, sink = os.pipe()
        stack.callback(os.close, sink)
        os.set_blocking(self._source, False)
        self._loop.add_reader(self._source, self._read_available)
        if identity:
            identity.take_ownership(sink)  # else `> /dev/stderr` is refused to it
        return sink

    def close(self) -> None:
        """Stop reading."""
        if self._source is not None:
            self._loop.remove_reader(self._source)
            os.close(self._source)
            self._source = None
            self.closed.set()

    def get_output(self) -> CapturedOutput:
        """Return what was captured of the program's output so far."""
        return self._capture.get_output()

    def _read_available(self) -> None:
        if self._source is None:
            return
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._source, _READ_BYTES)
            if not data:
                self.close()
            self._capture.add(data)
            if self._watch is not None and data:
                self._watch(data)
            if self.when_full and self._capture.is_full:
                self.when_full()


class ProgramInput:
    """Input of a program, written as it reads and dropped when it stops reading."""

    def __init__(self, data: bytes | None, *, stays_open: bool = False) -> None:
        """`stays_open`: more is written later, until it is closed."""
        self._waiting = deque([memoryview(data or b"")])
        self._is_given = data is not None
        self._stays_open = stays_open
        self._loop = asyncio.get_running_loop()
        self._sink: int | None = None

    def open(self, identity: Identity | None, stack: ExitStack) -> int:
        """Open the program's input, start writing to it, and return the end that the program reads from.

        Without data, the program reads from the null device. `stack` closes the returned end. Raises OSError.
        """
        if not self._is_given:
            nothing = os.open(os.devnull, os.O_RDONLY)
            stack.callback(os.close, nothing)
            return nothing
        source, self._sink = os.pipe()
        stack.callback(os.close, source)
        os.set_blocking(self._sink, False)
        if identity:
            identity.take_ownership(source)
        self._loop.add_writer(self._sink, self._write_pending)
        return source

    def write(self, data: bytes) -> None:
        """Have the program read this, after what was written before; nothing once the input is closed."""
        if self._sink is not None:
            self._waiting.append(memoryview(data))
            self._loop.add_writer(self._sink, self._write_pending)

    def close(self) -> None:
        """Stop writing: the program reads the end of the stream, and what was not written yet is discarded."""
        if self._sink is not None:
            self._loop.remove_writer(self._sink)
            os.close(self._sink)
            self._sink = None

    def _write_pending(self) -> None:
        if self._sink is None:
            return
        try:
            while self._waiting:
                rest = self._waiting[0]
                self._waiting[0] = rest[os.write(self._sink, rest[:_READ_BYTES]) :]
                if not self._waiting[0]:
                    self._waiting.popleft()
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._waiting.clear()
        if self._stays_open:
            self._loop.remove_writer(self._sink)
        else:
            self.close()
