"""Write several files into a folder, all or none. Replace only own files, and only unedited ones."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from enum import Enum, auto
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

from eval_gate.errors import GateError, Problem

MAX_BYTES: Final = 1_000_000
_SIGNATURE: Final = re.compile(r"# `eval-gate init` rewrites this file only if it is not edited: ([0-9a-f]{16})")


class FileState(Enum):
    """Whether a file may be replaced."""

    MISSING = auto()
    WRITTEN = auto()
    """Written by this program, unedited."""
    EDITED = auto()
    """Written by this program, and edited since."""
    EXTERNAL = auto()


def sign_text(text: str) -> str:
    """Add a comment with a digest of the text, by which an edit is noticed later."""
    return f"{text}# `eval-gate init` rewrites this file only if it is not edited: {_compute_digest(text)}\n"


def read_state(file: Path) -> tuple[FileState, str]:
    """Read whether a file may be replaced, and its text. Line ends and blanks at the end of lines do not count."""
    if not os.path.lexists(file):
        return FileState.MISSING, ""
    try:
        if file.is_symlink() or not file.is_file() or file.stat().st_size > MAX_BYTES:
            return FileState.EXTERNAL, ""
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return FileState.EXTERNAL, ""
    lines = text.splitlines()
    signature = next((one for one in map(_SIGNATURE.fullmatch, map(str.strip, lines)) if one), None)
    if signature is None:
        return FileState.EXTERNAL, text
    rest = "\n".join(line for line in lines if not _SIGNATURE.fullmatch(line.strip()))
    return FileState.WRITTEN if _compute_digest(rest) == signature[1] else FileState.EDITED, text


def _compute_digest(text: str) -> str:
    plain = "\n".join(line.rstrip() for line in text.splitlines()).rstrip("\n")
    return hashlib.sha256(plain.encode()).hexdigest()[:16]


def check_paths(folder: Path, names: Iterable[str]) -> None:
    """Check that these files can be created below the folder (its real path). Raises GateError with all obstacles."""
    obstacles = [(name, _find_obstacle(folder, folder / name)) for name in names]
    if problems := [Problem(why, file=name) for name, why in obstacles if why]:
        raise _build_write_error(problems)


def _find_obstacle(folder: Path, file: Path) -> str | None:
    """Find the reason why a file cannot be created: what is wrong with the last of its folders that exists."""
    try:
        place = next(one for one in file.parents if os.path.lexists(one))
        label = place if place == folder else place.relative_to(folder).as_posix()
        if not Path(os.path.realpath(place)).is_relative_to(folder):
            return f"{label} is a link to a place outside of the folder"
        if not place.is_dir():
            return f"{label} is not a folder"
        return None if os.access(place, os.W_OK | os.X_OK) else f"{label} is not writable"
    except OSError as error:
        return str(error.strerror)


def write_files(folder: Path, texts: Mapping[str, str], replaced: Iterable[str] = ()) -> None:
    """Write every file, in folders made where they are missing. Those in `replaced` take the place of earlier ones.

    Raises GateError when one cannot be written, or when a new one is there by now. Then all is as it was.
    """
    with ExitStack() as undo:
        for name, text in texts.items():
            file = folder / name
            try:
                if name in replaced:
                    undo.callback(_run_quietly, partial(file.write_bytes, file.read_bytes()))
                    file.write_bytes(text.encode())
                else:
                    _make_folders(folder, PurePosixPath(name).parent, undo)
                    _write_file(file, text, undo)
            except OSError as error:
                raise _build_write_error([Problem(f"not writable: {error.strerror}", file=name)]) from error
        undo.pop_all()


def _make_folders(folder: Path, path: PurePosixPath, undo: ExitStack) -> None:
    place = folder
    for part in path.parts:
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


def _run_quietly(remove: Callable[[], object]) -> None:
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
