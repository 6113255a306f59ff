"""Levels of a branch's newest runs: a few numbers that stay comparable while cases change.

A case in one run and not in the other says nothing about what became better or worse. So a level is the one of the run
before, and by how much the cases that both have differ: added, removed and rewritten cases move no level.
"""

from collections import Counter
from enum import StrEnum
from typing import Annotated, Final, Self

from msgspec import Meta, field

from eval_gate.model import limits
from eval_gate.model.base import Record
from eval_gate.model.result import RunResult

MAX_LEVELS: Final = limits.HISTORY_LEVELS
"""Newest runs whose levels are kept: more than runs of the ledger, because slow rot takes long and they are small."""


MAX_MODELS: Final = 8
"""Names of models that are kept of a run: where more answered, those that answered most."""
MAX_LOG: Final = 100.0
"""The greatest logarithm of milliseconds or dollars that is read: a number far beyond it has no power of e."""


class LevelKind(StrEnum):
    """Kinds of levels."""

    FAILING = "failing"
    """The share of cases that fail, after their re-runs; 1 is all of them."""
    FAILING_BEFORE_RERUNS = "first"
    """The share of first executions that fail, before any re-run."""
    SCORE = "score"
    """The mean score of graded cases, 0 to 1."""
    JUDGE = "grading"
    """The mean grade of answers that are letter for letter those of the run before: what the judge alone changes."""
    TIME = "time"
    """The natural logarithm of a case's milliseconds, averaged: of its first execution, not from a recording."""
    COST = "cost"
    """The same of an execution's dollars."""


class RunLevels(Record, kw_only=True, omit_defaults=True):
    """Levels of one run by `LevelKind`; unknown levels are left out."""

    run_id: Annotated[str, Meta(max_length=200)]
    timestamp: Annotated[str, Meta(max_length=100)]
    sha: Annotated[str, Meta(max_length=100)] | None = None
    target: Annotated[str, Meta(max_length=1000)] = ""
    """Which agent: levels of another one are not compared."""
    cases: Annotated[int, Meta(ge=0)] = 0
    """Cases that were judged."""
    levels: Annotated[dict[LevelKind, float], Meta(max_length=len(LevelKind))] = field(default_factory=dict)
    models: Annotated[
        tuple[Annotated[str, Meta(max_length=limits.STORED_MODEL)], ...], Meta(max_length=MAX_MODELS)
    ] = ()
    """The models that answered, as whoever runs them names them in their answers; none where none says."""
    restarted_levels: Annotated[tuple[LevelKind, ...], Meta(max_length=len(LevelKind))] = ()
    """Levels that do not go on from the run before: too few cases were in both."""

    def __post_init__(self) -> None:
        """Refuse a time or cost that no case has. Raises ValueError."""
        if any(abs(self.levels.get(kind, 0.0)) > MAX_LOG for kind in (LevelKind.TIME, LevelKind.COST)):
            raise ValueError("no case takes or costs so much")

    def is_same_commit(self, other: Self) -> bool:
        """Whether there is no commit between both: nothing in the repository has changed."""
        return self.sha is not None and self.sha == other.sha


def list_models(run: RunResult) -> tuple[str, ...]:
    """List the models that responded in a run, sorted by name.

    Only the most frequent ones are listed, and long names are truncated.
    """
    named = Counter(case.details.model for _, case in run.iter_cases() if case.details.model)
    return tuple(sorted(name[: limits.STORED_MODEL] for name, _ in named.most_common(MAX_MODELS)))


Levels = Annotated[tuple[RunLevels, ...], Meta(max_length=MAX_LEVELS)]
"""Newest first."""
