"""Reap orphaned processes that commands left behind, as the first process of a container must.

Each stays as a process that has ended until its exit code is read, and a machine limits their number.
"""

from __future__ import annotations

import os
from typing import Final

from eval_gate.process.signals import RUNNING_GROUPS

_PENDING_GROUPS: Final = set[int]()
"""Groups whose leader has ended and whose other processes may still run."""


class _ProcessOwner:
    """Whether all children of the process are started by Eval Gate."""

    process = False


def mark_own_process() -> None:
    """Reap processes that left their command's group (`setsid`) too, from here on: this program owns them all."""
    _ProcessOwner.process = True


def is_own_process() -> bool:
    """Whether all code of this process is Eval Gate's, unlike in `eval_gate.evaluate`."""
    return _ProcessOwner.process


def reap_orphans(group: int) -> None:
    """Reap the other processes of this group, whose leader is reaped; those that still run are reaped later."""
    _PENDING_GROUPS.add(group)
    for one in tuple(_PENDING_GROUPS):  # as long as there is one, no other group has its number
        try:
            while os.waitpid(-one, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            _PENDING_GROUPS.discard(one)
    if _ProcessOwner.process and hasattr(os, "waitid"):
        _reap_detached()


def _reap_detached() -> None:
    """Reap ended processes up to the first that other code here waits for, which is soon out of the way."""
    session = os.getsid(0)
    try:
        while (child := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            # commands run in other sessions: a process of this session has a starter here that reads its exit code
            if child.si_pid in RUNNING_GROUPS or os.getsid(child.si_pid) == session:
                return
            os.waitpid(child.si_pid, os.WNOHANG)
    except (ChildProcessError, ProcessLookupError):  # there are none, or another thread has asked it
        return
