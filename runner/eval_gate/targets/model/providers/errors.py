"""What a provider or its library says when it does not answer, as the one error that targets know."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

import httpx2
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelTimeoutError,
    UserError,
)

from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.text.foreign.http_answer import UnreadableAnswerError
from eval_gate.text.foreign.quote import quote
from eval_gate.text.redact import Redactor

MAX_WORDS: Final = 300
NEVER_AGAIN: Final = frozenset({401, 403})
_LONGEST_WAIT_S: Final = 86_400.0
_MOST_CAUSES: Final = 10
_SPACE: Final = re.compile(r"\s+")

FAILURES: Final[tuple[type[Exception], ...]] = (
    # pydantic-ai's own errors are RuntimeErrors; the others are what its code and the vendors' raise over an answer
    # that is not of the promised shape
    RuntimeError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,
    OSError,
    Warning,
    httpx2.HTTPError,
    httpx2.InvalidURL,
)
"""Everything that asking a model may raise, beside what the vendors' libraries define themselves."""


class Explainer:
    """Turns exceptions into TargetErrors, for one chat."""

    def __init__(self, who: str, retryable: frozenset[int], redact: Redactor) -> None:
        self._who = who
        self._retryable = retryable - NEVER_AGAIN
        self._redact = redact

    def explain(self, error: Exception, answer: httpx2.Response | None) -> TargetError:
        """The TargetError for this, in the provider's own words where there are any: on one line, bounded, without key.

        `answer` is what came over the wire, where that is known.
        """
        unreadable = _unread(error)
        if unreadable is not None:
            begins = quote(self._redact(unreadable.begins.decode("utf-8", "replace")).encode())
            return self._malformed(f"it {unreadable}; it begins {begins}")
        match error:
            case ModelHTTPError():
                return self._refused(error)
            case ModelTimeoutError():
                return self._broken(error, "no answer in time", TargetFault.LATE)
            case ModelConnectionError():
                return self._broken(error, "no connection" if _unsent(error) else "the connection broke")
            case UserError():
                what = f"cannot be asked: {self._words(str(error))}"
                return TargetError(self._says(what), fault=TargetFault.NOT_ASKED)
        if answer is not None and answer.is_redirect:
            where = self._words(answer.headers.get("location", "")) or "nowhere"
            return TargetError(
                self._says(f"answered HTTP {answer.status_code}: it points to {where}"),
                fault=TargetFault.REFUSED,
                status=answer.status_code,
                hint="check the address",
            )
        return self.unreadable(answer) if answer is not None else self._malformed(self._words(_said(error)))

    def unreadable(self, answer: httpx2.Response | None) -> TargetError:
        """An answer of another shape: its own words if it tells of an error, else how it begins."""
        body = _body(answer)
        match _parsed(body):
            case {"error": dict(problem)}:
                code = problem.get("code")
                status = code if isinstance(code, int) and 400 <= code < 600 else None
                words = self._words(" ".join(_texts(problem)))
                return TargetError(
                    self._says(f"answered with an error: {words}"),
                    fault=TargetFault.REFUSED,
                    status=status,
                    retryable=status in self._retryable,
                )
        return self._malformed(f"it begins {quote(self._redact(body.decode('utf-8', 'replace')).encode())}")

    def late(self, timeout_s: float) -> TargetError:
        """No complete answer within the caller's time."""
        return TargetError(self._says(f"gave no answer within {timeout_s:g} s"), fault=TargetFault.LATE, retryable=True)

    def _malformed(self, what: str) -> TargetError:
        return TargetError(self._says(f"gave an answer that cannot be read: {what}"), fault=TargetFault.MALFORMED)

    def _refused(self, error: ModelHTTPError) -> TargetError:
        words = self._words(" ".join(_texts(error.body)))
        spent = isinstance(error, ModelQuotaExceededError)
        return TargetError(
            self._says(f"answered HTTP {error.status_code}{f': {words}' if words else ''}"),
            fault=TargetFault.REFUSED,
            status=error.status_code,
            # a spent budget is a 429 as well, but no wait brings it back
            retryable=error.status_code in self._retryable and not spent,
            retry_after_s=_retry_after(error.retry_after, error.headers or {}),
            hint=_hint(error, spent=spent),
        )

    def _broken(self, error: ModelConnectionError, what: str, fault: TargetFault = TargetFault.REFUSED) -> TargetError:
        words = self._words(_innermost(error))
        fault = TargetFault.UNREACHABLE if _unsent(error) else fault
        return TargetError(self._says(f"{what}: {words}"), fault=fault, retryable=True)

    def _says(self, what: str) -> str:
        return f"{self._who}: {what}"

    def _words(self, text: str) -> str:
        # masked before it is cut: half a key would pass
        masked = self._redact(text)
        plain = "".join(char if char.isprintable() else " " for char in masked[: MAX_WORDS * 8])
        plain = _SPACE.sub(" ", plain).strip()
        return plain if len(plain) <= MAX_WORDS else f"{plain[: MAX_WORDS - 1]}…"


def _texts(body: object) -> Iterator[str]:
    """What an error's body says: `error.message`, `message`, `detail` or `error`, else all of it."""
    match body:
        case None:
            return
        case {"error": {"message": str(text)}} | {"message": str(text)} | {"detail": str(text)} | {"error": str(text)}:
            yield text
        case [first, *_]:
            yield from _texts(first)
        case _:
            yield str(body)


def _unsent(error: ModelConnectionError) -> bool:
    return error.phase == "connect"


def _unread(error: BaseException) -> UnreadableAnswerError | None:
    """Our own reason not to read the answer, where that is what the libraries stumbled over."""
    cause: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if cause is None or isinstance(cause, UnreadableAnswerError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None


def _innermost(error: BaseException) -> str:
    """The words of the first cause that has some: the libraries on top say no more than that there is an error."""
    words, seen = "", 0
    cause: BaseException | None = error
    while cause is not None and seen < _MOST_CAUSES:
        words = str(cause) or words
        cause, seen = cause.__cause__ or cause.__context__, seen + 1
    return words or type(error).__name__


def _said(error: Exception) -> str:
    said = error.message if isinstance(error, ModelAPIError) else str(error)
    return said or type(error).__name__


def _body(answer: httpx2.Response | None) -> bytes:
    try:
        return answer.content if answer is not None else b""
    except httpx2.ResponseNotRead:
        return b""


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _retry_after(known: float | None, headers: Mapping[str, str]) -> float | None:
    """Seconds the provider asks to wait; pydantic-ai reads all forms but fractions of a second."""
    if known is None:
        try:
            known = float(headers.get("retry-after", ""))
        except ValueError:
            return None
    return min(known, _LONGEST_WAIT_S) if known >= 0 else None


def _hint(error: ModelHTTPError, *, spent: bool) -> str | None:
    if spent:
        return "the account's quota or credit is used up"
    if error.status_code in NEVER_AGAIN:
        return "check that the key is valid and may use this model"
    if error.status_code == 404:
        return "check the model's or deployment's name, and the address"
    return None
