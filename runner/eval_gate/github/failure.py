"""Failures of GitHub calls: their kinds, remedies and error texts (listed in docs/action.md)."""

from __future__ import annotations

import math
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from eval_gate.errors import ExitCode, GateError
from eval_gate.files.certificates import CERTIFICATES_HINT, get_certificate_variable
from eval_gate.struct import FrozenStruct
from eval_gate.text.retry_after import parse_retry_after
from eval_gate.text.urls import format_proxy

if TYPE_CHECKING:
    import httpx


T = TypeVar("T")
MAX_WAIT_S: Final = 60.0
"""Maximum wait for a rate limit. A primary limit may last an hour, which is too long for a job."""
_SECONDARY_WAIT_S: Final = 60.0
"""GitHub's advice for a secondary limit that names no time."""
_EXPLAINED_STATUSES: Final = frozenset({400, 403})
"""Statuses that only the words explain: REST's 403, and PyGithub's 400 for the errors of GraphQL."""
_PROXY_AUTHENTICATION_REQUIRED: Final = 407
_PROXY_MESSAGE: Final = re.compile(r"(?:Tunnel connection failed: )?([45]\d\d\b.{0,100})", re.DOTALL)
"""The words of `http.client` and of httpx for a proxy that does not connect."""


class FailureKind(StrEnum):
    """Reason why a GitHub call failed."""

    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    LOCKED = "locked"
    """The conversation is locked, for every token but those of people who may write."""
    BLOCKED = "blocked"
    """A rule of the organization or of the repository, which no permission of the job changes."""
    FULL = "full"
    """There is no room for more artifacts."""
    RATE_LIMITED = "rate-limited"
    NOT_FOUND = "not-found"
    CONFLICT = "conflict"
    GONE = "gone"
    """Was there once, such as an expired artifact."""
    REFUSED = "refused"
    """GitHub read the request and does not accept its content."""
    SERVER = "server"
    """GitHub failed, or its response is unreadable."""
    UNREACHABLE = "unreachable"
    """No answer: whether the request was carried out is not known."""
    UNTRUSTED = "untrusted"
    """The server's certificate is not trusted here, so nothing was asked."""
    PROXY = "proxy"
    """The proxy refused, so nothing was asked."""


class _KnownRefusal(NamedTuple):
    """Refusal that the response text of GitHub explains."""

    words: str
    """In small letters, a part of the message."""
    kind: FailureKind
    remedy: str


_KNOWN_REFUSALS: Final = (
    _KnownRefusal("issue is locked", FailureKind.LOCKED, "unlock the conversation: permissions of the job do not help"),
    _KnownRefusal(
        "ip allow list",
        FailureKind.BLOCKED,
        "add the runner's address to the IP allow list of the organization, or use a runner that is on it",
    ),
    _KnownRefusal(
        "saml enforcement",
        FailureKind.BLOCKED,
        "authorize the token in `github-token` for the organization (single sign-on), or leave the input out",
    ),
    _KnownRefusal("archived so is read-only", FailureKind.BLOCKED, "unarchive the repository"),
    _KnownRefusal(
        "insufficient usage",
        FailureKind.FULL,
        "the quota for artifact storage is used up: delete artifacts, keep them for fewer days, or raise the spending "
        "limit; GitHub updates the usage every 6 to 12 hours",
    ),
)
"""What explains a refusal better than its status. `toolkit` knows the last one by the same words."""


