"""Waivers given by commands in pull request comments.

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

from eval_gate.gate.waivers.waive_command import USAGE, MalformedCommand, WaiveCommand, parse_commands
from eval_gate.gate.waivers.waiver_file import KnownWaivers
from eval_gate.github.client import PER_PAGE, ApiResponse, GitHubClient, parse_response
from eval_gate.github.comments import CommentPage
from eval_gate.github.commits import PULLS
from eval_gate.github.failure import FailureKind, GitHubError, find_or_none
from eval_gate.model import limits
from eval_gate.model.waiver import MAX_WAIVER_DAYS, CommentOrigin, RefusedCommand, Waiver, WaiverKind
from eval_gate.struct import FrozenStruct, Struct, field
from eval_gate.text.renamed import NameKind, find_old_name

DEFAULT_LABEL: Final = "eval-gate:waive"
DEFAULT_DAYS: Final = 14
"""How long a command holds that names no day, from the day of its comment."""
MAX_COMMENTS: Final = 30
"""Comments with commands that are looked at."""
MAX_REFUSALS: Final = 10
_INSIDER_ASSOCIATIONS: Final = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
MAX_PAGES: Final = limits.WAIVER_PAGES
"""Pages of a hundred comments that are looked through, newest first."""
PERSON: Final = "User"
"""The kind of an account that is a person's; there are also bots, apps, organizations and placeholders."""
_OWN_COMMENT_PREFIX: Final = "<!-- eval-gate:"
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
    """Pull request whose comments are read, the evaluated commit, and the current day (UTC)."""

    number: int
    commit: str
    today: date
    label: str = DEFAULT_LABEL


def read_comment_waivers(client: GitHubClient, discussion: Discussion) -> KnownWaivers:
    """Read the waivers from comments of the pull request, including those that have expired since.

    Never raises GitHubError: after a failure, comments waive nothing, and the result says why.
    """
    try:
        found = find_command_comments(client, discussion.number, discussion.label, discussion.today)
    except GitHubError as error:
        return _build_empty(discussion, f"no case is waived by comment, because comments could not be read: {error}")
    if found.old_label:
        return _build_empty(
            discussion,
            f"no case is waived by comment: the label `{found.old_label}` is now called `{discussion.label}`",
        )
    if found.has_label:
        return _CommentReview(client, discussion, found).review_all()
    if any(isinstance(one, WaiveCommand) for candidate in found.candidates for one in candidate.commands):
        return _build_empty(discussion, f"no case is waived by comment without the label `{discussion.label}`")
    return KnownWaivers(discussion.today)  # nobody waits for a sentence


def _build_empty(discussion: Discussion, why: str) -> KnownWaivers:
    return KnownWaivers(discussion.today, troubles=(why,))


class _CommentReview:
    """Review of the comments: the commands that count, and messages about the others."""

    def __init__(self, client: GitHubClient, discussion: Discussion, found: CommandComments) -> None:
        self._rights = PermissionLookup(client)
        self._asked = discussion
        self._found = found
        self._waivers: list[Waiver] = []
        self._refusals: list[RefusedCommand] = []
        self._troubles: list[str] = []

    def review_all(self) -> KnownWaivers:
        """Those near to the repository come first: nobody else can use up the questions."""
        ordered = sorted(self._found.candidates, key=lambda one: one.comment.association not in _INSIDER_ASSOCIATIONS)
        heard = ordered[:MAX_COMMENTS]
        if self._found.is_truncated:
            self._troubles.append(f"only the newest {MAX_PAGES * PER_PAGE:,} comments were read")
        if not ordered:
            said = f"the label `{self._asked.label}` is set, but no comment waives a case: write `{USAGE}`"
            self._troubles.append(said)
        if len(ordered) > MAX_COMMENTS:
            self._troubles.append(f"only {MAX_COMMENTS} of {len(ordered):,} comments with commands were read")
        for place, candidate in enumerate(heard):
            try:
                self._review_comment(candidate)
            except GitHubError as error:
                left = len(heard) - place
                comments = "comment with commands is" if left == 1 else "comments with commands are"
                self._troubles.append(f"{left} {comments} ignored: {error}")
                break
        if (more := len(self._refusals) - MAX_REFUSALS) > 0:
            self._troubles.append(f"{more} more command{'s were' if more > 1 else ' was'} refused")
        return KnownWaivers(
            self._asked.today,
            tuple(self._waivers),
            refusals=tuple(self._refusals[:MAX_REFUSALS]),
            troubles=tuple(self._troubles),
        )

    def _review_comment(self, candidate: CommandCandidate) -> None:
        comment, good = candidate.comment, []
        if why_not := _find_comment_refusal(comment):
            self._add_refusal(comment, why_not)
            return
        for command in candidate.commands:
            if why_not := self._find_command_refusal(comment, command):
                self._add_refusal(comment, why_not)
            elif isinstance(command, WaiveCommand):
                good.append(command)
        if not good:
            return
        if why_not := self._rights.find_refusal(comment):
            self._add_refusal(comment, why_not)
        else:
            self._waivers += [waiver for command in good for waiver in _iter_waivers(comment, command)]

    def _add_refusal(self, comment: PullRequestComment, sentence: str) -> None:
        self._refusals.append(RefusedCommand(author=comment.login, url=comment.url, message=sentence))

    def _find_command_refusal(
        self, comment: PullRequestComment, command: WaiveCommand | MalformedCommand
    ) -> str | None:
        """Why this command does not count here, whoever gave it."""
        if isinstance(command, MalformedCommand):
            return command.message
        if command.commit is None and self._found.from_fork:
            return f"a command on a pull request from a fork must name the commit: add `at {self._asked.commit}`"
        if command.commit not in {None, self._asked.commit}:
            return f"it is for the commit {command.commit}, but this run evaluates {self._asked.commit}"
        if not 0 <= (_get_expiry(comment, command) - comment.day).days <= MAX_WAIVER_DAYS:
            return f"{command.until} is not within {MAX_WAIVER_DAYS} days of the comment ({comment.day})"
        return None


