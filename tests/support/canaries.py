"""Secrets that are easy to find again, in whatever form a text holds them or a part of them."""

from __future__ import annotations

import base64
import html
import re
import zipfile
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from urllib.parse import unquote_plus

LEAST = 8
"""Signs in a row of a canary that are a leak."""
KEY = "sk-QwXaBcDZkEfGhIVjJkLmN99pQrStUvWx0123456789AbCdEfGhIjKlMnO"
"""As long as keys are, and longer than what errors quoted of a value at the wrong place."""


def leaks(text: str, canary: str) -> list[str]:
    """What of the canary the text holds: plain, escaped, percent-encoded, in HTML or in base64. Knows no redactor."""
    pieces = {canary[at : at + LEAST] for at in range(len(canary) - LEAST + 1)}
    return sorted({piece for read in _readings(text) for piece in pieces if piece in read})


def shown_in(texts: Iterable[tuple[str, str]]) -> list[str]:
    """The names of those of these texts that hold a part of `KEY`, in whatever case."""
    key = KEY.lower()
    pieces = {key[at : at + LEAST] for at in range(len(key) - LEAST + 1)}
    return [name for name, text in texts if any(piece in text.lower() for piece in pieces)]


def _readings(text: str) -> Iterator[str]:
    yield text
    yield unquote_plus(text)
    yield html.unescape(text)
    once = text
    for _ in range(3):
        once = _unescaped(once)
        yield once
        yield html.unescape(once)
    # as short as what 8 signs of a canary become
    for run in re.findall(r"[A-Za-z0-9+/_-]{8,}", text):
        for start in range(4):
            part = run[start:].replace("-", "+").replace("_", "/")
            part = part[: len(part) // 4 * 4]
            if part:
                yield base64.b64decode(part).decode("latin-1")


def _unescaped(text: str) -> str:
    plain = re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text)
    return re.sub(r"\\([\"'\\/])", r"\1", plain)


def files_below(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and text of every file, those within archives too."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield from texts_of(path.relative_to(folder).as_posix(), path.read_bytes())


def texts_of(name: str, data: bytes) -> Iterator[tuple[str, str]]:
    """A file's text, or the texts of an archive's members."""
    if data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(BytesIO(data)) as archive:
            for member in archive.namelist():
                yield f"{name}!{member}", archive.read(member).decode("utf-8", "replace")
    else:
        yield name, data.decode("utf-8", "replace")
