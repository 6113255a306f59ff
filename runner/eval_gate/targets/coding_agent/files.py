"""Files that are written for and about agents: their names, made of foreign words, and the folders they lie in."""

from __future__ import annotations

import os
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from eval_gate.files.writing import open_new
from eval_gate.text.escape import plain_word

MAX_PART: Final = 60
"""Characters of a foreign word within a file's name."""


FOLDERS: Final = set[Path]()
"""Where such files were written: whoever runs us as root hands them back."""


def safe_part(word: str) -> str:
    """The word as part of a file's name: letters, digits and `._-`, and never a way to another folder."""
    return plain_word(word[: MAX_PART * 4]).strip("-.")[:MAX_PART] or "unnamed"


def stamp() -> str:
    """The time as part of a file's name: `20260102T075700Z`."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"


def new_file(folder: Path, words: tuple[str, ...], suffix: str) -> tuple[BinaryIO, Path]:
    """A new file in `folder`, which is made, named after the time, these words and something random.

    Raises GateError.
    """
    name = "_".join([stamp(), *(safe_part(word) for word in words), secrets.token_hex(8)])
    path = folder / f"{name}{suffix}"
    FOLDERS.add(folder)
    descriptor = open_new(path)
    assert descriptor is not None  # nobody else has this name
    return os.fdopen(descriptor, "wb", buffering=0), path
