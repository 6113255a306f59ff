"""Reads a file without being drowned by it, and without believing one of which nobody knows whose it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from eval_gate.errors import GateError


class RefusedReadError(Exception):
    """A file must not count. No reader takes this for a file that is damaged or missing: it is no error of its own."""

    def __init__(self, error: GateError) -> None:
        super().__init__(error.message)
        self.error = error


class CheckRead(Protocol):
    """Whoever is asked of each file that is read whether it counts."""

    def __call__(self, path: Path, data: bytes, *, made: bool) -> None:
        """`data` is what was read, `made` whether a step of the job may have made it. Raises RefusedReadError."""
        ...


_checks: list[CheckRead] = []


def read_up_to(path: Path, limit: int, *, made: bool = False) -> bytes:
    """What the file holds, but one byte more than `limit` at most: that one says that it is too large.

    For all that we go by. `made`: a step of the job may have made it, such as a build. Raises OSError, and
    RefusedReadError for what `checking_reads` refuses.
    """
    data = read_left_up_to(path, limit)
    for check in _checks:
        check(path, data, made=made)
    return data


def read_left_up_to(path: Path, limit: int) -> bytes:
    """The same of results, which programs leave: whoever reads them asks otherwise whose they are. Raises OSError."""
    with path.open("rb") as stream:
        return stream.read(limit + 1)


@contextmanager
def checking_reads(check: CheckRead) -> Iterator[None]:
    """Whatever `read_up_to` reads meanwhile, in any thread, passes this check: the very bytes that count."""
    _checks.append(check)
    try:
        yield
    finally:
        _checks.remove(check)
