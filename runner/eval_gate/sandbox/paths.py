"""Path rules of the sandbox, decided by the text of a path alone.

Source: agent-evals behaviour 3.4. The rules are the same on every system, so that a suite means the same everywhere: a
path that leads out of the folder, or to another name, on one system is refused on all of them.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from eval_gate.model import limits

MAX_NAME: Final = 255
"""Bytes of one name."""
MAX_DEPTH: Final = limits.SANDBOX_DEPTH
"""Names in a path."""

EMPTY: Final = "Path cannot be empty."
TRAVERSAL: Final = "Path traversal is not allowed."
OUTSIDE: Final = "Path must be within the repo tmp directory."
NO_FILE: Final = "Path must point to a file."
NO_FOLDER: Final = "Path must point to a directory."
MISSING: Final = "Path does not exist."
LINK: Final = "Symlink paths are not allowed."
RESERVED: Final = "Path belongs to the results of this run."
HARD_LINK: Final = "Files with a second name (hard links) are not allowed."

_SLASHES: Final = frozenset("\u1735\u2044\u2215\u2571\u27cb\u29f5\u29f6\u29f8\u29f9\u2216\u2572\ufe68\uff0f\uff3c")
"""Characters that look like `/` or `\\`, whether or not normalisation makes them one."""
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that cannot be seen: control, format, half a surrogate pair, line, paragraph."""
_ENCODED: Final = re.compile(r"%(?:2e|2f|5c|00|25)", re.IGNORECASE)
_DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(?:\..*)?", re.IGNORECASE)


class SandboxError(Exception):
    """A refused or impossible file operation; the message may be shown to a model."""


def split_path(path: str) -> tuple[str, ...]:
    """Split `path` into its names below the sandbox folder, and refuse paths that could lead outside.

    The result is empty for the sandbox folder itself. Whitespace around the path, empty names and `.` are dropped.
    Raises SandboxError for an empty path and for every path that could lead elsewhere.
    """
    path = path.strip(" \t\r\n")
    if not path:
        raise SandboxError(EMPTY)
    if any(unicodedata.category(sign) in _HIDDEN for sign in path):
        raise SandboxError("Path must not hold control characters or characters that cannot be seen.")
    if ".." in re.split(r"[/\\]", path):
        raise SandboxError(TRAVERSAL)
    if path.startswith(("/", "\\", "~")) or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path):
        raise SandboxError(OUTSIDE)
    names = tuple(name for name in path.split("/") if name not in {"", "."})
    if len(names) > MAX_DEPTH:
        raise SandboxError(f"Path is too deep: at most {MAX_DEPTH} names.")
    for name in names:
        _check_name(name)
    return names


def split_file_path(path: str) -> tuple[str, ...]:
    """Split as `split_path`, but refuse the folder itself: there is at least one name."""
    names = split_path(path)
    if not names:
        raise SandboxError("Path must point to a file within tmp.")
    return names


def _check_name(name: str) -> None:
    """Refuse a name that a system could read as another one."""
    if len(name.encode()) > MAX_NAME:  # first: putting thousands of marks on one letter in order takes minutes
        raise SandboxError(f"Names in a path must not be longer than {MAX_NAME} bytes.")
    if any(sign in name for sign in "\\:"):
        raise SandboxError("Path must not hold a backslash or a colon: folders are separated by /.")
    plain = unicodedata.normalize("NFKC", name)
    if not _SLASHES.isdisjoint(name) or "/" in plain or "\\" in plain:
        raise SandboxError("Path must not hold characters that look like a slash.")
    if not plain.strip(". ") or _ENCODED.search(plain):
        raise SandboxError(TRAVERSAL)
    if name.endswith((".", " ")):
        raise SandboxError("Names in a path must not end with a dot or a blank.")
    if _DEVICE.fullmatch(plain):
        raise SandboxError("Path must not name a device.")
