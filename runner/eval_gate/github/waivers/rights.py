"""Who may accept failures: a person who may write to the repository now, and who wrote the comment by hand."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from pydantic import Field

from eval_gate.github.client import ApiAnswer, Client
from eval_gate.github.commits import PULLS
from eval_gate.github.failure import FailureKind, GitHubError, if_there
from eval_gate.github.waivers.comments import PERSON, Comment

MAX_PEOPLE: Final = 10
"""People whose rights are asked for."""
METADATA: Final = "metadata: read"
"""The permission that the question takes; every token of a workflow has it."""
_WRITE: Final = frozenset({"admin", "maintain", "write"})
_ADDRESS: Final = re.compile(r"#issuecomment-(\d{1,18})\Z", re.ASCII)


class _User(ApiAnswer):
    login: str
    type: str


class _App(ApiAnswer):
    slug: str | None = None


class _Written(ApiAnswer):
    user: _User | None
    app: _App | None = Field(None, alias="performed_via_github_app")


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
