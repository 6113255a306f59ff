"""The one comment on a pull request: found by author, marker and key, and updated in place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from eval_gate.github.client import ApiAnswer, Client, parsed
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.github.own_texts import OwnText, state_in
from eval_gate.model import limits
from eval_gate.model.result import LEG_PATTERN
from eval_gate.struct import FrozenStruct

PERMISSION: Final = "pull-requests: write"
MAX_PAGES: Final = limits.COMMENT_PAGES
"""Pages of a hundred comments that are looked through, newest first."""
_ADDRESS: Final = re.compile(r"#issuecomment-(\d{1,18})\Z")
_QUERY: Final = """
query($owner: String!, $name: String!, $number: Int!, $before: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      state
      headRefOid
      baseRefName
      comments(last: 100, before: $before) {
        pageInfo { hasPreviousPage startCursor }
        nodes { id databaseId viewerDidAuthor isMinimized body url }
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


class CommentState(BaseModel):
    """What a comment remembers of the run that wrote it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    sha: str = Field(pattern=r"^[0-9a-f]{7,64}$")
    run_id: int
    attempt: int = 1
    outcome: str = Field(max_length=20)
    red_sha: str | None = Field(default=None, pattern=r"^[0-9a-f]{7,64}$")
    """The newest commit of the pull request whose result was red, until one is green."""
    leg: str | None = Field(default=None, pattern=LEG_PATTERN)
    """Which leg of a matrix it was, where several share the key."""
    regressed: str | None = Field(default=None, pattern=r"^[A-Za-z0-9+/=]{0,2700}$")
    """Which cases were regressions: four bytes of each one's digest, in base64. None where that is not known."""
    regressed_at: str | None = Field(default=None, pattern=r"^[0-9a-f]{7,64}$")
    """The commit whose regressions these are, where it is an earlier one: this one could not be judged."""
    gate: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._-]{1,200}$")
    """Whose comment it is, of several gates that were given one key; None where an older version wrote it."""
    judged: tuple[int, int] | None = None
    """Run and attempt that made the result, where another run published it."""


class Sticky(FrozenStruct):
    """Our comment as it is now."""

    id: int
    url: str
    state: CommentState | None
    body: str = ""
    node_id: str = ""
    hidden: bool = False
    """Whether somebody has hidden it: then only a line of it is shown."""


class PullThread(FrozenStruct):
    """A pull request's head and base, whether it is open, and our comments: one, or none, or more for a moment."""

    head_sha: str
    is_open: bool
    ours: tuple[Sticky, ...] = ()
    """The newest first; of those of the newest page with any."""
    base_ref: str = ""

    @property
    def sticky(self) -> Sticky | None:
        """Our comment."""
        return self.ours[0] if self.ours else None


Belongs = Callable[[CommentState | None], bool]
"""Whether a comment with this memory is the gate's own, of all that have its key."""


class _Node(OwnText):
    database_id: int | None = Field(default=None, alias="databaseId")
    node_id: str = Field(default="", alias="id")
    hidden: bool = Field(default=False, alias="isMinimized")

    @property
    def number(self) -> int:
        """From the address: GraphQL's number has 32 bits, and comments have outgrown them."""
        match = _ADDRESS.search(self.url)
        return int(match[1]) if match else self.database_id or 0


class CommentPage(ApiAnswer):
    """Whether comments come before those of this page, and how they are asked for."""

    earlier: bool = Field(alias="hasPreviousPage")
    cursor: str | None = Field(default=None, alias="startCursor")


class _Comments(ApiAnswer):
    page: CommentPage = Field(alias="pageInfo")
    nodes: tuple[_Node, ...]


class _Pull(ApiAnswer):
    state: str
    head: str = Field(alias="headRefOid")
    base: str = Field(default="", alias="baseRefName")
    comments: _Comments


class _Repository(ApiAnswer):
    pull: _Pull | None = Field(alias="pullRequest")


class _Answer(ApiAnswer):
    repository: _Repository | None


class _Written(ApiAnswer):
    id: int
    html_url: str = ""


_ANY: Final = "<!-- eval-gate:v1 key="


def marker(key: str) -> str:
    """The first line of our comment. `key` holds only `A-Za-z0-9._-`."""
    return f"{_ANY}{key} -->"


def read_conversation(client: Client, number: int, key: str, belongs: Belongs = lambda _: True) -> PullThread:
    """The pull request and our comment, however many others there are. Raises GitHubError."""
    pull = None
    for pull in _pages(client, number):
        ours = [one for one in reversed(pull.comments.nodes) if one.is_ours(marker(key))]
        found = [one for one in map(_sticky, ours) if belongs(one.state)]
        if found:
            return PullThread(pull.head, pull.state == "OPEN", tuple(found), pull.base)
    assert pull is not None  # there is a page even without a comment
    return PullThread(pull.head, pull.state == "OPEN", (), pull.base)


def has_commented(client: Client, number: int, belongs: Belongs) -> bool:
    """Whether a comment of ours with such a memory is there, whatever its key. Raises GitHubError."""
    nodes = (one for pull in _pages(client, number) for one in pull.comments.nodes)
    return any(one.is_ours(_ANY) and belongs(_sticky(one).state) for one in nodes)


def write_comment(
    client: Client, number: int, key: str, body: str, sticky: Sticky | None, belongs: Belongs = lambda _: True
) -> Sticky:
    """Update our comment, or make it, never twice: after a lost answer it is looked for first. Raises GitHubError.

    Two runs at once may each make one: who has written looks again, and leaves one (`delete_comment`).
    """
    if sticky is not None:
        try:
            doing = f"updating the comment on #{number}"
            path = f"/issues/comments/{sticky.id}"
            return _done(client.patch(doing, path, {"body": body}, _Written, permission=PERMISSION))
        except GitHubError as error:
            if error.kind not in {FailureKind.NOT_FOUND, FailureKind.GONE}:
                raise
            # somebody deleted it meanwhile: make it anew

    def made() -> _Written | None:
        found = read_conversation(client, number, key, belongs).sticky
        return _Written(id=found.id, html_url=found.url) if found and found != sticky else None

    path = f"/issues/{number}/comments"
    doing = f"writing the comment on #{number}"
    return _done(client.post(doing, path, {"body": body}, _Written, permission=PERMISSION, made=made))


def delete_comment(client: Client, number: int, comment: Sticky) -> None:
    """Take a comment of ours away; somebody else may have done so already. Raises GitHubError."""
    doing = f"deleting a second comment on #{number}"
    client.delete(doing, f"/issues/comments/{comment.id}", permission=PERMISSION)


def show_comment(client: Client, number: int, comment: Sticky) -> None:
    """Have a hidden comment shown again. Raises GitHubError."""
    doing = f"showing the comment on #{number}, which somebody has hidden"
    client.graphql(doing, _SHOW, {"id": comment.node_id}, permission=PERMISSION)


def _pages(client: Client, number: int) -> Iterator[_Pull]:
    """The pull request with a page of comments, the newest first, as often as there are more."""
    owner, _, name = client.repository.partition("/")
    doing = f"looking for the comment on #{number}"
    before: str | None = None
    for _ in range(MAX_PAGES):
        variables: dict[str, JsonValue] = {"owner": owner, "name": name, "number": number, "before": before}
        data = client.graphql(doing, _QUERY, variables, permission=PERMISSION)
        repository = parsed(_Answer, data, doing).repository
        if repository is None or repository.pull is None:
            raise GitHubError(FailureKind.NOT_FOUND, doing, "there is no such pull request")
        yield repository.pull
        if not repository.pull.comments.page.earlier:
            return
        before = repository.pull.comments.page.cursor


def _sticky(node: _Node) -> Sticky:
    return Sticky(node.number, node.url, state_in(CommentState, node.body), node.body, node.node_id, node.hidden)


def _done(written: _Written) -> Sticky:
    return Sticky(written.id, written.html_url, None)
