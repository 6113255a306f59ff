"""Client of GitHub's API: authentication, retries, timeouts and parsing of responses.

PyGithub signs, addresses (Enterprise servers too) and paces the requests. Its own retries are off, because they repeat
a POST that may have been carried out and never a PATCH; its typed objects are not used, because they send requests of
their own to complete themselves.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from eval_gate import __version__
from eval_gate.errors import require_extra
from eval_gate.files.certificates import load_ssl_context
from eval_gate.github.background_calls import call_with_timeout
from eval_gate.github.failure import (
    ErrorResponse,
    FailureKind,
    GitHubError,
    build_certificate_error,
    build_no_response_error,
    build_refusal_error,
)
from eval_gate.model import limits
from eval_gate.struct import FrozenStruct
from eval_gate.text.secret import Secret

if TYPE_CHECKING:
    import httpx
    from github.Requester import Requester

ATTEMPTS: Final = 5
TIME_LIMIT_S: Final = limits.GITHUB_S
"""Seconds after which nothing is begun again for one call."""
PER_PAGE: Final = 100
API_VERSION: Final = "2022-11-28"

_REPEATING: Final = ContextVar("a call to GitHub is being repeated", default=False)
"""True in a call and the calls that it makes, in other threads too (`call_with_timeout`)."""
_UNREADABLE: Final = (ValueError, TypeError, KeyError, AttributeError, AssertionError, RuntimeError)
Query = Mapping[str, str | int]
T = TypeVar("T")
Model = TypeVar("Model", bound="ApiResponse")


class GitHubTimeouts(FrozenStruct):
    """Timeouts for GitHub in seconds; longer for archives than for API responses."""

    silence_s: int = 20
    """How long may pass without a byte."""
    response_s: float = limits.GITHUB_RESPONSE_S
    """For the whole of an answer, however slowly it comes."""
    transfer_silence_s: float = limits.TRANSFER_IDLE_S
    transfer_s: float = limits.TRANSFER_S
    """For the whole of an archive, or of a block of one that is stored."""


class ApiResponse(BaseModel):
    """Base of API response models. Fields that are not declared are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class GitHubClient:
    """Thread-safe client for one repository. All methods raise GitHubError alone; `missing-extra`: without PyGithub."""

    def __init__(
        self,
        api_url: str,
        token: Secret[str],
        repository: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
        patience: GitHubTimeouts | None = None,
    ) -> None:
        # not when it is first used, which may be after an hour of evals
        with require_extra("github", "calling GitHub"):
            import github  # noqa: F401 (only whether it is there)
        self.api_url = api_url.rstrip("/")
        self.patience = patience or GitHubTimeouts()
        self.repository = repository
        self._token = token
        self._sleep = sleep
        self._idle: deque[Requester] = deque()
        """Connections that no call uses. One of PyGithub's keeps the request that it is about: it is one call's."""
        self._silent_until = 0.0
        """Until when a rate limit blocks all calls, by the monotonic clock."""

    @property
    def headers(self) -> dict[str, str]:
        """Headers for what has to be fetched past PyGithub; they hold the token."""
        return {
            "Authorization": f"Bearer {self._token.open()}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": API_VERSION,
            "User-Agent": format_user_agent(),
        }

    def open_http_client(self) -> httpx.Client:
        """Open a client without PyGithub and redirects, for the caller to close. Raises GitHubError."""
        import httpx

        try:
            trusted = load_ssl_context()
        except OSError as error:  # which it is too where a file holds no certificate
            raise build_certificate_error(error) from error
        return httpx.Client(timeout=self.patience.transfer_silence_s, verify=trusted)

    def get(self, doing: str, path: str, model: type[Model], *, permission: str, query: Query | None = None) -> Model:
        """One object. `path` is below the repository; `doing` names the call in an error."""
        return self.call_with_retries(
            lambda: parse_response(model, self._send_request("GET", path, doing, permission, query=query), doing)
        )

    def get_page(
        self, doing: str, path: str, item: type[Model], *, permission: str, query: Query | None = None, key: str = ""
    ) -> tuple[Model, ...]:
        """One page of a list, or of the list at `key` of an object."""

        def once() -> tuple[Model, ...]:
            data = self._send_request("GET", path, doing, permission, query={"per_page": PER_PAGE, **(query or {})})
            items = data.get(key) if key and isinstance(data, dict) else data
            if not isinstance(items, list):
                raise _build_unreadable_error(doing, "a list was expected")
            return tuple(parse_response(item, one, doing) for one in items)

        return self.call_with_retries(once)

    def iter_items(
        self, doing: str, path: str, item: type[Model], *, permission: str, query: Query | None = None, key: str = ""
    ) -> Iterator[Model]:
        """Yield the items of all pages, fetched as needed."""
        number = 1
        while True:
            items = self.get_page(
                doing, path, item, permission=permission, query={**(query or {}), "page": number}, key=key
            )
            yield from items
            if len(items) < int((query or {}).get("per_page", PER_PAGE)):
                return
            number += 1

    def patch(self, doing: str, path: str, body: Mapping[str, object], model: type[Model], *, permission: str) -> Model:
        """Change something; doing it twice does no harm."""
        return self.call_with_retries(
            lambda: parse_response(model, self._send_request("PATCH", path, doing, permission, body=body), doing)
        )

    def post(
        self,
        doing: str,
        path: str,
        body: Mapping[str, object],
        model: type[Model],
        *,
        permission: str,
        probe: Callable[[], Model | None],
    ) -> Model:
        """Create something, once: after a lost response, `probe` looks for it before the call is repeated."""
        return self.call_with_retries(
            lambda: parse_response(model, self._send_request("POST", path, doing, permission, body=body), doing), probe
        )

    def post_once(self, doing: str, path: str, body: Mapping[str, object], *, permission: str) -> None:
        """Start something that no later call can find: after a lost response, it is not started again."""
        lost: list[GitHubError] = []

        def once() -> None:
            try:
                self._send_request("POST", path, doing, permission, body=body)
            except GitHubError as error:
                if not error.is_outcome_unknown:
                    raise
                lost.append(error)

        self.call_with_retries(once)
        if lost:
            raise lost[0]

    def delete(self, doing: str, path: str, *, permission: str) -> None:
        """Take something away; it may be gone already."""
        try:
            self.call_with_retries(lambda: self._send_request("DELETE", path, doing, permission))
        except GitHubError as error:
            if error.kind not in {FailureKind.NOT_FOUND, FailureKind.GONE}:
                raise

    def run_graphql(self, doing: str, query: str, variables: Mapping[str, JsonValue], *, permission: str) -> JsonValue:
        """Run a GraphQL query or mutation, maybe twice (which must do no harm), and return its `data`."""

        def once() -> JsonValue:
            return self._call_pygithub(
                lambda requester: requester.graphql_query(query, dict(variables))[1].get("data"), doing, permission
            )

        return self.call_with_retries(once)

    def query_repository(
        self, doing: str, query: str, model: type[Model], variables: Mapping[str, JsonValue], *, permission: str
    ) -> Model | None:
        """Run a GraphQL query about the repository with this `owner` and `name`; None if GitHub knows none."""
        owner, _, name = self.repository.partition("/")
        data = self.run_graphql(doing, query, {"owner": owner, "name": name, **variables}, permission=permission)
        if isinstance(data, dict) and "repository" in data:
            data = data["repository"]
            if data is None:
                return None
        return parse_response(model, data, doing)

    def call_with_retries(self, once: Callable[[], T], probe: Callable[[], T | None] | None = None) -> T:
        """Call `once` until it works, it is hopeless, or the time is up; waits as long as GitHub asks.

        What is asked on the way, such as whether a lost request was carried out, is tried once: the whole is repeated.
        Nothing is begun while another call waits for the end of a limit, which is one for all calls of a token.
        """
        if _REPEATING.get():
            self._wait_for_limit(time.monotonic())
            return once()
        lost, attempt, begin = False, 0, time.monotonic()
        repeating = _REPEATING.set(True)
        try:
            while True:
                attempt += 1
                self._wait_for_limit(begin)
                try:
                    existing = probe() if lost and probe is not None else None
                    return once() if existing is None else existing
                except GitHubError as error:
                    lost = lost or error.is_outcome_unknown
                    until = self._record_wait(error)
                    late = attempt == ATTEMPTS or time.monotonic() - begin >= TIME_LIMIT_S
                    if late or not error.is_retryable:
                        raise
                    self._sleep(error.wait_s or _compute_backoff(attempt))
                    if until and until == self._silent_until:
                        self._silent_until = 0.0
        finally:
            _REPEATING.reset(repeating)

    def _record_wait(self, error: GitHubError) -> float:
        """Record until when this error blocks every call, and return that time; 0 without a wait or a retry."""
        if not error.wait_s or not error.is_retryable:
            return 0.0
        until = time.monotonic() + error.wait_s
        self._silent_until = max(self._silent_until, until)
        return until

    def _wait_for_limit(self, begin: float) -> None:
        """Wait for the end of the rate limit, also if another call extends it meanwhile, within the time limit."""
        held = 0.0
        while (until := self._silent_until) > held and time.monotonic() - begin < TIME_LIMIT_S:
            held = until
            if (remaining_s := until - time.monotonic()) > 0:
                self._sleep(remaining_s)

    def close(self) -> None:
        """Close the connections that no call uses; another call would open new ones."""
        with suppress(IndexError):  # an abandoned call may take the last one meanwhile
            while True:
                self._idle.pop().close()

    def _send_request(
        self,
        verb: str,
        path: str,
        doing: str,
        permission: str,
        *,
        query: Query | None = None,
        body: Mapping[str, object] | None = None,
    ) -> JsonValue:
        url = f"/repos/{self.repository}{path}"
        _, data = self._call_pygithub(
            lambda requester: requester.requestJsonAndCheck(verb, url, parameters=dict(query or {}), input=body),
            doing,
            permission,
        )
        value: JsonValue = data
        return value

    def _call_pygithub(self, call: Callable[[Requester], T], doing: str, permission: str) -> T:
        """Call PyGithub, and turn its exceptions and those of requests into GitHubError; nothing else does so."""
        from github import GithubException
        from requests import RequestException

        requester, free = self._take_requester(), True
        try:
            return call_with_timeout(self.patience.response_s, doing, lambda: call(requester))
        except (GitHubError, KeyboardInterrupt):
            free = False  # its connection is still in use
            raise
        except GithubException as error:
            headers = {name.lower(): str(value) for name, value in (error.headers or {}).items()}
            raise build_refusal_error(
                ErrorResponse(error.status, headers, _format_message(error.data)), doing, permission
            ) from error
        except RequestException as error:
            raise build_no_response_error(error, doing, "no response from GitHub") from error
        except OSError as error:  # requests finds no file where certificates are to be
            raise build_certificate_error(error) from error
        except _UNREADABLE as error:  # what PyGithub does with an answer it does not expect; it may quote the token
            raise _build_unreadable_error(doing, type(error).__name__) from None
        finally:
            if free:
                self._idle.append(requester)

    def _take_requester(self) -> Requester:
        """Take an idle connection for one call, the last used one first, or open a new one."""
        try:
            return self._idle.pop()
        except IndexError:
            pass
        from github import Auth, Github

        return Github(
            auth=Auth.Token(self._token.open()),
            base_url=self.api_url,
            retry=None,
            timeout=self.patience.silence_s,
            user_agent=format_user_agent(),
            # a gate writes a handful of times in its life: GitHub's advice on pacing is for bulk work
            seconds_between_requests=0,
            seconds_between_writes=0,
            api_version=API_VERSION,
        ).requester


def format_user_agent() -> str:
    """GitHub refuses requests that do not name their sender."""
    return f"eval-gate/{__version__}"


def parse_response(model: type[Model], data: JsonValue, doing: str) -> Model:
    """Validate the data against the expected model. Raises GitHubError `server` if the data does not match it."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise _build_unreadable_error(doing, f"{where}: {first['msg']}") from error


def _build_unreadable_error(doing: str, what: str) -> GitHubError:
    return GitHubError(FailureKind.SERVER, doing, f"GitHub's response does not match its documentation ({what})")


def _format_message(data: object) -> str:
    if not isinstance(data, dict):
        return str(data or "")[:300]
    errors = data.get("errors")
    entries = errors if isinstance(errors, list) else [errors] if errors else []
    details = [str(one.get("message") or one) if isinstance(one, dict) else str(one) for one in entries]
    return "; ".join([str(data.get("message") or ""), *details]).strip("; ")


def _compute_backoff(attempt: int) -> float:
    """Seconds before another attempt where GitHub asks for none: up to 1, 2, 4 and 8, at random."""
    return random.uniform(0, 2 ** (attempt - 1))  # noqa: S311 (it need not be secret)
