"""Which commit is evaluated: told by the workflow, else asked of git."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from eval_gate.model.result import GitFacts
from eval_gate.process.git import line_of_git
from eval_gate.text.foreign.well_formed import well_formed

LONGEST_NUMBER: Final = 18
"""Digits of a number that GitHub gives."""
MAX_JOB: Final = 200


def git_facts(environment: Mapping[str, str], folder: Path) -> GitFacts | None:
    """Commit, ref and repository, and the job of a workflow; None outside a checkout or workflow."""
    told = {name: well_formed(environment.get(f"GITHUB_{name}", "")) for name in ("SHA", "REF", "REPOSITORY")}
    if told["SHA"]:
        ref, repository = told["REF"] or None, told["REPOSITORY"] or None
        # a step may have checked out another commit than the event's
        here = line_of_git(folder, "rev-parse", "HEAD")
        return GitFacts(
            sha=told["SHA"],
            ref=ref,
            repository=repository,
            workspace_sha=here,
            run_id=_number(environment, "GITHUB_RUN_ID"),
            attempt=_number(environment, "GITHUB_RUN_ATTEMPT"),
            job=well_formed(environment.get("GITHUB_JOB", ""))[:MAX_JOB] or None,
        )
    sha = line_of_git(folder, "rev-parse", "HEAD")
    return GitFacts(sha=sha, ref=line_of_git(folder, "symbolic-ref", "-q", "HEAD")) if sha else None


def _number(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "")
    return int(text) if text.isdecimal() and len(text) <= LONGEST_NUMBER else None
