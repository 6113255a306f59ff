"""The CI job, from the variables that each system documents."""

import pytest

from eval_gate.ci.job import CIJob, find_ci_job, find_write_objection
from eval_gate.config.settings import RunConfig

AZURE = {"TF_BUILD": "True", "BUILD_SOURCEBRANCH": "refs/heads/fix/a"}
GITLAB = {"GITLAB_CI": "true", "CI_DEFAULT_BRANCH": "trunk"}
BUILDKITE = {"BUILDKITE": "true", "BUILDKITE_BRANCH": "main", "BUILDKITE_PIPELINE_DEFAULT_BRANCH": "main"}
JENKINS = {"JENKINS_URL": "https://ci.example/", "BRANCH_NAME": "main", "BRANCH_IS_PRIMARY": "true"}


@pytest.mark.parametrize(
    ("variables", "job"),
    [
        ({}, None),
        (
            {**GITLAB, "CI_COMMIT_BRANCH": "trunk"},
            CIJob("GitLab", "trunk", is_default_branch=True),
        ),
        (
            {**GITLAB, "CI_MERGE_REQUEST_IID": "7", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "trunk"},
            CIJob("GitLab", pull_request="7", target_branch="trunk"),
        ),
        (AZURE, CIJob("Azure DevOps", "fix/a")),
        (
            AZURE | {"SYSTEM_PULLREQUEST_PULLREQUESTID": "7", "SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/main"},
            CIJob("Azure DevOps", "fix/a", pull_request="7", target_branch="main"),
        ),
        (
            {"BITBUCKET_BUILD_NUMBER": "3", "BITBUCKET_BRANCH": "main"},
            CIJob("Bitbucket", branch="main"),
        ),
        (
            {**BUILDKITE, "BUILDKITE_PULL_REQUEST": "false"},
            CIJob("Buildkite", branch="main", is_default_branch=True),
        ),
        (
            {**BUILDKITE, "BUILDKITE_PULL_REQUEST": "7", "BUILDKITE_PULL_REQUEST_BASE_BRANCH": "main"},
            CIJob("Buildkite", branch="main", pull_request="7", target_branch="main"),
        ),
        (JENKINS, CIJob("Jenkins", branch="main", is_default_branch=True)),
        (
            {**JENKINS, "BRANCH_NAME": "PR-7", "CHANGE_ID": "7", "CHANGE_TARGET": "main"},
            CIJob("Jenkins", branch="PR-7", pull_request="7", target_branch="main"),
        ),
    ],
)
def test_a_job_is_what_its_system_says(variables: dict[str, str], job: CIJob | None) -> None:
    assert find_ci_job(variables) == job


MERGE_REQUEST = {**GITLAB, "CI_MERGE_REQUEST_IID": "7"}
BITBUCKET = {"BITBUCKET_BUILD_NUMBER": "3", "BITBUCKET_BRANCH": "main"}


@pytest.mark.parametrize(
    ("variables", "branch", "outside", "objection"),
    [
        ({**GITLAB, "CI_COMMIT_BRANCH": "trunk"}, None, False, None),
        ({**GITLAB, "CI_COMMIT_BRANCH": "fix"}, None, True, "fix is not known to be the default branch"),
        (MERGE_REQUEST, "fix", True, "a pull request only reads"),
        ({"GITHUB_HEAD_REF": "fix"}, None, True, "a pull request only reads"),
        (BITBUCKET, None, False, "main is not known to be the default branch"),
        (BITBUCKET, "main", False, None),
        ({"JENKINS_URL": "https://ci.example/"}, "main", False, "in a job of Jenkins without a branch, only"),
        ({"JENKINS_URL": "https://ci.example/"}, "main", True, None),
        ({}, None, False, "outside of a known CI system, only --store-write"),
        ({}, None, True, None),
    ],
)
def test_a_store_is_written_by_the_default_branch_only(variables, branch, outside, objection) -> None:
    found = find_write_objection(RunConfig(store_branch=branch, store_write=outside), variables)
    assert found is objection if objection is None else found.startswith(objection)
