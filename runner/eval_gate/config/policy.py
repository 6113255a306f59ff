"""What a gate asks of a run: the rules of the configuration, as data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from eval_gate.config.setting import Place, Text, setting
from eval_gate.errors import did_you_mean
from eval_gate.text.quoting import quoted

if TYPE_CHECKING:
    from eval_gate.model.policy import Measuring, RunPolicy
    from eval_gate.model.result import RunResult

DEFAULT_CONFIRM: Final = 6
"""The most re-runs of a case where nobody says a number: with 2 the error rate cannot be kept."""
DEFAULT_ERROR_RATE: Final = 0.05


class FailOn(StrEnum):
    """What fails the gate, beside execution errors."""

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


def _words(text: str) -> tuple[FailOn, ...]:
    """One word, or several with commas."""
    return tuple(_word(part.strip()) for part in text.split(",") if part.strip())


def _word(word: str) -> FailOn:
    known = [one.value for one in FailOn]
    if word not in known:
        raise ValueError(f"{quoted(word)} is not known{did_you_mean(word, known)}; allowed: {', '.join(known)}")
    return FailOn(word)


def _joined(words: Iterable[tuple[FailOn, ...]]) -> frozenset[FailOn]:
    """`failures`, `regressions` or `never`; all other words add to them, alone to the default."""
    chosen = frozenset(word for several in words for word in several)
    if FailOn.NEVER in chosen and len(chosen) > 1:
        raise ValueError("never stands alone: leave out never, or everything else")
    about_failing = {FailOn.FAILURES, FailOn.REGRESSIONS, FailOn.NEVER}
    return chosen if chosen & about_failing else chosen | {DEFAULT_FAIL_ON}


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules. `min_pass_rate` is a share of the judged cases, `min_coverage` one of all cases, 0 to 1.

    `pass_score` is the score from which a graded case is good enough here; `max_score_drop` what such a score may lose
    against the baseline. `score_tolerance` is only about what is pointed out. `must_pass` holds globs over case ids and
    tags (`tag:NAME`). `error_rate` is the accepted chance of a regression where nothing has changed, `confirm` how
    often a case in doubt was to be run again at most. Increases are percents that the typical case may cost more than
    in the baseline.
    """

    fail_on: frozenset[FailOn] = setting(
        frozenset({DEFAULT_FAIL_ON}),
        "What fails the gate: failures, regressions or never; also stale, flaky, removed, changed, new-failures.",
        metavar="WHAT",
        each=_words,
        whole=_joined,
        in_action=[FailOn.REGRESSIONS],
    )
    min_pass_rate: float | None = setting(
        None, "Least share of judged cases that pass, 0 to 1.", limits={"ge": 0, "le": 1}
    )
    max_errors: int = setting(0, "Cases that may end in an execution error.", limits={"ge": 0})
    pass_score: float = setting(
        1.0,
        "Score from which the gate takes a graded case for passing, above 0 to 1; else 1.",
        help="Score that is enough in graded cases, 0..1.",
        limits={"gt": 0, "le": 1},
    )
    score_tolerance: float = setting(
        0.1,
        "Drop of a graded case's score that is not pointed out; else 0.1.",
        help="Point out scores that drop by more.",
        limits={"ge": 0, "le": 1},
    )
    max_score_drop: float | None = setting(
        None,
        "Most that a graded case's score may drop against the baseline, 0 to 1.",
        limits={"ge": 0, "le": 1},
    )
    error_rate: float = setting(
        DEFAULT_ERROR_RATE,
        "Accepted chance that a run in which nothing changed shows a regression; with confirm.",
        limits={"gt": 0, "lt": 1},
    )
    confirm: int | None = setting(
        None,
        f"Maximum re-runs of a suspected regression; else {DEFAULT_CONFIRM} with a baseline. With 0, every new failure"
        " is a regression.",
        limits={"ge": 0, "le": 100},
        in_action=DEFAULT_CONFIRM,
    )
    must_pass: tuple[Text, ...] = setting(
        (), "Cases that must pass whatever their record: globs over ids, or tag:NAME.", metavar="GLOB"
    )
    allowed_regressions: int = setting(0, "Regressions that do not fail the gate.", limits={"ge": 0})
    min_coverage: float | None = setting(
        None, "Least share of all cases that are judged, 0 to 1.", limits={"ge": 0, "le": 1}
    )
    max_latency_increase: float | None = setting(
        None,
        "Percent that the typical case may take longer than in the baseline.",
        metavar="PCT",
        limits={"ge": 0},
    )
    max_cost_increase: float | None = setting(
        None, "Percent that the typical case may cost more than in the baseline.", metavar="PCT", limits={"ge": 0}
    )
    max_token_increase: float | None = setting(
        None,
        "Percent that the typical case may use more tokens than in the baseline.",
        metavar="PCT",
        limits={"ge": 0},
    )
    accepted: Place | None = setting(
        None,
        "File with accepted failures and quarantine; .eval-gate/accepted.yaml if it exists.",
        key="acceptedPath",
        flag="--accepted",
        metavar="FILE",
    )
    fail_on_default: bool = field(default=False, compare=False)
    """Whether nobody said what fails the gate, so that `fail_on` is a default."""
    typed: tuple[str, ...] | None = field(default=None, compare=False)
    """The rules that a person typed, as `RunPolicy` calls them; None where all of them stand in files."""

    @property
    def only_reports(self) -> bool:
        """Whether nothing fails this gate."""
        return FailOn.NEVER in self.fail_on

    @property
    def by_comparison(self) -> bool:
        """Whether what a failing case does rests on the baseline."""
        return FailOn.REGRESSIONS in self.fail_on

    @property
    def most_reruns(self) -> int:
        """The most re-runs of a suspected regression, where there is a baseline."""
        return DEFAULT_CONFIRM if self.confirm is None else self.confirm

    def on_record(self, run: RunResult) -> RunPolicy:
        """The rules as the record of a run that was held against them keeps them."""
        from eval_gate.model.policy import Measuring

        return self.recorded(run.measuring or Measuring())

    def recorded(self, how: Measuring) -> RunPolicy:
        """The rules, together with those about how a run is made: of these the run itself knows best."""
        from eval_gate.model.policy import RunPolicy

        rules = {one.name: getattr(self, one.name) for one in fields(self)}
        words = tuple(sorted(word.value for word in self.fail_on))
        made = {"trials": how.trials, "confirm": how.confirm, "scores": how.scores, "control": how.control}
        return RunPolicy(**rules | {"fail_on": words} | made)
