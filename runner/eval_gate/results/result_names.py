"""File names of stored results, and valid run ids."""

from __future__ import annotations

import re
from typing import Final

RUN_NAME: Final = "run.json"
LATEST_NAME: Final = "latest.json"
"""File that points to the newest run, next to the folders of the runs."""
LATEST: Final = "latest"
"""As a baseline: the newest run that passed its gate. As the run to check or show: the newest run."""
PIPE_PROBLEM: Final = "is a pipe or a device, not a file"
PIPE_HINT: Final = "results are read more than once: write them to a file, and name the file"
"""Problem with results from standard input, and its remedy."""
_RUN_ID: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}", re.ASCII)


def is_run_id(text: str) -> bool:
    """Whether this can be the name of a run: its folder's, and a reference to it. It is never a path.

    A run id may come from an untrusted file.
    """
    return _RUN_ID.fullmatch(text) is not None and text not in {LATEST, LATEST_NAME}
