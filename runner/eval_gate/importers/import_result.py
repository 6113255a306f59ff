"""Result of an import: files to write, and skipped cases and settings with their reasons.

A case is carried over as a whole or not at all. One that lacked an assertion would pass where the other tool fails.
"""

from __future__ import annotations

from collections.abc import Mapping

from eval_gate.struct import FrozenStruct, field


class NotImportableError(Exception):
    """A part cannot be imported. The message is a sentence without its full stop."""


class SourcePlace(FrozenStruct):
    """A location in a source file: its displayed path and the line from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class SkippedItem(FrozenStruct):
    """A case or setting that was not imported, and why."""

    place: SourcePlace
    name: str
    reason: str


class ImportResult(FrozenStruct):
    """Result of importing one configuration.

    `files` are texts by file name in the output folder; `cases` is the number of cases in each file that has some.
    `skipped_cases` are cases, `skipped_settings` everything else: providers, settings. `remarks` describe what is
    measured differently after the import.
    """

    display_path: str
    files: Mapping[str, str]
    cases: Mapping[str, int]
    skipped_cases: tuple[SkippedItem, ...]
    targets: tuple[str, ...] = ()
    skipped_settings: tuple[SkippedItem, ...] = ()
    remarks: tuple[str, ...] = field(default=())

    @property
    def case_count(self) -> int:
        """How many cases are in the files."""
        return sum(self.cases.values())

    @property
    def is_complete(self) -> bool:
        """Whether every case is in the files, and everything else of the configuration that counts."""
        return not self.skipped_cases and not self.skipped_settings
