"""Hint for a command that fails because it runs in another folder than its author expected."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def find_path_hint(command: str | Sequence[str], cwd: Path) -> str | None:
    """Name the first word of a failed command that is a file where Eval Gate runs, but not where the command ran.

    The hint is half a sentence. Only the file system decides: None if no word is such a path.
    """
    root = Path.cwd()
    for word in split_command(command):
        with suppress(OSError, ValueError):  # a word that cannot be a path
            if (root / word).is_file() and not Path(word).is_absolute() and not os.path.lexists(cwd / word):
                return f"it runs in {cwd}, which has no {word}: write {os.path.relpath(root / word, cwd)}"
    return None


def split_command(command: str | Sequence[str]) -> Sequence[str]:
    """Split a command into its arguments as a shell does, or at blanks if a quote is open."""
    if not isinstance(command, str):
        return command
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()
