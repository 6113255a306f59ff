"""Translate errors of providers and their libraries into TargetErrors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
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

from eval_gate.model.execution import ErrorCause
from eval_gate.targets.base import ACCESS_REFUSED_STATUSES, TargetError, TargetFault, names_missing_model
from eval_gate.text.redaction import Redactor
from eval_gate.text.retry_after import parse_retry_after
from eval_gate.text.untrusted.excerpt import format_excerpt
from eval_gate.text.untrusted.http_response import UnreadableResponseError

MAX_WORDS: Final = 300
NON_RETRYABLE: Final = frozenset({401, 403})
_MAX_CAUSES: Final = 10
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
"""All exceptions that a request to a model can raise, except those of the vendors' own libraries."""


class ErrorExplainer:
    """Translator of exceptions into TargetErrors, for one chat."""

    def __init__(self, who: str, retryable: frozenset[int], redact: Redactor) -> None:
        self._who = who
        self._retryable = retryable - NON_RETRYABLE
        self._redact = redact

    def explain_error(self, error: Exception, response: httpx2.Response | None) -> TargetError:
        """Translate an exception to one bounded line without the key, in the words of the provider where possible."""
        unreadable = next((cause for cause in _iter_causes(error) if isinstance(cause, UnreadableResponseError)), None)
        if unreadable is not None:  # our own refusal to read the response made the library fail
            begins = format_excerpt(self._redact.mask_bytes(unreadable.begins, cut_after=True))
            return self._build_malformed_error(f"it {unreadable}; it begins {begins}")
        match error:
            case ModelHTTPError():
                return self._explain_refusal(error)
            case ModelTimeoutError():
                return self._explain_lost_connection(error, "no response in time", TargetFault.LATE)
            case ModelConnectionError():
                return self._explain_lost_connection(
                    error, "no connection" if _is_unsent(error) else "the connection broke"
                )
            case UserError():
                what = f"cannot be called: {self._shorten_text(str(error))}"
                return TargetError(self._format_message(what), fault=TargetFault.NOT_SENT)
        if response is not None and response.is_redirect:
            where = self._shorten_text(response.headers.get("location", "")) or "nowhere"
            return TargetError(
                self._format_message(f"answered HTTP {response.status_code}: it redirects to {where}"),
                fault=TargetFault.REFUSED,
                status=response.status_code,
                hint="check the URL",
            )
        return (
            self.explain_unreadable(response)
            if response is not None
            else self._build_malformed_error(self._shorten_text(_get_message(error)))
        )

    def explain_unreadable(self, response: httpx2.Response | None) -> TargetError:
        """Build the error for a response of an unexpected shape, with its own error message or its beginning."""
        body, document = b"", None
        with suppress(httpx2.ResponseNotRead, ValueError, RecursionError):
            body = response.content if response is not None else b""
            document = json.loads(body)
        match document:
            case {"error": dict(problem)}:
                code = problem.get("code")
                status = code if isinstance(code, int) and 400 <= code < 600 else None
                words = self._shorten_text(" ".join(_iter_texts(problem)))
                return TargetError(
                    self._format_message(f"answered with an error: {words}"),
                    fault=TargetFault.REFUSED,
                    status=status,
                    retryable=status in self._retryable,
                )
        return self._build_malformed_error(f"it begins {format_excerpt(self._redact.mask_bytes(body))}")

    def explain_timeout(self, timeout_s: float) -> TargetError:
        """No complete response within the caller's time limit."""
        return TargetError(
            self._format_message(f"gave no response within {timeout_s:g} s"), fault=TargetFault.LATE, retryable=True
        )

    def _build_malformed_error(self, what: str) -> TargetError:
        return TargetError(self._format_message(f"gave an unreadable response: {what}"), fault=TargetFault.MALFORMED)

    def _explain_refusal(self, error: ModelHTTPError) -> TargetError:
        words = self._shorten_text(" ".join(_iter_texts(error.body)))
        spent = isinstance(error, ModelQuotaExceededError)
        return TargetError(
            self._format_message(f"answered HTTP {error.status_code}{f': {words}' if words else ''}"),
            fault=TargetFault.REFUSED,
            status=error.status_code,
            # a spent budget is a 429 as well, but no wait brings it back
            retryable=error.status_code in self._retryable and not spent,
            # pydantic-ai reads all forms but fractions of a second
            retry_after_s=error.retry_after or parse_retry_after((error.headers or {}).get("retry-after", "")),
            hint=_find_hint(error, spent=spent),
            known_cause=_find_cause(error, spent=spent),
        )

    def _explain_lost_connection(
        self, error: ModelConnectionError, what: str, fault: TargetFault = TargetFault.REFUSED
    ) -> TargetError:
        words = self._shorten_text(_find_innermost_message(error))
        fault = TargetFault.UNREACHABLE if _is_unsent(error) else fault
        cause = None if fault is TargetFault.LATE else ErrorCause.PROVIDER_UNREACHABLE
        return TargetError(self._format_message(f"{what}: {words}"), fault=fault, retryable=True, known_cause=cause)

    def _format_message(self, what: str) -> str:
        return f"{self._who}: {what}"

    def _shorten_text(self, text: str) -> str:
        # masked before it is cut: half a key would pass
        masked = self._redact(text)
        plain = "".join(char if char.isprintable() else " " for char in masked[: MAX_WORDS * 8])
        plain = _SPACE.sub(" ", plain).strip()
        return plain if len(plain) <= MAX_WORDS else f"{plain[: MAX_WORDS - 1]}…"


def _iter_texts(body: object) -> Iterator[str]:
    """Yield the message in the body of an error, or the whole body if it has no known place for one."""
    match body:
        case None:
            return
        case {"error": {"message": str(text)}} | {"message": str(text)} | {"detail": str(text)} | {"error": str(text)}:
            yield text
        case [first, *_]:
            yield from _iter_texts(first)
        case _:
            yield str(body)


def _is_unsent(error: ModelConnectionError) -> bool:
    return error.phase == "connect"


def _iter_causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if cause is not None:
            yield cause
            cause = cause.__cause__ or cause.__context__


def _find_innermost_message(error: BaseException) -> str:
    """Find the message of the innermost cause: the outer errors of the libraries have no details."""
    words = [text for cause in _iter_causes(error) if (text := str(cause))]
    return words[-1] if words else type(error).__name__


def _get_message(error: Exception) -> str:
    message = error.message if isinstance(error, ModelAPIError) else str(error)
    return message or type(error).__name__


def _find_cause(error: ModelHTTPError, *, spent: bool) -> ErrorCause | None:
    """Find the cause, if the HTTP status alone does not show it."""
    if spent:
        return ErrorCause.QUOTA_USED
    if error.status_code >= 500 and error.status_code not in ACCESS_REFUSED_STATUSES:
        return ErrorCause.PROVIDER_FAILED
    # pydantic-ai has the value of `error` where there is one
    is_missing = error.status_code == 404 and names_missing_model(error.body, error.model_name)
    return ErrorCause.MODEL_NOT_FOUND if is_missing else None


def _find_hint(error: ModelHTTPError, *, spent: bool) -> str | None:
    if spent:
        return "renew the quota or credit of the account, which is used up"
    if error.status_code in NON_RETRYABLE:
        return "check that the key is valid and may use this model"
    if error.status_code == 404:
        return "check the model's or deployment's name, and the URL"
    return None
