"""Python function as a target: it receives the request and returns the response."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field

from eval_gate.config.settings import TargetChoice, parse_agent_function
from eval_gate.errors import GateError
from eval_gate.model.conversation import Response
from eval_gate.model.setup import TargetIdentity
from eval_gate.struct import replace
from eval_gate.targets.base import DescribedTarget, Request, TargetError, TargetFault
from eval_gate.targets.build_context import BuildContext
from eval_gate.targets.response.reader import ResponseReader
from eval_gate.targets.response.settings import ResponseSettings
from eval_gate.targets.settings import AGENT_PLACE, NotSecret, Text
from eval_gate.text.untrusted.surrogates import to_well_formed

FunctionResult: TypeAlias = str | Mapping[str, object]
"""Plain text, or the fields of an HTTP agent's response: `response`, `toolCalls`, `usage`, `costUsd`."""
TargetFunction: TypeAlias = Callable[[Request], FunctionResult | Awaitable[FunctionResult]]

PROVIDER: Final = "python"
_RESULT_HINT: Final = 'return text, or {"response": …, "toolCalls": […]} as an HTTP agent does'


class FunctionSettings(ResponseSettings):
    """Settings of a Python function."""

    provider: Literal["python"] = PROVIDER
    function: Annotated[
        Text, AfterValidator(parse_agent_function), AGENT_PLACE, NotSecret("it is the name of a function")
    ] = Field(description="Function as module:name, imported from the working directory.")


class FunctionTarget(DescribedTarget[ResponseSettings]):
    """Target that calls a function once per case; a synchronous one in its own thread."""

    def __init__(self, function: TargetFunction, settings: FunctionSettings | None = None) -> None:
        """Without `settings`, it has the name of the function, and Eval Gate's own response."""
        self._function = function
        name = getattr(function, "__qualname__", type(function).__qualname__)
        place = f"{getattr(function, '__module__', None) or '?'}.{name}"
        if settings is not None:
            name, place = settings.name, settings.function.replace(":", ".")
        super().__init__(settings or ResponseSettings.model_validate({"name": name, "provider": PROVIDER}))
        self._reader = ResponseReader(self._settings)
        self._identity = TargetIdentity(name=name, provider=PROVIDER, identity=f"{PROVIDER}:{place}")

    @property
    def identity(self) -> TargetIdentity:
        """The function by module and name."""
        return self._identity

    async def respond(self, request: Request) -> Response:
        """Call the function. Raises TargetError: an exception of the function itself is an agent error."""
        started = time.perf_counter()
        try:
            answer = await self._call_function(request)
        # the function is somebody else's program and may raise or exit as it likes; elsewhere only the pool and the
        # program itself catch everything
        except (Exception, SystemExit) as error:
            said = f"agent error: {type(error).__name__}: {to_well_formed(str(error))}".rstrip(": ")
            raise TargetError(said, fault=TargetFault.REFUSED, hint=_find_hint(error)) from error
        return self._read_result(answer, (time.perf_counter() - started) * 1000)

    async def _call_function(self, request: Request) -> object:
        if inspect.iscoroutinefunction(self._function):
            return await self._function(request)
        answer = await _call_in_thread(self._function, request)
        return await answer if inspect.isawaitable(answer) else answer

    def _read_result(self, result: object, duration_ms: float) -> Response:
        if isinstance(result, str):
            # another response of the same function may list its calls
            response = self._reader.assemble_response(to_well_formed(result), (), known=False)
            return replace(response, duration_ms=duration_ms)
        if not isinstance(result, Mapping):
            raise _build_unreadable_error(f"it is of type {type(result).__name__}")
        try:
            body = json.dumps(dict(result)).encode()
        except (TypeError, ValueError) as error:
            raise _build_unreadable_error(str(error)) from error
        try:
            return self._reader.read(body, duration_ms)
        except TargetError as error:
            error.hint = _RESULT_HINT
            raise


async def _call_in_thread(function: TargetFunction, request: Request) -> object:
    """Call a synchronous function in a thread of its own, which ends with the process if the function hangs."""
    loop, context = asyncio.get_running_loop(), copy_context()
    done: asyncio.Future[tuple[object, BaseException | None]] = loop.create_future()

    def deliver(result: object, error: BaseException | None) -> None:
        if not done.done():  # else the case timed out, and nobody waits
            done.set_result((result, error))

    def call() -> None:
        result, raised = None, None
        try:
            result = context.run(function, request)
        except BaseException as error:  # noqa: BLE001 (it is raised where the response is waited for)
            raised = error
        with suppress(RuntimeError):  # the loop has ended before the function did
            loop.call_soon_threadsafe(deliver, result, raised)

    threading.Thread(target=call, name="eval-gate", daemon=True).start()
    result, raised = await done
    if raised is not None:
        raise raised
    return result


def build(settings: FunctionSettings, choice: TargetChoice, context: BuildContext) -> FunctionTarget:
    """Build the target of a function, which is imported unless targets are only checked. Raises GateError."""
    from eval_gate.targets.function_import import check_module, import_function

    if context.secret_policy is not None:
        raise GateError(
            "function-not-allowed",
            "a Python function would run inside the action, with its variables and without the agent's packages",
            "run it in a step with `eval-gate run`, and let the action publish the result with `results: latest`",
        )
    if context.missing_requirements is not None:
        check_module(settings.function, context.root)
        return FunctionTarget(str, settings)  # nobody calls it
    return FunctionTarget(import_function(settings.function, context.root), settings)


def _find_hint(error: BaseException) -> str | None:
    """Name the line in the agent's own code that raised an error; None if Python itself did."""
    from eval_gate.targets.function_import import find_place

    file, line = find_place(error, Path.cwd())
    return None if file is None else f"look at {file}, line {line}"


def _build_unreadable_error(why: str) -> TargetError:
    return TargetError(
        f"agent error: the response cannot be read: {why}", fault=TargetFault.MALFORMED, hint=_RESULT_HINT
    )
