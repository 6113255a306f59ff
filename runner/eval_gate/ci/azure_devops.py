"""Pull requests and statuses of Azure Repos (learn.microsoft.com/rest/api/azure/devops/git, version 7.1)."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from eval_gate.ci.publication import CommentCalls, Review, ReviewText, read_variable
from eval_gate.text.secret import Secret


def describe_review(variables: Mapping[str, str]) -> Review:
    """Describe the pull request of an Azure Pipelines job. Raises PublicationError.

    A comment is the first one of a thread. The thread gets no status: an active one may block the pull request, and a
    closed one is folded.
    """
    address = read_variable(variables, "SYSTEM_COLLECTIONURI").rstrip("/")
    project = read_variable(variables, "SYSTEM_TEAMPROJECTID")
    repository = f"{project}/_apis/git/repositories/{read_variable(variables, 'BUILD_REPOSITORY_ID')}"
    sha = variables.get("SYSTEM_PULLREQUEST_SOURCECOMMITID") or read_variable(variables, "BUILD_SOURCEVERSION")
    run_url = f"{address}/{project}/_build/results?buildId={read_variable(variables, 'BUILD_BUILDID')}"
    number = variables.get("SYSTEM_PULLREQUEST_PULLREQUESTID")
    path = f"{repository}/pullRequests/{number}"

    def build_status(text: ReviewText) -> JsonValue:
        return {
            "state": "succeeded" if text.passed else "failed",
            "description": text.title,
            "context": {"name": text.key, "genre": "eval-gate"},
            "targetUrl": run_url,
        }

    def build_comment(body: str) -> JsonValue:
        return {"content": body, "commentType": "text"}

    return Review(
        system="Azure DevOps",
        address=address,
        token=Secret(read_variable(variables, "SYSTEM_ACCESSTOKEN", "map $(System.AccessToken) in the step's env")),
        path=path,
        place=f"pull request {number}" if number else None,
        sha=sha,
        run_url=run_url,
        open_state=("status", "active"),
        head="lastMergeSourceCommit.commitId",
        account=("_apis/connectionData", "authenticatedUser.id", {"api-version": "7.1-preview"}),
        comments=CommentCalls(
            "threads",
            items="value",
            fields=("id", "comments[0].content", "comments[0].author.id"),
            query={},
            build_new=lambda body: {"comments": [build_comment(body)]},
            build_update=build_comment,
            update_verb="PATCH",
            update_path="/comments/1",
        ),
        status_path=f"{path if number else f'{repository}/commits/{sha}'}/statuses",
        build_status=build_status,
        version={"api-version": "7.1"},
    )
