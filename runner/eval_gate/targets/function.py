"""Python function as a target: it is named as `module:name`, receives the request and returns the response."""

from __future__ import annotations

import asyncio
import importlib
import importlib.machinery
import importlib.util
import inspect
import json
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field

from eval_gate.config.settings import TargetChoice, parse_agent_function
from eval_gate.errors import PAGES, GateError, Problem, format_suggestion
from eval_gate.files.file_paths import format_relative_path
from eval_gate.model.conversation import Response
from eval_gate.model.setup import TargetIdentity
from eval_gate.struct import replace
from eval_gate.targets.base import DescribedTarget, Request, TargetError, TargetFault
from eval_gate.targets.build_context import BuildContext
from eval_gate.targets.response.reader import ResponseReader
from eval_gate.targets.response.settings import ResponseSettings
from eval_gate.targets.settings import AGENT_PLACE, NotSecret, Text
from eval_gate.text.escape import truncate_text
from eval_gate.text.quoting import quote_name
from eval_gate.text.untrusted.surrogates import to_well_formed

FunctionResult: TypeAlias = str | Mapping[str, object]
"""Plain text, or the fields of an HTTP agent's response: `response`, `toolCalls`, `usage`, `costUsd`."""
TargetFunction: TypeAlias = Callable[[Request], FunctionResult | Awaitable[FunctionResult]]

PROVIDER: Final = "python"
_MAX_ERROR_TEXT: Final = 300
"""Maximum characters of an exception's own message."""
_INSTALL_HINT: Final = (
    "install Eval Gate into the virtual environment of the agent, and run it there as `python -m eval_gate`: "
    f"{PAGES}/python.md"
)
_SIGNATURE_HINT: Final = f"write def answer(request): …, with the prompt in request.message: {PAGES}/python.md"
_RESULT_HINT: Final = 'return text, or {"response": …, "toolCalls": […]} as an HTTP agent does'


class FunctionSettings(ResponseSettings):
    """Settings of a Python function."""

    provider: Literal["python"] = PROVIDER
    function: Annotated[
        Text, AfterValidator(parse_agent_function), AGENT_PLACE, NotSecret("it is the name of a function")
    ] = Field(description="Function as module:name, imported from the working directory.")


class FunctionTarget(DescribedTarget[ResponseSettings]):
    """Target that calls a function once per case or turn; a synchronous one in its own thread."""

    conversation_problem = None

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
            result = await self._call_function(request)
        # the function is the user's code and may raise or exit; elsewhere only the pool and the program itself catch
        # everything
        except (Exception, SystemExit) as error:
            message = f"agent error: {type(error).__name__}: {to_well_formed(str(error))}".rstrip(": ")
            raise TargetError(message, fault=TargetFault.REFUSED, hint=_find_hint(error, request)) from error
        return self._read_result(result, (time.perf_counter() - started) * 1000)

    async def _call_function(self, request: Request) -> object:
        if inspect.iscoroutinefunction(self._function):
            return await self._function(request)
        result = await _call_in_thread(self._function, request)
        return await result if inspect.isawaitable(result) else result

    def _read_result(self, result: object, duration_ms: float) -> Response:
        if isinstance(result, str):
            # another response of the same function may list its calls
            response = self._reader.assemble_response(to_well_formed(result), (), calls_known=False)
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
    future: asyncio.Future[tuple[object, BaseException | None]] = loop.create_future()

    def deliver(result: object, error: BaseException | None) -> None:
        if not future.done():  # else the case timed out
            future.set_result((result, error))

    def call() -> None:
        result, raised = None, None
        try:
            result = context.run(function, request)
        except BaseException as error:  # noqa: BLE001 (it is raised where the response is waited for)
            raised = error
        with suppress(RuntimeError):  # the loop has ended before the function did
            loop.call_soon_threadsafe(deliver, result, raised)

    threading.Thread(target=call, name="eval-gate", daemon=True).start()
    result, raised = await future
    if raised is not None:
        raise raised
    return result


def build(settings: FunctionSettings, choice: TargetChoice, context: BuildContext) -> FunctionTarget:
    """Build the target of a function, which is imported unless targets are only checked. Raises GateError."""
    if context.secret_policy is not None:
        raise GateError(
            "function-not-allowed",
            "a Python function would run inside the action, with its variables and without the agent's packages",
            "run it in a step with `eval-gate run`, and let the action publish the result with `results: latest`",
        )
    if context.missing_requirements is not None:
        check_module(settings.function, context.root)
        return FunctionTarget(str, settings)  # it is never called
    return FunctionTarget(import_function(settings.function, context.root), settings)


def _find_hint(error: BaseException, request: Request) -> str | None:
    """Name the line in the agent's own code that raised an error, and the text of a request that is taken for one."""
    file, line = find_place(error, Path.cwd())
    where, kind = [f"look at {file}, line {line}"] if file else [], type(request).__name__
    is_mistaken = isinstance(error, TypeError | AttributeError) and kind in str(error)
    what = [f"the function gets a {kind}, whose text is request.message"] if is_mistaken else []
    return ": ".join([*where, *what]) or None


