"""The files of a promptfoo configuration: found in its folder and nowhere else, read within bounds, with places.

promptfoo reads YAML as version 1.2 has it, where `yes`, `012` and `12:30` are no truth, no eight and no seconds. What
our reader takes for something else is set right here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from eval_gate.errors import GateError
from eval_gate.files.place import real_place
from eval_gate.files.reading import read_up_to
from eval_gate.formats.base import Positions, WrittenScalars
from eval_gate.formats.documents import JSON, parse_document, parse_yaml, read_bytes
from eval_gate.importing.imported import CannotCarryError, SourcePlace
from eval_gate.importing.promptfoo.templates import DATE
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import BROUGHT_TEXT, EVAL_FILE_BYTES, FINDINGS

YAML_SUFFIXES: Final = frozenset({".yaml", ".yml"})
_SOUGHT: Final = 10_000
"""Names of files that are looked for; each costs some calls of the system."""
_INT: Final = re.compile(r"[-+]?[0-9][0-9_]*")
_FLOAT: Final = re.compile(r"[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9_]+(?:[eE][-+]?[0-9]+)?")
_OTHER_BASES: Final = {"0x": (16, "0-9a-fA-F"), "0o": (8, "0-7"), "0b": (2, "01")}
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?")
_WORDS: Final[dict[str, JsonValue]] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}


@dataclass(frozen=True, slots=True)
class WrittenValue:
    """A value, and where it stands."""

    value: JsonValue
    place: SourcePlace


@dataclass(frozen=True, slots=True)
class SourceFile:
    """What one file holds."""

    value: JsonValue
    positions: Positions
    shown: str

    def place(self, *steps: str | int) -> SourcePlace:
        """Where this part of it stands."""
        return SourcePlace(self.shown, self.positions.line(steps))


@dataclass(frozen=True, slots=True)
class SourceFolder:
    """The folder of the configuration. What a configuration names is looked for here; texts are read once."""

    path: Path
    shown: Path
    kept: dict[str, str] = field(default_factory=dict, compare=False)
    sought: dict[str, list[tuple[Path, str]] | CannotCarryError] = field(default_factory=dict, compare=False)
    """What each name led to: a hundred thousand tests may name one file."""

    def files(self, name: str) -> list[tuple[Path, str]]:
        """The files that a path or glob leads to, each as people see it, sorted. Raises CannotCarryError."""
        if "\x00" in name or len(name) > 1_000:
            raise CannotCarryError(f"{_short(name)} is no name of a file")
        if name not in self.sought:
            if len(self.sought) >= _SOUGHT:
                raise CannotCarryError(
                    f"{_short(name)} is not looked for: the configuration names more than {_SOUGHT:,} files"
                )
            try:
                self.sought[name] = self._found(name)
            except CannotCarryError as error:
                self.sought[name] = error
        found = self.sought[name]
        if isinstance(found, CannotCarryError):
            raise CannotCarryError(str(found))
        return found

    def _found(self, name: str) -> list[tuple[Path, str]]:
        if self._real(name).is_file():
            return [(self._real(name), self._seen(self._real(name)))]
        if not re.search(r"[*?\[]", name):
            raise CannotCarryError(f"there is no {_short(name)}")
        return [(self._real(one), self._seen(self._real(one))) for one in self._globbed(name)]

    def _globbed(self, name: str) -> list[str]:
        if ".." in Path(name).parts or Path(name).is_absolute():
            raise CannotCarryError(f"{_short(name)} leads out of the configuration's folder")
        try:
            found = [one for one in islice(self.path.glob(name), FINDINGS + 1) if one.is_file()]
        except (ValueError, NotImplementedError, OSError) as error:
            raise CannotCarryError(f"{_short(name)} is no glob") from error
        if not found:
            raise CannotCarryError(f"nothing matches {_short(name)}")
        if len(found) > FINDINGS:
            raise CannotCarryError(f"{_short(name)} matches more than {FINDINGS} files")
        return sorted(os.path.relpath(one, self.path) for one in found)

    def _real(self, name: str) -> Path:
        place = real_place(self.path / name, root=self.path)
        if place is None:
            raise CannotCarryError(f"{_short(name)} leads out of the configuration's folder")
        return place

    def _seen(self, real: Path) -> str:
        return (self.shown / os.path.relpath(real, os.path.realpath(self.path))).as_posix()

    def exists(self, name: str) -> bool:
        """Whether there is such a file in this folder."""
        try:
            return self._real(name).is_file()
        except (CannotCarryError, OSError, ValueError):
            return False

    def one(self, name: str) -> tuple[Path, str]:
        """The one file of this name. Raises CannotCarryError."""
        found = self.files(name)
        if len(found) != 1:
            raise CannotCarryError(f"{_short(name)} is more than one file")
        return found[0]

    def text(self, name: str) -> str:
        """The text of a file that is a part of a prompt or a value. Raises CannotCarryError."""
        if name not in self.kept:
            self.kept[name] = text_of(*self.one(name), most=BROUGHT_TEXT)
        return self.kept[name]

    def document(self, name: str) -> SourceFile:
        """The document in a file. Raises CannotCarryError."""
        return document_of(*self.one(name))


def text_of(path: Path, shown: str, most: int = EVAL_FILE_BYTES) -> str:
    """The text of a file of so many bytes at most. Raises CannotCarryError."""
    try:
        data = read_up_to(path, most)
        if len(data) > most:
            raise CannotCarryError(f"{shown} is larger than {most:,} bytes")
        return data.decode("utf-8").removeprefix("\ufeff")
    except (OSError, UnicodeDecodeError) as error:
        raise CannotCarryError(f"{shown} is no text that can be read") from error


def document_of(path: Path, shown: str) -> SourceFile:
    """What a file of JSON or YAML says to promptfoo. Raises CannotCarryError."""
    try:
        return read_document(path, shown)
    except GateError as error:
        raise CannotCarryError(str(error.problems[0]) if error.problems else error.message) from error


def read_document(path: Path, shown: str) -> SourceFile:
    """The same, with every problem. Raises GateError."""
    data = read_bytes(path, shown)
    if path.suffix == ".json":
        found = parse_document(JSON[".json"], data, path, shown)
        return SourceFile(found.value, found.positions, shown)
    found = parse_yaml(data, shown, any_number=True)
    return SourceFile(_as_javascript(found.value, found.positions), found.positions, shown)


def _as_javascript(value: JsonValue, positions: Positions) -> JsonValue:
    """The value of a YAML document as JavaScript's reader has it."""
    if not isinstance(positions, WrittenScalars):
        return value

    def read(part: JsonValue, steps: tuple[str | int, ...]) -> JsonValue:
        match part:
            case dict():
                return {key: read(member, (*steps, key)) for key, member in part.items()}
            case list():
                return [read(member, (*steps, index)) for index, member in enumerate(part)]
            case _:
                written = positions.unquoted(steps)
                return part if written is None else _scalar(written)

    return read(value, ())


def _scalar(written: str) -> JsonValue:
    """A scalar without quotes, by the core schema of YAML 1.2; dates are marked as such."""
    if written in _WORDS:
        return _WORDS[written]
    if _DATE.fullmatch(written):
        return {DATE: written}
    sign, digits = (-1 if written[:1] == "-" else 1), written.lstrip("+-").replace("_", "")
    for prefix, (base, allowed) in _OTHER_BASES.items():
        if digits.startswith(prefix) and re.fullmatch(f"[-+]?{prefix}[{allowed}_]+", written) and digits != prefix:
            return sign * int(digits[2:], base)
    if _INT.fullmatch(written) and not written.endswith("_"):
        return sign * int(digits)
    if _FLOAT.fullmatch(written) and not written.endswith("_"):
        return _number(sign, digits, written)
    return written


def _number(sign: int, digits: str, written: str) -> JsonValue:
    number = sign * float(digits)
    return number if abs(number) != float("inf") else written


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """The lines with something on them, with their numbers from 1."""
    return ((number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())


def _short(name: str) -> str:
    return f'"{name[:100]}{"…" if len(name) > 100 else ""}"'
