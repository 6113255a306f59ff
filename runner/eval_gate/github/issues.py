"""Drift issue of the default branch: found by author and marker, updated, closed when resolved.

Nothing is learned from its text, which another workflow with the same token can write.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pydantic import AwareDatetime, Field

from eval_gate.github.client import ApiResponse, GitHubClient
from eval_gate.github.comments import MarkedText
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.model import limits
from eval_gate.struct import FrozenStruct

PERMISSION: Final = "issues: write"
MAX_PAGES: Final = limits.ISSUE_PAGES
"""Pages of a hundred issues that are searched, the last updated first: each run updates an open drift issue."""
MAX_BODY: Final = 60_000
_QUERY: Final = """
query($owner: String!, $name: String!, $after: String) {
  repository(owner: $owner, name: $name) {
    issues(first: 100, after: $after, orderBy: {field: UPDATED_AT, direction: DESC}) {
      pageInfo { hasNextPage endCursor }
      nodes { number state viewerDidAuthor body url createdAt closedAt }
    }
  }
}
"""
"""Pull requests are not among issues."""


class Issue(FrozenStruct):
    """Drift issue as it is now."""

    number: int
    url: str
    is_open: bool
    created_at: datetime
    closed_at: datetime | None = None


class _IssueNode(MarkedText):
    number: int
    state: str
    created_at: AwareDatetime = Field(alias="createdAt")
    closed_at: AwareDatetime | None = Field(default=None, alias="closedAt")


class _Page(ApiResponse):
    more: bool = Field(alias="hasNextPage")
    cursor: str | None = Field(default=None, alias="endCursor")


class _Issues(ApiResponse):
    page: _Page = Field(alias="pageInfo")
    nodes: tuple[_IssueNode, ...]


class _Repository(ApiResponse):
    issues: _Issues


class _WrittenIssue(ApiResponse):
    number: int
    html_url: str = ""
    created_at: AwareDatetime


class _PostedComment(ApiResponse):
    id: int


def format_issue_marker(key: str) -> str:
    """Format the marker that is the first line of the drift issue. `key` holds only `A-Za-z0-9._-`."""
    return f"<!-- eval-gate:drift:v1 key={key} -->"


def find_issue(client: GitHubClient, key: str) -> Issue | None:
    """Find the drift issue of this token's account: the open one, else the last closed one. Raises GitHubError."""
    doing = "looking for the drift issue"
    cursor: str | None = None
    closed: Issue | None = None
    for _ in range(MAX_PAGES):
        repository = client.query_repository(doing, _QUERY, _Repository, {"after": cursor}, permission=PERMISSION)
        if repository is None:
            raise GitHubError(FailureKind.NOT_FOUND, doing, "repository not found")
        for node in repository.issues.nodes:
            if node.is_ours(format_issue_marker(key)):
                issue = Issue(node.number, node.url, node.state == "OPEN", node.created_at, node.closed_at)
                if issue.is_open:
                    return issue
                closed = closed or issue
        if not repository.issues.page.more:
            break
        cursor = repository.issues.page.cursor
    return closed


def open_issue(client: GitHubClient, key: str, title: str, body: str, earlier: Issue | None) -> Issue:
    """Open it once: after a lost response, look for it first. `earlier` is the last closed one. Raises GitHubError."""

    def find_own() -> _WrittenIssue | None:
        issue = find_issue(client, key)
        if issue is not None and issue.is_open and (earlier is None or issue.number != earlier.number):
            return _WrittenIssue(number=issue.number, html_url=issue.url, created_at=issue.created_at)
        return None

    text = {"title": title, "body": _format_body(key, body)}
    response = client.post(
        "opening the drift issue", "/issues", text, _WrittenIssue, permission=PERMISSION, probe=find_own
    )
    return Issue(response.number, response.html_url, is_open=True, created_at=response.created_at)


def update_issue(client: GitHubClient, key: str, title: str, body: str, issue: Issue) -> None:
    """Say what is true now. Raises GitHubError."""
    text = {"title": title, "body": _format_body(key, body)}
    doing = f"updating the issue #{issue.number}"
    client.patch(doing, f"/issues/{issue.number}", text, _WrittenIssue, permission=PERMISSION)


def close_issue(client: GitHubClient, words: str, issue: Issue) -> None:
    """Say why, and close it. Raises GitHubError."""
    doing, path = f"closing the issue #{issue.number}", f"/issues/{issue.number}"
    closed = {"state": "closed", "state_reason": "completed"}
    client.patch(doing, path, closed, _WrittenIssue, permission=PERMISSION)
    # a second comment does less harm than an issue that stays open
    comment = {"body": words}
    client.post(doing, f"{path}/comments", comment, _PostedComment, permission=PERMISSION, probe=lambda: None)


def _format_body(key: str, body: str) -> str:
    return f"{format_issue_marker(key)}\n{body[:MAX_BODY]}"