def _build_unreadable_error(why: str) -> TargetError:
    return TargetError(
        f"agent error: the response cannot be read: {why}", fault=TargetFault.MALFORMED, hint=_RESULT_HINT
    )


def import_function(place: str, root: Path) -> Callable[[Any], Any]:
    """Import the function at `module:name`, from the folder `root` first, as `python -m` would. Raises GateError."""
    module_name, _, name = place.partition(":")
    _add_search_folder(root)
    try:
        member: Any = importlib.import_module(module_name)
    # the module is the user's code and may raise or exit
    except (Exception, SystemExit) as error:
        raise _build_import_error(module_name, error, root) from error
    for part in name.split("."):
        if not hasattr(member, part):
            names = [one for one, value in vars(member).items() if callable(value) and not one.startswith("_")]
            file = getattr(member, "__file__", None)
            where = format_relative_path(Path(file), root) if file else module_name
            raise _build_error(f"{where} has no {quote_name(part)}{format_suggestion(part, names)}", None)
        member = getattr(member, part)
    if inspect.isclass(member) or not callable(member):
        what = "a class" if inspect.isclass(member) else f"of the type {type(member).__name__}"
        raise _build_error(f"{place} is {what} and not a function", _SIGNATURE_HINT)
    _check_signature(member, place)
    function: Callable[[Any], Any] = member
    return function


def check_module(place: str, root: Path) -> None:
    """Check that the module at `module:name` exists, without running any of its code. Raises GateError if not."""
    module_name = place.partition(":")[0]
    _add_search_folder(root)
    first, *rest = module_name.split(".")
    spec, full_name = None, first
    with suppress(ValueError):  # of a module without one, such as the program itself
        spec = importlib.util.find_spec(first)
    for part in rest:
        full_name = f"{full_name}.{part}"
        folders = spec.submodule_search_locations if spec is not None else None
        spec = importlib.machinery.PathFinder.find_spec(full_name, folders) if folders is not None else None
    if spec is None:
        raise _build_missing_error(module_name, root)


def _add_search_folder(root: Path) -> None:
    folder = str(root)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    importlib.invalidate_caches()


def _check_signature(function: Callable[[Any], Any], place: str) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a function in C may not tell
        return
    try:
        signature.bind(None)
    except TypeError:
        what = f"{place} cannot be called with one argument, the request: it is {place.rpartition(':')[2]}{signature}"
        raise _build_error(truncate_text(what, _MAX_ERROR_TEXT), _SIGNATURE_HINT) from None


def _build_import_error(module_name: str, error: BaseException, root: Path) -> GateError:
    """Build the error for a module that is missing, needs a package that is missing, or raises while it is imported."""
    missing_name = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing_name is not None and f"{module_name}.".startswith(f"{missing_name}."):
        return _build_missing_error(module_name, root)
    file, line = find_place(error, root)
    words = truncate_text("".join(traceback.format_exception_only(error)).strip().splitlines()[-1], _MAX_ERROR_TEXT)
    message = f"{module_name} cannot be imported: {words}"
    if missing_name is None:
        return _build_error(message, f"see what `python -c 'import {module_name}'` says", Problem(words, file, line))
    package = missing_name.partition(".")[0]
    message = f"{module_name} needs the package {quote_name(package)}, which is not installed where Eval Gate runs"
    return _build_error(message, _INSTALL_HINT, Problem(f"needs {quote_name(package)}", file, line))


def _build_missing_error(module_name: str, root: Path) -> GateError:
    first = module_name.partition(".")[0]
    names = [one.stem for one in root.iterdir() if one.suffix == ".py" or (one.is_dir() and one.name.isidentifier())]
    message = f"no module {quote_name(module_name)} in this folder or among the installed packages"
    return _build_error(
        f"{message}{format_suggestion(first, names)}",
        f"run Eval Gate in the folder from which `python -c 'import {module_name}'` works",
    )


def find_place(error: BaseException, root: Path) -> tuple[str | None, int | None]:
    """Find the last line of the repository's own code that led to an error."""
    if isinstance(error, SyntaxError) and error.filename:
        return format_relative_path(Path(error.filename), root), error.lineno
    frames = [one for one in traceback.extract_tb(error.__traceback__) if Path(one.filename).is_relative_to(root)]
    outside = {"site-packages", "dist-packages"}
    own = [one for one in frames if outside.isdisjoint(Path(one.filename).parts)]
    return (format_relative_path(Path(own[-1].filename), root), own[-1].lineno) if own else (None, None)


def _build_error(message: str, hint: str | None, problem: Problem | None = None) -> GateError:
    problems = [problem] if problem is not None and problem.file is not None else []
    return GateError("invalid-agent-function", message, hint, problems=problems)
