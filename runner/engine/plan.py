"""Everything a run needs, read and checked, before the first request is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from runner.model.case import EvalCase, EvalSuite
from runner.model.result import GitFacts, Shard
from runner.registry.staleness import Staleness
from runner.targets.base import Target
from runner.text.tokens import TokenData

MAX_STORED_RESPONSE = 20_000
"""Characters of a response that are kept in the results."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How hard and how long. `timeout_ms` holds for one case, retries included; a case may set its own."""

    concurrency: int = 1
    timeout_ms: int = 60_000
    trials: int = 1
    store_responses: bool = True


@dataclass(frozen=True, slots=True)
class RunPlan:
    """One run, decided. `suites` hold only the selected cases; `staleness` is keyed by eval file."""

    run_id: str
    timestamp: str
    suites: tuple[EvalSuite, ...]
    target: Target
    limits: Limits
    tokens: TokenData
    staleness: Mapping[str, Staleness] = field(default_factory=dict)
    git: GitFacts | None = None
    shard: Shard | None = None
    warnings: tuple[str, ...] = ()

    def runnable(self) -> tuple[tuple[EvalSuite, EvalCase], ...]:
        """The cases that can be run, in file order."""
        return tuple((suite, case) for suite in self.suites for case in suite.cases if case.skip_reason is None)
