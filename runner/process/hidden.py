"""Keeps our environment and memory from other processes of the same user: both hold tokens and keys."""

from __future__ import annotations

import sys
from typing import Final

_PR_SET_DUMPABLE: Final = 4


def hide() -> None:
    """From here on `/proc/PID/environ`, `mem` and debuggers are closed to every process without rights over all.

    What we start does not inherit it: a program is as open as ever, and gets a reduced environment. Linux only.
    """
    if sys.platform != "linux":
        return
    import ctypes

    # it cannot fail for this value
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
