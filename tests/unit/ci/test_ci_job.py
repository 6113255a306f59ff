"""The CI job, from the variables that each system documents."""

import pytest

from eval_gate.ci.job import CIJob, find_ci_job, find_write_objection
from eval_gate.config.settings import RunConfig

AZURE = {"TF_BUILD": "True", "BUILD_SOURCEBRANCH": "refs/heads/fix/a"}
GITLAB = {"GITLAB_CI": "true", "CI_DEFAULT_BRANCH": "trunk"}
BUILDKITE = {"BUILDKITE": "true", "BUILDKITE_BRANCH": "main", "BUILDKITE_PIPELINE_DEFAULT_BRANCH": "main"}
JENKINS = {"JENKINS_URL": "https://ci.example/", "BRANCH_NAME": "main", "BRANCH_IS_PRIMARY": "true"}
BITBUCKET = {"BITBUCKET_BUILD_NUMBER": "3", "BITBUCKET_BRANCH": "main"}


@pytest.mark.parametrize(
    ("system", "more", "job"),
    [
        ({}, {}, None),
        (GITLAB, {"CI_COMMIT_BRANCH": "trunk"}, CIJob("GitLab", "trunk", is_default_branch=True)),
        (
            GITLAB,
            {"CI_MERGE_REQUEST_IID": "7", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "trunk"},
            CIJob("GitLab", None, "7", "trunk"),
        ),
        (AZURE, {}, CIJob("Azure DevOps", "fix/a")),
        (
            AZURE,
            {"SYSTEM_PULLREQUEST_PULLREQUESTID": "7", "SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/main"},
            CIJob("Azure DevOps", "fix/a", "7", "main"),
        ),
        (BITBUCKET, {}, CIJob("Bitbucket", "main")),
        (BUILDKITE, {"BUILDKITE_PULL_REQUEST": "false"}, CIJob("Buildkite", "main", is_default_branch=True)),
        (
            BUILDKITE,
            {"BUILDKITE_PULL_REQUEST": "7", "BUILDKITE_PULL_REQUEST_BASE_BRANCH": "main"},
            CIJob("Buildkite", "main", "7", "main"),
        ),
        (JENKINS, {}, CIJob("Jenkins", "main", is_default_branch=True)),
        (
            JENKINS,
            {"BRANCH_NAME": "PR-7", "CHANGE_ID": "7", "CHANGE_TARGET": "main"},
            CIJob("Jenkins", "PR-7", "7", "main"),
        ),
    ],
)
def test_a_job_is_what_its_system_says(system, more, job) -> None:
    assert find_ci_job(system | more) == job


@pytest.mark.parametrize(
    ("variables", "branch", "outside", "objection"),
    [
        ({**GITLAB, "CI_COMMIT_BRANCH": "trunk"}, None, False, None),
        ({**GITLAB, "CI_COMMIT_BRANCH": "fix"}, None, True, "fix is not known to be the default branch"),
        ({**GITLAB, "CI_MERGE_REQUEST_IID": "7"}, "fix", True, "a pull request only reads"),
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
    words = find_write_objection(RunConfig(store_branch=branch, store_write=outside), variables)
    assert words == objection or words.startswith(objection)
