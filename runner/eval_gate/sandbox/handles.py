"""File operations relative to an open folder, so that no path component can be swapped for a link.

No path is ever given to the system as a whole, so that no part of it can become a link between a check and its
use. Every function here takes the handle (file descriptor) of a folder and one name in it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Final

from eval_gate.sandbox.paths import HARD_LINK, LINK, MISSING, NO_FILE, NO_FOLDER, SandboxError

SUPPORTED: Final = {os.open, os.mkdir, os.stat, os.unlink} <= os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
"""Whether this system opens relative to a folder and refuses links: Linux and macOS do."""
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
_FILE: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | _NO_LINK
"""Not blocking: a pipe must not keep us waiting for its other end."""
_MESSAGES: Final[Mapping[int | None, str]] = {
    errno.ELOOP: LINK,
    errno.ENOENT: MISSING,
    errno.ENOTDIR: NO_FOLDER,
    errno.EISDIR: NO_FILE,
    errno.ENXIO: NO_FILE,
}
"""What the system answers to a path that is not as it has to be, in our words; all else is a broken system."""


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = _MESSAGES.get(error.errno)
        if message is None:
            raise
        raise SandboxError(message) from None


def open_root(path: str) -> int:
    """Open the folder at `path`, to which all else is relative, and return its descriptor. Raises OSError."""
    return os.open(path, _FOLDER)


def open_folder(folder: int, name: str, *, create: bool = False) -> int:
    """Open a folder, or `create` it if it is missing. Raises SandboxError, also for a link, and OSError."""
    if create:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=folder)
    status = stat_entry(folder, name)
    if stat.S_ISLNK(status.st_mode):
        raise SandboxError(LINK)
    with _translate_errors():
        # the check above is for the message; the flags refuse a link
        return _check_same_device(os.open(name, _FOLDER, dir_fd=folder), folder)


def _check_same_device(child: int, folder: int) -> int:
    """Return the folder `child`. Raises SandboxError if another file system is mounted there."""
    if os.fstat(child).st_dev != os.fstat(folder).st_dev:
        os.close(child)
        raise SandboxError("Path leads into another file system.")
    return child


def stat_entry(folder: int, name: str) -> os.stat_result:
    """Return the stat result of the entry itself, without following a link. Raises SandboxError if it is missing."""
    with _translate_errors():
        return os.stat(name, dir_fd=folder, follow_symlinks=False)


def find_file_problem(status: os.stat_result) -> str | None:
    """Explain why an entry is not a plain file; None if it is one."""
    if stat.S_ISLNK(status.st_mode):
        return LINK
    if not stat.S_ISREG(status.st_mode):
        return NO_FILE
    return HARD_LINK if status.st_nlink > 1 else None


def read_bytes(folder: int, name: str, limit: int) -> bytes:
    """Read at most `limit` + 1 bytes: one more says that the file is too large. Raises SandboxError and OSError."""
    with os.fdopen(_open_file(folder, name, os.O_RDONLY), "rb") as stream:
        return stream.read(limit + 1)


def write_bytes(folder: int, name: str, data: bytes, *, executable: bool = False) -> None:
    """Create the file or replace its content. Raises SandboxError and OSError."""
    mode = 0o700 if executable else 0o600
    with os.fdopen(_open_file(folder, name, os.O_WRONLY | os.O_CREAT, mode), "wb") as stream:
        stream.truncate(0)
        stream.write(data)


def _open_file(folder: int, name: str, flags: int, mode: int = 0o600) -> int:
    # opening a device may already do something: looked at first, and what was opened is looked at again
    with contextlib.suppress(FileNotFoundError):
        _refuse_special_file(os.stat(name, dir_fd=folder, follow_symlinks=False))
    with _translate_errors():
        handle = os.open(name, flags | _FILE, mode, dir_fd=folder)
    try:
        _refuse_special_file(os.fstat(handle))
    except SandboxError:
        os.close(handle)
        raise
    return handle


def _refuse_special_file(status: os.stat_result) -> None:
    problem = find_file_problem(status)
    if problem is not None:
        raise SandboxError(problem)


def remove_file(folder: int, name: str) -> None:
    """Remove the file. Raises SandboxError and OSError; a link that appears in its place is removed itself."""
    _refuse_special_file(stat_entry(folder, name))
    os.unlink(name, dir_fd=folder)


def list_names(folder: int, limit: int) -> Iterator[str]:
    """List the names of all entries, sorted. Raises SandboxError for more than `limit`."""
    names: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            names.append(entry.name)
            if len(names) > limit:
                raise SandboxError(f"There are more than {limit} entries.")
    return iter(sorted(names))
