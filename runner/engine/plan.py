"""Everything a run needs, read and checked, before the first request is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from runner.engine.judging import ModelJudge
from runner.engine.rubrics import is_rubric
from runner.model.case import EvalCase, EvalSuite
from runner.model.result import GitFacts, Shard
from runner.registry.staleness import Staleness
from runner.targets.base import Target
from runner.targets.recording import Recording
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
    max_cost_usd: float | None = None
    """What may be spent before no further case is begun; target and judges together."""


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
    partial: bool = False
    warnings: tuple[str, ...] = ()
    judge: ModelJudge | None = None
    recording: Recording | None = None
    rubrics_wait: bool = False
    """Rubric cases are run after the others, and only when these pass."""

    def waits(self, case: EvalCase) -> bool:
        """Whether this case is run after the others."""
        return self.rubrics_wait and is_rubric(case)

    def judge_notices(self) -> tuple[str, ...]:
        """What happened while judges were asked."""
        return self.judge.notices if self.judge else ()

    def runnable(self) -> tuple[tuple[EvalSuite, EvalCase], ...]:
        """The cases that can be run, in file order."""
        return tuple((suite, case) for suite in self.suites for case in suite.cases if case.skip_reason is None)
