"""Policy of the gate: the rules that decide whether a run passes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final

from eval_gate.config.setting import Panel, Place, Text, define_setting
from eval_gate.errors import format_suggestion
from eval_gate.text.quoting import quote_value

if TYPE_CHECKING:
    from eval_gate.model.policy import EvaluationSetup, RunPolicy
    from eval_gate.model.result import RunResult

_define_rule = partial(define_setting, panel=Panel.VERDICT)
_SHARE: Final = {"ge": 0, "le": 1}
_define_share = partial(_define_rule, default_text="none", limits=_SHARE)
_define_increase = partial(_define_rule, default_text="none", metavar="PCT", limits={"ge": 0})
DEFAULT_RERUNS: Final = 12
"""Default of the maximum re-runs of a case. Few cases need them all: see `MIN_RERUN_EVIDENCE`."""
DEFAULT_FALSE_ALARM_RATE: Final = 0.05
DEFAULT_WAIVERS: Final = ".eval-gate/waivers.yaml"
_REPORT_ONLY: Final = re.compile(r"until ([2-9]|[1-9]\d|100) runs", re.ASCII)


class FailOn(StrEnum):
    """Conditions that fail the gate, in addition to execution errors."""

    FAILURES = "failures"
    REGRESSIONS = "regressions"
    NEVER = "never"
    STALE = "stale"
    FLAKY = "flaky"
    REMOVED = "removed"
    """A case that passed in the baseline is removed."""
    CHANGED = "changed"
    """A case that passed in the baseline is scored differently, or a rule is loosened."""
    NEW_FAILURES = "new-failures"
    """A case without history, or with a new prompt or expectation, fails."""


DEFAULT_FAIL_ON: Final = FailOn.FAILURES
"""Condition that applies if none is set."""


def _parse_conditions(text: str) -> tuple[FailOn, ...]:
    """One word, or several with commas."""
    return tuple(_parse_condition(part.strip()) for part in text.split(",") if part.strip())


def _parse_condition(word: str) -> FailOn:
    known_words = [one.value for one in FailOn]
    if word not in known_words:
        raise ValueError(
            f"{quote_value(word)} is not known{format_suggestion(word, known_words)}; allowed: {', '.join(known_words)}"
        )
    return FailOn(word)


def _combine_conditions(words: Iterable[tuple[FailOn, ...]]) -> frozenset[FailOn]:
    """`failures`, `regressions` or `never`; all other words add to them, alone to the default."""
    chosen = frozenset(word for several in words for word in several)
    if FailOn.NEVER in chosen and len(chosen) > 1:
        raise ValueError("never cannot be combined with other conditions")
    about_failing = {FailOn.FAILURES, FailOn.REGRESSIONS, FailOn.NEVER}
    return chosen if chosen & about_failing else chosen | {DEFAULT_FAIL_ON}


def parse_report_only(text: str) -> int:
    """Return the runs of `until 10 runs`. Raises ValueError with what is wrong, for a person."""
    if match := _REPORT_ONLY.fullmatch(text.strip()):
        return int(match[1])
    raise ValueError(f"{quote_value(text)} is not `until N runs` with a number from 2 to 100, such as `until 10 runs`")


def _check_report_only(text: str) -> str:
    parse_report_only(text)
    return text.strip()


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules of the gate; what each says stands in its description."""

    fail_on: frozenset[FailOn] = _define_rule(
        frozenset({DEFAULT_FAIL_ON}),
        "Conditions that fail the gate: failures, regressions or never; in addition stale, flaky, removed, changed,"
        " new-failures.",
        metavar="WHAT",
        each=_parse_conditions,
        whole=_combine_conditions,
        in_action=[FailOn.REGRESSIONS],
    )
    min_pass_rate: float | None = _define_share(None, "Minimum share of scored cases that pass, from 0 to 1.")
    max_errors: int | None = _define_rule(
        None,
        "Maximum number of cases without a score.",
        default_text="0, and for agent errors as many as the runs of main explain",
        limits={"ge": 0},
    )
    pass_score: float = _define_rule(
        1.0,
        "Score from which a graded case passes, above 0 and up to 1.",
        limits={"gt": 0, "le": 1},
    )
    score_tolerance: float = _define_rule(
        0.1,
        "Drop of a graded case's score that reports do not point out, from 0 to 1.",
        limits=_SHARE,
    )
    max_score_drop: float | None = _define_share(
        None, "Maximum drop of a graded case's score since the baseline, from 0 to 1."
    )
    false_alarm_rate: float = _define_rule(
        DEFAULT_FALSE_ALARM_RATE,
        "Accepted chance that a run without a change shows a regression.",
        limits={"gt": 0, "lt": 1},
    )
    reruns: int | None = _define_rule(
        None,
        "Maximum re-runs of a suspected regression; with 0, every new failure is a regression.",
        default_text=f"{DEFAULT_RERUNS} with a baseline, 0 without",
        limits={"ge": 0, "le": 100},
        in_action=DEFAULT_RERUNS,
    )
    must_pass: tuple[Text, ...] = _define_rule(
        (),
        "Cases that must pass whatever their history: globs over ids, or tag:NAME.",
        metavar="GLOB",
    )
    allowed_regressions: int = _define_rule(0, "Number of regressions that do not fail the gate.", limits={"ge": 0})
    min_coverage: float | None = _define_share(None, "Minimum share of all cases that have a score, from 0 to 1.")
    max_latency_increase: float | None = _define_increase(
        None, "Maximum increase of the typical case's duration since the baseline, in percent."
    )
    max_cost_increase: float | None = _define_increase(
        None, "Maximum increase of the typical case's cost since the baseline, in percent."
    )
    max_token_increase: float | None = _define_increase(
        None, "Maximum increase of the typical case's tokens since the baseline, in percent."
    )
    report_only: Text | None = _define_rule(
        None,
        "Runs of history before which a gate that fails only because of regressions exits with 0: until N runs.",
        default_text="off",
        metavar="PERIOD",
        each=_check_report_only,
    )
    waivers: Place | None = _define_rule(
        None,
        "File with waivers and quarantine.",
        default_text=f"{DEFAULT_WAIVERS} if it exists",
        key="waiversPath",
        flag="--waivers",
        metavar="FILE",
    )
    fail_on_default: bool = field(default=False, compare=False)
    """Whether `fail_on` is the default because it is not set."""
    typed_settings: tuple[str, ...] | None = field(default=None, compare=False)
    """Rules from the command line, as `RunPolicy` calls them; None if all of them come from files."""

    @property
    def can_fail(self) -> bool:
        """Whether anything fails this gate; not with `failOn: never`."""
        return FailOn.NEVER not in self.fail_on

    @property
    def compares_failures(self) -> bool:
        """Whether the baseline decides if a failing case fails the gate."""
        return FailOn.REGRESSIONS in self.fail_on

    @property
    def can_fail_by_comparison(self) -> bool:
        """Whether a comparison of cases, and not only of typical usage, can fail the gate."""
        conditions = self.fail_on & {FailOn.REGRESSIONS, FailOn.REMOVED, FailOn.CHANGED, FailOn.NEW_FAILURES}
        return bool(conditions) or self.max_score_drop is not None

    @property
    def max_reruns(self) -> int:
        """Maximum re-runs of a suspected regression if there is a baseline."""
        return DEFAULT_RERUNS if self.reruns is None else self.reruns

    def to_run_policy(self, run: RunResult) -> RunPolicy:
        """Convert the rules to the policy that the run result stores, for a run that this policy decides."""
        from eval_gate.model.policy import EvaluationSetup

        return self.build_run_policy(run.setup or EvaluationSetup())

    def build_run_policy(self, how: EvaluationSetup) -> RunPolicy:
        """Build the stored policy from these rules, and from those of the run about `how` it was made."""
        from eval_gate.model.policy import RunPolicy

        rules = {one.name: getattr(self, one.name) for one in fields(self)}
        words = tuple(sorted(word.value for word in self.fail_on))
        names = ("trials", "passes", "reruns", "scores", "base_agent")
        setup = {name: getattr(how, name) for name in names}
        return RunPolicy(**rules | {"fail_on": words} | setup)
