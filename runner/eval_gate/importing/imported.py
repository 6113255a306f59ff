"""What an import brings: the files to write, and of everything that is not in them where it stood and why.

A case is carried over as a whole or not at all. One that lacked an assertion would pass where the other tool fails.
"""

from __future__ import annotations

from collections.abc import Mapping

from eval_gate.struct import FrozenStruct, field


class CannotCarryError(Exception):
    """Why a part has no counterpart here, as a sentence without its full stop. Whoever names the part catches it."""


class SourcePlace(FrozenStruct):
    """Where something stands: the file as people see it, and the line from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class LeftOut(FrozenStruct):
    """Something that is not in the files: its name, and why."""

    place: SourcePlace
    name: str
    reason: str


class Imported(FrozenStruct):
    """What was made of one configuration.

    `files` are texts by their names in the folder to write to; `cases` the number of cases in each that holds some.
    `left_out` are cases, `aside` whatever else: providers, settings. `remarks` say what is measured otherwise now.
    """

    shown: str
    files: Mapping[str, str]
    cases: Mapping[str, int]
    left_out: tuple[LeftOut, ...]
    targets: tuple[str, ...] = ()
    aside: tuple[LeftOut, ...] = ()
    remarks: tuple[str, ...] = field(default=())

    @property
    def carried(self) -> int:
        """How many cases are in the files."""
        return sum(self.cases.values())

    @property
    def complete(self) -> bool:
        """Whether every case is in the files, and everything else of the configuration that counts."""
        return not self.left_out and not self.aside
