"""The one comment on a pull request: found by author, marker and key, and updated in place."""

from __future__ import annotations

import re
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
      comments(last: 100, before: $before) {
        pageInfo { hasPreviousPage startCursor }
        nodes { databaseId viewerDidAuthor body url }
      }
    }
  }
}
"""
"""Comments newest first."""


class CommentState(BaseModel):
    """What a comment remembers of the run that wrote it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    sha: str = Field(pattern=r"^[0-9a-f]{7,64}$")
    run_id: int
    attempt: int = 1
    outcome: str = Field(max_length=20)
    red_sha: str | None = Field(None, pattern=r"^[0-9a-f]{7,64}$")
    """The newest commit of the pull request whose result was red, until one is green."""
    leg: str | None = Field(None, pattern=LEG_PATTERN)
    """Which leg of a matrix it was, where several share the key."""
    regressed: str | None = Field(None, pattern=r"^[A-Za-z0-9+/=]{0,2700}$")
    """Which cases were regressions: four bytes of each one's digest, in base64. None where that is not known."""
    regressed_at: str | None = Field(None, pattern=r"^[0-9a-f]{7,64}$")
    """The commit whose regressions these are, where it is an earlier one: this one could not be judged."""


class Sticky(FrozenStruct):
    """Our comment as it is now."""

    id: int
    url: str
    state: CommentState | None


class PullThread(FrozenStruct):
    """A pull request's head, whether it is open, and our comment if there is one."""

    head_sha: str
    is_open: bool
    sticky: Sticky | None


class _Node(OwnText):
    database_id: int | None = Field(None, alias="databaseId")


class CommentPage(ApiAnswer):
    """Whether comments come before those of this page, and how they are asked for."""

    earlier: bool = Field(alias="hasPreviousPage")
    cursor: str | None = Field(None, alias="startCursor")


class _Comments(ApiAnswer):
    page: CommentPage = Field(alias="pageInfo")
    nodes: tuple[_Node, ...]


class _Pull(ApiAnswer):
    state: str
    head: str = Field(alias="headRefOid")
    comments: _Comments


class _Repository(ApiAnswer):
    pull: _Pull | None = Field(alias="pullRequest")


class _Answer(ApiAnswer):
    repository: _Repository | None


class _Written(ApiAnswer):
    id: int
    html_url: str = ""


def marker(key: str) -> str:
    """The first line of our comment. `key` holds only `A-Za-z0-9._-`."""
    return f"<!-- eval-gate:v1 key={key} -->"


def read_conversation(client: Client, number: int, key: str) -> PullThread:
    """The pull request and our comment, however many others there are. Raises GitHubError."""
    owner, _, name = client.repository.partition("/")
    doing = f"looking for the comment on #{number}"
    before: str | None = None
    for _ in range(MAX_PAGES):
        variables: dict[str, JsonValue] = {"owner": owner, "name": name, "number": number, "before": before}
        data = client.graphql(doing, _QUERY, variables, permission="pull-requests: read")
        repository = parsed(_Answer, data, doing).repository
        if repository is None or repository.pull is None:
            raise GitHubError(FailureKind.NOT_FOUND, doing, "there is no such pull request")
        pull = repository.pull
        ours = (one for one in reversed(pull.comments.nodes) if one.is_ours(marker(key)))
        sticky = next((Sticky(_id_of(one), one.url, state_in(CommentState, one.body)) for one in ours), None)
        if sticky is not None or not pull.comments.page.earlier:
            return PullThread(pull.head, pull.state == "OPEN", sticky)
        before = pull.comments.page.cursor
    return PullThread(pull.head, pull.state == "OPEN", None)


def write_comment(client: Client, number: int, key: str, body: str, sticky: Sticky | None) -> Sticky:
    """Update our comment, or make it, never twice: after a lost answer it is looked for first. Raises GitHubError."""
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
        found = read_conversation(client, number, key).sticky
        return _Written(id=found.id, html_url=found.url) if found and found != sticky else None

    path = f"/issues/{number}/comments"
    doing = f"writing the comment on #{number}"
    return _done(client.post(doing, path, {"body": body}, _Written, permission=PERMISSION, made=made))


def _done(written: _Written) -> Sticky:
    return Sticky(written.id, written.html_url, None)


def _id_of(node: _Node) -> int:
    """From the address: GraphQL's number has 32 bits, and comments have outgrown them."""
    match = _ADDRESS.search(node.url)
    return int(match[1]) if match else node.database_id or 0
