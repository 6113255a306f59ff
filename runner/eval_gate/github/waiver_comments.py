"""Waivers given by commands in pull request comments.

A waiver counts if its author may give commands (`command_comments`) and GitHub confirms all of this:

- the pull request has the label, a visible switch that ends all waivers by comment at once;
- the comment begins with a command;
- on a pull request from a fork it names the commit, because its author could change the code afterwards. Authors who
  can do that on a branch of the repository may waive cases as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from typing import Final

from eval_gate.gate.waivers.waive_command import (
    USAGE,
    CommandVerb,
    MalformedCommand,
    WaiveCommand,
    parse_commands,
)
from eval_gate.gate.waivers.waiver_file import KnownWaivers
from eval_gate.github.client import PER_PAGE, GitHubClient
from eval_gate.github.command_comments import (
    MAX_PAGES,
    PermissionLookup,
    find_comment_refusal,
    iter_pages,
)
from eval_gate.github.comments import PullRequestComment
from eval_gate.github.failure import GitHubError
from eval_gate.model.waiver import MAX_WAIVER_DAYS, CommentOrigin, RefusedCommand, Waiver, WaiverKind
from eval_gate.struct import FrozenStruct, Struct, field
from eval_gate.text.escape import format_count

DEFAULT_LABEL: Final = "eval-gate:waive"
DEFAULT_DAYS: Final = 14
"""How long a command holds that names no day, from the day of its comment."""
MAX_COMMENTS: Final = 30
"""Comments with commands that are looked at."""
MAX_REFUSALS: Final = 10
_INSIDER_ASSOCIATIONS: Final = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
_OWN_COMMENT_PREFIX: Final = "<!-- eval-gate:"
"""How our own comment begins: it shows a command to copy, under whatever name the token has."""


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
        thread = find_command_comments(client, discussion.number, discussion.label, discussion.today)
    except GitHubError as error:
        return _build_empty(discussion, f"no case is waived by comment, because comments could not be read: {error}")
    if thread.has_label:
        return _CommentReview(client, discussion, thread).review_all()
    if any(isinstance(one, WaiveCommand) for candidate in thread.candidates for one in candidate.commands):
        return _build_empty(discussion, f"no case is waived by comment without the label `{discussion.label}`")
    return KnownWaivers(discussion.today)  # without a command, no refusal is reported


def _build_empty(discussion: Discussion, why: str) -> KnownWaivers:
    return KnownWaivers(discussion.today, troubles=(why,))


class _CommentReview:
    """Review of the comments: the commands that count, and messages about the others."""

    def __init__(self, client: GitHubClient, discussion: Discussion, thread: CommandComments) -> None:
        self._rights = PermissionLookup(client)
        self._discussion = discussion
        self._thread = thread
        self._waivers: list[Waiver] = []
        self._refusals: list[RefusedCommand] = []
        self._troubles: list[str] = []

    def review_all(self) -> KnownWaivers:
        """Review comments of members first, so that other authors cannot use up the requests."""
        ordered = sorted(self._thread.candidates, key=lambda one: one.comment.association not in _INSIDER_ASSOCIATIONS)
        candidates = ordered[:MAX_COMMENTS]
        if self._thread.is_truncated:
            self._troubles.append(f"only the newest {MAX_PAGES * PER_PAGE:,} comments were read")
        if not ordered:
            trouble = f"the label `{self._discussion.label}` is set, but no comment waives a case: write `{USAGE}`"
            self._troubles.append(trouble)
        if len(ordered) > MAX_COMMENTS:
            self._troubles.append(f"only {MAX_COMMENTS} of {len(ordered):,} comments with commands were read")
        for place, candidate in enumerate(candidates):
            try:
                self._review_comment(candidate)
            except GitHubError as error:
                remaining = len(candidates) - place
                comments = format_count(remaining, "comment with commands is", "comments with commands are")
                self._troubles.append(f"{comments} ignored: {error}")
                break
        if (more := len(self._refusals) - MAX_REFUSALS) > 0:
            refused = format_count(more, "more command was refused", "more commands were refused")
            self._troubles.append(refused)
        return KnownWaivers(
            self._discussion.today,
            tuple(self._waivers),
            refusals=tuple(self._refusals[:MAX_REFUSALS]),
            troubles=tuple(self._troubles),
        )

    def _review_comment(self, candidate: CommandCandidate) -> None:
        comment, good = candidate.comment, []
        if why_not := find_comment_refusal(comment):
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
        if isinstance(command, MalformedCommand):
            return command.message
        if command.commit is None and self._thread.from_fork:
            return f"a command on a pull request from a fork must name the commit: add `at {self._discussion.commit}`"
        if command.commit not in {None, self._discussion.commit}:
            return f"it is for the commit {command.commit}, but this run evaluates {self._discussion.commit}"
        if not 0 <= (_get_expiry(comment, command) - comment.day).days <= MAX_WAIVER_DAYS:
            return f"{command.until} is not within {MAX_WAIVER_DAYS} days of the comment ({comment.day})"
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


class CommandCandidate(FrozenStruct):
    """Comment with the waiver commands found in it, well-formed or not."""

    comment: PullRequestComment
    commands: tuple[WaiveCommand | MalformedCommand, ...]


class CommandComments(Struct):
    """Comments with commands on a pull request. `is_truncated`: more comments exist than are read."""

    has_label: bool
    from_fork: bool
    candidates: list[CommandCandidate] = field(default_factory=list)
    is_truncated: bool = False


def find_command_comments(client: GitHubClient, number: int, label: str, today: date) -> CommandComments:
    """Find comments with commands that may still count today; without the label, on one page. Raises GitHubError."""
    oldest = today - timedelta(days=MAX_WAIVER_DAYS)
    comments = None
    for name, pull in iter_pages(client, number):
        if comments is None:
            labels = {one.name.casefold() for one in (pull.labels.nodes if pull.labels else ())}
            comments = CommandComments(label.casefold() in labels, pull.head is None or pull.head.name != name)
        comments.candidates += _list_candidates(pull.comments.nodes, oldest)
        is_complete = not comments.has_label or any(one.day < oldest for one in pull.comments.nodes)
        comments.is_truncated = pull.comments.page.earlier and not is_complete
        if is_complete:
            break
    assert comments is not None  # there is a page even without a comment
    return comments


def _list_candidates(comments: Iterable[PullRequestComment], oldest: date) -> list[CommandCandidate]:
    recent = [one for one in comments if one.day >= oldest and not one.body.startswith(_OWN_COMMENT_PREFIX)]
    candidates = [CommandCandidate(one, _parse_commands(one)) for one in reversed(recent)]
    return [one for one in candidates if one.commands]


def _parse_commands(comment: PullRequestComment) -> tuple[WaiveCommand | MalformedCommand, ...]:
    """Parse the waive commands, without malformed ones of bots: many quote comments, and they get no reply."""
    commands = [one for one in parse_commands(comment.body) if one.verb is not CommandVerb.REFRESH]
    return tuple(
        one
        for one in commands
        if isinstance(one, WaiveCommand) or (isinstance(one, MalformedCommand) and comment.is_by_person)
    )
