"""Runs a command as a child and says what it cost."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Where that is set every process would compile the program anew; an installed one is compiled."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one process and its own children: seconds, and the largest resident set in megabytes."""

    wall_s: float
    processor_s: float
    peak_mb: float
    output: str


def measure(command: Sequence[str]) -> Cost:
    """Run the command to its end. Raises RuntimeError with its words when it fails."""
    started = time.perf_counter()
    # one pipe for both, so that neither can fill up while the other is read; wait4 and not wait: it tells the cost
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{output[-2000:]}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output)
