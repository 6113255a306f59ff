"""A workspace as real git leaves it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_WITHOUT_SETTINGS = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
}


def git(folder: Path, *words: str, lines: str | None = None) -> str:
    """What git prints for these lines of input, in this folder and with nobody's settings."""
    environment = os.environ | _WITHOUT_SETTINGS
    done = subprocess.run(
        ["git", *words], cwd=folder, env=environment, check=True, capture_output=True, text=True, input=lines
    )
    return done.stdout.strip()


def point_head(git_dir: Path, commit: str) -> None:
    """A repository without objects, whose HEAD names this commit."""
    for name in ("objects", "refs"):
        (git_dir / name).mkdir(parents=True, exist_ok=True)
    (git_dir / "HEAD").write_text(f"{commit}\n")


def commit_all(folder: Path) -> str:
    """A repository of all that lies in the folder, or another commit of it; the name of the commit."""
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "A change")
    return git(folder, "rev-parse", "HEAD")
