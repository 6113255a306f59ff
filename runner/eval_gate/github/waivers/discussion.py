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

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from eval_gate.gate.waivers.command import USAGE, AcceptCommand, MalformedCommand
from eval_gate.gate.waivers.file import KnownWaivers
from eval_gate.github.client import PER_PAGE, Client
from eval_gate.github.failure import GitHubError
from eval_gate.github.waivers.comments import MAX_PAGES, Candidate, CommandComments, Comment, find_commands
from eval_gate.github.waivers.rights import Rights
from eval_gate.model.waiver import MAX_DAYS, CommentOrigin, RefusedCommand, Waiver, WaiverKind
from eval_gate.struct import FrozenStruct

LABEL: Final = "eval-gate:accept"
DEFAULT_DAYS: Final = 14
"""How long a command holds that names no day, from the day of its comment."""
MAX_COMMENTS: Final = 30
"""Comments with commands that are looked at."""
MAX_REFUSALS: Final = 10
_NEAR: Final = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})


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
