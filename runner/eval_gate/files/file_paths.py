"""Rules for file paths: where reading and writing is allowed, and how a path is shown.

A path of a configuration file is untrusted, because a pull request can change it, and Eval Gate may be root. `/etc/x`,
`../x` or a committed link is refused unless it leads to a place below the working directory, in the action the
workspace.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

OUTSIDE: Final = "is outside of the working directory"
NO_FILE: Final = "is not a regular file"
NUL: Final = "contains a NUL character"
DRAFT_RECORDING: Final = "draft-recording.jsonl"
"""Journal of the proxy that records for drafts, in the folder of results."""
DRAFT_RESPONSES: Final = "draft-responses.jsonl"
"""Responses that drafts were made of, in the folder of results."""
RESULT_FILES: Final = ("run.json", "latest.json", DRAFT_RECORDING, DRAFT_RESPONSES)
"""A folder that holds one of these holds results."""
VIRTUAL_ENVIRONMENT: Final = "pyvenv.cfg"
"""What a virtual environment of Python holds, whatever its name is."""
_NAME_BYTES: Final = 255
"""The longest name of a file or folder on Linux and macOS; on Windows it is as many characters."""
_PATH_BYTES: Final = 4_095


def resolve_path(path: str | Path, *, anywhere: bool = False, root: Path | None = None) -> Path | None:
    """Resolve a path to an absolute path, and follow every link.

    Return None if it leads out of `root`, which is by default the working directory.

    `anywhere`: a person wrote this path on the command line. An absolute path and `..` may lead out in that
    case. A path into the working directory still may not lead out through a link, because someone else may have
    made the link.
    """
    start = Path(os.path.realpath(root or Path.cwd()))
    # without links first: `link/..` is the folder in which the link is, not one that the link chooses
    plain = Path(os.path.normpath(start / path))
    real = Path(os.path.realpath(plain))
    if plain.is_relative_to(start):
        return real if real.is_relative_to(start) else None
    return real if anywhere else None


def find_path_problem(text: str) -> str | None:
    """Explain in the rest of a sentence why no system accepts this path or address; None if one may.

    Systems refuse it in every call that looks there, also in those that only ask whether something is there.
    """
    if "\0" in text:
        return NUL
    if "://" in text:
        return None
    data = text.encode("utf-8", "surrogateescape")
    longest = max(map(len, data.split(b"/")))
    if longest > _NAME_BYTES:
        return f"contains a file name of {longest:,} bytes (limit {_NAME_BYTES})"
    return f"is a path of {len(data):,} bytes (limit {_PATH_BYTES:,})" if len(data) > _PATH_BYTES else None


def find_write_problem(path: str | Path, *, anywhere: bool) -> str | None:
    """Explain in the rest of a sentence why no file can be written there; None if one can.

    This check comes before the run. The path may change until then, so writing checks it again.
    """
    place = resolve_path(path, anywhere=anywhere)
    if place is None:
        return OUTSIDE
    kind = _read_mode(path)
    return NO_FILE if kind is not None and not stat.S_ISREG(kind) else None


def find_folder_problem(path: str | Path, *, anywhere: bool, root: Path | None = None) -> str | None:
    """Explain in the rest of a sentence why a folder must not be used or created here; None if it may."""
    return None if resolve_path(path, anywhere=anywhere, root=root) else OUTSIDE


def find_read_problem(path: str | Path, *, root: Path | None = None) -> str | None:
    """Explain why a configured file, relative to `root` or the working directory, must not be read and sent; or None.

    It has to be in the repository, links followed: `/proc/self/environ` is a file as well.
    """
    start = Path(os.path.realpath(root or Path.cwd()))
    is_inside = Path(os.path.realpath(start / path)).is_relative_to(find_repository(start) or start)
    return None if is_inside else "is outside of the repository"


def find_repository(folder: Path) -> Path | None:
    """Find the nearest folder with a `.git`, from this folder upward; None outside of a repository."""
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)


def format_path(path: Path, root: Path | None = None) -> str:
    """Format a path for people: POSIX style, relative to `root` (the working directory) if it lies below it."""
    start = root or Path.cwd()
    return (path.relative_to(start) if path.is_relative_to(start) else path).as_posix()


def format_relative_path(path: Path, root: Path | None = None) -> str:
    """Format the path of a file that is searched for upward, such as `../x`.

    The path is relative if the file is in a folder above or in the same repository. Other paths are formatted
    as by `format_path`. `root` is by default the working directory.
    """
    start = root or Path.cwd()
    if path.parent in start.parents or path.is_relative_to(find_repository(start) or start):
        return Path(os.path.relpath(path, start)).as_posix()
    return format_path(path, start)


def _read_mode(path: str | Path) -> int | None:
    try:
        return Path(path).stat().st_mode
    except (OSError, ValueError):  # not there, or not to be looked at: the writing says so
        return None
