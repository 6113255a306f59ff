"""Private temporary folder of a program, read without trusting its content."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eval_gate.process.captured_output import CapturedOutput
from eval_gate.process.identity import Identity, find_identity
from eval_gate.process.run import CAN_RUN_PROGRAMS, UNSUPPORTED_SYSTEM, ProcessError, StartRefusal


class PrivateFolder:
    """A temporary folder that a program may write to; it is read through a descriptor.

    As root, this process can read files that the program cannot. Links are therefore not followed, not even one in
    place of the folder.
    """

    def __init__(self, path: Path, descriptor: int, identity: Identity | None) -> None:
        self.path = path
        self._descriptor = descriptor
        self._identity = identity

    def write(self, name: str, data: bytes) -> Path:
        """Write a file for the program, and return its path."""
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=self._descriptor)
        with os.fdopen(descriptor, "wb") as file:
            if self._identity:
                self._identity.take_ownership(descriptor)
            file.write(data)
        return self.path / name

    def read(self, name: str, limit: int) -> CapturedOutput | None:
        """Read a file of the program, or its head and tail beyond `limit`; None without one. Raises ProcessError."""
        try:
            # a named pipe would otherwise be waited for
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self._descriptor)
        except FileNotFoundError:
            return None
        except OSError as error:
            why = "is a link" if error.errno == errno.ELOOP else f"cannot be read: {error.strerror}"
            raise ProcessError(f"the file {name} {why}", StartRefusal.FILE) from error
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ProcessError(f"the file {name} is not a regular file", StartRefusal.FILE)
            return _read_head_and_tail(descriptor, status.st_size, limit)
        except OSError as error:
            raise ProcessError(f"the file {name} cannot be read: {error.strerror}", StartRefusal.FILE) from error
        finally:
            os.close(descriptor)


@contextmanager
def open_private_folder(prefix: str, cwd: Path, *, keep: bool = False) -> Iterator[PrivateFolder]:
    """Create a temporary folder for a program in `cwd`, removed afterwards unless `keep`. Raises ProcessError."""
    if not CAN_RUN_PROGRAMS:
        raise ProcessError(UNSUPPORTED_SYSTEM)
    with contextlib.ExitStack() as stack:
        try:
            identity = find_identity(cwd)
        except OSError as error:
            what = f"the working directory {cwd} cannot be used: {error.strerror}"
            raise ProcessError(what, StartRefusal.FOLDER) from error
        try:
            path = Path(tempfile.mkdtemp(prefix=prefix)).absolute()
            if not keep:
                stack.callback(shutil.rmtree, path, ignore_errors=True)
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            stack.callback(os.close, descriptor)
            if identity:
                identity.take_ownership(descriptor)
        except OSError as error:
            raise ProcessError(f"temporary files cannot be created: {error.strerror}") from error
        yield PrivateFolder(path, descriptor, identity)


def _read_head_and_tail(descriptor: int, size: int, limit: int) -> CapturedOutput:
    if size <= limit:
        data = _read_range(descriptor, limit, 0)
        return CapturedOutput(data, len(data))
    tail = limit // 2
    head = _read_range(descriptor, limit - tail, 0)
    return CapturedOutput(head + _read_range(descriptor, tail, size - tail), size, len(head))


def _read_range(descriptor: int, count: int, offset: int) -> bytes:
    chunks = []
    while count > 0 and (chunk := os.pread(descriptor, count, offset)):
        chunks.append(chunk)
        count -= len(chunk)
        offset += len(chunk)
    return b"".join(chunks)
