"""The process is killed half-way, as when the machine has no more memory."""

import os
import signal


def answer(_: str) -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return ""
