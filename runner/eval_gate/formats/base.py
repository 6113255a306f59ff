"""Interfaces of the eval file dialects: source, options, positions, notation and dialect."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from eval_gate.errors import GateError, Problem
from eval_gate.formats.outlines import Outline
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalSuite
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import format_count


class EvalSource(FrozenStruct):
    """An eval file that was read: its path as displayed, its bytes and its location.

    `root` is the root of the run. Files that the eval file names are searched around `path`, and never outside the
    repository.
    """

    file: str
    data: bytes
    path: Path
    root: Path

    @property
    def file_hash(self) -> str:
        """First 12 hex digits of the SHA-256 of the bytes (tool-forge contract, `evalFileHash`)."""
        return hashlib.sha256(self.data).hexdigest()[:12]


class ReadOptions(FrozenStruct):
    """Options for reading all eval files of a run.

    `strict` turns warnings about silent passes into problems. `tool_names` are those of the registry. `target_override`
    is the target or model that the caller chose, whatever the files name. `tmp` is the folder with the initial files of
    every suite's agent, None for none; `tmp_shared` means that other programs also write there.
    """

    strict: bool = False
    tool_names: Collection[str] = ()
    target_override: str | None = None
    tmp: Path | None = None
    tmp_shared: bool = False


class Positions(Protocol):
    """Places of the values in a document."""

    def find_line(self, path: Sequence[str | int]) -> int:
        """Return the line (from 1) of the key or element at `path`, or of its nearest existing ancestor."""
        ...

    def find_unquoted(self, path: Sequence[str | int]) -> str | None:
        """Return the scalar at `path` as written in YAML without quotes, such as `on` and `1`; None for any other."""
        ...


CaseOrigin = tuple[str, Positions | None, int | None]
"""File of a case, positions in it, and the line of the case if there are no positions."""


class MultiFilePositions:
    """Places in a document whose list of cases, `name`, comes from several files."""

    def __init__(
        self,
        file: str,
        own: Positions | None,
        name: str,
        places: Sequence[tuple[CaseOrigin, int]],
        *,
        list_is_elsewhere: bool = False,
    ) -> None:
        """`places` are the origins of the cases, each with its index in its file (-1 for a file that is one case).

        `list_is_elsewhere`: `file`, which has the rest of the document, does not name the list.
        """
        self._file = file
        self._own = own
        self._name = name
        self._places = places
        self._list_is_elsewhere = list_is_elsewhere

    def find_line(self, path: Sequence[str | int]) -> int:
        """Return the line (from 1) of the value at `path`, in the file that contains it."""
        (_, positions, line), inside = self._locate_origin(path)
        return (line or 1) if positions is None else positions.find_line(inside)

    def find_unquoted(self, path: Sequence[str | int]) -> str | None:
        """Return the scalar at `path` as written, if it has no quotes; else None."""
        (_, positions, _), inside = self._locate_origin(path)
        return None if positions is None else positions.find_unquoted(inside)

    def locate(self, path: Sequence[str | int]) -> tuple[str, Sequence[str | int]]:
        """Return the file that contains the value at `path`, and the value's path in that file."""
        (file, positions, _), inside = self._locate_origin(path)
        return positions.locate(inside) if isinstance(positions, MultiFilePositions) else (file, inside)

    def _locate_origin(self, path: Sequence[str | int]) -> tuple[CaseOrigin, Sequence[str | int]]:
        number = None
        if path and path[0] == self._name:
            number = path[1] if len(path) > 1 else 0 if self._list_is_elsewhere else None
        if not isinstance(number, int) or number >= len(self._places):
            return (self._file, self._own, None), path
        origin, index = self._places[number]
        if origin[1] is None or index < 0:
            return origin, path[2:]
        return origin, (*((self._name,) if origin[0] == self._file else ()), index, *path[2:])


class EvalFileError(GateError):
    """An eval file is invalid. `problems` holds all problems of the file."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        super().__init__(
            "invalid-eval-file",
            f"{file} has {format_count(len(problems), 'problem')}",
            "correct the file; `eval-gate validate` checks it without calling the agent",
            problems=problems,
        )


class Document(FrozenStruct):
    """A parsed file and the positions of its values."""

    value: JsonValue
    positions: Positions


class Notation(FrozenStruct):
    """A file syntax, such as JSON or YAML."""

    parse: Callable[[bytes, Path, str], Document]
    """Parse bytes; the last argument is the displayed name of the file. Raises GateError with file and lines."""
    outline: Callable[[bytes], Outline]
    """Read the outline of bytes that `parse` refuses."""


class Mine(FrozenStruct):
    """The document is a suite of this dialect."""

    is_certain: bool = True
    """Whether no other tool has files of this shape, in any notation."""


class Broken(FrozenStruct):
    """The document is meant for this dialect, but is no suite of it."""

    reason: str
    is_part: bool = False
    """Whether a suite may name the file as a part of it."""


Recognition = Mine | Broken | None
"""Result of a dialect's recognition; None for a document of something else."""


class Recognizer(Protocol):
    """Recognizes a parsed document. `is_named`: the file's name is one of the dialect."""

    def __call__(self, document: JsonValue, /, *, is_named: bool) -> Recognition:
        """Return what the document is to the dialect."""
        ...


def _return_false(_: object) -> bool:
    return False


class Dialect(FrozenStruct):
    """An eval file format, listed in `dialect_names.py` and recognized by the keys of a document."""

    notations: Mapping[str, Notation]
    """Notations by suffix."""
    recognize: Recognizer
    load: Callable[[JsonValue, Positions, EvalSource, ReadOptions], EvalSuite]
    """Load the suite of a document. Raises EvalFileError with all problems of the file."""
    build_json_schema: Callable[[], dict[str, JsonValue]]
    is_own_name: Callable[[Path], bool] = _return_false
    """Whether the name of a file is one of this dialect."""
    is_companion: Callable[[Path], bool] = _return_false
    """Whether this file belongs to an eval file in its folder, and need not hold cases itself."""
