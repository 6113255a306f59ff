"""What every format module offers, and the one error all of them raise."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from eval_gate.errors import GateError, Problem
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalSuite


@dataclass(frozen=True, slots=True)
class Source:
    """An eval file that was read: its path as people see it, its bytes, and where it lies.

    `root` is the root of the run: what the file names is looked for around `path`, and never outside the repository.
    """

    file: str
    data: bytes
    path: Path
    root: Path


@dataclass(frozen=True, slots=True)
class Reading:
    """How the eval files of a run are read, the same for all of them.

    `strict` turns warnings about what silently passes into problems. `tool_names` are those of the registry.
    `answers_instead` is the target or model that the person running chose, whatever the files ask for.
    """

    strict: bool = False
    tool_names: Collection[str] = ()
    answers_instead: str | None = None


class Positions(Protocol):
    """Where values stand in a document."""

    def line(self, path: Sequence[str | int]) -> int:
        """The line (from 1) of the key or element at `path`, or of its nearest ancestor that exists."""
        ...


@runtime_checkable
class WrittenScalars(Protocol):
    """Positions that know how a value was written: YAML's, where `on` and `1` without quotes are no text."""

    def unquoted(self, path: Sequence[str | int]) -> str | None:
        """The scalar at `path` as it is written, where it stands without quotes; None for anything else."""
        ...


@runtime_checkable
class SeveralFiles(Protocol):
    """Positions of a document that is made of more than one file."""

    def place(self, path: Sequence[str | int]) -> tuple[str, Sequence[str | int]]:
        """The file in which the value at `path` stands, and its path there as people would write it."""
        ...


class EvalFileError(GateError):
    """An eval file is wrong. All problems of the file are in `problems`."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        count = len(problems)
        super().__init__(
            "invalid-eval-file",
            f"{file} has {count} problem{'s' if count != 1 else ''}",
            "correct the file; `eval-gate validate` checks it without calling anything",
            problems=problems,
        )


class Format(Protocol):
    """A module of this room. Detection is by the document's shape, not by the file's name."""

    def recognises(self, document: JsonValue) -> bool:
        """Whether this parsed document is of this format."""
        ...

    def load(self, document: JsonValue, positions: Positions, source: Source, reading: Reading) -> EvalSuite:
        """The suite of this document; raises EvalFileError with every problem of the file at once."""
        ...
