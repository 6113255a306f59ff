"""The comments of a pull request that hold something like a command, newest first, and whether it has the label."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, timedelta
from typing import Final

from pydantic import AwareDatetime, Field, JsonValue

from eval_gate.gate.waivers.command import AcceptCommand, MalformedCommand, commands_in
from eval_gate.github.client import ApiAnswer, Client, parsed
from eval_gate.github.comments import CommentPage
from eval_gate.github.commits import PULLS
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.model import limits
from eval_gate.model.waiver import MAX_DAYS
from eval_gate.struct import FrozenStruct, Struct, field

MAX_PAGES: Final = limits.WAIVER_PAGES
"""Pages of a hundred comments that are looked through, newest first."""
PERSON: Final = "User"
"""The kind of an account that is a person's; there are also bots, apps, organizations and placeholders."""
_OURS: Final = "<!-- eval-gate:"
"""How our own comment begins: it shows a command to copy, under whatever name the token has."""
_QUERY: Final = """
query($owner: String!, $name: String!, $number: Int!, $before: String) {
  repository(owner: $owner, name: $name) {
    nameWithOwner
    pullRequest(number: $number) {
      headRepository { nameWithOwner }
      labels(first: 100) { nodes { name } }
      comments(last: 100, before: $before) {
        pageInfo { hasPreviousPage startCursor }
        nodes {
          author { __typename login } authorAssociation body url createdAt isMinimized
          lastEditedAt editor { __typename login }
        }
      }
    }
  }
}
"""
"""A bot's login is a person's name in GraphQL, so the kind of an author is asked for as well."""


class Actor(ApiAnswer):
    """Somebody who wrote or edited."""

    kind: str = Field(alias="__typename")
    login: str


class Comment(ApiAnswer):
    """A comment as it is now. `author` is None where the account is gone, `editor` where there is none or is gone."""

    author: Actor | None
    association: str = Field("NONE", alias="authorAssociation")
    """What its author is to the repository: a hint, and no proof of any right."""
    body: str
    url: str
    created: AwareDatetime = Field(alias="createdAt")
    hidden: bool = Field(alias="isMinimized")
    edited: AwareDatetime | None = Field(alias="lastEditedAt")
    editor: Actor | None

    @property
    def day(self) -> date:
        """When it was written, in UTC."""
        return self.created.astimezone(UTC).date()

    @property
    def written(self) -> str:
        """When it was written, as GitHub writes it."""
        return self.created.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def login(self) -> str:
        """Its author's; empty where the account is gone."""
        return self.author.login if self.author else ""

    @property
    def by_person(self) -> bool:
        """Whether a person is its author, or was."""
        return self.author is None or self.author.kind == PERSON

    @property
    def edited_by_another(self) -> bool:
        """Whether anybody but its author changed it last, or nobody knows who."""
        return self.edited is not None and (self.editor is None or self.editor != self.author)


class _Comments(ApiAnswer):
    page: CommentPage = Field(alias="pageInfo")
    nodes: tuple[Comment, ...]


class _Label(ApiAnswer):
    name: str


class _Labels(ApiAnswer):
    nodes: tuple[_Label, ...] = ()


class _Named(ApiAnswer):
    name: str = Field(alias="nameWithOwner")


class _Pull(ApiAnswer):
    head: _Named | None = Field(alias="headRepository")
    labels: _Labels | None
    comments: _Comments


class _Repository(_Named):
    pull: _Pull | None = Field(alias="pullRequest")


class _Answer(ApiAnswer):
    repository: _Repository | None


class Candidate(FrozenStruct):
    """A comment, and what in it is a command or looks like one."""

    comment: Comment
    commands: tuple[AcceptCommand | MalformedCommand, ...]


class CommandComments(Struct):
    """What the pull request has. `cut` says that there were more comments than are looked at."""

    labelled: bool
    from_fork: bool
    candidates: list[Candidate] = field(default_factory=list)
    cut: bool = False


def find_commands(client: Client, number: int, label: str, today: date) -> CommandComments:
    """As many pages as may hold what still counts on this day; one where the label is missing. Raises GitHubError."""
    oldest = today - timedelta(days=MAX_DAYS)
    name, pull = _read(client, number, None)
    labels = {one.name.casefold() for one in (pull.labels.nodes if pull.labels else ())}
    found = CommandComments(label.casefold() in labels, pull.head is None or pull.head.name != name)
    for page in range(1, MAX_PAGES + 1):
        comments = pull.comments
        found.candidates += _candidates(comments.nodes, oldest)
        over = not comments.page.earlier or any(one.day < oldest for one in comments.nodes)
        if over or not found.labelled:
            break
        found.cut = page == MAX_PAGES
        if not found.cut:
            _, pull = _read(client, number, comments.page.cursor)
    return found


def _read(client: Client, number: int, before: str | None) -> tuple[str, _Pull]:
    """The repository's name and a page of the pull request."""
    owner, _, name = client.repository.partition("/")
    doing = f"reading the comments on #{number}"
    variables: dict[str, JsonValue] = {"owner": owner, "name": name, "number": number, "before": before}
    repository = parsed(_Answer, client.graphql(doing, _QUERY, variables, permission=PULLS), doing).repository
    if repository is None or repository.pull is None:
        raise GitHubError(FailureKind.NOT_FOUND, doing, "there is no such pull request")
    return repository.name, repository.pull


def _candidates(comments: Iterable[Comment], oldest: date) -> list[Candidate]:
    recent = [one for one in comments if one.day >= oldest and not one.body.startswith(_OURS)]
    found = [Candidate(one, _commands(one)) for one in reversed(recent)]
    return [one for one in found if one.commands]


def _commands(comment: Comment) -> tuple[AcceptCommand | MalformedCommand, ...]:
    """A bot gets no sentence about what only looks like a command: many of them quote."""
    found = commands_in(comment.body)
    return found if comment.by_person else tuple(one for one in found if isinstance(one, AcceptCommand))
