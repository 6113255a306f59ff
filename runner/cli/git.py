"""Which commit is evaluated: told by the workflow, else asked of git."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from runner.model.result import GitFacts

TIME_LIMIT_S = 5


def git_facts(environment: Mapping[str, str], folder: Path) -> GitFacts | None:
    """Commit, ref and repository; None outside a checkout or workflow."""
    if environment.get("GITHUB_SHA"):
        return GitFacts(
            sha=environment["GITHUB_SHA"],
            ref=environment.get("GITHUB_REF") or None,
            repository=environment.get("GITHUB_REPOSITORY") or None,
        )
    sha = _git(folder, "rev-parse", "HEAD")
    return GitFacts(sha=sha, ref=_git(folder, "symbolic-ref", "-q", "HEAD")) if sha else None


def _git(folder: Path, *arguments: str) -> str | None:
    """What git says, in one line; None when there is no git, no checkout, or nothing to say."""
    try:
        done = subprocess.run(  # noqa: S603 (fixed arguments)
            ["git", *arguments],  # noqa: S607 (the user's git)
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
