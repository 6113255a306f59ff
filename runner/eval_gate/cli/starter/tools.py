"""The tool registry and the snapshot of a repository, as far as they can be told by their names and what they hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from eval_gate.errors import GateError
from eval_gate.process.ending import run_async
from eval_gate.registry.load import load_registry, servers_at
from eval_gate.struct import FrozenStruct

_REGISTRIES: Final = ("tools.json", "tool-registry.json", "tool-registry", "tools", "src/tools", "src/tool-registry")
_SNAPSHOT: Final = "snapshot.json"
_MAX_BYTES: Final = 10_000_000


class FoundTools(FrozenStruct):
    """Paths relative to the repository; None for what is not there."""

    registry: str | None = None
    snapshot: str | None = None


def tools_in(folder: Path) -> FoundTools:
    """What is at the root of the repository."""
    registry = next((path for path in _REGISTRIES if _holds_tools(folder, path)), None)
    return FoundTools(registry, _SNAPSHOT if _is_object(folder / _SNAPSHOT) else None)


def _holds_tools(folder: Path, path: str) -> bool:
    if not (folder / path).exists():
        return False
    try:
        if servers_at(path, folder) is not None:  # programs that would be started: nothing is run here
            return False
        return run_async(load_registry(path, folder)).size > 0
    except (GateError, OSError):
        return False


def _is_object(file: Path) -> bool:
    try:
        if not file.is_file() or file.stat().st_size > _MAX_BYTES:
            return False
        return isinstance(json.loads(file.read_bytes()), dict)
    except (OSError, ValueError, RecursionError):
        return False
