"""One comment and one status of a gate on a pull request of another system than GitHub.

The rules are those of `action/publishing`: an old result never replaces a newer one, no comment of another account is
changed, and a failure is reported instead of changing the verdict.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import httpx
from pydantic import JsonValue

from eval_gate.files.certificates import load_ssl_context
from eval_gate.model.limits import REVIEW_PAGES, REVIEW_S
from eval_gate.struct import FrozenStruct, field
from eval_gate.text.dotted_path import PathError, get_by_path
from eval_gate.text.escape import to_one_line
from eval_gate.text.redaction import Redactor
from eval_gate.text.retry_after import parse_retry_after
from eval_gate.text.secret import Secret

ATTEMPTS: Final = 4
MAX_WAIT_S: Final = 60.0
PAGE_SIZE: Final = 50
MAX_MARKED: Final = 20
"""Comments with the gate's marker that are tried: strangers can write it too."""
_REFERENCES: Final = re.compile(
    r"(?P<link>\]\([^()\s]*\))|^[ \t>]*(?=/\w)|[!$&](?=\d)|(?:(?<!~)~|%|&#(?!8203;|46;|95;)\d+;)(?=[\w/\"]|&#95;)",
    re.MULTILINE,
)
"""Links, which stay as they are; a slash that begins a line; and signs of references before a number or a word, also as
HTML's character references. An invisible character, a dot or an underscore begins no reference."""
_INVISIBLE: Final = "\u200b"
Query = Mapping[str, str | int]


