"""What a gate asks of a run: the policy, as data."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from eval_gate.gate.evidence.reruns import DEFAULT_ERROR_RATE
from eval_gate.gate.fail_on import FailOn, parse_fail_on
from eval_gate.model.comparison import DEFAULT_SCORE_TOLERANCE
from eval_gate.model.policy import Measuring, RunPolicy

if TYPE_CHECKING:
    from eval_gate.config.settings import RunConfig
    from eval_gate.model.result import RunResult


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules. `min_pass_rate` is a share of the judged cases, `min_coverage` one of all cases, 0 to 1.

    `pass_score` is the score from which a graded case is good enough here; `max_score_drop` what such a score may lose
    against the baseline. `score_tolerance` is only about what is pointed out. `must_pass` holds globs over case ids and
    tags (`tag:NAME`). `error_rate` is the accepted chance of a regression where nothing has changed, `confirm` how
    often a case in doubt was to be run again at most. Increases are percents that the typical case may cost more than
    in the baseline.
    """

    fail_on: frozenset[FailOn] = frozenset({FailOn.FAILURES})
    min_pass_rate: float | None = None
    max_errors: int = 0
    pass_score: float = 1.0
    score_tolerance: float = DEFAULT_SCORE_TOLERANCE
    max_score_drop: float | None = None
    error_rate: float = DEFAULT_ERROR_RATE
    confirm: int = 0
    must_pass: tuple[str, ...] = ()
    allowed_regressions: int = 0
    min_coverage: float | None = None
    max_latency_increase: float | None = None
    max_cost_increase: float | None = None
    max_token_increase: float | None = None
    accepted: str | None = None
    """The file of accepted failures, where one is named."""

    @classmethod
    def of(cls, config: RunConfig) -> Policy:
        """The rules of a configuration. Raises GateError `unknown-value`."""
        return cls(
            fail_on=parse_fail_on(config.fail_on),
            min_pass_rate=config.min_pass_rate,
            max_errors=config.max_errors,
            pass_score=config.pass_score,
            score_tolerance=config.score_tolerance,
            max_score_drop=config.max_score_drop,
            error_rate=config.error_rate,
            confirm=config.confirm,
            must_pass=config.must_pass,
            allowed_regressions=config.allowed_regressions,
            min_coverage=config.min_coverage,
            max_latency_increase=config.max_latency_increase,
            max_cost_increase=config.max_cost_increase,
            max_token_increase=config.max_token_increase,
            accepted=config.accepted_path,
        )

    def on_record(self, run: RunResult) -> RunPolicy:
        """The rules as the record of a run that was held against them keeps them."""
        return self.recorded(run.measuring or Measuring())

    def recorded(self, how: Measuring) -> RunPolicy:
        """The rules, together with those about how a run is made: of these the run itself knows best."""
        rules = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in {"fail_on", "confirm"}}
        return RunPolicy(
            fail_on=tuple(sorted(word.value for word in self.fail_on)), trials=how.trials, confirm=how.confirm, **rules
        )
