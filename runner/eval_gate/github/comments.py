"""Pull request comment of a gate: found by its id or by author and marker, and updated in place.

Another workflow with the same token can post or change such a comment: nothing is learned from its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pydantic import Field

from eval_gate.github.client import ApiResponse, GitHubClient
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.github.marked_texts import MarkedText
from eval_gate.model import limits
from eval_gate.struct import FrozenStruct

PERMISSION: Final = "pull-requests: write"
MAX_PAGES: Final = limits.COMMENT_PAGES
"""Pages of a hundred comments that are looked through, newest first."""
_ADDRESS: Final = re.compile(r"#issuecomment-(\d{1,18})\Z", re.ASCII)
_QUERY: Final = """
query($owner: String!, $name: String!, $number: Int!, $before: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      state
      headRefOid
      baseRefName
      comments(last: 100, before: $before) {
        pageInfo { hasPreviousPage startCursor }
        nodes { id databaseId viewerDidAuthor isMinimized body url updatedAt }
      }
    }
  }
}
"""
"""Comments newest first."""
_SHOW: Final = """
mutation($id: ID!) {
  unminimizeComment(input: {subjectId: $id}) { unminimizedComment { isMinimized } }
}
"""


class StickyComment(FrozenStruct):
    """Comment of the gate as it is now."""

    id: int
    url: str
    updated_at: str = ""
    """When it was last changed, as GitHub says."""
    node_id: str = ""
    is_hidden: bool = False
    """Whether somebody has hidden it: then only a line of it is shown."""


class PullRequestThread(FrozenStruct):
    """Head, base and state of a pull request, with the gate's own comments (usually one)."""

    head_sha: str
    is_open: bool
    own_comments: tuple[StickyComment, ...] = ()
    """The one that is known by its id, then the newest first; of the pages that were read to find one."""
    base_ref: str = ""

    @property
    def sticky(self) -> StickyComment | None:
        """Our comment."""
        return self.own_comments[0] if self.own_comments else None


class _CommentNode(MarkedText):
    database_id: int | None = Field(default=None, alias="databaseId")
    node_id: str = Field(default="", alias="id")
    hidden: bool = Field(default=False, alias="isMinimized")
    updated_at: str = Field(default="", alias="updatedAt")

    @property
    def number(self) -> int:
        """Its id."""
        return parse_comment_id(self.url) or self.database_id or 0

    def is_known(self, comment_id: int | None) -> bool:
        """Whether it is the comment with this id, and not somebody else's."""
        return self.mine and self.number == comment_id


class CommentPage(ApiResponse):
    """Page information of a list of comments, newest page first."""

    earlier: bool = Field(alias="hasPreviousPage")
    cursor: str | None = Field(default=None, alias="startCursor")


class _Comments(ApiResponse):
    page: CommentPage = Field(alias="pageInfo")
    nodes: tuple[_CommentNode, ...]


class _Pull(ApiResponse):
    state: str
    head: str = Field(alias="headRefOid")
    base: str = Field(default="", alias="baseRefName")
    comments: _Comments


class _Repository(ApiResponse):
    pull: _Pull | None = Field(alias="pullRequest")


class _WrittenComment(ApiResponse):
    id: int
    html_url: str = ""
    updated_at: str = ""


def parse_comment_id(url: str) -> int | None:
    """Parse the id of a comment from its address: GraphQL's number has 32 bits, and comments have outgrown them."""
    match = _ADDRESS.search(url)
    return int(match[1]) if match else None


def format_marker(key: str) -> str:
    """Format the marker that is the first line of this gate's comment. `key` holds only `A-Za-z0-9._-`."""
    return f"<!-- eval-gate:v1 key={key} -->"


def read_thread(client: GitHubClient, number: int, marker: str, comment_id: int | None = None) -> PullRequestThread:
    """Read the pull request and this gate's comments, however many other comments it has.

    `comment_id` is the comment that the gate is known to have written, if any. Raises GitHubError.
    """
    pull, found = None, list[StickyComment]()
    for pull in _iter_pages(client, number):
        own = (one for one in reversed(pull.comments.nodes) if one.is_ours(marker) or one.is_known(comment_id))
        found += map(_parse_comment, own)
        if found and (comment_id is None or any(one.id == comment_id for one in found)):
            break
    assert pull is not None  # there is a page even without a comment
    found.sort(key=lambda one: one.id != comment_id)
    return PullRequestThread(pull.head, pull.state == "OPEN", tuple(found), pull.base)


def write_comment(
    client: GitHubClient, number: int, marker: str, body: str, sticky: StickyComment | None
) -> StickyComment:
    """Update our comment, or make it, never twice: after a lost answer it is looked for first. Raises GitHubError.

    Two runs at once may each make one: who has written looks again, and leaves one (`delete_comment`).
    """
    if sticky is not None:
        try:
            doing = f"updating the comment on #{number}"
            path = f"/issues/comments/{sticky.id}"
            return _build_written(client.patch(doing, path, {"body": body}, _WrittenComment, permission=PERMISSION))
        except GitHubError as error:
            if error.kind not in {FailureKind.NOT_FOUND, FailureKind.GONE}:
                raise
            # somebody deleted it meanwhile: make it anew

    def find_own() -> _WrittenComment | None:
        found = read_thread(client, number, marker).sticky
        return _WrittenComment(id=found.id, html_url=found.url) if found and found != sticky else None

    path = f"/issues/{number}/comments"
    doing = f"writing the comment on #{number}"
    return _build_written(
        client.post(doing, path, {"body": body}, _WrittenComment, permission=PERMISSION, made=find_own)
    )


def delete_comment(client: GitHubClient, number: int, comment: StickyComment) -> None:
    """Take a comment of ours away; somebody else may have done so already. Raises GitHubError."""
    doing = f"deleting a second comment on #{number}"
    client.delete(doing, f"/issues/comments/{comment.id}", permission=PERMISSION)


def show_comment(client: GitHubClient, number: int, comment: StickyComment) -> None:
    """Have a hidden comment shown again. Raises GitHubError."""
    doing = f"showing the hidden comment on #{number}"
    client.run_graphql(doing, _SHOW, {"id": comment.node_id}, permission=PERMISSION)


def _iter_pages(client: GitHubClient, number: int) -> Iterator[_Pull]:
    """Yield the pull request with each page of comments, newest page first, up to `MAX_PAGES` pages."""
    doing = f"looking for the comment on #{number}"
    before: str | None = None
    for _ in range(MAX_PAGES):
        asked = {"number": number, "before": before}
        repository = client.query_repository(doing, _QUERY, _Repository, asked, permission=PERMISSION)
        if repository is None or repository.pull is None:
            raise GitHubError(FailureKind.NOT_FOUND, doing, "pull request not found")
        yield repository.pull
        if not repository.pull.comments.page.earlier:
            return
        before = repository.pull.comments.page.cursor


def _parse_comment(node: _CommentNode) -> StickyComment:
    return StickyComment(node.number, node.url, node.updated_at, node.node_id, node.hidden)


def _build_written(written: _WrittenComment) -> StickyComment:
    return StickyComment(written.id, written.html_url, written.updated_at)
