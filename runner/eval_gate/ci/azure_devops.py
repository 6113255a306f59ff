"""Pull requests and statuses of Azure Repos (learn.microsoft.com/rest/api/azure/devops/git, version 7.1)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from eval_gate.ci.publication import Review, read_variable
from eval_gate.text.secret import Secret


def describe_review(variables: Mapping[str, str]) -> Review:
    """Describe the pull request of an Azure Pipelines job. Raises PublicationError.

    A comment is the first one of a thread. The thread gets no status: an active one may block the pull request, and a
    closed one is folded.
    """
    read = partial(read_variable, variables)
    address, project = read("SYSTEM_COLLECTIONURI").rstrip("/"), read("SYSTEM_TEAMPROJECTID")
    repository = f"{project}/_apis/git/repositories/{read('BUILD_REPOSITORY_ID')}"
    sha = variables.get("SYSTEM_PULLREQUEST_SOURCECOMMITID") or read("BUILD_SOURCEVERSION")
    run_url = f"{address}/{project}/_build/results?buildId={read('BUILD_BUILDID')}"
    number = variables.get("SYSTEM_PULLREQUEST_PULLREQUESTID")
    path = f"{repository}/pullRequests/{number}"
    return Review(
        system="Azure DevOps",
        address=address,
        token=Secret(read("SYSTEM_ACCESSTOKEN", "map $(System.AccessToken) in the step's env")),
        path=path,
        shown_as=f"pull request {number}" if number else None,
        sha=sha,
        run_url=run_url,
        open_state=("status", "active"),
        head="lastMergeSourceCommit.commitId",
        account=("_apis/connectionData", "authenticatedUser.id", {"api-version": "7.1-preview"}),
        comments_path="threads",
        comments="value",
        comment_ids=("id", "comments[0].id"),
        body="comments[0].content",
        author="comments[0].author.id",
        build_comment=lambda body: {"content": body, "commentType": "text"},
        wrap_new=lambda comment: {"comments": [comment]},
        update_verb="PATCH",
        status_path=f"{path if number else f'{repository}/commits/{sha}'}/statuses",
        build_status=lambda text: {
            "state": "succeeded" if text.passed else "failed",
            "description": text.title,
            "context": {"name": text.key, "genre": "eval-gate"},
            "targetUrl": run_url,
        },
        version={"api-version": "7.1"},
    )
