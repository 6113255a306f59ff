"""Variables and libraries that a target needs and this machine lacks, noted by a check run."""

from __future__ import annotations

from typing import Final

from eval_gate.errors import GateError, Problem

STAND_IN: Final = "unset"
"""Placeholder value of a variable that is not set, or that must not be shown."""
_REQUIREMENT_CODES: Final = frozenset({"missing-api-key", "missing-endpoint", "missing-extra"})
"""Error codes that mean a missing requirement, rather than an invalid file."""


class MissingRequirements:
    """Variables that are not set and libraries that are not installed, each place once."""

    def __init__(self) -> None:
        self._noted: dict[Problem, None] = {}

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What a run would need, and where that is written, in the order of the lines."""
        return tuple(sorted(self._noted, key=lambda one: (one.file or "", one.line or 0)))

    def add_problem(self, what: Problem) -> None:
        """Remember it."""
        self._noted[what] = None

    @staticmethod
    def is_missing_requirement(error: GateError) -> bool:
        """Whether this error is about the machine, and not about what people wrote."""
        return error.code in _REQUIREMENT_CODES
