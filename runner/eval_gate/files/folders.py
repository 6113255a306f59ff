"""One open folder: what is done in it is done there, whatever its path comes to mean meanwhile.

Where a system opens no folders (Windows), the path stands for it, and links are looked for before each step: then a
program that runs beside us can win the race for one. Programs are not run there by us.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol, Self

_BINARY: Final = getattr(os, "O_BINARY", 0)
"""Windows would write other line ends than those it is given."""
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOINHERIT", 0)
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
_FILE: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | _BINARY | _NO_LINK
"""Not blocking: a pipe must not keep us waiting for its other end."""
_REPARSE_POINT: Final = stat.FILE_ATTRIBUTE_REPARSE_POINT


class OpenFolder(Protocol):
    """A folder that is there. Every method takes the name of what lies directly in it, and raises OSError."""

    def below(self, name: str) -> OpenFolder:
        """The folder of this name, made where it is missing; a link is none."""
        ...

    def open(self, name: str, flags: int, mode: int) -> int:
        """The descriptor of a file; a link is none."""
        ...

    def kind(self, name: str) -> int:
        """The mode of what is there, a link's own."""
        ...

    def replace(self, own: str, name: str) -> None:
        """Give one file the name of another, which is gone then."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file."""
        ...

    def close(self) -> None:
        """Give the folder back."""
        ...


class _ByDescriptor:
    """Opened once; no path is looked up a second time."""

    def __init__(self, path: str | Path, within: int | None = None) -> None:
        self._folder = os.open(path, _FOLDER, dir_fd=within)

    def below(self, name: str) -> Self:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=self._folder)
        return type(self)(name, self._folder)

    def open(self, name: str, flags: int, mode: int) -> int:
        return os.open(name, flags | _FILE, mode, dir_fd=self._folder)

    def kind(self, name: str) -> int:
        return os.stat(name, dir_fd=self._folder, follow_symlinks=False).st_mode

    def replace(self, own: str, name: str) -> None:
        os.replace(own, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def remove(self, name: str) -> None:
        os.unlink(name, dir_fd=self._folder)

    def close(self) -> None:
        os.close(self._folder)


class _ByPath:
    """For systems that open no folders."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._refuse_link(self._path)
        if not self._path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))

    def below(self, name: str) -> Self:
        path = self._path / name
        self._refuse_link(path)
        with suppress(FileExistsError):
            path.mkdir()
        return type(self)(path)

    def open(self, name: str, flags: int, mode: int) -> int:
        self._refuse_link(self._path / name)
        return os.open(self._path / name, flags | _FILE, mode)

    def kind(self, name: str) -> int:
        return (self._path / name).lstat().st_mode

    def replace(self, own: str, name: str) -> None:
        (self._path / own).replace(self._path / name)

    def remove(self, name: str) -> None:
        (self._path / name).unlink()

    def close(self) -> None:
        """Nothing is held."""

    @staticmethod
    def _refuse_link(path: Path) -> None:
        with suppress(FileNotFoundError):
            found = path.lstat()
            # a junction of Windows is no symbolic link, and leads elsewhere all the same
            if stat.S_ISLNK(found.st_mode) or getattr(found, "st_file_attributes", 0) & _REPARSE_POINT:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def opens_folders() -> bool:
    """Whether this system can open a folder and work in it."""
    return {os.open, os.mkdir, os.stat, os.unlink, os.rename} <= os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")


def open_folder(path: Path) -> OpenFolder:
    """The folder at this path, which is no link. Raises OSError."""
    return _ByDescriptor(path) if opens_folders() else _ByPath(path)
