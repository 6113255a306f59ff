"""Read JSON and YAML files as documents with positions."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from eval_gate.errors import GateError, Problem
from eval_gate.files.reading import read_limited
from eval_gate.formats.base import Document, Notation
from eval_gate.formats.outlines import outline_json, outline_yaml
from eval_gate.text.sources.json import MAX_BYTES, parse_json


def read_bytes(path: Path, shown: str) -> bytes:
    """Read one byte more than eval files may have, to show that a file is too large. Raises GateError."""
    try:
        return read_limited(path, MAX_BYTES)
    except OSError as error:
        problem = Problem(f"cannot be read: {error.strerror}", file=shown)
        raise GateError(
            "file-unreadable", f"{shown} cannot be read", "name an existing file", problems=[problem]
        ) from error


def is_too_large(data: bytes) -> bool:
    """Whether a file, of which these bytes were read, is larger than the limit of eval files."""
    return len(data) > MAX_BYTES


def parse_document(notation: Notation, data: bytes, path: Path, shown: str) -> Document:
    """Parse the document in `data`. Raises GateError with the file and line of the mistake."""
    if is_too_large(data):
        problem = Problem(f"larger than {MAX_BYTES:,} bytes", file=shown)
        raise GateError("file-unreadable", f"{shown} is too large", "split it into several files", problems=[problem])
    return notation.parse(data, path, shown)


def parse_yaml(data: bytes, shown: str, *, any_number: bool = False) -> Document:
    """Parse the document from YAML. The YAML library is loaded with the first such file."""
    from eval_gate.text.sources import yaml

    return Document(*yaml.parse_yaml(data, shown, any_number=any_number))


_JSON: Final = Notation(lambda data, _, shown: Document(*parse_json(data, shown)), outline_json)
_YAML: Final = Notation(lambda data, _, shown: parse_yaml(data, shown), outline_yaml)
JSON: Final = {".json": _JSON}
YAML: Final = {".yaml": _YAML, ".yml": _YAML}
