"""Python function as a target: it receives the request and returns the response."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Final, TypeAlias

from eval_gate.model.conversation import Response
from eval_gate.model.setup import TargetIdentity
from eval_gate.targets.base import DescribedTarget, Request, TargetError, TargetFault
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.targets.response.reader import ResponseReader
from eval_gate.text.escape import truncate_text
from eval_gate.text.untrusted.surrogates import to_well_formed

FunctionResult: TypeAlias = str | Mapping[str, object]
"""Plain text, or the fields of an HTTP agent's response: `response`, `toolCalls`, `usage`, `costUsd`."""
TargetFunction: TypeAlias = Callable[[Request], FunctionResult | Awaitable[FunctionResult]]

MAX_THREADS: Final = 1_000
"""Maximum threads: the maximum of concurrent cases."""
MAX_ERROR_TEXT: Final = 1_000
"""Maximum characters of an exception's own message."""
_RESULT_HINT: Final = 'return text, or {"response": …, "toolCalls": […]} as an HTTP agent does'


class FunctionTarget(DescribedTarget[HttpSettings]):
    """Target that calls a function once per case; a synchronous one in its own thread."""

    def __init__(self, function: TargetFunction) -> None:
        self._function = function
        name = getattr(function, "__qualname__", type(function).__qualname__)
        # no address is ever asked: what an agent behind one may answer is what a function may give back
        super().__init__(HttpSettings.model_validate({"name": name, "url": "http://localhost"}))
        self._reader = ResponseReader(self._settings)
        self._identity = TargetIdentity(
            name=name, provider="python", identity=f"python:{getattr(function, '__module__', None) or '?'}.{name}"
        )
        # not those of the event loop: these are few, and one that never comes back would be missing for all others
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="eval-gate")

    @property
    def identity(self) -> TargetIdentity:
        """The function by module and name."""
        return self._identity

    async def respond(self, request: Request) -> Response:
        """Call the function and return its response.

        Raises TargetError. An exception of the function itself is an agent error.
        """
        started = time.perf_counter()
        try:
            answer = await self._call_function(request)
        # the function is somebody else's program and may raise whatever it wants; elsewhere only the pool and the
        # program itself catch everything
        except Exception as error:
            words = truncate_text(to_well_formed(str(error)), MAX_ERROR_TEXT)
            said = f"agent error: {type(error).__name__}: {words}".rstrip(": ")
            raise TargetError(said, fault=TargetFault.REFUSED) from error
        return self._read_result(answer, (time.perf_counter() - started) * 1000)

    async def aclose(self) -> None:
        """Wait for no thread: one that hangs cannot be ended."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _call_function(self, request: Request) -> object:
        if inspect.iscoroutinefunction(self._function):
            return await self._function(request)
        loop, context = asyncio.get_running_loop(), copy_context()
        answer = await loop.run_in_executor(self._threads, context.run, self._function, request)
        return await answer if inspect.isawaitable(answer) else answer

    def _read_result(self, result: object, duration_ms: float) -> Response:
        if isinstance(result, str):
            return Response(text=to_well_formed(result), tool_calls_known=False, duration_ms=duration_ms)
        if not isinstance(result, Mapping):
            raise _build_unreadable_error(f"it is of type {type(result).__name__}")
        try:
            body = json.dumps(dict(result)).encode()
        except (TypeError, ValueError) as error:
            raise _build_unreadable_error(truncate_text(str(error), MAX_ERROR_TEXT)) from error
        try:
            return self._reader.read(body, duration_ms)
        except TargetError as error:
            error.hint = _RESULT_HINT
            raise


def _build_unreadable_error(why: str) -> TargetError:
    return TargetError(
        f"agent error: the response cannot be read: {why}", fault=TargetFault.MALFORMED, hint=_RESULT_HINT
    )
