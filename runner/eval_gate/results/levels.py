"""Levels of the newest runs of a branch: a few numbers that stay comparable while cases change.

A case that only one of two runs has says nothing about a change in quality. The level of a run is therefore the level
of the run before plus the difference over the cases of both: added, removed and rewritten cases change no level.
"""

from collections import Counter
from enum import StrEnum
from typing import Annotated, Final, Self

from msgspec import Meta, field

from eval_gate.model import limits
from eval_gate.model.base import Record
from eval_gate.model.result import RunResult

MAX_LEVELS: Final = limits.HISTORY_LEVELS
"""Maximum runs with levels: more than the history has runs, because slow drift takes long and levels are small."""


MAX_MODELS: Final = 8
"""Maximum model names of a run; the most frequent ones are kept."""
MAX_LOG: Final = 100.0
"""Maximum logarithm of milliseconds or dollars in a file: the exponential of a much larger number overflows."""


class LevelKind(StrEnum):
    """Kind of level."""

    FAILING = "failing"
    """Share of cases that fail after their re-runs, 0 to 1."""
    FAILING_BEFORE_RERUNS = "failing_before_reruns"
    """Share of first executions that fail, before any re-run."""
    SCORE = "score"
    """Mean score of graded cases, 0 to 1."""
    JUDGE = "judge"
    """Mean score of responses that are identical to those of the run before: only the judge can change it."""
    TIME = "time"
    """Mean natural logarithm of the milliseconds of each case's first execution, without recorded responses."""
    COST = "cost"
    """Mean natural logarithm of the dollars of one execution of each case, without recorded responses."""


class RunLevels(Record, kw_only=True, omit_defaults=True):
    """Levels of one run by `LevelKind`; unknown levels are left out."""

    run_id: Annotated[str, Meta(max_length=200)]
    timestamp: Annotated[str, Meta(max_length=100)]
    sha: Annotated[str, Meta(max_length=100)] | None = None
    target: Annotated[str, Meta(max_length=1000)] = ""
    """Agent of the run. Levels of different agents are not compared."""
    cases: Annotated[int, Meta(ge=0)] = 0
    levels: Annotated[dict[LevelKind, float], Meta(max_length=len(LevelKind))] = field(default_factory=dict)
    models: Annotated[
        tuple[Annotated[str, Meta(max_length=limits.STORED_MODEL)], ...], Meta(max_length=MAX_MODELS)
    ] = ()
    """Models that responded, as their operators name them in responses; empty if no response names one."""
    executed_since: Annotated[str, Meta(max_length=100)] | None = None
    """Start of the oldest run whose executions are in the levels, if results were reused; None if all are of this run.
    Two runs with an execution in common are not independent."""
    restarted_levels: Annotated[tuple[LevelKind, ...], Meta(max_length=len(LevelKind))] = ()
    """Levels that do not continue those of the run before, because too few cases were in both."""

    def __post_init__(self) -> None:
        """Refuse a time or cost that no case has. Raises ValueError."""
        if any(abs(self.levels.get(kind, 0.0)) > MAX_LOG for kind in (LevelKind.TIME, LevelKind.COST)):
            raise ValueError("time or cost is out of range")

    def is_same_commit(self, other: Self) -> bool:
        """Whether there is no commit between both: nothing in the repository has changed."""
        return self.sha is not None and self.sha == other.sha


def list_models(run: RunResult) -> tuple[str, ...]:
    """List the most frequent models that responded, sorted by name; long names are truncated."""
    counts = Counter(case.details.model for _, case in run.iter_cases() if case.details.model)
    return tuple(sorted(name[: limits.STORED_MODEL] for name, _ in counts.most_common(MAX_MODELS)))


Levels = Annotated[tuple[RunLevels, ...], Meta(max_length=MAX_LEVELS)]
"""Levels of runs, newest first."""
