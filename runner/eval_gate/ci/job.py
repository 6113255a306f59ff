"""The CI job that runs this program: its branch and pull request, as the CI system names them.

Each system documents these variables; the pages are linked in docs/ci.md. A variable that a system does not set is
unknown, and nothing is guessed from another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from eval_gate.config.settings import RunConfig
from eval_gate.struct import FrozenStruct


class CIJob(FrozenStruct):
    """One job of a CI system. Everything that the system does not say is None."""

    system: str
    """Name for people, such as `GitLab`."""
    branch: str | None = None
    """Branch of the job; in a pull request its source branch, if it is known."""
    pull_request: str | None = None
    """Number of the pull request or merge request; None for a job of a branch or tag."""
    target_branch: str | None = None
    """Branch that the pull request goes into."""
    is_default_branch: bool = False
    """Whether it is a job of the default branch itself, as the system says."""


class _Variables(FrozenStruct):
    """Names of the variables of one system."""

    system: str
    marker: str
    """Variable that only this system sets."""
    branch: str
    pull_request: str
    target_branch: str
    default_branch: str = ""
    on_default_branch: str = ""
    """Variable that is `true` in a job of the default branch."""


_SYSTEMS: Final = (
    _Variables(
        "GitLab",
        marker="GITLAB_CI",
        branch="CI_COMMIT_BRANCH",
        pull_request="CI_MERGE_REQUEST_IID",
        target_branch="CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
        default_branch="CI_DEFAULT_BRANCH",
    ),
    _Variables(
        "Azure DevOps",
        marker="TF_BUILD",
        branch="BUILD_SOURCEBRANCH",
        pull_request="SYSTEM_PULLREQUEST_PULLREQUESTID",
        target_branch="SYSTEM_PULLREQUEST_TARGETBRANCH",
    ),
    _Variables(
        "Bitbucket",
        marker="BITBUCKET_BUILD_NUMBER",
        branch="BITBUCKET_BRANCH",
        pull_request="BITBUCKET_PR_ID",
        target_branch="BITBUCKET_PR_DESTINATION_BRANCH",
    ),
    _Variables(
        "Buildkite",
        marker="BUILDKITE",
        branch="BUILDKITE_BRANCH",
        pull_request="BUILDKITE_PULL_REQUEST",
        target_branch="BUILDKITE_PULL_REQUEST_BASE_BRANCH",
        default_branch="BUILDKITE_PIPELINE_DEFAULT_BRANCH",
    ),
    _Variables(
        "Jenkins",
        marker="JENKINS_URL",
        branch="BRANCH_NAME",
        pull_request="CHANGE_ID",
        target_branch="CHANGE_TARGET",
        on_default_branch="BRANCH_IS_PRIMARY",
    ),
)


def find_ci_job(variables: Mapping[str, str]) -> CIJob | None:
    """Find the CI job that these environment variables describe; None outside of the known systems."""
    names = next((one for one in _SYSTEMS if variables.get(one.marker)), None)
    if names is None:
        return None
    # Azure DevOps gives full references
    branch, target = (
        variables.get(name, "").removeprefix("refs/heads/") for name in (names.branch, names.target_branch)
    )
    pull_request = variables.get(names.pull_request, "")
    if pull_request == "false":  # Buildkite's word for none
        pull_request = ""
    says_default = variables.get(names.on_default_branch) == "true" or branch == variables.get(names.default_branch)
    return CIJob(
        names.system,
        branch=branch or None,
        pull_request=pull_request or None,
        target_branch=(pull_request and target) or None,
        is_default_branch=bool(branch and says_default and not pull_request),
    )


def find_write_objection(config: RunConfig, variables: Mapping[str, str]) -> str | None:
    """Find why the job that has these variables may only read a store of baselines; None if it may write."""
    job = find_ci_job(variables)
    if job.pull_request if job else variables.get("GITHUB_HEAD_REF"):
        return "a pull request only reads"
    if job is None or job.branch is None:
        where = f"in a job of {job.system} without a branch" if job else "outside of a known CI system"
        return None if config.store_write else f"{where}, only --store-write stores a run"
    if job.is_default_branch or job.branch == config.store_branch:
        return None
    return f"{job.branch} is not known to be the default branch, which storeBranch can name"
