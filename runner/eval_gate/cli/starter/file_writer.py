"""Writes several new files into a folder, all or none, and never overwrites one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

from eval_gate.errors import GateError, Problem


def check_paths(folder: Path, names: Mapping[str, str]) -> None:
    """Check that these files can be created below the folder (its real path). Raises GateError with all obstacles."""
    problems = [Problem(why, file=name) for name in names for why in _iter_obstacles(folder, name)]
    if problems:
        raise _build_write_error(problems)


def _iter_obstacles(folder: Path, name: str) -> Iterator[str]:
    """Yield the reason why a file cannot be created; at most one."""
    place = folder
    try:
        for part in PurePosixPath(name).parts[:-1]:
            below = place / part
            shown = below.relative_to(folder).as_posix()
            if below.is_symlink() and not Path(os.path.realpath(below)).is_relative_to(folder):
                yield f"{shown} is a link to a place outside of the folder"
                return
            if not os.path.lexists(below):
                break
            if not below.is_dir():
                yield f"{shown} is not a folder"
                return
            place = below
        if not os.access(place, os.W_OK | os.X_OK):
            yield f"{place if place == folder else place.relative_to(folder).as_posix()} is not writable"
    except OSError as error:
        yield f"{error.strerror}"


def write_new_files(folder: Path, texts: Mapping[str, str]) -> None:
    """Write every file, in folders made where they are missing.

    Raises GateError when one cannot be written, or is there by now. Then nothing of this call is left.
    """
    with ExitStack() as undo:
        for name, text in texts.items():
            try:
                _make_folders(folder, PurePosixPath(name).parent, undo)
                _write_file(folder / name, text, undo)
            except OSError as error:
                raise _build_write_error([Problem(f"not writable: {error.strerror}", file=name)]) from error
        undo.pop_all()


def _make_folders(folder: Path, below: PurePosixPath, undo: ExitStack) -> None:
    place = folder
    for part in below.parts:
        place = place / part
        if not place.is_dir():
            place.mkdir()
            undo.callback(_run_quietly, place.rmdir)


def _write_file(file: Path, text: str, undo: ExitStack) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(file, flags, 0o666)
    undo.callback(_run_quietly, file.unlink)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(text.encode())


def _run_quietly(remove: Callable[[], None]) -> None:
    with contextlib.suppress(OSError):
        remove()


def _build_write_error(problems: list[Problem]) -> GateError:
    about_workflow = any((problem.file or "").startswith(".github/") for problem in problems)
    return GateError(
        "file-not-writable",
        "some files cannot be written; nothing was written",
        "fix these paths, or choose another folder"
        + (", or omit the workflow with --no-workflow" if about_workflow else ""),
        problems=problems,
    )
