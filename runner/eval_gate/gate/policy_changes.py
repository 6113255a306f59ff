"""Rules of the policy that changed since the baseline, and whether each is looser or stricter. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from operator import neg as _less
from operator import pos as _more
from typing import Final

from eval_gate.config.score_rule import ScoreRule, parse_score_rule
from eval_gate.config.settings import RECORDED_RULES
from eval_gate.model.base import JsonValue
from eval_gate.model.case import PassRule, build_pass_rule
from eval_gate.model.policy import RunPolicy
from eval_gate.model.setup_change import SetupChange, SetupChangeKind
from eval_gate.struct import replace

_BASE_LEVELS: Final = {"never": 0, "regressions": 1, "failures": 2}
"""Words of fail-on that say what a failing case does, from what asks for less; all others only add to them."""
_Strictness = Callable[[float], float]


def _rank_reruns(times: float) -> float:
    """Without re-runs every failure counts; with them, the fewer there are the less can be found."""
    return times or math.inf


_STRICT_DIRECTIONS: Final = {">=": 1, ">": 1, "=": 0, "<": -1, "<=": -1}
"""Whether a rule about a scorer asks for more the higher its number is, or the lower."""

NUMBER_RULES: Final[dict[str, _Strictness | None]] = {
    **dict.fromkeys(("allowed_regressions", "max_errors", "max_score_drop", "score_tolerance"), _less),
    **dict.fromkeys(("max_latency_increase", "max_cost_increase", "max_token_increase"), _less),
    **dict.fromkeys(("pass_score", "min_pass_rate", "min_coverage", "false_alarm_rate"), _more),
    "reruns": _rank_reruns,
    "trials": None,
}
"""Rules that are numbers, and what makes one stricter; None where nothing does."""
_MAJORITY: Final = 0.501
"""The share of trials that has to pass without a rule: just more than half."""
NAME_RULES: Final = ("waivers", "base_agent", "report_only")
"""Rules that name what may let failures pass: another one may let others pass."""
_TYPED_RULES: Final = frozenset(RECORDED_RULES.values())
"""Rules that a person may type at a terminal as they like."""
_OPTIONAL_RULES: Final = {
    **dict.fromkeys(("min_pass_rate", "max_score_drop", "min_coverage"), -math.inf),
    **dict.fromkeys(("max_latency_increase", "max_cost_increase", "max_token_increase"), -math.inf),
    "max_errors": -0.5,
}
"""Rules that may be absent, and how strict that is: it asks for nothing, but without `max-errors` the only errors that
may pass are those that main's runs explain: more than with 0, less than with 1. Of others None does not say."""


def find_policy_changes(baseline: RunPolicy, current: RunPolicy) -> tuple[SetupChange, ...]:
    """Every rule that is another one, those apart that one of the two records does not know, or that a person typed."""
    baseline = _adopt_typed_rules(baseline, current)
    return (
        *_compare_fail_on(baseline, current),
        *_compare_numbers(baseline, current),
        *compare_pass_rules(*(build_pass_rule(one.trials, one.passes) for one in (baseline, current))),
        *_compare_names(baseline, current),
        *_compare_score_rules(baseline, current),
    )


def _adopt_typed_rules(baseline: RunPolicy, current: RunPolicy) -> RunPolicy:
    """Take over rules that a person types now or typed then: a pull request changes rules in its files only."""
    if current.typed_settings is None:  # in CI, options are part of a workflow, which is such a file
        return baseline
    typed = {*current.typed_settings, *(baseline.typed_settings or ())} & _TYPED_RULES
    return replace(baseline, **{name: getattr(current, name) for name in typed})


def _compare_fail_on(baseline: RunPolicy, current: RunPolicy) -> Iterator[SetupChange]:
    """Compare `fail-on`: naming a default of the command line or the action for the first time loosens nothing."""
    if set(baseline.fail_on) == set(current.fail_on) or (baseline.fail_on_default and current.fail_on_default):
        return
    # a default asks for no more than the milder of the two
    base = (
        min(_get_base_level(baseline), _BASE_LEVELS["regressions"])
        if baseline.fail_on_default
        else _get_base_level(baseline)
    )
    weaker = bool(_get_extra_conditions(baseline) - _get_extra_conditions(current)) or _get_base_level(current) < base
    kind = SetupChangeKind.LOOSENED if weaker else SetupChangeKind.TIGHTENED
    if baseline.fail_on_default and _get_base_level(current) == base and not _get_extra_conditions(current):
        kind = SetupChangeKind.CHANGED
    yield _build_difference(kind, "fail-on", *(_format_fail_on(policy) for policy in (baseline, current)))