class ErrorResponse(FrozenStruct):
    """Status, headers and message of an error response. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    message: str


class GitHubError(Exception):
    """Error of a GitHub call. The message is a sentence for logs and summaries, without secrets."""

    def __init__(
        self,
        kind: FailureKind,
        doing: str,
        detail: str,
        *,
        permission: str | None = None,
        wait_s: float | None = None,
        remedy: str = "",
    ) -> None:
        """`remedy` says what to do, where that is no permission; half a sentence."""
        self.kind = kind
        self.doing = doing
        self.detail = detail
        self.permission = permission
        self.wait_s = wait_s
        """Seconds GitHub asks us to wait, where it does."""
        self.remedy = remedy or self._describe_permission()
        super().__init__(f"{doing}: {detail}{'; ' if self.remedy else ''}{self.remedy}")

    @property
    def is_outcome_unknown(self) -> bool:
        """Whether the request may have been carried out all the same."""
        return self.kind in {FailureKind.SERVER, FailureKind.UNREACHABLE}

    @property
    def is_retryable(self) -> bool:
        """Whether the same call may succeed a little later."""
        if self.kind is FailureKind.RATE_LIMITED:
            return (self.wait_s or 0) <= MAX_WAIT_S
        return self.is_outcome_unknown

    def _describe_permission(self) -> str:
        if self.permission is None:
            return ""
        if self.kind is FailureKind.FORBIDDEN and "personal access token" in self.detail.lower():
            return f"the personal access token in `github-token` needs the permission `{self.permission}`"
        if self.kind is FailureKind.FORBIDDEN:
            return f"the job needs `permissions: {self.permission}`"
        if self.kind is FailureKind.UNAUTHORIZED:
            return "`github-token` is not valid for this repository"
        return ""


def find_or_none(call: Callable[[], T]) -> T | None:
    """Run the call; None if GitHub does not know what it asks for. Raises GitHubError for any other failure."""
    try:
        return call()
    except GitHubError as error:
        if error.kind is FailureKind.NOT_FOUND:
            return None
        raise


def build_unavailable_error(what: str) -> GateError:
    """Build the error, with the sentence `what`, for a step that needs a response from GitHub and has none."""
    return GateError("github-unreachable", what, "re-run the failed job", exit_code=ExitCode.INCOMPLETE)


def build_proxy_error(doing: str, message: str) -> GitHubError:
    """Build the error for a proxy that did not connect. `message` begins with the status, if it gave one."""
    from urllib.request import getproxies

    proxies = getproxies()
    proxy = format_proxy(proxies.get("https") or proxies.get("all") or proxies.get("http") or "")
    kind = FailureKind.PROXY if message.startswith("4") else FailureKind.UNREACHABLE
    remedy = "check the proxy's address and credentials in `HTTPS_PROXY`, or name the host in `NO_PROXY`"
    return GitHubError(kind, doing, f"{proxy} refused the connection ({message})", remedy=remedy)


def parse_error_response(response: httpx.Response, key: str) -> ErrorResponse:
    """Parse an httpx error: the message at `key` of its JSON; without JSON, as of a blob store, the reason phrase."""
    try:
        message = str(response.json().get(key, ""))
    except (ValueError, AttributeError):
        message = response.reason_phrase
    return ErrorResponse(
        response.status_code, {name.lower(): value for name, value in response.headers.items()}, message
    )


def build_refusal_error(response: ErrorResponse, doing: str, permission: str | None = None) -> GitHubError:
    """Build the error for a response that is not a success."""
    message = response.message[:300] or "no reason given"
    if response.status == _PROXY_AUTHENTICATION_REQUIRED:
        return build_proxy_error(doing, "407 Proxy Authentication Required")
    detail = f"GitHub responded with {response.status} ({message})"
    if refusal := _find_known_refusal(response):
        return GitHubError(refusal.kind, doing, detail, remedy=refusal.remedy)
    kind = _classify_refusal(response)
    wait = _compute_wait(response) if kind is FailureKind.RATE_LIMITED else None
    if wait is not None and wait > MAX_WAIT_S:
        detail += f", for another {wait:.0f} s"
    return GitHubError(kind, doing, detail, permission=permission, wait_s=wait)


def _find_known_refusal(response: ErrorResponse) -> _KnownRefusal | None:
    """Find the refusal that GitHub's message explains, or return None if only the status tells."""
    if response.status not in _EXPLAINED_STATUSES:
        return None
    message = response.message.lower()
    return next((one for one in _KNOWN_REFUSALS if one.words in message), None)


