"""Trusted branch of a pull request and the configuration on that branch.

Anybody who may push can create a branch and a pull request into it. The files of such a branch had no review.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from eval_gate.action.step import Step
from eval_gate.action.step_config import load_config_from
from eval_gate.config.loader import CONFIG_NAMES
from eval_gate.config.settings import RunConfig
from eval_gate.github.checkout import find_checkout
from eval_gate.github.commits import fetch_file, find_branch
from eval_gate.github.failure import FailureKind, GitHubError


def find_trusted_branch(step: Step) -> str | None:
    """Find the branch whose policy counts for this step's pull request.

    This is the branch that the pull request merges into, if it is the default branch, the branch of the baselines,
    or protected; otherwise the default branch. Returns None without a pull request. Raises GitHubError.
    """
    base, trusted = step.plan.base_branch, step.plan.trusted_branches
    if base is None or not trusted or base in trusted:
        return base
    facts = find_branch(step.client, base)
    if facts is None:
        doing = f"reading the branch {base}"[:120]
        raise GitHubError(FailureKind.NOT_FOUND, doing, "it no longer exists")
    return base if facts.protected else trusted[0]


def find_branch_warning(step: Step) -> str | None:
    """Build the warning for a branch that decides on secrets only because `baseline-branch` names it.

    An expression such as `github.base_ref || github.ref_name` names any branch that a pull request merges into, and
    the input does not show whether it was an expression. Returns None if no warning is needed.
    """
    base = step.plan.base_branch
    if base is None or base == step.plan.default_branch or base not in step.plan.trusted_branches:
        return None
    try:
        facts = find_branch(step.client, base)
    except GitHubError:
        facts = None
    if facts is not None and facts.protected:
        return None
    return (
        f"{base} decides which targets get secrets, because `baseline-branch` names it, but it may not be protected: "
        "anyone with push access can create it. Protect it, or write `baseline-branch: base` instead of an expression"
    )


def describe_branch(step: Step, branch: str) -> str:
    """Describe the trusted branch for the log, with the reason if it is not the pull request's base."""
    base = step.plan.base_branch
    return branch if base in {None, branch} else f"{branch} ({base}, its base branch, is not protected)"


def load_base_config(step: Step, variables: Mapping[str, str], branch: str) -> tuple[RunConfig, str | None]:
    """Load the configuration with the file of this branch or commit instead of the workspace's.

    Returns the configuration and the name of that file, or None for the name if the branch has no file. Raises
    GitHubError, and GateError for an invalid file.
    """
    for name in (step.settings.config,) if step.settings.config else CONFIG_NAMES:
        path = resolve_repository_path(step, name)
        data = fetch_file(step.client, path, branch)
        if data is not None:
            with TemporaryDirectory(dir=step.environment.temporary_folder) as folder:
                file = Path(folder) / PurePosixPath(path).name
                file.write_bytes(data)
                return load_config_from(step.settings, variables, file, shown_as=f"{path} on {branch}"), path
        if "/" in name and (step.environment.workspace / name).is_file():
            _confirm_path(step, path)
    return load_config_from(step.settings, variables, None), None


def resolve_repository_path(step: Step, name: str) -> str:
    """Resolve a file to its path in its repository: checkouts can lie in a subfolder (`path:` of actions/checkout)."""
    root = Path(os.path.realpath(step.environment.workspace))
    checkout = find_checkout(root, name)
    place = Path(os.path.normpath(root / name))
    return place.relative_to(checkout or root).as_posix() if place.is_relative_to(checkout or root) else name


def _confirm_path(step: Step, path: str) -> None:
    """Raise GitHubError for a file that the branch does not have, and the head of the pull request neither."""
    head = step.plan.head_sha
    if head and fetch_file(step.client, path, head) is None:
        what = f"{head[:7]} does not have this file either, so the policy cannot be found: check out this repository"
        raise GitHubError(FailureKind.NOT_FOUND, f"reading {path}"[:120], what)