class PublicationError(Exception):
    """Failure of one call, in one sentence without secrets; it is final if `wait_s` is None."""

    def __init__(self, message: str, status: int | None = None, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.wait_s = wait_s


class ReviewText(FrozenStruct):
    """Comment, which begins or ends with the line `marker`, and status of a result; `key` is the status's name."""

    body: str
    marker: str
    title: str
    passed: bool
    key: str


class Review(FrozenStruct, kw_only=True):
    """Pull request of a job, or its commit without one, as one system's API describes it.

    A place is the path of a value in a decoded response (`text.dotted_path`).
    """

    system: str
    address: str
    token: Secret[str]
    path: str
    shown_as: str | None
    """Pull request for people, such as `merge request 7`; None for a commit without one."""
    sha: str
    """Newest commit of the source branch when the job started."""
    run_url: str
    open_state: tuple[str, str]
    """Place and value of the state of an open pull request."""
    head: str
    """Place of its newest commit, which may be abbreviated."""
    account: tuple[str, str, Query] | None
    """Path, place and parameters that tell the token's account; None if only the system can tell whose a comment is."""
    comments_path: str
    """Path of the comments below `path`."""
    comments: str
    """Place of the list in a page of comments."""
    comment_ids: tuple[str, ...]
    """Places of the id of a comment, or of its thread and of itself."""
    body: str
    author: str
    paging: Query = field(default_factory=dict)
    """Parameters of the list: pages of `PAGE_SIZE`, the oldest comment first. Empty if it has no pages."""
    build_comment: Callable[[str], JsonValue]
    wrap_new: Callable[[JsonValue], JsonValue] = lambda comment: comment
    """Makes of a comment what creates it."""
    update_verb: str = "PUT"
    status_path: str
    build_status: Callable[[ReviewText], JsonValue]
    version: Query = field(default_factory=dict)
    """Parameters of every call that has no others of these names."""
    has_html: bool = True

    def publish(self, text: ReviewText, sleep: Callable[[float], None] = time.sleep) -> Iterator[str]:
        """Publish comment and status, and yield a sentence about each. A refusal is one of these sentences."""
        for what, step in (("comment", self._publish_comment), ("status", self._publish_status)):
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    yield step(text)
                except PublicationError as error:
                    if error.wait_s is not None and error.wait_s <= MAX_WAIT_S and attempt < ATTEMPTS:
                        sleep(error.wait_s or 2.0**attempt)
                        continue  # the whole step: after a lost response, it finds what it wrote
                    yield f"warning: no {what}: {error}"
                break

    def _publish_status(self, text: ReviewText) -> str:
        self._send("POST", self.status_path, self.build_status(text))
        return f"status {text.key} of {self.sha[:7]}: {'success' if text.passed else 'failure'}"

    def _publish_comment(self, text: ReviewText) -> str:
        """Update the gate's comment, or write it. Of two jobs at once each may write one: both are updated later."""
        if self.shown_as is None:
            return "no comment: this job is not for a pull request"
        request = self._send("GET", self.path)
        head = self._pick(request, self.head)
        if self._pick(request, self.open_state[0]) != self.open_state[1]:
            return f"no comment: {self.shown_as} is closed"
        if not self.sha.startswith(head):
            return f"no comment: {self.shown_as} is now at {head[:7]}, but this result is for {self.sha[:7]}"
        marked = list(self._iter_marked(text.marker))
        updated = [one for one in marked[:MAX_MARKED] if self._update(one, text.body)]
        if not updated:
            self._send("POST", f"{self.path}/{self.comments_path}", self.wrap_new(self.build_comment(text.body)))
        return f"comment {'updated' if updated else 'written'} on {self.shown_as}"

    def _iter_marked(self, marker: str) -> Iterator[str]:
        """Yield the paths of the gate's comments below that of all, as far as marker and author tell."""
        account = None
        if self.account is not None:
            path, place, query = self.account
            account = self._pick(self._send("GET", path, **query), place)
        for page in range(1, REVIEW_PAGES + 1 if self.paging else 2):
            data = self._send("GET", f"{self.path}/{self.comments_path}", page=page, **self.paging)
            items = _find(data, self.comments)
            if not isinstance(items, list):
                raise PublicationError(f"a response of {self.system} has no list of comments")
            for one in items:
                body = str(_find(one, self.body))
                is_marked = body.startswith(f"{marker}\n") or body.endswith(f"\n{marker}")
                if is_marked and account in {None, str(_find(one, self.author))}:
                    yield "/comments/".join(self._pick(one, place) for place in self.comment_ids)
            if len(items) < PAGE_SIZE:
                return

    def _update(self, comment: str, body: str) -> bool:
        """Update a comment; False if another account wrote it, or it was deleted."""
        try:
            self._send(self.update_verb, f"{self.path}/{self.comments_path}/{comment}", self.build_comment(body))
        except PublicationError as error:
            if error.status not in {403, 404, 410}:
                raise
            return False
        return True

    def _send(self, verb: str, path: str, body: JsonValue = None, **query: str | int) -> JsonValue:
        """Send the token and a request, follow no redirect, and return the decoded response."""
        url, headers = f"{self.address.rstrip('/')}/{path}", {"Authorization": f"Bearer {self.token.open()}"}
        try:
            with httpx.Client(timeout=REVIEW_S, verify=load_ssl_context(), headers=headers) as client:
                response = client.request(verb, url, params={**self.version, **query}, json=body)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            words = f"no response from {self.system} to {verb} {path} ({type(error).__name__})"
            raise PublicationError(words, wait_s=0.0) from None
        status, reason = response.status_code, f"{self.system} responded with {response.status_code} to {verb} {path}"
        if not response.is_success:
            detail = to_one_line(Redactor([self.token.open()]).mask_message(response.text[:2_000]), 200)
            wait_s = parse_retry_after(response.headers.get("retry-after", "")) or 0.0
            raise PublicationError(f"{reason}: {detail}", status, wait_s if status == 429 or status >= 500 else None)
        try:
            return response.json() if response.content else None
        except ValueError:
            raise PublicationError(f"{reason}, but not with JSON: is the token valid?") from None

    def _pick(self, data: JsonValue, place: str) -> str:
        if (value := _find(data, place)) is None or value == "":
            raise PublicationError(f"a response of {self.system} has no {place}")
        return str(value)


def _find(data: JsonValue, place: str) -> JsonValue:
    """Find the value at a place; None without one, such as the author of a deleted account."""
    try:
        return get_by_path(data, place)
    except PathError:
        return None


def read_variable(variables: Mapping[str, str], name: str, hint: str = "the CI system sets it") -> str:
    """Read a variable of a job. Raises PublicationError if it is not set."""
    if value := variables.get(name, "").strip():
        return value
    raise PublicationError(f"{name} is not set ({hint})")


def adapt_markdown(text: str) -> str:
    """Adapt a comment in GitHub's Markdown to GitLab and Azure DevOps: an invisible character stops what they read.

    Both find references in the finished text, of more kinds than GitHub (`!1`, `$1`, `~label`, `%milestone`), and
    GitLab runs lines such as `/close`, also in code between tildes. Alerts become quotes with a title.
    """
    quoted = re.sub(r"(?m)^> \[!(\w+)\]$", lambda match: f"> **{match[1].capitalize()}**<br>", text)
    return _REFERENCES.sub(lambda match: match[0] if match["link"] else match[0] + _INVISIBLE, quoted)