def _classify_refusal(response: ErrorResponse) -> FailureKind:
    if response.status == 429 or (response.status in _EXPLAINED_STATUSES and _is_rate_limit(response)):
        return FailureKind.RATE_LIMITED
    if response.status in _EXPLAINED_STATUSES and "not accessible by" in response.message.lower():
        return FailureKind.FORBIDDEN
    by_status = {
        401: FailureKind.UNAUTHORIZED,
        403: FailureKind.FORBIDDEN,
        404: FailureKind.NOT_FOUND,
        409: FailureKind.CONFLICT,
        410: FailureKind.GONE,
    }
    if response.status in by_status:
        return by_status[response.status]
    if response.status == 400 and "something went wrong while executing your query" in response.message.lower():
        return FailureKind.SERVER  # a timeout of GitHub's, which GraphQL reports inside a success
    return FailureKind.SERVER if response.status >= 500 or response.status < 400 else FailureKind.REFUSED


def _is_rate_limit(response: ErrorResponse) -> bool:
    """Return whether a response is a rate limit, by header or message; a 403 without either is a missing permission."""
    message = response.message.lower()
    return (
        "retry-after" in response.headers
        or response.headers.get("x-ratelimit-remaining") == "0"
        or "rate limit" in message
        or "abuse detection" in message
    )


def _compute_wait(response: ErrorResponse) -> float:
    """Seconds until the limit ends, as far as GitHub tells."""
    headers = response.headers
    if (wait_s := parse_retry_after(headers.get("retry-after", ""))) is not None:
        return wait_s
    reset = _parse_number(headers.get("x-ratelimit-reset"))
    if headers.get("x-ratelimit-remaining") == "0" and reset is not None:
        return max(reset - _read_server_time(headers), 0.0) + 1  # the limit may end at any time within that second
    return _SECONDARY_WAIT_S if response.status == 403 else 0.0


def _read_server_time(headers: Mapping[str, str]) -> float:
    """Read GitHub's clock, which rate limits follow, in seconds since the epoch; the local one may be off by hours."""
    try:
        return parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError, OverflowError):  # a year of twenty digits
        return time.time()


def _parse_number(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else None
    except ValueError:
        return None
    return number if number is not None and math.isfinite(number) else None


def build_no_response_error(error: Exception, doing: str, detail: str) -> GitHubError:
    """Build the error for a request without a response. `detail` is the message if the cause is unknown."""
    causes = list(_iter_causes(error))
    untrusted = next((one for one in causes if isinstance(one, ssl.SSLCertVerificationError)), None)
    if untrusted is not None:
        what = f"the certificate of the server is not trusted ({untrusted.verify_message or untrusted.reason})"
        return GitHubError(FailureKind.UNTRUSTED, doing, what, remedy=CERTIFICATES_HINT)
    unread = next((one for one in causes if isinstance(one, ssl.SSLError) and one.library == "X509"), None)
    if unread is not None:
        return build_certificate_error(unread)
    if any(type(one).__name__ == "ProxyError" for one in causes):  # of requests, urllib3, httpx
        answers = (_PROXY_MESSAGE.match(str(one)) for one in causes)
        return build_proxy_error(doing, next((match[1] for match in answers if match), "no connection"))
    return GitHubError(FailureKind.UNREACHABLE, doing, f"{detail} ({type(error).__name__})")


def build_certificate_error(error: OSError) -> GitHubError:
    """Build the error for a certificate file or folder that is missing or holds no certificate."""
    doing = f"reading the certificates that {get_certificate_variable()} names"
    return GitHubError(FailureKind.REFUSED, doing, error.strerror or type(error).__name__)


def _iter_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the exception and its causes, which HTTP clients keep in different places."""
    waiting, seen_ids = [error], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen_ids:
            continue
        seen_ids.add(id(one))
        yield one
        causes = (one.__cause__, one.__context__, getattr(one, "reason", None), *one.args)
        waiting += [each for each in causes if isinstance(each, BaseException)]
