"""Merge requests and commit statuses of GitLab (docs.gitlab.com/api: merge_requests, notes, commits)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from eval_gate.ci.publication import PAGE_SIZE, Review, read_variable
from eval_gate.text.secret import Secret


def describe_review(variables: Mapping[str, str]) -> Review:
    """Describe the merge request of a GitLab job. Raises PublicationError. The job's own token cannot write notes."""
    read = partial(read_variable, variables)
    project, commit = f"projects/{read('CI_PROJECT_ID')}", read("CI_COMMIT_SHA")
    number = variables.get("CI_MERGE_REQUEST_IID")
    token = Secret(read("GITLAB_TOKEN", "a project access token with the scope api"))
    run_url, pipeline = read("CI_JOB_URL"), read("CI_PIPELINE_ID")
    return Review(
        system="GitLab",
        address=read("CI_API_V4_URL"),
        token=token,
        path=f"{project}/merge_requests/{number}",
        shown_as=f"merge request {number}" if number else None,
        sha=variables.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or commit,
        run_url=run_url,
        open_state=("state", "opened"),
        head="sha",
        account=("user", "id", {}),
        comments_path="notes",
        comments="$",
        comment_ids=("id",),
        body="body",
        author="author.id",
        paging={"sort": "asc", "per_page": PAGE_SIZE},
        build_comment=lambda body: {"body": body},
        status_path=f"{project}/statuses/{commit}",
        build_status=lambda text: {
            "state": "success" if text.passed else "failed",
            "name": text.key,
            "description": text.title,
            "target_url": run_url,
            "pipeline_id": pipeline,
        },
    )
