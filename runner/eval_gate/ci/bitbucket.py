"""Pull requests and build statuses of Bitbucket Cloud (developer.atlassian.com/cloud/bitbucket/rest)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Final

from eval_gate.ci.publication import PAGE_SIZE, Review, read_variable
from eval_gate.text.secret import Secret

API_URL: Final = "https://api.bitbucket.org/2.0"


def describe_review(variables: Mapping[str, str], api_url: str = API_URL) -> Review:
    """Describe the pull request of a Bitbucket Pipelines job. Raises PublicationError."""
    read = partial(read_variable, variables)
    name, sha, number = read("BITBUCKET_REPO_FULL_NAME"), read("BITBUCKET_COMMIT"), variables.get("BITBUCKET_PR_ID")
    run_url = f"https://bitbucket.org/{name}/pipelines/results/{read('BITBUCKET_BUILD_NUMBER')}"
    return Review(
        system="Bitbucket",
        address=api_url,
        token=Secret(read("BITBUCKET_TOKEN", "a repository access token that writes pull requests")),
        path=f"repositories/{name}/pullrequests/{number}",
        shown_as=f"pull request {number}" if number else None,
        sha=sha,
        run_url=run_url,
        open_state=("state", "OPEN"),
        head="source.commit.hash",
        account=None,  # a token may not ask; only the author of a comment may change it
        comments_path="comments",
        comments="values",
        comment_ids=("id",),
        body="content.raw",
        author="user.uuid",
        paging={"sort": "created_on", "pagelen": PAGE_SIZE},
        build_comment=lambda body: {"content": {"raw": body}},
        status_path=f"repositories/{name}/commit/{sha}/statuses/build",
        build_status=lambda text: {
            "key": hashlib.sha256(text.key.encode()).hexdigest()[:40],  # the longest that is allowed
            "name": text.key,
            "state": "SUCCESSFUL" if text.passed else "FAILED",
            "description": text.title,
            "url": run_url,
        },
        has_html=False,
    )
