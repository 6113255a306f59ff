"""The earlier run that a run is compared with, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from runner.model.result import RunResult


@dataclass(frozen=True, slots=True)
class Baseline:
    """An earlier run. `source` is what the person or the workflow named; ages are None where unknown."""

    result: RunResult
    source: str
    age_days: float | None = None
    commits_behind: int | None = None
    history: tuple[RunResult, ...] = ()
    """Recent complete runs of the same branch, newest first, where they were asked for."""


@dataclass(frozen=True, slots=True)
class NoBaseline:
    """There is nothing to compare with: an expected condition, with a stable code and a sentence."""

    code: str
    reason: str
    unavailable: bool = False
    """There may well be one, but it could not be had. A gate that needs it must not pass as if there were none."""


NOT_ASKED_FOR = NoBaseline("not-asked-for", "no baseline was named")
