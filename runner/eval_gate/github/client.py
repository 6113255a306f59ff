"""One connection to GitHub's API: who we are, what is tried again, and how an answer becomes data.

PyGithub signs, addresses (Enterprise servers too) and paces the requests. Its own retries are off, because they repeat
a POST that may have been carried out and never a PATCH; its typed objects are not used, because they complete
themselves by requests that nobody sees.
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
from eval_gate.errors import needing
from eval_gate.files.certificates import certificates
from eval_gate.github.failure import FailureKind, GitHubError, RefusingAnswer, no_certificates, refusal, unanswered
from eval_gate.github.side_by_side import within
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
"""Of a call and of what is asked on its way, in other threads too (`deadline.within`); never of calls beside it."""
_UNREADABLE: Final = (ValueError, TypeError, KeyError, AttributeError, AssertionError, RuntimeError)
Query = Mapping[str, str | int]
T = TypeVar("T")
Model = TypeVar("Model", bound="ApiAnswer")


class Patience(FrozenStruct):
    """How long GitHub is waited for, in seconds; for archives longer than for answers of the API."""

    silence_s: int = 20
    """How long may pass without a byte."""
    answer_s: float = limits.ANSWER_S
    """For the whole of an answer, however slowly it comes."""
    transfer_silence_s: float = limits.TRANSFER_SILENCE_S
    transfer_s: float = limits.TRANSFER_S
    """For the whole of an archive, or of a block of one that is stored."""


class ApiAnswer(BaseModel):
    """What we use of an answer of GitHub; everything else in it is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Client:
    """Calls for one repository, any number of them at a time. Every method raises GitHubError and nothing else.

    To make one raises GateError `not-installed` where PyGithub is missing.
    """

    def __init__(
        self,
        api_url: str,
        token: Secret[str],
        repository: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
        patience: Patience | None = None,
    ) -> None:
        # not when it is first used, which may be after an hour of evals
        with needing("github", "asking GitHub"):
            import github  # noqa: F401 (only whether it is there)
        self.api_url = api_url.rstrip("/")
        self.patience = patience or Patience()
        self.repository = repository
        self._token = token
        self._sleep = sleep
        self._idle: deque[Requester] = deque()
        """Connections that no call uses. One of PyGithub's keeps the request that it is about: it is one call's."""
        self._silent_until = 0.0
        """Until when GitHub wants none of our calls, by the monotonic clock: it told one of them."""

    @property
    def headers(self) -> dict[str, str]:
        """Headers for what has to be fetched past PyGithub; they hold the token."""
        return {
            "Authorization": f"Bearer {self._token.open()}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": API_VERSION,
            "User-Agent": user_agent(),
        }

    def transfers(self) -> httpx.Client:
        """A connection for what goes past PyGithub, which whoever opens it closes. It follows no redirects."""
        import httpx

        try:
            trusted = certificates()
        except OSError as error:  # which it is too where a file holds no certificate
            raise no_certificates(error) from error
        return httpx.Client(timeout=self.patience.transfer_silence_s, verify=trusted)

    def get(self, doing: str, path: str, model: type[Model], *, permission: str, query: Query | None = None) -> Model:
        """One object. `path` is below the repository; `doing` names the call in an error."""
        return self.repeated(lambda: parsed(model, self._once("GET", path, doing, permission, query=query), doing))

    def page(
        self, doing: str, path: str, item: type[Model], *, permission: str, query: Query | None = None, key: str = ""
    ) -> tuple[Model, ...]:
        """One page of a list, or of the list at `key` of an object."""

        def once() -> tuple[Model, ...]:
            data = self._once("GET", path, doing, permission, query={"per_page": PER_PAGE, **(query or {})})
            found = data.get(key) if key and isinstance(data, dict) else data
            if not isinstance(found, list):
                raise _unreadable(doing, "a list was expected")
            return tuple(parsed(item, one, doing) for one in found)

        return self.repeated(once)

    def pages(
        self, doing: str, path: str, item: type[Model], *, permission: str, query: Query | None = None, key: str = ""
    ) -> Iterator[Model]:
        """The items of all pages, fetched as they are needed."""
        number = 1
        while True:
            found = self.page(
                doing, path, item, permission=permission, query={**(query or {}), "page": number}, key=key
            )
            yield from found
            if len(found) < int((query or {}).get("per_page", PER_PAGE)):
                return
            number += 1

    def patch(self, doing: str, path: str, body: Mapping[str, object], model: type[Model], *, permission: str) -> Model:
        """Change something; doing it twice does no harm."""
        return self.repeated(lambda: parsed(model, self._once("PATCH", path, doing, permission, body=body), doing))

    def post(
        self,
        doing: str,
        path: str,
        body: Mapping[str, object],
        model: type[Model],
        *,
        permission: str,
        made: Callable[[], Model | None],
    ) -> Model:
        """Make something, once: after a lost answer `made` looks whether it is there before it is made again."""
        return self.repeated(lambda: parsed(model, self._once("POST", path, doing, permission, body=body), doing), made)

    def delete(self, doing: str, path: str, *, permission: str) -> None:
        """Take something away; it may be gone already."""
        try:
            self.repeated(lambda: self._once("DELETE", path, doing, permission))
        except GitHubError as error:
            if error.kind not in {FailureKind.NOT_FOUND, FailureKind.GONE}:
                raise

    def graphql(self, doing: str, query: str, variables: Mapping[str, JsonValue], *, permission: str) -> JsonValue:
        """The `data` of a GraphQL query or mutation; doing it twice must do no harm."""

        def once() -> JsonValue:
            return self._guarded(
                lambda requester: requester.graphql_query(query, dict(variables))[1].get("data"), doing, permission
            )

        return self.repeated(once)

    def repeated(self, once: Callable[[], T], made: Callable[[], T | None] | None = None) -> T:
        """Call `once` until it works, it is hopeless, or the time is up; waits as long as GitHub asks.

        What is asked on the way, such as whether a lost request was carried out, is tried once: the whole is repeated.
        Nothing is begun while another call waits for the end of a limit, which is one for all calls of a token.
        """
        if _REPEATING.get():
            self._hold(time.monotonic())
            return once()
        lost, attempt, begin = False, 0, time.monotonic()
        repeating = _REPEATING.set(True)
        try:
            while True:
                attempt += 1
                self._hold(begin)
                try:
                    found = made() if lost and made is not None else None
                    return once() if found is None else found
                except GitHubError as error:
                    lost = lost or error.lost
                    told = self._told(error)
                    late = attempt == ATTEMPTS or time.monotonic() - begin >= TIME_LIMIT_S
                    if late or not error.worth_repeating:
                        raise
                    self._sleep(error.wait_s or _wait(attempt))
                    if told and told == self._silent_until:
                        self._silent_until = 0.0
        finally:
            _REPEATING.reset(repeating)

    def _told(self, error: GitHubError) -> float:
        """Until when this answer has every call wait; 0 where it says nothing of it or nobody would wait so long."""
        if not error.wait_s or not error.worth_repeating:
            return 0.0
        until = time.monotonic() + error.wait_s
        self._silent_until = max(self._silent_until, until)
        return until

    def _hold(self, begin: float) -> None:
        """Wait as long as any call was told to, and where one is told again meanwhile longer, within the time limit."""
        held = 0.0
        while (until := self._silent_until) > held and time.monotonic() - begin < TIME_LIMIT_S:
            held = until
            if (left := until - time.monotonic()) > 0:
                self._sleep(left)

    def close(self) -> None:
        """Close the connections that no call uses; another call would open new ones."""
        with suppress(IndexError):  # a call that nobody waits for any more may take the last one meanwhile
            while True:
                self._idle.pop().close()

    def _once(
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
        _, data = self._guarded(
            lambda requester: requester.requestJsonAndCheck(verb, url, parameters=dict(query or {}), input=body),
            doing,
            permission,
        )
        found: JsonValue = data
        return found

    def _guarded(self, call: Callable[[Requester], T], doing: str, permission: str) -> T:
        """The one place where PyGithub's and requests' exceptions become ours."""
        from github import GithubException
        from requests import RequestException

        requester, free = self._requester(), True
        try:
            return within(self.patience.answer_s, doing, lambda: call(requester))
        except (GitHubError, KeyboardInterrupt):
            free = False  # its connection is still in use
            raise
        except GithubException as error:
            headers = {name.lower(): str(value) for name, value in (error.headers or {}).items()}
            raise refusal(RefusingAnswer(error.status, headers, _message(error.data)), doing, permission) from error
        except RequestException as error:
            raise unanswered(error, doing, "no answer from GitHub") from error
        except OSError as error:  # requests finds no file where certificates are to be
            raise no_certificates(error) from error
        except _UNREADABLE as error:  # what PyGithub does with an answer it does not expect; it may quote the token
            raise _unreadable(doing, type(error).__name__) from None
        finally:
            if free:
                self._idle.append(requester)

    def _requester(self) -> Requester:
        """A connection for one call: the one that was used last, else a new one."""
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
            user_agent=user_agent(),
            # a gate writes a handful of times in its life: GitHub's advice on pacing is for bulk work
            seconds_between_requests=0,
            seconds_between_writes=0,
            api_version=API_VERSION,
        ).requester


def user_agent() -> str:
    """GitHub refuses requests that do not name their sender."""
    return f"eval-gate/{__version__}"


def parsed(model: type[Model], data: JsonValue, doing: str) -> Model:
    """The data as what we expect it to be. Raises GitHubError `server`."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise _unreadable(doing, f"{where}: {first['msg']}") from error


def _unreadable(doing: str, what: str) -> GitHubError:
    return GitHubError(FailureKind.SERVER, doing, f"GitHub's answer has another shape than documented ({what})")


def _message(data: object) -> str:
    """What GitHub says, with the details of a refused request."""
    if not isinstance(data, dict):
        return str(data or "")[:300]
    errors = data.get("errors")
    found = errors if isinstance(errors, list) else [errors] if errors else []
    details = [str(one.get("message") or one) if isinstance(one, dict) else str(one) for one in found]
    return "; ".join([str(data.get("message") or ""), *details]).strip("; ")


def _wait(attempt: int) -> float:
    """Seconds before another attempt where GitHub asks for none: up to 1, 2, 4 and 8, at random."""
    return random.uniform(0, 2 ** (attempt - 1))  # noqa: S311 (nobody has to guess it)
