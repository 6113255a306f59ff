"""Reads an eval file as one document with places, in whichever notation it is written: JSON, YAML or JSON lines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from eval_gate.errors import GateError, Problem
from eval_gate.formats.agentv import format as agentv
from eval_gate.formats.agentv.lines import LIST, LinePositions, beside, parse_lines
from eval_gate.formats.base import EvalFileError, Positions
from eval_gate.model.base import JsonValue
from eval_gate.text.sources.json import MAX_BYTES, parse_json
from eval_gate.text.sources.shape import kind_of

YAML: Final = (".yaml", ".yml")
LINES: Final = ".jsonl"


@dataclass(frozen=True, slots=True)
class Document:
    """What a file holds, and where."""

    value: JsonValue
    positions: Positions


def read_bytes(path: Path, shown: str) -> bytes:
    """What is in a file, but for what makes it larger than any eval file. Raises GateError when it cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        problem = Problem(f"cannot be read: {error.strerror}", file=shown)
        raise GateError("unreadable", f"{shown} cannot be read", problems=[problem]) from error


def parse_document(data: bytes, path: Path, shown: str) -> Document:
    """The document in `data`. Raises GateError naming file and line for what cannot be read."""
    if len(data) > MAX_BYTES:
        problem = Problem(f"larger than {MAX_BYTES:,} bytes", file=shown)
        raise GateError("unreadable", f"{shown} is too large", "split it into several files", problems=[problem])
    if path.suffix in YAML:
        return _yaml(data, shown)
    if path.suffix == LINES:
        return _lines(data, path, shown)
    value, positions = parse_json(data, shown)
    return Document(value, positions)


def is_foreign(error: GateError, data: bytes, path: Path) -> bool:
    """Whether a file that could not be read is probably no eval file at all, so that nobody misses it.

    Broken JSON and broken YAML always count: a typo must not make a gate smaller.
    """
    if path.suffix == LINES:
        return not agentv.speaks_of_cases(data)
    if path.suffix not in YAML:
        return False
    from eval_gate.text.sources.yaml import RefusedYaml

    too_large = len(data) > MAX_BYTES
    return (too_large or isinstance(error, RefusedYaml)) and not agentv.speaks_of_cases(data)


def _yaml(data: bytes, shown: str) -> Document:
    from eval_gate.text.sources.yaml import parse_yaml

    value, positions = parse_yaml(data, shown)
    return Document(value, positions)


def _lines(data: bytes, path: Path, shown: str) -> Document:
    """The cases of all lines, with what the YAML file beside them says of all."""
    values, numbers = parse_lines(data, shown)
    cases: dict[str, JsonValue] = {LIST: values}
    speaker = beside(path) if agentv.recognises(cases) else None
    if speaker is None:
        return Document(cases, LinePositions(shown, numbers, None))
    name = PurePosixPath(shown).with_name(speaker.name).as_posix()
    settings = _yaml(read_bytes(speaker, name), name)
    if agentv.recognises(settings.value) or settings.value is None:  # a suite of its own, or nothing
        return Document(cases, LinePositions(shown, numbers, None))
    if not isinstance(settings.value, dict):
        problem = Problem(f"expected a mapping for the cases of {shown}, got {kind_of(settings.value)}", name, 1)
        raise EvalFileError(name, [problem])
    return Document(settings.value | cases, LinePositions(shown, numbers, (name, settings.positions)))
