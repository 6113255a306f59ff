"""What can go wrong between a client and GitHub, planned by a test, one outcome for one request."""

from __future__ import annotations

import math
import re
import threading
import time
from dataclasses import dataclass, field
from email.utils import formatdate

NOT_ACCESSIBLE = "Resource not accessible by integration"

IP_ALLOW_LIST = (
    "Although you appear to have the correct authorization credentials, the `acme` organization has an IP allow list "
    "enabled, and your IP address is not permitted to access this resource."
)

SAML = (
    "Resource protected by organization SAML enforcement. You must grant your Personal Access token access to this "
    "organization."
)

PRIMARY = "API rate limit exceeded for installation ID 4242."

SECONDARY = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. "
    "If you reach out to GitHub Support for help, please include the request ID."
)


@dataclass(frozen=True)
class Fault:
    """One outcome. Made by the functions below, read by the server."""

    name: str
    code: int | None = None  # answer with this, and change nothing
    message: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    kind: str = ""  # what GraphQL calls it
    html: bool = False  # a proxy's page in place of GitHub's JSON
    seconds: float = 0  # wait first
    meeting: threading.Barrier | None = None  # wait first until so many requests wait there
    reset_before: bool = False
    reset_after: bool = False
    cut_after: int | None = None  # send so many bytes of the body, then cut the connection
    drip_s: float = 0  # wait so long before every byte, those of the head included
    too_long: int = 0  # add this to the body's length as it is said, then end the connection

    @staticmethod
    def status(code: int, *, retry_after: int | None = None, message: str = "", html: bool = False) -> Fault:
        """An answer with this status, with or without `Retry-After`."""
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        return Fault(f"status {code}", code, message, headers, html=html)

    @staticmethod
    def permission() -> Fault:
        """The token may not do this."""
        return Fault("permission", 403, NOT_ACCESSIBLE, kind="FORBIDDEN")

    @staticmethod
    def ip_allow_list() -> Fault:
        """The organization lets nobody in from this address."""
        return Fault("IP allow list", 403, IP_ALLOW_LIST, kind="FORBIDDEN")

    @staticmethod
    def saml() -> Fault:
        """The token is nobody's who has signed in to the organization."""
        return Fault("SAML", 403, SAML, kind="FORBIDDEN")

    @staticmethod
    def primary_limit(reset_in: float = 60, ahead: float = 0) -> Fault:
        """All requests of this hour are used up; the next hour begins in so many seconds.

        `ahead`: GitHub's clock is so many seconds ahead of ours.
        """
        reset = str(math.ceil(time.time() + ahead + reset_in))
        headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}
        if ahead:
            headers["Date"] = formatdate(time.time() + ahead, usegmt=True)
        return Fault("primary limit", 403, PRIMARY, headers, kind="RATE_LIMITED")

    @staticmethod
    def secondary_limit(retry_after: int | None = None) -> Fault:
        """Too many requests at a time."""
        return Fault("secondary limit", 403, SECONDARY, Fault.status(403, retry_after=retry_after).headers)

    @staticmethod
    def reset() -> Fault:
        """The connection is cut, and nothing was done."""
        return Fault("reset", reset_before=True)

    @staticmethod
    def reset_after_write() -> Fault:
        """What was asked is done, and the connection is cut before the answer."""
        return Fault("reset after write", reset_after=True)

    @staticmethod
    def cut(after: int) -> Fault:
        """The connection is cut after so many bytes of the answer's body."""
        return Fault("cut", cut_after=after)

    @staticmethod
    def slow(seconds: float) -> Fault:
        """The usual answer, late."""
        return Fault("slow", seconds=seconds)

    @staticmethod
    def meet(barrier: threading.Barrier, code: int | None = None) -> Fault:
        """The usual answer, or this status, as soon as all that the barrier is for are asked for at the same time.

        Where the others do not come in the barrier's time it is broken, which is a violation.
        """
        return Fault("meet", code, meeting=barrier)

    @staticmethod
    def hang() -> Fault:
        """Nothing comes, and nothing is done, for as long as the client waits."""
        return Fault("hang", seconds=3600, reset_before=True)

    @staticmethod
    def drip(seconds: float) -> Fault:
        """The usual answer, byte by byte, with so much time before each."""
        return Fault("drip", drip_s=seconds)

    @staticmethod
    def wrong_length(more: int) -> Fault:
        """The usual answer, of which so many bytes more are announced than come, or fewer."""
        return Fault(f"length {more:+}", too_long=more)

    @staticmethod
    def pass_() -> Fault:
        """The usual answer."""
        return Fault("pass")


@dataclass
class Plan:
    """What happens to requests like this, in order."""

    method: str
    pattern: re.Pattern[str]
    outcomes: list[Fault]


class Faults:
    """The plans of a test. The first plan that fits a request and is not used up gives its outcome."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self._lock = threading.Lock()

    def add(self, method: str, path_regex: str, *outcomes: Fault) -> None:
        """`method` may be "*"; the pattern is searched in the path with its query."""
        with self._lock:
            self.plans.append(Plan(method, re.compile(path_regex), list(outcomes)))

    def take(self, method: str, target: str) -> Fault | None:
        with self._lock:
            for plan in self.plans:
                if plan.outcomes and plan.method in {"*", method} and plan.pattern.search(target):
                    return plan.outcomes.pop(0)
        return None

    @property
    def unused(self) -> list[str]:
        """Outcomes that no request has met yet."""
        with self._lock:
            return [
                f"{plan.method} {plan.pattern.pattern}: {each.name}" for plan in self.plans for each in plan.outcomes
            ]
