"""Notes which lines of `eval_gate` a process executes that a test starts, for that test. Part of `mutation.py`.

Every interpreter of the copy imports this when it starts. Without a test that is being watched, it does nothing.
"""

from __future__ import annotations

import atexit
from pathlib import Path
from typing import Final

NOW: Final = Path(__file__).with_name("watched-test")
"""Holds the name of the test that runs, while `mutation_seen.py` watches."""
DATA: Final = Path(__file__).with_name("watched-processes")
"""What the processes executed, a file each."""


def _begin() -> None:
    try:
        test = NOW.read_text()
    except OSError:  # nobody watches, or this process may not look in here
        return
    import coverage

    measuring = coverage.Coverage(
        data_file=str(DATA / "seen"), data_suffix=True, source=["eval_gate"], config_file=False, context=test
    )
    measuring.start()
    atexit.register(lambda: (measuring.stop(), measuring.save()))


_begin()
