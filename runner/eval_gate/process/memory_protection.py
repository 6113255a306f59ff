"""Protect the environment and memory of this process from other processes: both hold keys."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ctypes

_PR_SET_DUMPABLE: Final = 4


def protect_memory() -> None:
    """Close `/proc/PID/environ`, `mem` and debuggers to every process without root's rights, and clear `environ`.

    So root, or a configured path to it, finds no variables there. Programs that are started do not inherit this, and
    get a reduced environment. Linux only.
    """
    if sys.platform != "linux":
        return
    import ctypes

    libc = ctypes.CDLL(None)
    # it cannot fail for this value
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    variables = ctypes.POINTER(ctypes.c_void_p).in_dll(libc, "environ")
    originals = _list_addresses(variables)
    for name, value in os.environb.items():
        os.putenv(name, value)  # makes a copy elsewhere, which counts from then on
    for address in set(originals) - set(_list_addresses(variables)):
        ctypes.memset(address, 0, len(ctypes.string_at(address)))


def _list_addresses(variables: ctypes._Pointer[ctypes.c_void_p]) -> list[int]:
    """List the addresses of the process's variables, up to the null at their end."""
    addresses: list[int] = []
    while address := variables[len(addresses)]:
        addresses.append(address)
    return addresses
