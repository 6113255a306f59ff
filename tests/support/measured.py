"""The program in a process of its own: what it said, what it computed, and the most memory it ever held."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
# VmHWM begins anew with a program; ru_maxrss keeps what the process that started it held
PROGRAM = """
import json, os, resource, sys
try:
    from eval_gate.cli.main import main
    main()
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
    with open(os.environ["MEASURED"], "w") as file:
        json.dump({"peak_mb": peak / 1024, "cpu_s": used.ru_utime + used.ru_stime}, file)
"""


@dataclass(frozen=True)
class Measured:
    """How a run of the program ended, and what it cost."""

    code: int
    stdout: str
    stderr: str
    peak_mb: float
    cpu_s: float


def measured(folder: Path, *arguments: str, timeout_s: float = 120, **environment: str) -> Measured:
    """`eval-gate` with these arguments in this folder."""
    others = (
        "EVAL_GATE_",
        "GITHUB_",
        "CI",
        "PYTHONDONTWRITEBYTECODE",
    )
    clean = {key: value for key, value in os.environ.items() if not key.startswith(others)}
    note = folder / ".measured.json"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=folder,
        env=clean | {"PYTHONPATH": str(ROOT), "MEASURED": str(note)} | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return Measured(done.returncode, done.stdout, done.stderr, **json.loads(note.read_text()))
