"""Files of a promptfoo configuration, read only from its own folder and within limits.

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
from eval_gate.files.file_paths import resolve_path
from eval_gate.files.reading import read_limited
from eval_gate.formats.base import Positions, ScalarPositions
from eval_gate.formats.documents import JSON, parse_document, parse_yaml, read_bytes
from eval_gate.importers.import_result import NotImportableError, SourcePlace
from eval_gate.importers.promptfoo.templates import DATE_KEY
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import EVAL_FILE_BYTES, EXTERNAL_TEXT, FINDINGS

YAML_SUFFIXES: Final = frozenset({".yaml", ".yml"})
_MAX_NAMES: Final = 10_000
"""Names of files that are looked for; each costs some calls of the system."""
_INT: Final = re.compile(r"[-+]?[0-9][0-9_]*")
_FLOAT: Final = re.compile(r"[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9_]+(?:[eE][-+]?[0-9]+)?")
_OTHER_BASES: Final = {"0x": (16, "0-9a-fA-F"), "0o": (8, "0-7"), "0b": (2, "01")}
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?")
_SCALAR_WORDS: Final[dict[str, JsonValue]] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}


@dataclass(frozen=True, slots=True)
class LocatedValue:
    """A value and its location."""

    value: JsonValue
    place: SourcePlace


@dataclass(frozen=True, slots=True)
class PromptfooFile:
    """The content of one file, with positions."""

    value: JsonValue
    positions: Positions
    display_path: str

    def locate(self, *steps: str | int) -> SourcePlace:
        """Where this part of it stands."""
        return SourcePlace(self.display_path, self.positions.find_line(steps))


@dataclass(frozen=True, slots=True)
class PromptfooFolder:
    """The folder of the configuration. Files are searched only here, and each text is read once."""

    path: Path
    display_path: Path
    texts: dict[str, str] = field(default_factory=dict, compare=False)
    found_files: dict[str, list[tuple[Path, str]] | NotImportableError] = field(default_factory=dict, compare=False)
    """What each name led to: a hundred thousand tests may name one file."""

    def find_files(self, name: str) -> list[tuple[Path, str]]:
        """Find the files that a path or glob matches, sorted, each with the path to display.

        Raises NotImportableError.
        """
        if "\x00" in name or len(name) > 1_000:
            raise NotImportableError(f"{_quote_name(name)} is not the name of a file")
        if name not in self.found_files:
            if len(self.found_files) >= _MAX_NAMES:
                raise NotImportableError(
                    f"{_quote_name(name)} was not read: the configuration names more than {_MAX_NAMES:,} files"
                )
            try:
                self.found_files[name] = self._search_files(name)
            except NotImportableError as error:
                self.found_files[name] = error
        found = self.found_files[name]
        if isinstance(found, NotImportableError):
            raise NotImportableError(str(found))
        return found

    def _search_files(self, name: str) -> list[tuple[Path, str]]:
        if self._resolve_path(name).is_file():
            return [(self._resolve_path(name), self._format_path(self._resolve_path(name)))]
        if not re.search(r"[*?\[]", name):
            raise NotImportableError(f"{_quote_name(name)} does not exist")
        return [
            (self._resolve_path(one), self._format_path(self._resolve_path(one))) for one in self._search_glob(name)
        ]

    def _search_glob(self, name: str) -> list[str]:
        if ".." in Path(name).parts or Path(name).is_absolute():
            raise NotImportableError(f"{_quote_name(name)} is outside of the configuration's folder")
        try:
            found = [one for one in islice(self.path.glob(name), FINDINGS + 1) if one.is_file()]
        except (ValueError, NotImplementedError, OSError) as error:
            raise NotImportableError(f"{_quote_name(name)} is not a glob") from error
        if not found:
            raise NotImportableError(f"nothing matches {_quote_name(name)}")
        if len(found) > FINDINGS:
            raise NotImportableError(f"{_quote_name(name)} matches more than {FINDINGS} files")
        return sorted(os.path.relpath(one, self.path) for one in found)

    def _resolve_path(self, name: str) -> Path:
        place = resolve_path(self.path / name, root=self.path)
        if place is None:
            raise NotImportableError(f"{_quote_name(name)} is outside of the configuration's folder")
        return place

    def _format_path(self, real: Path) -> str:
        return (self.display_path / os.path.relpath(real, os.path.realpath(self.path))).as_posix()

    def has_file(self, name: str) -> bool:
        """Whether there is such a file in this folder."""
        try:
            return self._resolve_path(name).is_file()
        except (NotImportableError, OSError, ValueError):
            return False

    def get_file(self, name: str) -> tuple[Path, str]:
        """Return the only file that this name matches, with the path to display.

        Raises NotImportableError if the name matches more than one file or none.
        """
        found = self.find_files(name)
        if len(found) != 1:
            raise NotImportableError(f"{_quote_name(name)} is more than one file")
        return found[0]

    def read_text(self, name: str) -> str:
        """Read the text of a file that is part of a prompt or value.

        Raises NotImportableError.
        """
        if name not in self.texts:
            self.texts[name] = read_text_file(*self.get_file(name), most=EXTERNAL_TEXT)
        return self.texts[name]

    def read_document(self, name: str) -> PromptfooFile:
        """Read the document in a file.

        Raises NotImportableError.
        """
        return read_importable_document(*self.get_file(name))


def read_text_file(path: Path, shown: str, most: int = EVAL_FILE_BYTES) -> str:
    """Read the text of a file of at most `most` bytes.

    Raises NotImportableError if the file is larger or is not readable UTF-8 text.
    """
    try:
        data = read_limited(path, most)
        if len(data) > most:
            raise NotImportableError(f"{shown} is larger than {most:,} bytes")
        return data.decode("utf-8").removeprefix("\ufeff")
    except (OSError, UnicodeDecodeError) as error:
        raise NotImportableError(f"{shown} is not readable text") from error


def read_importable_document(path: Path, shown: str) -> PromptfooFile:
    """Read a JSON or YAML file as promptfoo does.

    Raises NotImportableError with the first problem of the file.
    """
    try:
        return read_document(path, shown)
    except GateError as error:
        raise NotImportableError(str(error.problems[0]) if error.problems else error.message) from error


def read_document(path: Path, shown: str) -> PromptfooFile:
    """Read a JSON or YAML file as promptfoo does, and report every problem.

    Raises GateError.
    """
    data = read_bytes(path, shown)
    if path.suffix == ".json":
        found = parse_document(JSON[".json"], data, path, shown)
        return PromptfooFile(found.value, found.positions, shown)
    found = parse_yaml(data, shown, any_number=True)
    return PromptfooFile(_to_javascript_value(found.value, found.positions), found.positions, shown)


def _to_javascript_value(value: JsonValue, positions: Positions) -> JsonValue:
    """Convert the value of a YAML document to the value that promptfoo's JavaScript reader gives."""
    if not isinstance(positions, ScalarPositions):
        return value

    def read(part: JsonValue, steps: tuple[str | int, ...]) -> JsonValue:
        match part:
            case dict():
                return {key: read(member, (*steps, key)) for key, member in part.items()}
            case list():
                return [read(member, (*steps, index)) for index, member in enumerate(part)]
            case _:
                written = positions.find_unquoted(steps)
                return part if written is None else _parse_scalar(written)

    return read(value, ())


