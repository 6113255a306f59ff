"""Bounded file reads that check whether the content may be trusted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from eval_gate.errors import GateError, Problem
from eval_gate.files.file_paths import format_path

MAX_POINTER_BYTES: Final = 1_024
"""Bytes of a pointer: less than that."""
_POINTER: Final = re.compile(
    rb"version https?://[^\s]{1,200}/spec/v1\r?\n(?:[^\n]{1,400}\n){0,8}?oid sha256:([0-9a-f]{64})\r?\n"
)


class RefusedReadError(Exception):
    """A file that must not be used, although it exists and is intact."""

    def __init__(self, error: GateError) -> None:
        super().__init__(error.message)
        self.error = error


class ReadCheck(Protocol):
    """Check that is called with each file read and may refuse it."""

    def __call__(self, path: Path, data: bytes, *, is_generated: bool) -> None:
        """Check the bytes of a file, which may be `is_generated` by a step of the job. Raises RefusedReadError."""
        ...


_FETCH: Final = "fetch it with Git LFS: `lfs: true` of actions/checkout, or `git lfs pull`"
_checks: list[ReadCheck] = []


def read_limited(path: Path, limit: int, *, is_generated: bool = False) -> bytes:
    """Read up to `limit` + 1 bytes of a file that a decision depends on.

    One byte more than `limit` says that the file is too large. `is_generated`: a step of the job, such as
    a build, may have made the file.

    Raises OSError, GateError for a Git LFS pointer, and RefusedReadError for what `check_reads` refuses.
    """
    data = read_limited_or_pointer(path, limit, is_generated=is_generated)
    _refuse_lfs_pointer(path, data)
    return data


def read_optional(path: Path, limit: int, *, shown_as: str, hint: str) -> bytes | None:
    """Read a configuration file as `read_limited` does; return None if there is none.

    Raises GateError `configuration-unreadable`, also for a pipe or a device, which would be waited for.
    """
    try:
        if path.is_file():
            return read_limited(path, limit)
        why = "it is not a file" if path.exists() or path.is_symlink() else None
    except OSError as error:
        why = error.strerror or type(error).__name__
    if why is None:
        return None
    raise GateError("configuration-unreadable", f"{shown_as} cannot be read: {why}", hint)


def read_limited_or_pointer(path: Path, limit: int, *, is_generated: bool = False) -> bytes:
    """Read a file as `read_limited` does, or a Git LFS pointer: for programs, whose content does not matter."""
    data = read_limited_raw(path, limit)
    for check in _checks:
        check(path, data, is_generated=is_generated)
    return data


def read_limited_result(path: Path, limit: int) -> bytes:
    """Read up to `limit` + 1 bytes of results that a program wrote, without the checks on reads.

    The caller checks in another way where the results come from. Raises OSError, and GateError for a Git LFS
    pointer.
    """
    data = read_limited_raw(path, limit)
    _refuse_lfs_pointer(path, data)
    return data


def read_limited_raw(path: Path, limit: int) -> bytes:
    """Read up to `limit` + 1 bytes without the checks on reads: for files with a check of their own. Raises OSError."""
    with path.open("rb") as stream:
        return stream.read(limit + 1)


def _refuse_lfs_pointer(path: Path, data: bytes) -> None:
    if parse_lfs_pointer(data) is None:
        return
    shown_as, what = format_path(path, Path.cwd()), "is a Git LFS pointer, not the file itself"
    problem = Problem(f"{what}: {_FETCH}", file=shown_as)
    raise GateError("lfs-pointer", f"{shown_as} {what}", _FETCH, problems=[problem])


@contextmanager
def check_reads(check: ReadCheck) -> Iterator[None]:
    """Apply this check to all bytes that `read_limited` reads within the block, in any thread."""
    _checks.append(check)
    try:
        yield
    finally:
        _checks.remove(check)


def parse_lfs_pointer(data: bytes) -> str | None:
    """Return the SHA-256 (hexadecimal) that a Git LFS pointer names; None if it is not a pointer."""
    match = _POINTER.match(data) if len(data) <= MAX_POINTER_BYTES else None
    return match[1].decode() if match else None
