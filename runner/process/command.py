"""Runs one shell command of trusted configuration and gives back what it prints, within limits."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Final

_STDOUT: Final = 1
_KEPT: Final = 4_000
"""Bytes of the end of stderr that are kept for the message."""
_QUOTED: Final = 1_000
_GRACE_S: Final = 2.0
"""Seconds between the request to end and the end by force."""


class CommandError(Exception):
    """The command did not do its work; the message says how, and quotes the end of its stderr."""


async def run_command(
    command: str, folder: Path, environment: Mapping[str, str], *, time_limit_s: float, max_bytes: int
) -> bytes:
    """What `command` prints to stdout. It is run by the shell in `folder` with this environment, without input.

    It gets a process group of its own, all of which is ended: when the command is done, takes too long or prints too
    much, and when we are cancelled. Raises CommandError, and OSError when there is no shell to start.
    """
    transport, printed = await asyncio.get_running_loop().subprocess_shell(
        lambda: _Printed(max_bytes),
        command,
        cwd=folder,
        env=dict(environment),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    )
    group = transport.get_pid()
    try:
        async with asyncio.timeout(time_limit_s):
            await printed.enough.wait()
    except TimeoutError as error:
        raise CommandError(f"the command did not end within {time_limit_s:g} s{printed.last_words()}") from error
    finally:
        await _end(group, printed)
        transport.close()
    if len(printed.output) > max_bytes:
        raise CommandError(f"the command printed more than {max_bytes:,} bytes")
    code = transport.get_returncode()
    if code:
        how = f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}"
        raise CommandError(f"the command {how}{printed.last_words()}")
    return bytes(printed.output)


class _Printed(asyncio.SubprocessProtocol):
    """What a command prints. `enough`: it has ended, or has printed too much. `closed`: nothing more will come."""

    def __init__(self, max_bytes: int) -> None:
        self.output = bytearray()
        self.enough = asyncio.Event()
        self.exited = asyncio.Event()
        self.closed = asyncio.Event()
        self._max_bytes = max_bytes
        self._words = bytearray()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep stdout up to the limit, and the end of stderr."""
        if fd != _STDOUT:
            self._words += data
            del self._words[:-_KEPT]
        elif len(self.output) <= self._max_bytes:
            self.output += data
            if len(self.output) > self._max_bytes:
                self.enough.set()

    def process_exited(self) -> None:
        """The shell has ended; what it left in the background may still hold the pipes."""
        self.exited.set()
        self.enough.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """The shell has ended and both pipes are closed."""
        del exc
        self.closed.set()

    def last_words(self) -> str:
        """The end of stderr in one line, as the end of a sentence."""
        words = " ".join(self._words.decode("utf-8", "replace").split())
        return f": {'…' if len(words) > _QUOTED else ''}{words[-_QUOTED:]}" if words else ""


async def _end(group: int, printed: _Printed) -> None:
    """End all processes of the group: asked first while the command still runs, then by force."""
    if not printed.exited.is_set():
        _signal(group, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                await printed.exited.wait()
    _signal(group, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):  # a process that left the group may hold the pipes for ever
        async with asyncio.timeout(_GRACE_S):
            await printed.closed.wait()


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # gone already; macOS refuses for a group of zombies
        os.killpg(group, number)
