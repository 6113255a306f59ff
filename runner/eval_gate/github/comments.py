"""Comments of a pull request; the gate's own is found by its id or by author and marker, and updated in place.

Another workflow with the same token can post or change such a comment: its text is never read for decisions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date
from typing import Final

from pydantic import AwareDatetime, Field

from eval_gate.github.client import ApiResponse, GitHubClient
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.model import limits
from eval_gate.struct import FrozenStruct

PERMISSION: Final = "pull-requests: write"
MAX_PAGES: Final = limits.COMMENT_PAGES
"""Pages of a hundred comments that are looked through, newest first."""
_ADDRESS: Final = re.compile(r"#issuecomment-(\d{1,18})\Z", re.ASCII)
PERSON: Final = "User"
"""The kind of an account that is a person's; there are also bots, apps, organizations and placeholders."""
_QUERY: Final = """
query($owner: String!, $name: String!, $number: Int!, $before: String) {
  repository(owner: $owner, name: $name) {
    nameWithOwner
    pullRequest(number: $number) {
      state
      headRefOid
      baseRefName
      headRepository { nameWithOwner }
      labels(first: 100) { nodes { name } }
      comments(last: 100, before: $before) {
        pageInfo { hasPreviousPage startCursor }
        nodes {
          id databaseId viewerDidAuthor author { __typename login } authorAssociation body url
          createdAt updatedAt isMinimized lastEditedAt editor { __typename login }
        }
      }
    }
  }
}
"""
"""Comments newest first. A bot's login is a person's name in GraphQL, so the kind of an author is asked for as well."""
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
    node_id: str = ""
    is_hidden: bool = False
    """Whether it is hidden: GitHub then shows one line of it."""


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


class MarkedText(ApiResponse):
    """Comment or issue, of any author."""

    mine: bool = Field(alias="viewerDidAuthor")
    """GitHub says so without a name: a workflow's token may not ask who it is."""
    body: str
    url: str = ""

    def is_ours(self, marker: str) -> bool:
        """Whether it has this marker, and the account of this token wrote it."""
        return self.mine and self.body.startswith(marker)


class CommentActor(ApiResponse):
    """Author or editor of a comment."""

    kind: str = Field(alias="__typename")
    login: str


class PullRequestComment(MarkedText):
    """Comment as it is now. `author` is None for a deleted account, `editor` also for no editor."""

    node_id: str = Field(default="", alias="id")
    database_id: int | None = Field(default=None, alias="databaseId")
    author: CommentActor | None
    association: str = Field(default="NONE", alias="authorAssociation")
    """What its author is to the repository: a hint, and no proof of any right."""
    created: AwareDatetime = Field(alias="createdAt")
    updated_at: str = Field(default="", alias="updatedAt")
    is_hidden: bool = Field(alias="isMinimized")
    edited: AwareDatetime | None = Field(alias="lastEditedAt")
    editor: CommentActor | None

    @property
    def number(self) -> int | None:
        """Its id: GraphQL's number has 32 bits, and comments have outgrown them."""
        match = _ADDRESS.search(self.url)
        return int(match[1]) if match else self.database_id

    @property
    def day(self) -> date:
        """When it was written, in UTC."""
        return self.created.astimezone(UTC).date()

    @property
    def written_at(self) -> str:
        """When it was written, as GitHub writes it."""
        return self.created.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def login(self) -> str:
        """Its author's; empty where the account is gone."""
        return self.author.login if self.author else ""

    @property
    def is_by_person(self) -> bool:
        """Whether a person is its author, or was."""
        return self.author is None or self.author.kind == PERSON

    @property
    def is_edited_by_other(self) -> bool:
        """Whether another account than its author's, or an unknown one, edited it last."""
        return self.edited is not None and (self.editor is None or self.editor != self.author)

    def is_known(self, comment_id: int | None) -> bool:
        """Whether it is the comment with this id, written by this token's account."""
        return self.mine and self.number == comment_id


class _CommentPage(ApiResponse):
    earlier: bool = Field(alias="hasPreviousPage")
    cursor: str | None = Field(default=None, alias="startCursor")


class _Comments(ApiResponse):
    page: _CommentPage = Field(alias="pageInfo")
    nodes: tuple[PullRequestComment, ...]


class _Label(ApiResponse):
    name: str


