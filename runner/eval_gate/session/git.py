"""Which commit is evaluated: told by the workflow, else asked of git."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eval_gate.model.result import GitFacts
from eval_gate.process.git import ask_git
from eval_gate.text.foreign.well_formed import well_formed


def git_facts(environment: Mapping[str, str], folder: Path) -> GitFacts | None:
    """Commit, ref and repository; None outside a checkout or workflow."""
    told = {name: well_formed(environment.get(f"GITHUB_{name}", "")) for name in ("SHA", "REF", "REPOSITORY")}
    if told["SHA"]:
        return GitFacts(sha=told["SHA"], ref=told["REF"] or None, repository=told["REPOSITORY"] or None)
    sha = _git(folder, "rev-parse", "HEAD")
    return GitFacts(sha=sha, ref=_git(folder, "symbolic-ref", "-q", "HEAD")) if sha else None


def _git(folder: Path, *arguments: str) -> str | None:
    """What git says, in one line; None when there is no git, no checkout, or nothing to say."""
    said = ask_git(folder, *arguments)
    return None if said is None else said.decode("utf-8", "replace").strip() or None  # a branch may be called anything
