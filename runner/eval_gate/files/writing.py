"""Write files atomically below the working directory, without following links.

A program of a pull request may run at the same time and swap a folder for a link, and Eval Gate may be root. So links
are resolved once, and from the working directory on each folder is opened within the one before (`OpenFolder`): writing
stays in the open folder, also if its path leads elsewhere meanwhile.

Windows cannot open folders. There, paths are used and links are checked before each step, which leaves a race; Eval
Gate runs no programs on Windows.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shlex
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Self, TypeAlias

from eval_gate.errors import GateError, find_exhaustion_error
from eval_gate.files.file_paths import NO_FILE, OUTSIDE, resolve_path

_BINARY: Final = getattr(os, "O_BINARY", 0)
"""Windows would write other line ends than those it is given."""
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOINHERIT", 0)
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
_FILE: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | _BINARY | _NO_LINK
"""Not blocking: a pipe must not keep us waiting for its other end."""
_REPARSE_POINT: Final = stat.FILE_ATTRIBUTE_REPARSE_POINT


def write_atomically(file: Path, content: str | bytes) -> None:
    """Replace `file` atomically, and create missing folders. Raises GateError and leaves the file unchanged.

    Where `file` is a link to a file below the working directory, it is that file which is replaced.
    """
    with open_replacement(file) as write:
        write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)


@contextmanager
def open_replacement(file: Path) -> Iterator[Callable[[bytes], object]]:
    """Replace a file atomically by content that comes piece by piece.

    Yields a function to call with each piece; no piece is kept in memory. `file` is replaced at the end of the
    block. If the block raises anything, `file` stays as it was. Raises GateError.
    """
    with _convert_errors(file), _open_parent(file) as (folder, name):
        _refuse_special_file(folder, name, file)
        own = f".{name[:200]}.{secrets.token_hex(8)}"
        descriptor = folder.open_file(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                yield stream.write
                stream.flush()
                if hasattr(os, "fchmod"):  # Windows has no such rights
                    os.fchmod(stream.fileno(), 0o644)
            folder.replace(own, name)
        except BaseException:
            with contextlib.suppress(OSError):
                folder.remove_file(own)
            raise


def remove_file(file: Path) -> None:
    """Remove a file of Eval Gate. Raises GateError."""
    with _convert_errors(file), _open_parent(file) as (folder, name):
        folder.remove_file(name)


def open_to_append(file: Path) -> int:
    """Open a file, created if missing, for reading and appending; return its descriptor. Raises GateError."""
    with _convert_errors(file), _open_parent(file) as (folder, name):
        _refuse_special_file(folder, name, file)
        descriptor = folder.open_file(name, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            _refuse_hard_link(descriptor, file)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor


def append_data(descriptor: int, data: bytes, file: Path) -> None:
    """Append all of `data` and flush it. Raises GateError, naming `file`."""
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except (OSError, ValueError) as error:
        raise _build_write_error(file, error) from error


def append_line(file: Path, line: bytes) -> None:
    """Append a line in one call, so that a killed process leaves whole lines; an unfinished one stays by itself.

    Raises GateError.
    """
    descriptor = open_to_append(file)
    try:
        end = os.fstat(descriptor).st_size
        if end:
            os.lseek(descriptor, end - 1, os.SEEK_SET)  # what is written goes to the end all the same
            if os.read(descriptor, 1) != b"\n":
                line = b"\n" + line
        append_data(descriptor, line, file)
    finally:
        os.close(descriptor)


def open_new_file(file: Path) -> int | None:
    """Create a file and return its descriptor, or None if it exists or is a link. Raises GateError."""
    with _convert_errors(file), _use_folder(file.parent) as folder:
        try:
            return folder.open_file(file.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return None


def make_folder(folder: Path) -> None:
    """Create the folder, and missing ones above it. Raises GateError."""
    with _convert_errors(folder):
        _open_nested_folder(folder).close()


@contextmanager
def _open_parent(file: Path) -> Iterator[tuple[OpenFolder, str]]:
    """Open the folder of a file, create it if it is missing, and yield it with the name of the file."""
    place = _resolve_output(file)
    with _use_folder(place.parent) as folder:
        yield folder, place.name


@contextmanager
def _use_folder(folder: Path) -> Iterator[OpenFolder]:
    opened = _open_nested_folder(folder)
    try:
        yield opened
    finally:
        opened.close()


def _open_nested_folder(folder: Path) -> OpenFolder:
    """Open a folder, each part within the part before it, from the working directory on; create missing ones."""
    place = _resolve_output(folder)
    start = Path(os.path.realpath(Path.cwd()))
    if not place.is_relative_to(start):
        # only a person at the command line leads here, to folders of their own
        place.mkdir(parents=True, exist_ok=True)
        return open_folder(place)
    parent = open_folder(start)
    for name in place.relative_to(start).parts:
        try:
            child = parent.open_subfolder(name)
        finally:
            parent.close()
        parent = child
    return parent


def _resolve_output(path: Path) -> Path:
    # a path that leads out as it is written was allowed where it was read: only a command line may hold one
    place = resolve_path(path, anywhere=True)
    if place is None:
        raise GateError(
            "output-outside-working-directory",
            f"{path} {OUTSIDE}: a part of the path is a link",
            "remove the link, or choose another place",
        )
    return place


def _refuse_special_file(folder: OpenFolder, name: str, file: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(folder.read_mode(name)):
            raise _build_not_writable(file, NO_FILE)


def _refuse_hard_link(descriptor: int, file: Path) -> None:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:  # a file with a second name may belong to another user
        raise _build_not_writable(file, NO_FILE)


@contextmanager
def _convert_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise _build_write_error(path, error) from error


def _build_write_error(path: Path, error: OSError | ValueError) -> GateError:
    refused = find_exhaustion_error(error, f"{path} cannot be written") or _build_not_writable(
        path, _describe_os_error(error)
    )
    if isinstance(error, PermissionError) and (place := _find_root_owned(path)):
        command = f'sudo chown -R "$(id -u)" -- {shlex.quote(str(place))}'
        cause = f"{place} belongs to root, probably because a container wrote it: run `{command}`"
        refused.hint = f"{cause}, or {refused.hint}"
    return refused


def _find_root_owned(path: Path) -> Path | None:
    """Find the nearest existing part of `path` that belongs to root, if this process is not root."""
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        return None
    with contextlib.suppress(OSError):
        existing = next((one for one in (path, *path.parents) if one.exists()), None)
        # elsewhere root owns files for a reason, and no message should suggest to change `/`'s owner
        if existing is not None and existing.stat().st_uid == 0 and Path.cwd() in existing.resolve().parents:
            return existing
    return None


def _describe_os_error(error: OSError | ValueError) -> str:
    words = error.strerror if isinstance(error, OSError) else "its name contains characters that no file name can have"
    return f"cannot be written: {words}"


def _build_not_writable(path: Path, why: str) -> GateError:
    return GateError("output-not-writable", f"{path} {why}", "choose another folder with --output-dir")


class _DescriptorFolder:
    """Folder that is opened once; no path is resolved a second time."""

    def __init__(self, path: str | Path, parent: int | None = None) -> None:
        self._folder = os.open(path, _FOLDER, dir_fd=parent)

    def open_subfolder(self, name: str) -> Self:
        """Open the subfolder of this name, and create it if it is missing."""
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=self._folder)
        return type(self)(name, self._folder)

    def open_file(self, name: str, flags: int, mode: int) -> int:
        return os.open(name, flags | _FILE, mode, dir_fd=self._folder)

    def read_mode(self, name: str) -> int:
        return os.stat(name, dir_fd=self._folder, follow_symlinks=False).st_mode

    def replace(self, own: str, name: str) -> None:
        os.replace(own, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def remove_file(self, name: str) -> None:
        os.unlink(name, dir_fd=self._folder)

    def close(self) -> None:
        os.close(self._folder)


class _PathFolder:
    """Folder by path, for systems that cannot open folders."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._refuse_link(self._path)
        if not self._path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))

    def open_subfolder(self, name: str) -> Self:
        path = self._path / name
        self._refuse_link(path)
        with suppress(FileExistsError):
            path.mkdir()
        return type(self)(path)

    def open_file(self, name: str, flags: int, mode: int) -> int:
        self._refuse_link(self._path / name)
        return os.open(self._path / name, flags | _FILE, mode)

    def read_mode(self, name: str) -> int:
        return (self._path / name).lstat().st_mode

    def replace(self, own: str, name: str) -> None:
        (self._path / own).replace(self._path / name)

    def remove_file(self, name: str) -> None:
        (self._path / name).unlink()

    def close(self) -> None:
        """Do nothing: no descriptor is open."""

    @staticmethod
    def _refuse_link(path: Path) -> None:
        with suppress(FileNotFoundError):
            status = path.lstat()
            # a junction of Windows is no symbolic link, and leads elsewhere all the same
            if stat.S_ISLNK(status.st_mode) or getattr(status, "st_file_attributes", 0) & _REPARSE_POINT:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


OpenFolder: TypeAlias = _DescriptorFolder | _PathFolder
"""An open folder; methods take the name of a direct entry, follow no link, and raise OSError."""


def can_open_folders() -> bool:
    """Whether this system can open a folder and work in it."""
    return {os.open, os.mkdir, os.stat, os.unlink, os.rename} <= os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")


def open_folder(path: Path) -> OpenFolder:
    """Open the folder at this path, which must not be a link. Raises OSError."""
    return _DescriptorFolder(path) if can_open_folders() else _PathFolder(path)
