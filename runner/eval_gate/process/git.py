"""Run git for a checkout without letting the checkout choose programs that git starts.

Git takes a folder with `HEAD`, `config` and `objects` in it for a repository of its own, and what such a `config` names
is run: anybody can commit such a folder. So git is asked where the real `.git` lies, from which it never goes further.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from eval_gate.process.environment import filter_environment

_LIMIT_S: Final = 5
# older versions know the second one not, and pass over it
_SAFE_OPTIONS: Final = ("-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit")


def find_checkout(folder: Path) -> Path | None:
    """Find the root of the checkout that contains `folder`: the nearest folder with a `.git` entry.

    Return None outside a checkout.
    """
    folder = folder.resolve()
    return next((place for place in (folder, *folder.parents) if os.path.lexists(place / ".git")), None)


def run_git(folder: Path, *arguments: str) -> bytes | None:
    """Run git at the root of the checkout and return its standard output.

    Path arguments are absolute, or relative to the root. Return None if git is missing, times out or exits with an
    error, as it does outside a checkout.
    """
    names = {name for name in os.environ if name.startswith("GIT_")}
    environment = filter_environment(os.environ, {"GIT_NO_LAZY_FETCH": "1"}, names)
    command = ["git", *_SAFE_OPTIONS, *arguments]
    try:
        done = subprocess.run(  # noqa: S603 (no shell; what may be foreign among the arguments stands behind a --)
            command,
            cwd=find_checkout(folder) or folder,
            capture_output=True,
            timeout=_LIMIT_S,
            check=False,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def read_git_line(folder: Path, *arguments: str) -> str | None:
    """Run git like `run_git` and return its output as stripped text. Return None if git fails or prints nothing."""
    said = run_git(folder, *arguments)
    return None if said is None else said.decode("utf-8", "replace").strip() or None  # a branch may be called anything
