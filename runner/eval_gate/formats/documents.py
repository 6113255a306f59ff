"""Read JSON and YAML files as documents with positions."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from eval_gate.errors import GateError, Problem
from eval_gate.files.reading import read_limited
from eval_gate.formats.base import Document, Notation
from eval_gate.text.sources.json import MAX_BYTES, parse_json


def read_bytes(path: Path, shown: str) -> bytes:
    """Read a file, up to one byte more than the size limit of eval files.

    The additional byte shows that the file is too large. Raises GateError if the file cannot be read.
    """
    try:
        return read_limited(path, MAX_BYTES)
    except OSError as error:
        problem = Problem(f"cannot be read: {error.strerror}", file=shown)
        raise GateError(
            "file-unreadable", f"{shown} cannot be read", "name an existing file", problems=[problem]
        ) from error


def parse_document(notation: Notation, data: bytes, path: Path, shown: str) -> Document:
    """Parse the document in `data`.

    Raises EvalFileTooLargeError, or GateError with the file and line of the mistake.
    """
    if len(data) > MAX_BYTES:
        problem = Problem(f"larger than {MAX_BYTES:,} bytes", file=shown)
        raise EvalFileTooLargeError(
            "file-unreadable", f"{shown} is too large", "split it into several files", problems=[problem]
        )
    return notation.parse(data, path, shown)


class EvalFileTooLargeError(GateError):
    """A file is larger than the limit for eval files."""


def parse_yaml(data: bytes, shown: str, *, any_number: bool = False) -> Document:
    """Parse the document from YAML.

    The YAML library is loaded with the first such file.
    """
    from eval_gate.text.sources import yaml

    return Document(*yaml.parse_yaml(data, shown, any_number=any_number))


def _is_doubtful_yaml_error(error: GateError) -> bool:
    """Broken YAML always counts as evals, for a typo must not make a gate smaller. Odd YAML may be anything."""
    from eval_gate.text.sources.yaml import UnsupportedYamlError

    return isinstance(error, EvalFileTooLargeError | UnsupportedYamlError)


_JSON: Final = Notation(lambda data, _, shown: Document(*parse_json(data, shown)), is_doubtful=lambda _: False)
_YAML: Final = Notation(lambda data, _, shown: parse_yaml(data, shown), is_doubtful=_is_doubtful_yaml_error)
JSON: Final = {".json": _JSON}
YAML: Final = {".yaml": _YAML, ".yml": _YAML}
