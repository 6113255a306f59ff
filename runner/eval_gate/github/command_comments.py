"""Comments of a pull request as they are now, and whether their author may give commands.

A comment counts if GitHub confirms all of this:

- it is not hidden, and its author edited it last;
- its author is a person who may write to the repository now, and wrote it without an app in between.

`author_association` is no proof of a right. It only decides the order of the requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from pydantic import Field

from eval_gate.github.client import ApiResponse, GitHubClient
from eval_gate.github.comments import PERSON, CommentedPull, PullRequestComment, iter_comment_pages
from eval_gate.github.commits import PULLS
from eval_gate.github.failure import FailureKind, GitHubError, find_or_none
from eval_gate.model import limits

MAX_PAGES: Final = limits.WAIVER_PAGES
"""Pages of a hundred comments that are looked through, newest first."""
MAX_PEOPLE: Final = 10
"""People whose rights are asked for."""
METADATA: Final = "metadata: read"
"""The permission that the question takes; every token of a workflow has it."""
_WRITE: Final = frozenset({"admin", "maintain", "write"})


def iter_pages(client: GitHubClient, number: int) -> Iterator[tuple[str, CommentedPull]]:
    """Yield the repository's name and the pull request with each page of its comments that may hold commands."""
    return iter_comment_pages(client, number, f"reading the comments on #{number}", PULLS, MAX_PAGES)


def find_comment(client: GitHubClient, number: int, comment_id: int) -> PullRequestComment | None:
    """Find a comment of the pull request as it is now, or return None if it is gone. Raises GitHubError."""
    pages = iter_pages(client, number)
    return next((one for _, pull in pages for one in pull.comments.nodes if one.number == comment_id), None)


def find_comment_refusal(comment: PullRequestComment) -> str | None:
    """Return why no command of this comment counts, regardless of its author; None if one may count."""
    if comment.author is None:
        return "the account of its author was deleted"
    if not comment.is_by_person:
        return "a bot cannot give commands"
    if comment.is_hidden:
        return "the comment is hidden"
    if comment.is_edited_by_other:
        return "another person edited it: write a new comment"
    return None


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
        """Return why this comment's author may not give commands, as a sentence, or None. Raises GitHubError."""
        key = comment.login.casefold()
        if key not in self._roles:
            if len(self._roles) >= MAX_PEOPLE:
                return f"the access of {comment.login} was not checked: the limit is {MAX_PEOPLE} people"
            self._roles[key] = self._fetch_role(comment.login)
        if self._roles[key] not in _WRITE:
            return f"commands need write access to the repository, and {comment.login} has `{self._roles[key]}`"
        return self._find_app_refusal(comment)

    def _fetch_role(self, login: str) -> str:
        """Fetch the permission of a person: GitHub maps every role of an organization to one of a few."""
        path = f"/collaborators/{quote(login, safe='')}/permission"
        doing = f"checking the access of {login[:60]}"
        response = find_or_none(lambda: self._client.get(doing, path, _PermissionResponse, permission=METADATA))
        return response.permission if response is not None and _is_person(response.user, login) else "none"

    def _find_app_refusal(self, comment: PullRequestComment) -> str | None:
        """Return why a comment may not command: only the REST API shows that an app wrote it in a person's name."""
        number = comment.number
        if number is None:
            return "GitHub gives no address for this comment"
        doing = f"reading comment {number}"
        try:
            rest_comment = self._client.get(doing, f"/issues/comments/{number}", _RestComment, permission=PULLS)
        except GitHubError as error:
            if error.kind in {FailureKind.NOT_FOUND, FailureKind.GONE}:
                return "it was deleted"
            raise
        if not _is_person(rest_comment.user, comment.login):
            return "GitHub does not confirm who wrote it"
        if rest_comment.app is not None:
            return f"it was written by the app `{rest_comment.app.slug}`, and only people can give commands"
        return None


def _is_person(user: _User | None, login: str) -> bool:
    """Whether this is the person of that login, and a person."""
    return user is not None and user.type == PERSON and user.login.casefold() == login.casefold()
