"""Merge requests and commit statuses of GitLab (docs.gitlab.com/api: merge_requests, notes, commits)."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from eval_gate.ci.publication import PAGE_SIZE, CommentCalls, Review, ReviewText, read_variable
from eval_gate.text.secret import Secret


def describe_review(variables: Mapping[str, str]) -> Review:
    """Describe the merge request of a GitLab job. Raises PublicationError. The job's own token cannot write notes."""
    project = f"projects/{read_variable(variables, 'CI_PROJECT_ID')}"
    commit = read_variable(variables, "CI_COMMIT_SHA")
    number, run_url = variables.get("CI_MERGE_REQUEST_IID"), variables.get("CI_JOB_URL")

    def build_comment(body: str) -> JsonValue:
        return {"body": body}

    def build_status(text: ReviewText) -> JsonValue:
        body: dict[str, JsonValue] = {
            "state": "success" if text.passed else "failed",
            "name": text.key,
            "description": text.title,
            "target_url": run_url,
            "pipeline_id": variables.get("CI_PIPELINE_ID"),
        }
        return {key: value for key, value in body.items() if value}

    return Review(
        system="GitLab",
        address=read_variable(variables, "CI_API_V4_URL"),
        token=Secret(read_variable(variables, "GITLAB_TOKEN", "a project access token with the scope api")),
        path=f"{project}/merge_requests/{number}",
        place=f"merge request {number}" if number else None,
        sha=variables.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or commit,
        run_url=run_url,
        open_state=("state", "opened"),
        head="sha",
        account=("user", "id", {}),
        comments=CommentCalls(
            "notes",
            items="$",
            fields=("id", "body", "author.id"),
            query={"sort": "asc", "per_page": PAGE_SIZE},
            build_new=build_comment,
            build_update=build_comment,
        ),
        status_path=f"{project}/statuses/{commit}",
        build_status=build_status,
        version={},
    )
