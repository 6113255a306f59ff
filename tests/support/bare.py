"""The program on a system that has as little as Windows: no users, no process groups, no folders to open, no signals.

Run as a script with the program's arguments. What is removed is what Python's documentation marks as Unix only, as far
as Python itself gets along without it here. It is no Windows, and does not show that the program runs there; it shows
that nothing of ours takes these for granted.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

GONE = (
    *("geteuid", "getuid", "getegid", "getgid", "getpgid", "killpg", "chown", "lchown", "fchmod", "fchown", "pread"),
    *("O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "pidfd_open", "set_blocking"),
)


def refuses(*_arguments: Any) -> None:
    raise NotImplementedError


def strip() -> None:
    """Take it all away, from `os` and from the event loop."""
    for name in GONE:
        delattr(os, name)
    os.supports_dir_fd = set()
    for name in ("open", "mkdir", "stat", "unlink", "replace"):
        setattr(os, name, _without_folders(getattr(os, name)))
    loop = asyncio.unix_events._UnixSelectorEventLoop
    loop.add_signal_handler = loop.remove_signal_handler = refuses


def _without_folders(function: Any) -> Any:
    def called(*arguments: Any, **named: Any) -> Any:
        if any(name.endswith("dir_fd") and value is not None for name, value in named.items()):
            raise NotImplementedError("dir_fd unavailable on this platform")
        return function(*arguments, **named)

    return called


if __name__ == "__main__":
    strip()
    from eval_gate.cli.main import main

    sys.exit(main())
