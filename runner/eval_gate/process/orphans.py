"""Reap orphaned processes that commands left behind, as the first process of a container must.

Each stays as a process that has ended until it is asked how, and a machine allows so many of them.
"""

from __future__ import annotations

import os
from typing import Final

from eval_gate.process.signals import RUNNING_GROUPS

_PENDING_GROUPS: Final = set[int]()
"""Groups whose leader has ended and whose others we were not told of yet."""


class _ProcessOwner:
    """Whether the process is our own program, and not one with children that we do not know."""

    process = False


def mark_own_process() -> None:
    """From here on also ask those that left their command's group (`setsid`): they are nobody else's to wait for."""
    _ProcessOwner.process = True


def is_own_process() -> bool:
    """Whether nobody else's code is in this process, as in `eval_gate.evaluate`."""
    return _ProcessOwner.process


def reap_orphans(group: int) -> None:
    """Ask how the others of this group ended, whose leader was asked. Those that are just ending are asked later on."""
    _PENDING_GROUPS.add(group)
    for one in tuple(_PENDING_GROUPS):  # as long as there is one, the group's number is nobody else's
        try:
            while os.waitpid(-one, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            _PENDING_GROUPS.discard(one)
    if _ProcessOwner.process and hasattr(os, "waitid"):
        _reap_detached()


def _reap_detached() -> None:
    """Reap ended processes up to the first that somebody here waits for, which is soon out of the way."""
    ours = os.getsid(0)
    try:
        while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            # what a command starts is in other sessions: who is in ours has a starter here, who wants the exit code
            if ended.si_pid in RUNNING_GROUPS or os.getsid(ended.si_pid) == ours:
                return
            os.waitpid(ended.si_pid, os.WNOHANG)
    except (ChildProcessError, ProcessLookupError):  # there are none, or another thread has asked it
        return
