"""AgentV cases one a line, with a YAML file beside them that speaks for all (agentv behaviour 1.6)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from eval_gate.errors import GateError, Problem
from eval_gate.formats.base import Positions, WrittenScalars
from eval_gate.model.base import JsonValue
from eval_gate.text.sources.json import parse_json

LIST: Final = "cases"
"""Where the lines stand in the document that is made of them."""
MAX_PROBLEMS: Final = 20
"""Lines that are no JSON and named; what comes after them is not read."""
_SUFFIXES: Final = (".yaml", ".yml")


class LinePositions:
    """Where values stand: cases on their lines, everything else in the file beside them, where there is one."""

    def __init__(self, file: str, lines: Sequence[int], beside: tuple[str, Positions] | None) -> None:
        self._file = file
        self._lines = lines
        self._beside = beside

    def line(self, path: Sequence[str | int]) -> int:
        """The line (from 1) of the case, or of the key or element at `path` in the file beside."""
        if _is_of_a_case(path):
            index = path[1] if len(path) > 1 else 0
            return self._lines[index] if isinstance(index, int) and index < len(self._lines) else 1
        return self._beside[1].line(path) if self._beside else 1

    def unquoted(self, path: Sequence[str | int]) -> str | None:
        """The scalar at `path` as it is written, where it stands in the file beside without quotes."""
        if self._beside is None or _is_of_a_case(path):
            return None
        positions = self._beside[1]
        return positions.unquoted(path) if isinstance(positions, WrittenScalars) else None

    def place(self, path: Sequence[str | int]) -> tuple[str, Sequence[str | int]]:
        """The file in which the value at `path` stands, and its path there."""
        if _is_of_a_case(path):
            return self._file, path[2:]
        return (self._beside[0] if self._beside else self._file), path


def _is_of_a_case(path: Sequence[str | int]) -> bool:
    return len(path) > 0 and path[0] == LIST


def beside(path: Path) -> Path | None:
    """The YAML file beside a JSONL file, or None. A link is not followed: it may lead anywhere."""
    candidates = (path.with_suffix(suffix) for suffix in _SUFFIXES)
    return next((one for one in candidates if one.is_file() and not one.is_symlink()), None)


def lines_beside(path: Path) -> bool:
    """Whether this YAML file lies beside a JSONL file, and may speak for its cases."""
    return path.suffix in _SUFFIXES and path.with_suffix(".jsonl").is_file()


def parse_lines(data: bytes, file: str) -> tuple[list[JsonValue], list[int]]:
    """The values of all lines that are not blank, and the numbers of these lines.

    Raises GateError `invalid-json` with every line that is no JSON, up to a bound.
    """
    values: list[JsonValue] = []
    numbers: list[int] = []
    problems: list[Problem] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            value, _ = parse_json(line, file)
        except GateError as error:
            problems += [Problem(problem.message, file=file, line=number) for problem in error.problems]
            if len(problems) >= MAX_PROBLEMS:
                break
        else:
            values.append(value)
            numbers.append(number)
    if problems:
        raise GateError(
            "invalid-json",
            f"{file} is not valid JSONL",
            "correct the file; each line is a JSON value",
            problems=problems,
        )
    return values, numbers