def _find_comment_refusal(comment: PullRequestComment) -> str | None:
    """Why no command of this comment counts."""
    if comment.author is None:
        return "the account of its author was deleted"
    if not comment.is_by_person:
        return "a bot cannot waive cases"
    if comment.hidden:
        return "the comment is hidden"
    if comment.is_edited_by_other:
        return "another person edited it: write a new comment"
    return None


def _get_expiry(comment: PullRequestComment, command: WaiveCommand) -> date:
    return command.until or comment.day + timedelta(days=DEFAULT_DAYS)


def _iter_waivers(comment: PullRequestComment, command: WaiveCommand) -> Iterator[Waiver]:
    origin = CommentOrigin(author=comment.login, url=comment.url, written_at=comment.written_at, commit=command.commit)
    until = _get_expiry(comment, command)
    for case in command.cases:
        yield Waiver(
            kind=WaiverKind.WAIVER, case=case, reason=command.reason, until=until, owner=comment.login, origin=origin
        )


class CommentActor(ApiResponse):
    """Author or editor of a comment."""

    kind: str = Field(alias="__typename")
    login: str


class PullRequestComment(ApiResponse):
    """Comment as it is now. `author` is None for a deleted account, `editor` also for no editor."""

    author: CommentActor | None
    association: str = Field(default="NONE", alias="authorAssociation")
    """What its author is to the repository: a hint, and no proof of any right."""
    body: str
    url: str
    created: AwareDatetime = Field(alias="createdAt")
    hidden: bool = Field(alias="isMinimized")
    edited: AwareDatetime | None = Field(alias="lastEditedAt")
    editor: CommentActor | None

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
        """Whether anybody but its author changed it last, or nobody knows who."""
        return self.edited is not None and (self.editor is None or self.editor != self.author)


class _Comments(ApiResponse):
    page: CommentPage = Field(alias="pageInfo")
    nodes: tuple[PullRequestComment, ...]


class _Label(ApiResponse):
    name: str


class _Labels(ApiResponse):
    nodes: tuple[_Label, ...] = ()


class _NamedRepository(ApiResponse):
    name: str = Field(alias="nameWithOwner")


class _Pull(ApiResponse):
    head: _NamedRepository | None = Field(alias="headRepository")
    labels: _Labels | None
    comments: _Comments


class _Repository(_NamedRepository):
    pull: _Pull | None = Field(alias="pullRequest")


class _QueryResponse(ApiResponse):
    repository: _Repository | None


class CommandCandidate(FrozenStruct):
    """Comment with the waiver commands found in it, well-formed or not."""

    comment: PullRequestComment
    commands: tuple[WaiveCommand | MalformedCommand, ...]


class CommandComments(Struct):
    """Comments with commands on a pull request. `is_truncated`: more comments exist than are read."""

    has_label: bool
    from_fork: bool
    old_label: str | None = None
    """The old name of the label, where the pull request has that one only."""
    candidates: list[CommandCandidate] = field(default_factory=list)
    is_truncated: bool = False


