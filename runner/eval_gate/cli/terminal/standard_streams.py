"""Make the standard streams always available, and never the cause of a failure.

A reader of the output may have gone (`run | head -0`) or may be missing (`>&-`): further output is discarded, and the
exit code stays that of the gate. A full disk loses output that is wanted, so standard output raises its OSError once.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from typing_extensions import Buffer


def open_streams() -> None:
    """Replace each closed stream: otherwise the next file that is opened would get its number."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
            if opened != number:  # a lower number is free only if a lower stream was closed, which comes first
                os.dup2(opened, number)
                os.close(opened)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "rb", closefd=False)))
    if sys.stdout is None or sys.stdout is sys.__stdout__:
        sys.stdout = _build_lasting_stream(sys.stdout, 1)
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        sys.stderr = _build_lasting_stream(sys.stderr, 2)


@contextmanager
def reserve_stdout() -> Iterator[None]:
    """Keep standard output for the result: whatever else prints meanwhile, such as a Python agent, is on stderr."""
    for stream in (sys.stdout, sys.__stdout__):
        if stream is not None:
            stream.flush()
    own = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if sys.__stdout__ is not None:  # a module may hold on to it
            sys.__stdout__.flush()
        os.dup2(own, 1)
        os.close(own)


def _build_lasting_stream(stream: TextIO | None, number: int) -> TextIO:
    """Build a standard stream that escapes what it cannot encode, so that no character makes writing fail."""
    encoding, lines = (stream.encoding, stream.line_buffering) if stream is not None else ("utf-8", False)
    buffer = io.BufferedWriter(_LastingFile(number, silent=number == 2))
    return io.TextIOWrapper(buffer, encoding=encoding, errors="backslashreplace", line_buffering=bool(lines))


class _LastingFile(io.FileIO):
    """Descriptor of a stream. After the first failure, all further output is discarded."""

    def __init__(self, number: int, *, silent: bool) -> None:
        super().__init__(number, "wb", closefd=False)
        self._silent = silent
        self._failed = False

    def write(self, data: Buffer, /) -> int:
        if not self._failed:
            try:
                return super().write(data)
            except OSError as error:
                self._failed = True
                if not self._silent and not isinstance(error, BrokenPipeError):
                    raise
        return memoryview(data).nbytes
