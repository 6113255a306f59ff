"""Finding an agent's program: by its path, or on PATH."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from eval_gate.targets.base import TargetError, TargetFault


def find_program(name: str, what: str, root: Path, environment: Mapping[str, str]) -> str:
    """The absolute path of the program. A name with a slash is a path below `root` or an absolute one.

    `what` begins the sentence of the error, as in `Codex executable`. Raises TargetError (unreachable).
    """
    if "/" not in name:
        found = shutil.which(name, path=environment.get("PATH", os.defpath))
        if found is None:
            raise TargetError(f"{what} '{name}' was not found on PATH", fault=TargetFault.UNREACHABLE)
        return str((root / found).resolve() if not found.startswith("/") else found)
    path = root / name
    if not path.is_file():
        raise TargetError(f"{what} '{name}' does not exist", fault=TargetFault.UNREACHABLE)
    if not os.access(path, os.X_OK):
        raise TargetError(f"{what} '{name}' is not executable", fault=TargetFault.UNREACHABLE)
    return str(path.absolute())
