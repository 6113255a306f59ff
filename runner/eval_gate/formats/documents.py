"""Read JSON and YAML files as documents with positions."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from eval_gate.errors import GateError, Problem
from eval_gate.files.reading import read_limited
from eval_gate.formats.base import Document, Notation
from eval_gate.formats.outlines import outline_json, outline_yaml
from eval_gate.text.sources.json import MAX_BYTES, parse_json


def read_bytes(path: Path, shown_as: str) -> bytes:
    """Read one byte more than eval files may have, to show that a file is too large. Raises GateError."""
    try:
        return read_limited(path, MAX_BYTES)
    except OSError as error:
        problem = Problem(f"cannot be read: {error.strerror}", file=shown_as)
        raise GateError(
            "file-unreadable", f"{shown_as} cannot be read", "name an existing file", problems=[problem]
        ) from error


def is_too_large(data: bytes) -> bool:
    """Whether these bytes of a file are more than an eval file may have."""
    return len(data) > MAX_BYTES


def parse_document(notation: Notation, data: bytes, path: Path, shown_as: str) -> Document:
    """Parse the document in `data`. Raises GateError with the file and line of the mistake."""
    if is_too_large(data):
        problem = Problem(f"larger than {MAX_BYTES:,} bytes", file=shown_as)
        raise GateError(
            "file-unreadable", f"{shown_as} is too large", "split it into several files", problems=[problem]
        )
    return notation.parse(data, path, shown_as)


def parse_yaml(data: bytes, shown_as: str, *, any_number: bool = False) -> Document:
    """Parse the document from YAML. The YAML library is loaded with the first such file."""
    from eval_gate.text.sources import yaml

    return Document(*yaml.parse_yaml(data, shown_as, any_number=any_number))


_JSON: Final = Notation(lambda data, _, shown_as: Document(*parse_json(data, shown_as)), outline_json)
_YAML: Final = Notation(lambda data, _, shown_as: parse_yaml(data, shown_as), outline_yaml)
JSON: Final = {".json": _JSON}
YAML: Final = {".yaml": _YAML, ".yml": _YAML}
