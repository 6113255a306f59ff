"""Protect the environment and memory of this process from other processes: both hold keys."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ctypes

_PR_SET_DUMPABLE: Final = 4


def protect_memory() -> None:
    """From here on `/proc/PID/environ`, `mem` and debuggers are closed to every process without rights over all.

    And `environ` is empty: who may look in spite of it, as root or by a configured path, finds nothing.
    What we start does not inherit it: a program is as open as ever, and gets a reduced environment. Linux only.
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
    """Where the variables of the process are, up to the null at their end."""
    addresses: list[int] = []
    while address := variables[len(addresses)]:
        addresses.append(address)
    return addresses
