"""The runner's file commands, and handing files back to whom the workspace belongs."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from eval_gate.process.identity import is_root

MAX_SUMMARY_BYTES: Final = 1_048_576
"""Beyond this GitHub drops the whole summary."""


def write_outputs(file: Path, outputs: Mapping[str, str]) -> None:
    """Append outputs, each with a delimiter of its own that its value cannot hold."""
    lines = []
    for name, value in outputs.items():
        delimiter = f"end_{secrets.token_hex(16)}"
        lines.append(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")
    with file.open("a", encoding="utf-8", newline="\n") as stream:
        stream.write("".join(lines))


def append_summary(file: Path, markdown: str) -> bool:
    """Append to the job summary; False when it would grow beyond what GitHub takes, and nothing is written then."""
    data = markdown.encode("utf-8", "backslashreplace")
    there = file.stat().st_size if file.exists() else 0
    if there + len(data) + 1 > MAX_SUMMARY_BYTES:
        return False
    with file.open("ab") as stream:
        stream.write(data if data.endswith(b"\n") else data + b"\n")
    return True


def hand_back(paths: Iterable[Path], workspace: Path) -> None:
    """Give files we made as root to the owner of the workspace, who has to be able to delete them.

    Only what is inside the workspace, and no link is followed on the way there or below: a link that a pull request put
    there must not hand somebody else's file over.
    """
    with suppress(OSError):
        owner = workspace.stat()
        if not is_root() or owner.st_uid == 0:
            return
        root = Path(os.path.normpath(workspace))
        for path in paths:
            with suppress(OSError):
                _give_from(root, Path(os.path.normpath(root / path)), owner.st_uid, owner.st_gid)


def _give_from(root: Path, path: Path, uid: int, gid: int) -> None:
    """The path with everything in it, and the folders above it that we had to make."""
    if path == root or not path.is_relative_to(root):
        return
    above = [folder for folder in path.parents if folder.is_relative_to(root) and folder != root]
    if any(folder.is_symlink() for folder in above):
        return
    made = [folder for folder in above if folder.stat().st_uid == os.geteuid()]
    inside = os.walk(path) if path.is_dir() and not path.is_symlink() else ()
    found = (Path(folder) / name for folder, folders, files in inside for name in (*folders, *files))
    for one in (*made, path, *found):
        with suppress(OSError):  # one that cannot be given does not keep the others
            os.chown(one, uid, gid, follow_symlinks=False)
