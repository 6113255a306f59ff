"""The CI job that runs this program: its commit, branch and pull request, as the CI system names them.

Each system documents these variables; the pages are linked in docs/ci.md. A variable that a system does not set is
unknown, and nothing is guessed from another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from eval_gate.config.settings import RunConfig
from eval_gate.struct import FrozenStruct

_NO_PULL_REQUEST: Final = frozenset({"", "false"})
"""Values for a job without a pull request; Buildkite sets `false`."""


class CIJob(FrozenStruct):
    """One job of a CI system. Everything that the system does not say is None."""

    system: str
    """Name for people, such as `GitLab`."""
    sha: str | None = None
    branch: str | None = None
    """Branch of the job; in a pull request its source branch, if it is known."""
    default_branch: str | None = None
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
    sha: str
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
        sha="CI_COMMIT_SHA",
        branch="CI_COMMIT_BRANCH",
        pull_request="CI_MERGE_REQUEST_IID",
        target_branch="CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
        default_branch="CI_DEFAULT_BRANCH",
    ),
    _Variables(
        "Azure DevOps",
        marker="TF_BUILD",
        sha="BUILD_SOURCEVERSION",
        branch="BUILD_SOURCEBRANCH",
        pull_request="SYSTEM_PULLREQUEST_PULLREQUESTID",
        target_branch="SYSTEM_PULLREQUEST_TARGETBRANCH",
    ),
    _Variables(
        "Bitbucket",
        marker="BITBUCKET_BUILD_NUMBER",
        sha="BITBUCKET_COMMIT",
        branch="BITBUCKET_BRANCH",
        pull_request="BITBUCKET_PR_ID",
        target_branch="BITBUCKET_PR_DESTINATION_BRANCH",
    ),
    _Variables(
        "Buildkite",
        marker="BUILDKITE",
        sha="BUILDKITE_COMMIT",
        branch="BUILDKITE_BRANCH",
        pull_request="BUILDKITE_PULL_REQUEST",
        target_branch="BUILDKITE_PULL_REQUEST_BASE_BRANCH",
        default_branch="BUILDKITE_PIPELINE_DEFAULT_BRANCH",
    ),
    _Variables(
        "Jenkins",
        marker="JENKINS_URL",
        sha="GIT_COMMIT",
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

    def read(name: str) -> str | None:
        return variables.get(name) or None

    branch, target = (_to_branch(read(name)) for name in (names.branch, names.target_branch))
    default = read(names.default_branch)
    number = read(names.pull_request)
    pull_request = None if number is None or number in _NO_PULL_REQUEST else number
    says_default = variables.get(names.on_default_branch) == "true" or (default is not None and branch == default)
    return CIJob(
        names.system,
        sha=read(names.sha),
        branch=branch,
        default_branch=default,
        pull_request=pull_request,
        target_branch=target if pull_request is not None else None,
        is_default_branch=says_default and pull_request is None,
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


def _to_branch(reference: str | None) -> str | None:
    """Return the branch of a full reference such as `refs/heads/main` (Azure DevOps); other texts are names already."""
    return None if reference is None else reference.removeprefix("refs/heads/")
