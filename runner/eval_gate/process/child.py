"""A started program and its process group, watched until both have ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
import time

from eval_gate.process.orphans import reap_orphans
from eval_gate.process.signals import RUNNING_GROUPS, defer_signals


class ChildProcess:
    """Leader of a process group; kills the rest of the group when it exits.

    This also applies if the leader exits by itself. On Linux a process descriptor reports its exit before its id can be
    reused, so that the signal cannot reach another process; on other systems a thread waits.
    """

    def __init__(self, process: subprocess.Popen[bytes], began: float) -> None:
        self.exited = asyncio.Event()
        self.over = asyncio.Event()
        self.seconds = 0.0
        self._process = process
        self._began = began
        self._loop = asyncio.get_running_loop()
        RUNNING_GROUPS.add(process.pid)
        self._watch_exit()

    @property
    def code(self) -> int:
        """Exit code, negative for a signal; that of SIGKILL if the program is still running."""
        code = self._process.returncode
        return -signal.SIGKILL if code is None else code

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group, whose id is the leader's."""
        with contextlib.suppress(ProcessLookupError, PermissionError):  # gone; macOS refuses for a group of zombies
            os.killpg(self._process.pid, number)

    def _watch_exit(self) -> None:
        try:
            descriptor = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):
            threading.Thread(target=self._wait_for_exit, daemon=True).start()
        else:
            self._loop.add_reader(descriptor, self._handle_descriptor, descriptor)

    def _handle_descriptor(self, descriptor: int) -> None:
        self._loop.remove_reader(descriptor)
        os.close(descriptor)
        self._handle_exit()

    def _wait_for_exit(self) -> None:
        self._process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: no task waits any more
            self._loop.call_soon_threadsafe(self._handle_exit)

    def _handle_exit(self) -> None:
        self.seconds = time.perf_counter() - self._began
        with defer_signals():
            self.send_signal(signal.SIGKILL)
            RUNNING_GROUPS.discard(self._process.pid)
            self._process.wait()
            reap_orphans(self._process.pid)
            self.exited.set()
            self.over.set()
