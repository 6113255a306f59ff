"""The program as a process, run to its end: its own environment, folder, streams and exit code.

Half a second of every such process is Python that loads a thousand modules, and nothing is learnt from it the second
time. So a process waits that has loaded them (`loaded.py`), and every run is a fork of it: from `main()` on it is the
same. Tests of what comes before that start Python themselves; all do where EVAL_GATE_TEST_COLD is set, where the
system is not Linux, and where a variable is given that Python reads itself.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

PROGRAM = [sys.executable, "-I", "-m", "eval_gate"]
LOADED = Path(__file__).with_name("loaded.py")
COLD = bool(os.environ.get("EVAL_GATE_TEST_COLD")) or sys.platform != "linux"
# the last is set where images are made; with it every process would compile the whole program anew
OURS = ("EVAL_GATE_", "GITHUB_", "ACTIONS_", "INPUT_", "RUNNER_", "CI", "PYTHONDONTWRITEBYTECODE")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(OURS)} | {
    "COLUMNS": "1000",
    "EVAL_GATE_WAIT_FOR": "0.2",
}
"""Our environment without what the program would take for its own; so wide that sentences stay on one line.

An agent that is not there is waited for, as a user's is, only shorter: what follows is what users see.
"""
VENDOR_KEY = "_API_KEY"
"""A program that is given a variable of such a name probably asks a model."""
READ_BY_PYTHON = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_")
_SECONDS: list[float] = []
_LOADED: list[tuple[socket.socket, subprocess.Popen[bytes]]] = []


def gate(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program in `folder` to its end, with these variables besides our own; those of Python's own count."""
    isolated = not any(name.startswith("PYTHON") for name in environment)
    return run_program(arguments, folder, CLEAN | environment, isolated=isolated)


def run_program(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    together: bool = False,
    isolated: bool = True,
    timeout: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run the program to its end. `together`: standard error is part of standard output. Raises TimeoutExpired.

    `isolated` is how the image starts it; else Python reads its own variables too.
    """
    words = [*PROGRAM, *arguments]
    if not isolated:
        words.remove("-I")
    if COLD or any(name.startswith(READ_BY_PYTHON) and CLEAN.get(name) != environment[name] for name in environment):
        return subprocess.run(
            words,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if together else subprocess.PIPE,
            text=True,
            timeout=timeout,
            check=False,
        )
    asked = {"arguments": list(arguments), "folder": str(folder), "environment": dict(environment)}
    models = list(arguments[:1]) == ["agent-evals"] or any(name.endswith(VENDOR_KEY) for name in environment)
    out, their_out = os.pipe()
    err, their_err = os.pipe()
    answers = _fork(asked, their_out, their_out if together else their_err, models=models)
    os.close(their_out)
    os.close(their_err)
    with answers, answers.makefile() as lines, os.fdopen(out, "rb") as said, os.fdopen(err, "rb") as failed:
        number = int(lines.readline())
        try:
            texts = _read({said.fileno(): b"", failed.fileno(): b""}, answers, time.monotonic() + timeout)
        except TimeoutError:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
            raise subprocess.TimeoutExpired(words, timeout) from None
        status, seconds = lines.readline().split()
        _SECONDS.append(float(seconds))
        code = os.waitstatus_to_exitcode(int(status))
    return subprocess.CompletedProcess(words, code, _text(texts[out]), None if together else _text(texts[err]))


def _fork(asked: object, out: int, err: int, *, models: bool) -> socket.socket:
    """Ask for a run with these streams.

    Two lines come back: the number of the process; the status of its end and the processor seconds it used.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(_loaded(models=models), [b"!"], [theirs.fileno(), out, err])
    ours.sendall(json.dumps(asked).encode())
    ours.shutdown(socket.SHUT_WR)
    return ours


@functools.cache
def _loaded(*, models: bool) -> socket.socket:
    """The way to the process that has loaded everything, with what asks models or without.

    It ends when this end is closed, which is when we end.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        number = theirs.fileno()
        words = [sys.executable, "-I", str(LOADED), str(number), *(["models"] if models else [])]
        process = subprocess.Popen(words, pass_fds=[number], env=CLEAN, stdin=subprocess.DEVNULL)
    _LOADED.append((ours, process))
    return ours


@atexit.register
def end_loaded_processes() -> None:
    """End the processes that programs are forked from: closing our end tells them."""
    while _LOADED:
        ours, process = _LOADED.pop()
        ours.close()
        process.wait()
    _loaded.cache_clear()


def seconds_of_runs() -> float:
    """Return the processor seconds of all programs run so far that are forks, of which the system tells us nothing."""
    return sum(_SECONDS)


def _read(texts: dict[int, bytes], answers: socket.socket, until: float) -> dict[int, bytes]:
    """All that comes from these descriptors. Raises TimeoutError."""
    with selectors.DefaultSelector() as selector:
        for descriptor in texts:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(until - time.monotonic())
            if not ready and time.monotonic() > until:
                raise TimeoutError
            for key, _ in ready:
                if chunk := os.read(key.fd, 1 << 16):
                    texts[key.fd] += chunk
                else:
                    selector.unregister(key.fd)
    answers.settimeout(max(until - time.monotonic(), 0.1))
    return texts


def _text(data: bytes) -> str:
    """As `subprocess` reads it."""
    return data.decode().replace("\r\n", "\n").replace("\r", "\n")
