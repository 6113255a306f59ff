"""The commands that a summary offers for copying, as a shell reads them."""

from __future__ import annotations

import re
import subprocess


def offered(word: str, console: str) -> list[str]:
    """The words behind `rerun:` or `accept:`, without the program's name; on several lines where one is too short."""
    found = re.search(rf"^{word}((?:.*\\\n)*.*)$", console, re.MULTILINE)
    assert found, console
    script = f"eval-gate() {{ printf '%s\\0' \"$@\"; }}; {found[1]}"
    read = subprocess.run(["bash", "-c", script], capture_output=True, check=True, text=True, env={"LC_ALL": "C.UTF-8"})
    return read.stdout.split("\0")[:-1]
