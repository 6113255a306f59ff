"""Reads a file without being drowned by it, and without believing one of which nobody knows whose it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from eval_gate.errors import GateError, Problem
from eval_gate.files.place import shown_as

MAX_POINTER: Final = 1_024
"""Bytes of a pointer: less than that."""
_POINTER: Final = re.compile(
    rb"version https?://[^\s]{1,200}/spec/v1\r?\n(?:[^\n]{1,400}\n){0,8}?oid sha256:([0-9a-f]{64})\r?\n"
)


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


_FETCH: Final = "have Git LFS fetch it: `lfs: true` of actions/checkout, or `git lfs pull`"
_checks: list[CheckRead] = []


def read_up_to(path: Path, limit: int, *, made: bool = False) -> bytes:
    """What the file holds, but one byte more than `limit` at most: that one says that it is too large.

    For all that we go by. `made`: a step of the job may have made it, such as a build. Raises OSError,
    GateError for a pointer of Git LFS, and RefusedReadError for what `checking_reads` refuses.
    """
    data = read_checked_up_to(path, limit, made=made)
    _refuse_pointer(path, data)
    return data


def read_checked_up_to(path: Path, limit: int, *, made: bool = False) -> bytes:
    """The same of a file whose content is not what counts, such as a program: it may be what stands for it."""
    data = read_as_it_lies(path, limit)
    for check in _checks:
        check(path, data, made=made)
    return data


def read_left_up_to(path: Path, limit: int) -> bytes:
    """The same of results, which programs leave: whoever reads them asks otherwise whose they are.

    Raises OSError, and GateError for a pointer of Git LFS.
    """
    data = read_as_it_lies(path, limit)
    _refuse_pointer(path, data)
    return data


def read_as_it_lies(path: Path, limit: int) -> bytes:
    """The same of bytes that nobody goes by. Raises OSError."""
    with path.open("rb") as stream:
        return stream.read(limit + 1)


def _refuse_pointer(path: Path, data: bytes) -> None:
    if pointer_in(data) is None:
        return
    shown, what = shown_as(path, Path.cwd()), "is a Git LFS pointer, not the file itself"
    problem = Problem(f"{what}: {_FETCH}", file=shown)
    raise GateError("lfs-pointer", f"{shown} {what}", _FETCH, problems=[problem])


@contextmanager
def checking_reads(check: CheckRead) -> Iterator[None]:
    """Whatever `read_up_to` reads meanwhile, in any thread, passes this check: the very bytes that count."""
    _checks.append(check)
    try:
        yield
    finally:
        _checks.remove(check)


def pointer_in(data: bytes) -> str | None:
    """The SHA-256 of the content that this stands for, in hexadecimal; None for what is no pointer."""
    match = _POINTER.match(data) if len(data) <= MAX_POINTER else None
    return match[1].decode() if match else None
