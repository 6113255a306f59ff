"""Drift issue of the default branch: found by marker and key, updated, closed when resolved."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from eval_gate.github.client import ApiResponse, GitHubClient, parse_response
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.github.marked_texts import MarkedText, append_state, parse_state
from eval_gate.model import limits
from eval_gate.struct import FrozenStruct

PERMISSION: Final = "issues: write"
MAX_PAGES: Final = limits.ISSUE_PAGES
"""Pages of a hundred issues that are looked through, the last updated first: ours is, as long as it is in use."""
MAX_BODY: Final = 60_000
_QUERY: Final = """
query($owner: String!, $name: String!, $after: String) {
  repository(owner: $owner, name: $name) {
    issues(first: 100, after: $after, orderBy: {field: UPDATED_AT, direction: DESC}) {
      pageInfo { hasNextPage endCursor }
      nodes { number state viewerDidAuthor body url }
    }
  }
}
"""
"""Pull requests are not among issues."""


class IssueState(BaseModel):
    """State stored in the issue: the run that wrote it and the names of its findings."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    run_id: int
    names: tuple[str, ...] = Field(default=(), max_length=100)
    """What was worse: who closes the issue by hand has accepted these."""


class Issue(FrozenStruct):
    """Drift issue as it is now."""

    number: int
    url: str
    is_open: bool
    state: IssueState | None = None


class _IssueNode(MarkedText):
    number: int
    state: str


class _Page(ApiResponse):
    more: bool = Field(alias="hasNextPage")
    cursor: str | None = Field(default=None, alias="endCursor")


class _Issues(ApiResponse):
    page: _Page = Field(alias="pageInfo")
    nodes: tuple[_IssueNode, ...]


class _Repository(ApiResponse):
    issues: _Issues


class _QueryResponse(ApiResponse):
    repository: _Repository | None


class _WrittenIssue(ApiResponse):
    number: int
    html_url: str = ""
    state: str = "open"


class _PostedComment(ApiResponse):
    id: int


def format_issue_marker(key: str) -> str:
    """Format the marker that is the first line of the drift issue. `key` holds only `A-Za-z0-9._-`."""
    return f"<!-- eval-gate:drift:v1 key={key} -->"


def find_issue(client: GitHubClient, key: str) -> Issue | None:
    """Our issue: the open one, else the one that was closed last; never what somebody else wrote.

    Raises GitHubError.
    """
    owner, _, name = client.repository.partition("/")
    doing = "looking for the drift issue"
    after: str | None = None
    closed: Issue | None = None
    for _ in range(MAX_PAGES):
        variables: dict[str, JsonValue] = {"owner": owner, "name": name, "after": after}
        repository = parse_response(
            _QueryResponse, client.run_graphql(doing, _QUERY, variables, permission=PERMISSION), doing
        ).repository
        if repository is None:
            raise GitHubError(FailureKind.NOT_FOUND, doing, "repository not found")
        for node in repository.issues.nodes:
            if node.is_ours(format_issue_marker(key)):
                found = Issue(node.number, node.url, node.state == "OPEN", parse_state(IssueState, node.body))
                if found.is_open:
                    return found
                closed = closed or found
        if not repository.issues.page.more:
            break
        after = repository.issues.page.cursor
    return closed


def open_issue(client: GitHubClient, key: str, title: str, body: str, state: IssueState, before: Issue | None) -> Issue:
    """Open it, once: after a lost answer it is looked for first. `before` was there already. Raises GitHubError."""

    def find_own() -> _WrittenIssue | None:
        found = find_issue(client, key)
        there = found is not None and found.is_open and (before is None or found.number != before.number)
        return _WrittenIssue(number=found.number, html_url=found.url) if found is not None and there else None

    text = {"title": title, "body": _format_body(key, body, state)}
    written = client.post(
        "opening the drift issue", "/issues", text, _WrittenIssue, permission=PERMISSION, made=find_own
    )
    return Issue(written.number, written.html_url, is_open=True, state=state)


def update_issue(client: GitHubClient, key: str, title: str, body: str, state: IssueState, issue: Issue) -> Issue:
    """Say what is true now. Raises GitHubError."""
    text = {"title": title, "body": _format_body(key, body, state)}
    doing = f"updating the issue #{issue.number}"
    written = client.patch(doing, f"/issues/{issue.number}", text, _WrittenIssue, permission=PERMISSION)
    return Issue(issue.number, written.html_url or issue.url, written.state == "open", state)


def close_issue(client: GitHubClient, words: str, issue: Issue) -> None:
    """Say why, and close it. Raises GitHubError."""
    doing = f"closing the issue #{issue.number}"
    closed = {"state": "closed", "state_reason": "completed"}
    client.patch(doing, f"/issues/{issue.number}", closed, _WrittenIssue, permission=PERMISSION)
    # a second comment does less harm than an issue that stays open
    client.post(
        doing,
        f"/issues/{issue.number}/comments",
        {"body": words},
        _PostedComment,
        permission=PERMISSION,
        made=lambda: None,
    )


def _format_body(key: str, body: str, state: IssueState) -> str:
    return append_state(f"{format_issue_marker(key)}\n{body[:MAX_BODY]}", state)