def find_command_comments(client: GitHubClient, number: int, label: str, today: date) -> CommandComments:
    """As many pages as may hold what still counts on this day; one where the label is missing. Raises GitHubError."""
    oldest = today - timedelta(days=MAX_WAIVER_DAYS)
    name, pull = _read_page(client, number, None)
    labels = {one.name.casefold() for one in (pull.labels.nodes if pull.labels else ())}
    old = find_old_name(NameKind.LABEL, label)
    has_label = label.casefold() in labels
    found = CommandComments(
        has_label,
        pull.head is None or pull.head.name != name,
        old if old in labels and not has_label else None,
    )
    for page in range(1, MAX_PAGES + 1):
        comments = pull.comments
        found.candidates += _list_candidates(comments.nodes, oldest)
        over = not comments.page.earlier or any(one.day < oldest for one in comments.nodes)
        if over or not found.has_label:
            break
        found.is_truncated = page == MAX_PAGES
        if not found.is_truncated:
            _, pull = _read_page(client, number, comments.page.cursor)
    return found


def _read_page(client: GitHubClient, number: int, before: str | None) -> tuple[str, _Pull]:
    """Fetch the repository's name and one page of comments of the pull request.

    Raises GitHubError.
    """
    owner, _, name = client.repository.partition("/")
    doing = f"reading the comments on #{number}"
    variables: dict[str, JsonValue] = {"owner": owner, "name": name, "number": number, "before": before}
    repository = parse_response(
        _QueryResponse, client.run_graphql(doing, _QUERY, variables, permission=PULLS), doing
    ).repository
    if repository is None or repository.pull is None:
        raise GitHubError(FailureKind.NOT_FOUND, doing, "there is no such pull request")
    return repository.name, repository.pull


def _list_candidates(comments: Iterable[PullRequestComment], oldest: date) -> list[CommandCandidate]:
    recent = [one for one in comments if one.day >= oldest and not one.body.startswith(_OWN_COMMENT_PREFIX)]
    found = [CommandCandidate(one, _parse_commands(one)) for one in reversed(recent)]
    return [one for one in found if one.commands]


def _parse_commands(comment: PullRequestComment) -> tuple[WaiveCommand | MalformedCommand, ...]:
    """Parse the waive commands of a comment, without the malformed commands of bots.

    Many bots quote comments, so a malformed command of theirs gets no reply.
    """
    found = parse_commands(comment.body)
    return found if comment.is_by_person else tuple(one for one in found if isinstance(one, WaiveCommand))


class _User(ApiResponse):
    login: str
    type: str


class _App(ApiResponse):
    slug: str | None = None


class _RestComment(ApiResponse):
    user: _User | None
    app: _App | None = Field(default=None, alias="performed_via_github_app")


class _PermissionResponse(ApiResponse):
    permission: str
    user: _User | None


class PermissionLookup:
    """Lookup of people's permissions on the repository, once per person."""

    def __init__(self, client: GitHubClient) -> None:
        self._client = client
        self._roles: dict[str, str] = {}

    def find_refusal(self, comment: PullRequestComment) -> str | None:
        """Why this comment's author may not accept, as a sentence; None when they may. Raises GitHubError."""
        key = comment.login.casefold()
        if key not in self._roles:
            if len(self._roles) >= MAX_PEOPLE:
                return f"the access of {comment.login} was not checked: the limit is {MAX_PEOPLE} people"
            self._roles[key] = self._fetch_role(comment.login)
        if self._roles[key] not in _WRITE:
            return f"waiving needs write access to the repository, and {comment.login} has `{self._roles[key]}`"
        return self._find_app_refusal(comment)

    def _fetch_role(self, login: str) -> str:
        """In GitHub's word, which maps every role of an organization to one of a few."""
        path = f"/collaborators/{quote(login, safe='')}/permission"
        doing = f"checking the access of {login[:60]}"
        found = find_or_none(lambda: self._client.get(doing, path, _PermissionResponse, permission=METADATA))
        return found.permission if found is not None and _is_person(found.user, login) else "none"

    def _find_app_refusal(self, comment: PullRequestComment) -> str | None:
        """Return why a comment may not waive because of an app or an unconfirmed author, or None.

        An app can write in a person's name, and only GitHub's REST API shows that. Raises GitHubError.
        """
        match = _ADDRESS.search(comment.url)
        if match is None:
            return "GitHub gives no address for this comment"
        doing = f"reading comment {match[1]}"
        try:
            written = self._client.get(doing, f"/issues/comments/{match[1]}", _RestComment, permission=PULLS)
        except GitHubError as error:
            if error.kind in {FailureKind.NOT_FOUND, FailureKind.GONE}:
                return "it was deleted"
            raise
        if not _is_person(written.user, comment.login):
            return "GitHub does not confirm who wrote it"
        if written.app is not None:
            return f"it was written by the app `{written.app.slug}`, and only people can waive cases"
        return None


def _is_person(user: _User | None, login: str) -> bool:
    """Whether this is the person of that login, and a person."""
    return user is not None and user.type == PERSON and user.login.casefold() == login.casefold()
