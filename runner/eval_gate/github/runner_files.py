"""Runner files: step outputs, job summary, and ownership of files written to the workspace.

Both folders belong to the runner's user, and in a container programs of the pull request run as that user while we are
root: whatever they put in place of a file or a folder there, it leads us nowhere else.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from eval_gate.process.identity import Identity, is_root, is_writable_by_others

MAX_SUMMARY_BYTES: Final = 1_048_576
"""Beyond this GitHub drops the whole summary."""
MAX_DEPTH: Final = 100
"""Maximum depth of the folders that are handed back; the usual depth is below 10."""
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK


def write_outputs(file: Path, outputs: Mapping[str, str]) -> None:
    """Append outputs, each with a delimiter of its own that its value cannot hold. Raises OSError."""
    lines = []
    for name, value in outputs.items():
        delimiter = f"end_{secrets.token_hex(16)}"
        lines.append(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")
    data = "".join(lines).encode("utf-8")
    with _open_for_append(file) as stream:
        stream.write(data)


def append_summary(file: Path, markdown: str) -> bool:
    """Append to the job summary, or return False if it would grow beyond its limit. Raises OSError."""
    data = markdown.encode("utf-8", "backslashreplace")
    with _open_for_append(file) as stream:
        if os.fstat(stream.fileno()).st_size + len(data) + 1 > MAX_SUMMARY_BYTES:
            return False
        stream.write(data if data.endswith(b"\n") else data + b"\n")
    return True


def _open_for_append(file: Path) -> BinaryIO:
    """Open the file for appending. Raises OSError, also if another user may have replaced the file."""
    if not is_root():
        return file.open("ab")
    folder = os.open(file.parent, _FOLDER)
    try:
        folder_stat = os.fstat(folder)
        if folder_stat.st_uid == 0 and not is_writable_by_others(folder_stat):
            return file.open("ab")
        stream = os.fdopen(_open_or_create(file.name, folder, folder_stat), "ab")
    finally:
        os.close(folder)
    file_stat = os.fstat(stream.fileno())
    # the owner reveals a hard link that was removed since, which the link count does not
    if stat.S_ISREG(file_stat.st_mode) and file_stat.st_nlink == 1 and file_stat.st_uid == folder_stat.st_uid:
        return stream
    stream.close()
    raise OSError(errno.EINVAL, "it is no longer a regular file")


def _open_or_create(name: str, folder: int, folder_stat: os.stat_result) -> int:
    """Open or create a file for appending, without following a link; a new file gets the folder's owner."""
    appending = os.O_WRONLY | os.O_APPEND | _NO_LINK
    try:
        return os.open(name, appending, dir_fd=folder)
    except FileNotFoundError:
        descriptor = os.open(name, appending | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder)
        Identity(folder_stat.st_uid, folder_stat.st_gid).take_ownership(descriptor)
        return descriptor


def give_to_workspace_owner(paths: Iterable[Path], workspace: Path) -> None:
    """Give files we made as root to the owner of the workspace, who has to be able to delete them.

    Only files inside the workspace: a link on the way there is followed within it, as for writing, and none below, nor
    one that takes a folder's place meanwhile. A link of a pull request must not hand over a file outside.
    """
    with suppress(OSError):
        owner = workspace.stat()
        if not is_root() or owner.st_uid == 0:
            return
        root = Path(os.path.realpath(workspace))
        for path in paths:
            # without links first, as for writing: `link/..` is the folder in which the link is
            place = Path(os.path.realpath(os.path.normpath(workspace / path)))
            with suppress(OSError):
                _give_tree(root, place, Identity(owner.st_uid, owner.st_gid))


def _give_tree(root: Path, path: Path, owner: Identity) -> None:
    """Give the owner this path with everything in it, and the parent folders that this program made."""
    if path == root or not path.is_relative_to(root):
        return
    *above, name = path.relative_to(root).parts
    opened = [os.open(root, _FOLDER)]
    try:
        for part in above:
            opened.append(os.open(part, _FOLDER, dir_fd=opened[-1]))
        for folder in opened[1:]:
            if os.fstat(folder).st_uid == os.geteuid():
                os.chown(folder, owner.uid, owner.gid)
        _give_entry(name, opened[-1], owner, MAX_DEPTH)
    finally:
        for folder in opened:
            os.close(folder)


def _give_entry(name: str, parent: int, owner: Identity, depth: int) -> None:
    """Give the owner the entry of this name in the open folder, and a folder's content down to `depth`."""
    try:
        folder = os.open(name, os.O_RDONLY | _NO_LINK, dir_fd=parent)
    except OSError:  # a link
        with suppress(OSError):  # one that cannot be given does not keep the others
            os.chown(name, owner.uid, owner.gid, dir_fd=parent, follow_symlinks=False)
        return
    try:
        status = os.fstat(folder)
        # a file with a second name may be a hard link to a file of root
        if stat.S_ISDIR(status.st_mode) or status.st_nlink == 1:
            with suppress(OSError):
                os.chown(folder, owner.uid, owner.gid)
        if not stat.S_ISDIR(status.st_mode):
            return
        for one in os.listdir(folder) if depth else ():  # noqa: PTH208 (of what is open, not of a path)
            _give_entry(one, folder, owner, depth - 1)
    finally:
        os.close(folder)
