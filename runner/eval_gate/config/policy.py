"""Policy of the gate: the rules that decide whether a run passes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from eval_gate.config.setting import Place, Text, define_setting
from eval_gate.errors import format_suggestion
from eval_gate.text.quoting import quote_value

if TYPE_CHECKING:
    from eval_gate.model.policy import EvaluationSetup, RunPolicy
    from eval_gate.model.result import RunResult

DEFAULT_CONFIRM: Final = 6
"""The most re-runs of a case where nobody says a number: with 2 the error rate cannot be kept."""
DEFAULT_FALSE_ALARM_RATE: Final = 0.05


class FailOn(StrEnum):
    """Conditions that fail the gate, in addition to execution errors."""

    FAILURES = "failures"
    REGRESSIONS = "regressions"
    NEVER = "never"
    STALE = "stale"
    FLAKY = "flaky"
    REMOVED = "removed"
    """A case that passed in the baseline is gone."""
    CHANGED = "changed"
    """A case that passed in the baseline is measured by another yardstick, or a rule asks for less."""
    NEW_FAILURES = "new-failures"
    """A case that no earlier run knows, or not with this question and expectation, fails."""


DEFAULT_FAIL_ON: Final = FailOn.FAILURES
"""What a failing case does where nobody says it."""


def _parse_conditions(text: str) -> tuple[FailOn, ...]:
    """One word, or several with commas."""
    return tuple(_parse_condition(part.strip()) for part in text.split(",") if part.strip())


def _parse_condition(word: str) -> FailOn:
    known = [one.value for one in FailOn]
    if word not in known:
        raise ValueError(
            f"{quote_value(word)} is not known{format_suggestion(word, known)}; allowed: {', '.join(known)}"
        )
    return FailOn(word)


def _combine_conditions(words: Iterable[tuple[FailOn, ...]]) -> frozenset[FailOn]:
    """`failures`, `regressions` or `never`; all other words add to them, alone to the default."""
    chosen = frozenset(word for several in words for word in several)
    if FailOn.NEVER in chosen and len(chosen) > 1:
        raise ValueError("never stands alone: leave out never, or everything else")
    about_failing = {FailOn.FAILURES, FailOn.REGRESSIONS, FailOn.NEVER}
    return chosen if chosen & about_failing else chosen | {DEFAULT_FAIL_ON}


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules of the gate. `min_pass_rate` is a share of scored cases, `min_coverage` of all cases, 0 to 1.

    `pass_score` is the score from which a graded case is good enough here; `max_score_drop` what such a score may lose
    against the baseline. `score_tolerance` is only about what is pointed out. `must_pass` holds globs over case ids and
    tags (`tag:NAME`). `false_alarm_rate` is the accepted chance of a regression where nothing has changed, `reruns` how
    often a case in doubt was to be run again at most. Increases are percents that the typical case may cost more than
    in the baseline.
    """

    fail_on: frozenset[FailOn] = define_setting(
        frozenset({DEFAULT_FAIL_ON}),
        "What fails the gate: failures, regressions or never; also stale, flaky, removed, changed, new-failures.",
        metavar="WHAT",
        each=_parse_conditions,
        whole=_combine_conditions,
        in_action=[FailOn.REGRESSIONS],
    )
    min_pass_rate: float | None = define_setting(
        None, "Least share of judged cases that pass, 0 to 1.", limits={"ge": 0, "le": 1}
    )
    max_errors: int = define_setting(0, "Cases that may end in an execution error.", limits={"ge": 0})
    pass_score: float = define_setting(
        1.0,
        "Score from which the gate takes a graded case for passing, above 0 to 1; else 1.",
        help="Score that is enough in graded cases, 0..1.",
        limits={"gt": 0, "le": 1},
    )
    score_tolerance: float = define_setting(
        0.1,
        "Drop of a graded case's score that is not pointed out; else 0.1.",
        help="Point out scores that drop by more.",
        limits={"ge": 0, "le": 1},
    )
    max_score_drop: float | None = define_setting(
        None,
        "Most that a graded case's score may drop against the baseline, 0 to 1.",
        limits={"ge": 0, "le": 1},
    )
    false_alarm_rate: float = define_setting(
        DEFAULT_FALSE_ALARM_RATE,
        "Accepted chance that a run in which nothing changed shows a regression; with reruns.",
        limits={"gt": 0, "lt": 1},
    )
    reruns: int | None = define_setting(
        None,
        f"Maximum re-runs of a suspected regression; else {DEFAULT_CONFIRM} with a baseline. With 0, every new failure"
        " is a regression.",
        limits={"ge": 0, "le": 100},
        in_action=DEFAULT_CONFIRM,
    )
    must_pass: tuple[Text, ...] = define_setting(
        (), "Cases that must pass whatever their record: globs over ids, or tag:NAME.", metavar="GLOB"
    )
    allowed_regressions: int = define_setting(0, "Regressions that do not fail the gate.", limits={"ge": 0})
    min_coverage: float | None = define_setting(
        None, "Least share of all cases that are judged, 0 to 1.", limits={"ge": 0, "le": 1}
    )
    max_latency_increase: float | None = define_setting(
        None,
        "Percent that the typical case may take longer than in the baseline.",
        metavar="PCT",
        limits={"ge": 0},
    )
    max_cost_increase: float | None = define_setting(
        None, "Percent that the typical case may cost more than in the baseline.", metavar="PCT", limits={"ge": 0}
    )
    max_token_increase: float | None = define_setting(
        None,
        "Percent that the typical case may use more tokens than in the baseline.",
        metavar="PCT",
        limits={"ge": 0},
    )
    waivers: Place | None = define_setting(
        None,
        "File with accepted failures and quarantine; .eval-gate/waivers.yaml if it exists.",
        key="waiversPath",
        flag="--waivers",
        metavar="FILE",
    )
    fail_on_default: bool = field(default=False, compare=False)
    """Whether nobody said what fails the gate, so that `fail_on` is a default."""
    typed_settings: tuple[str, ...] | None = field(default=None, compare=False)
    """The rules that a person typed, as `RunPolicy` calls them; None where all of them stand in files."""

    @property
    def is_report_only(self) -> bool:
        """Whether nothing fails this gate."""
        return FailOn.NEVER in self.fail_on

    @property
    def uses_baseline(self) -> bool:
        """Whether what a failing case does rests on the baseline."""
        return FailOn.REGRESSIONS in self.fail_on

    @property
    def most_reruns(self) -> int:
        """The most re-runs of a suspected regression, where there is a baseline."""
        return DEFAULT_CONFIRM if self.reruns is None else self.reruns

    def to_run_policy(self, run: RunResult) -> RunPolicy:
        """Convert the rules to the policy that the run result stores, for a run that this policy decides."""
        from eval_gate.model.policy import EvaluationSetup

        return self.build_run_policy(run.setup or EvaluationSetup())

    def build_run_policy(self, how: EvaluationSetup) -> RunPolicy:
        """Build the stored policy from these rules and from the rules about how the run is made (`how`).

        The rules in `how` come from the run itself, which knows them best.
        """
        from eval_gate.model.policy import RunPolicy

        rules = {one.name: getattr(self, one.name) for one in fields(self)}
        words = tuple(sorted(word.value for word in self.fail_on))
        made = {"trials": how.trials, "reruns": how.reruns, "scores": how.scores, "base_agent": how.base_agent}
        return RunPolicy(**rules | {"fail_on": words} | made)
