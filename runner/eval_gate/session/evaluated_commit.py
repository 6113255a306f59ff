"""Evaluated commit: taken from the workflow's variables, else from git."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from eval_gate.model.result import GitFacts
from eval_gate.process.git import read_git_line
from eval_gate.text.untrusted.surrogates import to_well_formed

MAX_NUMBER_DIGITS: Final = 18
"""Digits of a number that GitHub gives."""
MAX_JOB: Final = 200


def find_git_facts(environment: Mapping[str, str], folder: Path) -> GitFacts | None:
    """Commit, ref and repository, and the job of a workflow; None outside a checkout or workflow."""
    variables = {name: to_well_formed(environment.get(f"GITHUB_{name}", "")) for name in ("SHA", "REF", "REPOSITORY")}
    if variables["SHA"]:
        ref, repository = variables["REF"] or None, variables["REPOSITORY"] or None
        # a step may have checked out another commit than the event's
        workspace_sha = read_git_line(folder, "rev-parse", "HEAD")
        return GitFacts(
            sha=variables["SHA"],
            ref=ref,
            repository=repository,
            workspace_sha=workspace_sha,
            run_id=_read_number(environment, "GITHUB_RUN_ID"),
            attempt=_read_number(environment, "GITHUB_RUN_ATTEMPT"),
            job=to_well_formed(environment.get("GITHUB_JOB", ""))[:MAX_JOB] or None,
        )
    sha = read_git_line(folder, "rev-parse", "HEAD")
    return GitFacts(sha=sha, ref=read_git_line(folder, "symbolic-ref", "-q", "HEAD")) if sha else None


def _read_number(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "")
    return int(text) if text.isdecimal() and len(text) <= MAX_NUMBER_DIGITS else None