def _format_fail_on(policy: RunPolicy) -> str:
    words = ", ".join(policy.fail_on)
    return f"{words} (the default)" if policy.fail_on_default else words


def _get_base_level(policy: RunPolicy) -> int:
    return max((_BASE_LEVELS.get(word, 0) for word in policy.fail_on), default=0)


def _get_extra_conditions(policy: RunPolicy) -> frozenset[str]:
    return frozenset(policy.fail_on) - frozenset(_BASE_LEVELS)


def _compare_numbers(baseline: RunPolicy, current: RunPolicy) -> Iterator[SetupChange]:
    for name, strictness in NUMBER_RULES.items():
        was, is_now = getattr(baseline, name), getattr(current, name)
        if was == is_now or (None in {was, is_now} and name not in _OPTIONAL_RULES):
            continue
        kind = SetupChangeKind.CHANGED
        if strictness is not None:
            old, new = (_OPTIONAL_RULES[name] if value is None else strictness(value) for value in (was, is_now))
            kind = SetupChangeKind.LOOSENED if new < old else SetupChangeKind.TIGHTENED
        yield _build_difference(kind, name, _format_value(was), _format_value(is_now))


def compare_pass_rules(was: PassRule | None, is_now: PassRule | None) -> Iterator[SetupChange]:
    """Compare how many trials of a case have to pass; without a rule, it is more than half of them."""
    if was == is_now:
        return
    old, new = (_MAJORITY if rule is None else rule.passes / rule.trials for rule in (was, is_now))
    kind = SetupChangeKind.TIGHTENED if new > old else SetupChangeKind.CHANGED
    kind = SetupChangeKind.LOOSENED if new < old else kind
    yield _build_difference(kind, "passes", *(str(rule or "more than half") for rule in (was, is_now)))


def _compare_names(baseline: RunPolicy, current: RunPolicy) -> Iterator[SetupChange]:
    if removed := [pattern for pattern in baseline.must_pass if pattern not in current.must_pass]:
        yield _build_difference(SetupChangeKind.LOOSENED, "must-pass", ", ".join(removed), None)
    if new := [pattern for pattern in current.must_pass if pattern not in baseline.must_pass]:
        yield _build_difference(SetupChangeKind.TIGHTENED, "must-pass", None, ", ".join(new))
    for name in NAME_RULES:
        was, is_now = getattr(baseline, name), getattr(current, name)
        if was != is_now:
            kind = SetupChangeKind.LOOSENED if is_now else SetupChangeKind.TIGHTENED
            yield _build_difference(kind, name, was, is_now)


def _compare_score_rules(baseline: RunPolicy, current: RunPolicy) -> Iterator[SetupChange]:
    """Rules about scorers. One that came or went stands for or against a tool's own verdict, which may ask for more."""
    old_rules, new_rules = ({rule.name: rule for rule in _parse_score_rules(policy)} for policy in (baseline, current))
    for name in sorted(old_rules.keys() | new_rules.keys()):
        was, is_now = old_rules.get(name), new_rules.get(name)
        if was == is_now:
            continue
        kind = SetupChangeKind.CHANGED if was is None or is_now is None else _classify_score_change(was, is_now)
        yield _build_difference(kind, "score", *(None if rule is None else str(rule) for rule in (was, is_now)))


def _parse_score_rules(policy: RunPolicy) -> Iterator[ScoreRule]:
    """Yield the score rules of a policy, and skip texts that are not valid rules."""
    for text in policy.scores:
        with suppress(ValueError):
            yield parse_score_rule(text)


def _classify_score_change(was: ScoreRule, is_now: ScoreRule) -> SetupChangeKind:
    """Whether the second asks for less; where it asks for something else, it does so for some score."""
    old, new = (
        (_STRICT_DIRECTIONS[rule.sign], _STRICT_DIRECTIONS[rule.sign] * rule.value, "=" not in rule.sign)
        for rule in (was, is_now)
    )
    stricter = old[0] == new[0] != 0 and new > old
    return SetupChangeKind.TIGHTENED if stricter else SetupChangeKind.LOOSENED


def _format_value(value: JsonValue) -> str | None:
    return None if value is None else f"{value:.15g}" if isinstance(value, float) else str(value)


def _build_difference(kind: SetupChangeKind, name: str, baseline: str | None, current: str | None) -> SetupChange:
    return SetupChange(kind=kind, subject=name.replace("_", "-"), baseline=baseline, current=current)
