"""Failures accepted in comments on a pull request.

A comment counts when all of this holds, and each of it is asked of GitHub:

- the pull request has the label: one switch that everybody sees, and that ends all of it at once;
- the comment begins with a command, is not hidden, and nobody but its author edited it last;
- its author is a person who may write to the repository now, and wrote it without an app in between;
- on a pull request from a fork it names the commit, because its author could change the code afterwards. Whoever can do
  that on a branch of the repository may accept as well.

`author_association` is no proof of a right. It only decides who is asked about first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, timedelta
from typing import Final
from urllib.parse import quote

from pydantic import AwareDatetime, Field, JsonValue

from eval_gate.gate.waivers.command import USAGE, AcceptCommand, MalformedCommand, commands_in
from eval_gate.gate.waivers.file import KnownWaivers
from eval_gate.github.client import PER_PAGE, ApiAnswer, Client, parsed
from eval_gate.github.comments import CommentPage
from eval_gate.github.commits import PULLS
from eval_gate.github.failure import FailureKind, GitHubError, if_there
from eval_gate.model import limits
from eval_gate.model.waiver import MAX_DAYS, CommentOrigin, RefusedCommand, Waiver, WaiverKind
from eval_gate.struct import FrozenStruct, Struct, field

LABEL: Final = "eval-gate:accept"
DEFAULT_DAYS: Final = 14
"""How long a command holds that names no day, from the day of its comment."""
MAX_COMMENTS: Final = 30
"""Comments with commands that are looked at."""
MAX_REFUSALS: Final = 10
_NEAR: Final = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
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
MAX_PEOPLE: Final = 10
"""People whose rights are asked for."""
METADATA: Final = "metadata: read"
"""The permission that the question takes; every token of a workflow has it."""
_WRITE: Final = frozenset({"admin", "maintain", "write"})
_ADDRESS: Final = re.compile(r"#issuecomment-(\d{1,18})\Z", re.ASCII)


class Discussion(FrozenStruct):
    """The pull request whose comments are read, the evaluated commit, and on which day (UTC)."""

    number: int
    commit: str
    today: date
    label: str = LABEL


def read_comment_waivers(client: Client, asked: Discussion) -> KnownWaivers:
    """What is accepted in comments of the pull request; what has expired since is among it.

    Never raises GitHubError: a failure accepts nothing, and is said.
    """
    try:
        found = find_commands(client, asked.number, asked.label, asked.today)
    except GitHubError as error:
        return _nothing(asked, f"nothing is accepted by comment, because comments could not be read: {error}")
    if found.labelled:
        return _Hearing(client, asked, found).all()
    if any(isinstance(one, AcceptCommand) for candidate in found.candidates for one in candidate.commands):
        return _nothing(asked, f"nothing is accepted by comment without the label `{asked.label}`")
    return KnownWaivers(asked.today)  # nobody waits for a sentence


def _nothing(asked: Discussion, why: str) -> KnownWaivers:
    return KnownWaivers(asked.today, troubles=(why,))


class _Hearing:
    """Comment by comment: what counts, and what to say about the rest."""

    def __init__(self, client: Client, asked: Discussion, found: CommandComments) -> None:
        self._rights = Rights(client)
        self._asked = asked
        self._found = found
        self._waivers: list[Waiver] = []
        self._refusals: list[RefusedCommand] = []
        self._troubles: list[str] = []

    def all(self) -> KnownWaivers:
        """Those near to the repository come first: nobody else can use up the questions."""
        ordered = sorted(self._found.candidates, key=lambda one: one.comment.association not in _NEAR)
        heard = ordered[:MAX_COMMENTS]
        if self._found.cut:
            self._troubles.append(f"only the newest {MAX_PAGES * PER_PAGE:,} comments were looked at")
        if not ordered:
            said = f"the label `{self._asked.label}` is set, and no comment accepts anything: write `{USAGE}`"
            self._troubles.append(said)
        if len(ordered) > MAX_COMMENTS:
            self._troubles.append(f"only {MAX_COMMENTS} of {len(ordered):,} comments with commands were looked at")
        for place, candidate in enumerate(heard):
            try:
                self._hear(candidate)
            except GitHubError as error:
                left = len(heard) - place
                comments = "comment with commands counts" if left == 1 else "comments with commands count"
                self._troubles.append(f"{left} {comments} for nothing: {error}")
                break
        if (more := len(self._refusals) - MAX_REFUSALS) > 0:
            self._troubles.append(f"{more} more command{'s were' if more > 1 else ' was'} not followed")
        return KnownWaivers(
            self._asked.today,
            tuple(self._waivers),
            refusals=tuple(self._refusals[:MAX_REFUSALS]),
            troubles=tuple(self._troubles),
        )

    def _hear(self, candidate: Candidate) -> None:
        comment, good = candidate.comment, []
        if why_not := _refusal(comment):
            self._refuse(comment, why_not)
            return
        for command in candidate.commands:
            if why_not := self._refusal(comment, command):
                self._refuse(comment, why_not)
            elif isinstance(command, AcceptCommand):
                good.append(command)
        if not good:
            return
        if why_not := self._rights.refusal(comment):
            self._refuse(comment, why_not)
        else:
            self._waivers += [waiver for command in good for waiver in _waivers(comment, command)]

    def _refuse(self, comment: Comment, sentence: str) -> None:
        self._refusals.append(RefusedCommand(author=comment.login, url=comment.url, sentence=sentence))

    def _refusal(self, comment: Comment, command: AcceptCommand | MalformedCommand) -> str | None:
        """Why this command does not count here, whoever gave it."""
        if isinstance(command, MalformedCommand):
            return command.sentence
        if command.commit is None and self._found.from_fork:
            return f"on a pull request from a fork the commit is to be named: add `at {self._asked.commit}`"
        if command.commit not in {None, self._asked.commit}:
            return f"it is about the commit {command.commit}, and this one is {self._asked.commit}"
        if not 0 <= (_until(comment, command) - comment.day).days <= MAX_DAYS:
            return f"{command.until} is not within {MAX_DAYS} days of the comment, which is of {comment.day}"
        return None


def _refusal(comment: Comment) -> str | None:
    """Why no command of this comment counts."""
    if comment.author is None:
        return "its author's account is gone, so there is nobody who answers for it"
    if not comment.by_person:
        return "a bot accepts nothing"
    if comment.hidden:
        return "it is hidden"
    if comment.edited_by_another:
        return "somebody else edited it, so these may not be its author's words: write a new comment"
    return None


def _until(comment: Comment, command: AcceptCommand) -> date:
    return command.until or comment.day + timedelta(days=DEFAULT_DAYS)


def _waivers(comment: Comment, command: AcceptCommand) -> Iterator[Waiver]:
    origin = CommentOrigin(author=comment.login, url=comment.url, written=comment.written, commit=command.commit)
    until = _until(comment, command)
    for case in command.cases:
        yield Waiver(
            kind=WaiverKind.ACCEPTED, case=case, reason=command.reason, until=until, by=comment.login, origin=origin
        )


class Actor(ApiAnswer):
    """Somebody who wrote or edited."""

    kind: str = Field(alias="__typename")
    login: str


class Comment(ApiAnswer):
    """A comment as it is now. `author` is None where the account is gone, `editor` where there is none or is gone."""

    author: Actor | None
    association: str = Field(default="NONE", alias="authorAssociation")
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


class _User(ApiAnswer):
    login: str
    type: str


class _App(ApiAnswer):
    slug: str | None = None


class _Written(ApiAnswer):
    user: _User | None
    app: _App | None = Field(default=None, alias="performed_via_github_app")


class _Permission(ApiAnswer):
    permission: str
    user: _User | None


class Rights:
    """What people may do here; each is asked about once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._roles: dict[str, str] = {}

    def refusal(self, comment: Comment) -> str | None:
        """Why this comment's author may not accept, as a sentence; None when they may. Raises GitHubError."""
        key = comment.login.casefold()
        if key not in self._roles:
            if len(self._roles) >= MAX_PEOPLE:
                return f"what {comment.login} may do was not asked, after {MAX_PEOPLE} others"
            self._roles[key] = self._role(comment.login)
        if self._roles[key] not in _WRITE:
            return f"accepting takes write access to the repository, and {comment.login} has `{self._roles[key]}`"
        return self._not_by_hand(comment)

    def _role(self, login: str) -> str:
        """In GitHub's word, which maps every role of an organization to one of a few."""
        path = f"/collaborators/{quote(login, safe='')}/permission"
        doing = f"asking what {login[:60]} may do"
        found = if_there(lambda: self._client.get(doing, path, _Permission, permission=METADATA))
        return found.permission if found is not None and _is(found.user, login) else "none"

    def _not_by_hand(self, comment: Comment) -> str | None:
        """An app may write in a person's name, and only REST says so."""
        match = _ADDRESS.search(comment.url)
        if match is None:
            return "GitHub gives no address for this comment"
        doing = f"reading comment {match[1]}"
        try:
            written = self._client.get(doing, f"/issues/comments/{match[1]}", _Written, permission=PULLS)
        except GitHubError as error:
            if error.kind in {FailureKind.NOT_FOUND, FailureKind.GONE}:
                return "it is gone by now"
            raise
        if not _is(written.user, comment.login):
            return "GitHub does not confirm who wrote it"
        if written.app is not None:
            return f"it was written by the app `{written.app.slug}`, and accepting is for people, by hand"
        return None


def _is(user: _User | None, login: str) -> bool:
    """Whether this is the person of that login, and a person."""
    return user is not None and user.type == PERSON and user.login.casefold() == login.casefold()