def _parse_scalar(written: str) -> JsonValue:
    """Parse an unquoted scalar by the core schema of YAML 1.2, and mark dates as such."""
    if written in _SCALAR_WORDS:
        return _SCALAR_WORDS[written]
    if _DATE.fullmatch(written):
        return {DATE_KEY: written}
    sign, digits = (-1 if written[:1] == "-" else 1), written.lstrip("+-").replace("_", "")
    for prefix, (base, allowed) in _OTHER_BASES.items():
        if digits.startswith(prefix) and re.fullmatch(f"[-+]?{prefix}[{allowed}_]+", written) and digits != prefix:
            return sign * int(digits[2:], base)
    if _INT.fullmatch(written) and not written.endswith("_"):
        return sign * int(digits)
    if _FLOAT.fullmatch(written) and not written.endswith("_"):
        return _parse_float(sign, digits, written)
    return written


def _parse_float(sign: int, digits: str, written: str) -> JsonValue:
    number = sign * float(digits)
    return number if abs(number) != float("inf") else written


def iter_lines(text: str) -> Iterator[tuple[int, str]]:
    """Iterate over the lines that are not blank, each with its number, counted from 1."""
    return ((number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())


def _quote_name(name: str) -> str:
    return f'"{name[:100]}{"…" if len(name) > 100 else ""}"'
