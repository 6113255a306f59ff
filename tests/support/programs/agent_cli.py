"""Puts the agents' stand-ins into a folder under the names that the real programs have."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent


def install(folder: Path, name: str, script: Mapping[str, object]) -> Path:
    """An executable `name` in `folder` that runs `fake_<name>.py` and does what `script` says.

    It notes each of its calls as a line of JSON in `<name>.calls` beside it: see `calls`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(dict(script)), encoding="utf-8")
    program = folder / name
    words = (sys.executable, "-S", "-E", str(HERE / f"fake_{name.removesuffix('-insiders')}.py"), str(program))
    program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return program


def calls(program: Path) -> list[dict[str, object]]:
    """What the program noted of its calls, oldest first."""
    notes = program.with_name(f"{program.name}.calls")
    return [json.loads(line) for line in notes.read_text(encoding="utf-8").splitlines()] if notes.exists() else []