class _Labels(ApiResponse):
    nodes: tuple[_Label, ...] = ()


class _NamedRepository(ApiResponse):
    name: str = Field(alias="nameWithOwner")


class CommentedPull(ApiResponse):
    """Pull request with its head, its labels and one page of its comments."""

    state: str
    head_sha: str = Field(alias="headRefOid")
    base_ref: str = Field(default="", alias="baseRefName")
    head: _NamedRepository | None = Field(alias="headRepository")
    labels: _Labels | None
    comments: _Comments


class _Repository(_NamedRepository):
    pull: CommentedPull | None = Field(alias="pullRequest")


class _WrittenComment(ApiResponse):
    id: int
    html_url: str = ""
    updated_at: str = ""


def read_thread(client: GitHubClient, number: int, marker: str, comment_id: int | None = None) -> PullRequestThread:
    """Read the pull request and this gate's comments, however many other comments it has.

    `comment_id` is the comment that the gate is known to have written, if any. Raises GitHubError.
    """
    pull, own = None, list[StickyComment]()
    for _, pull in iter_comment_pages(client, number, f"looking for the comment on #{number}", PERMISSION, MAX_PAGES):
        nodes = (one for one in reversed(pull.comments.nodes) if one.is_ours(marker) or one.is_known(comment_id))
        own += [StickyComment(one.number or 0, one.url, one.updated_at, one.node_id, one.is_hidden) for one in nodes]
        if own and (comment_id is None or any(one.id == comment_id for one in own)):
            break
    assert pull is not None  # there is a page even without a comment
    own.sort(key=lambda one: one.id != comment_id)
    return PullRequestThread(pull.head_sha, pull.state == "OPEN", tuple(own), pull.base_ref)


def write_comment(
    client: GitHubClient, number: int, marker: str, body: str, sticky: StickyComment | None
) -> StickyComment:
    """Update our comment, or make it, never twice: after a lost response it is looked for first. Raises GitHubError.

    Two runs at once may each make one: each run looks again afterwards, and leaves one (`delete_comment`).
    """
    if sticky is not None:
        try:
            doing = f"updating the comment on #{number}"
            path = f"/issues/comments/{sticky.id}"
            return _build_written(client.patch(doing, path, {"body": body}, _WrittenComment, permission=PERMISSION))
        except GitHubError as error:
            if error.kind not in {FailureKind.NOT_FOUND, FailureKind.GONE}:
                raise
            # it was deleted meanwhile: write a new one

    def find_own() -> _WrittenComment | None:
        existing = read_thread(client, number, marker).sticky
        return _WrittenComment(id=existing.id, html_url=existing.url) if existing and existing != sticky else None

    path = f"/issues/{number}/comments"
    doing = f"writing the comment on #{number}"
    return _build_written(
        client.post(doing, path, {"body": body}, _WrittenComment, permission=PERMISSION, probe=find_own)
    )


def delete_comment(client: GitHubClient, number: int, comment: StickyComment) -> None:
    """Delete a comment of this gate, if it still exists. Raises GitHubError."""
    doing = f"deleting a second comment on #{number}"
    client.delete(doing, f"/issues/comments/{comment.id}", permission=PERMISSION)


def show_comment(client: GitHubClient, number: int, comment: StickyComment) -> None:
    """Have a hidden comment shown again. Raises GitHubError."""
    doing = f"showing the hidden comment on #{number}"
    client.run_graphql(doing, _SHOW, {"id": comment.node_id}, permission=PERMISSION)


def iter_comment_pages(
    client: GitHubClient, number: int, doing: str, permission: str, limit: int
) -> Iterator[tuple[str, CommentedPull]]:
    """Yield the repository's name and the pull request with each page of comments, the newest of `limit` pages first.

    There is a page even without a comment. Raises GitHubError.
    """
    cursor: str | None = None
    for _ in range(limit):
        repository = client.query_repository(
            doing, _QUERY, _Repository, {"number": number, "before": cursor}, permission=permission
        )
        if repository is None or repository.pull is None:
            raise GitHubError(FailureKind.NOT_FOUND, doing, "pull request not found")
        yield repository.name, repository.pull
        if not repository.pull.comments.page.earlier:
            return
        cursor = repository.pull.comments.page.cursor


def _build_written(response: _WrittenComment) -> StickyComment:
    return StickyComment(response.id, response.html_url, response.updated_at)
