"""Import of the Python function that a setting names as `module:name`, with an error for whatever prevents it."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from eval_gate.errors import PAGES, GateError, Problem, format_suggestion
from eval_gate.files.file_paths import format_relative_path
from eval_gate.text.escape import truncate_text
from eval_gate.text.quoting import quote_name

_MAX_ERROR_TEXT: Final = 300
"""Maximum characters of an exception's own message."""
_INSTALL_HINT: Final = (
    "install Eval Gate into the virtual environment of the agent, and run it there as `python -m eval_gate`: "
    f"{PAGES}/python.md"
)
_SIGNATURE_HINT: Final = f"write def answer(request): …, with the prompt in request.message: {PAGES}/python.md"


def import_function(place: str, root: Path) -> Callable[[Any], Any]:
    """Import the function at `module:name`, from the folder `root` first, as `python -m` would.

    Raises GateError with the place in the module if it cannot be imported or called with one argument.
    """
    module_name, _, name = place.partition(":")
    _add_search_folder(root)
    try:
        found: Any = importlib.import_module(module_name)
    # the module is somebody else's program and may raise or exit as it likes
    except (Exception, SystemExit) as error:
        raise _build_import_error(module_name, error, root) from error
    for part in name.split("."):
        if not hasattr(found, part):
            known = [one for one, value in vars(found).items() if callable(value) and not one.startswith("_")]
            file = getattr(found, "__file__", None)
            where = format_relative_path(Path(file), root) if file else module_name
            raise _build_error(f"{where} has no {quote_name(part)}{format_suggestion(part, known)}", None)
        found = getattr(found, part)
    if inspect.isclass(found) or not callable(found):
        what = "a class" if inspect.isclass(found) else f"of the type {type(found).__name__}"
        raise _build_error(f"{place} is {what} and not a function", _SIGNATURE_HINT)
    _check_signature(found, place)
    function: Callable[[Any], Any] = found
    return function


def check_module(place: str, root: Path) -> None:
    """Check that the module at `module:name` exists, without running any of its code. Raises GateError if not."""
    module_name = place.partition(":")[0]
    _add_search_folder(root)
    first, *others = module_name.split(".")
    spec, known = None, first
    with suppress(ValueError):  # of a module without one, such as the program itself
        spec = importlib.util.find_spec(first)
    for part in others:
        known = f"{known}.{part}"
        folders = spec.submodule_search_locations if spec is not None else None
        spec = importlib.machinery.PathFinder.find_spec(known, folders) if folders is not None else None
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
        said = f"{place} cannot be called with one argument, the request: it is {place.rpartition(':')[2]}{signature}"
        raise _build_error(truncate_text(said, _MAX_ERROR_TEXT), _SIGNATURE_HINT) from None


def _build_import_error(module_name: str, error: BaseException, root: Path) -> GateError:
    """Build the error for a module that is missing, needs a package that is missing, or raises while it is imported."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing is not None and f"{module_name}.".startswith(f"{missing}."):
        return _build_missing_error(module_name, root)
    file, line = find_place(error, root)
    words = truncate_text("".join(traceback.format_exception_only(error)).strip().splitlines()[-1], _MAX_ERROR_TEXT)
    said = f"{module_name} cannot be imported: {words}"
    if missing is None:
        return _build_error(said, f"see what `python -c 'import {module_name}'` says", Problem(words, file, line))
    package = missing.partition(".")[0]
    said = f"{module_name} needs the package {quote_name(package)}, which is not installed where Eval Gate runs"
    return _build_error(said, _INSTALL_HINT, Problem(f"needs {quote_name(package)}", file, line))


def _build_missing_error(module_name: str, root: Path) -> GateError:
    first = module_name.partition(".")[0]
    there = [one.stem for one in root.iterdir() if one.suffix == ".py" or (one.is_dir() and one.name.isidentifier())]
    said = f"no module {quote_name(module_name)} in this folder or among the installed packages"
    return _build_error(
        f"{said}{format_suggestion(first, there)}",
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
