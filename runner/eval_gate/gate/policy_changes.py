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
from eval_gate.model.policy import RunPolicy
from eval_gate.model.yardstick import Difference, DifferenceKind
from eval_gate.struct import replace

_BASE_LEVELS: Final = {"never": 0, "regressions": 1, "failures": 2}
"""Words of fail-on that say what a failing case does, from what asks for less; all others only add to them."""
_Strictness = Callable[[float], float]


def _rank_reruns(times: float) -> float:
    """Without re-runs every failure counts; with them, the fewer there are the less can be found."""
    return times or math.inf


_STRICT_DIRECTIONS: Final = {">=": 1, ">": 1, "=": 0, "<": -1, "<=": -1}
"""Whether a rule about a scorer asks for more the higher its number is, or the lower."""

_NUMBER_RULES: Final[dict[str, tuple[str, _Strictness]]] = {
    "allowed_regressions": ("allowed-regressions", _less),
    "pass_score": ("pass-score", _more),
    "min_pass_rate": ("min-pass-rate", _more),
    "max_errors": ("max-errors", _less),
    "max_score_drop": ("max-score-drop", _less),
    "min_coverage": ("min-coverage", _more),
    "max_latency_increase": ("max-latency-increase", _less),
    "max_cost_increase": ("max-cost-increase", _less),
    "max_token_increase": ("max-token-increase", _less),
    "score_tolerance": ("score-tolerance", _less),
    "error_rate": ("error-rate", _more),
    "confirm": ("confirm", _rank_reruns),
}
"""Rules that are numbers, by their names for people, and what makes one stricter."""
_RULES_COMPARED_APART: Final = frozenset(
    {"fail_on", "fail_on_default", "typed", "must_pass", "accepted", "trials", "scores", "control", *_NUMBER_RULES}
)
"""Rules of which it is known what asks for less."""
_TYPED_RULES: Final = frozenset(RECORDED_RULES.values())
"""Rules that a person may type at a terminal as they like."""
_OPTIONAL_RULES: Final = frozenset(
    {
        *("min_pass_rate", "max_score_drop", "min_coverage"),
        *("max_latency_increase", "max_cost_increase", "max_token_increase"),
    }
)
"""Rules that may be absent, which asks for nothing. Of the others None is a record that does not say."""


def find_policy_changes(then: RunPolicy, now: RunPolicy) -> tuple[Difference, ...]:
    """Every rule that is another one, those apart that one of the two records does not know, or that a person typed."""
    then = _adopt_typed_rules(then, now)
    return (
        *_compare_fail_on(then, now),
        *_compare_numbers(then, now),
        *_compare_lists(then, now),
        *_compare_score_rules(then, now),
        *_compare_base_agents(then, now),
        *_compare_other_rules(then, now),
    )


def _adopt_typed_rules(then: RunPolicy, now: RunPolicy) -> RunPolicy:
    """The earlier rules, with those of now where a person types them at a terminal, or did so then.

    A pull request changes rules in its files. In CI options stand in a workflow, which is such a file.
    """
    if now.typed is None:
        return then
    typed = {*now.typed, *(then.typed or ())} & _TYPED_RULES
    return replace(then, **{name: getattr(now, name) for name in typed})


def _compare_fail_on(then: RunPolicy, now: RunPolicy) -> Iterator[Difference]:
    """Whoever says one of the two defaults for the first time, the command line's or the action's, loosens nothing.

    What nobody had said asks for no more than the milder of them.
    """
    if set(then.fail_on) == set(now.fail_on) or (then.fail_on_default and now.fail_on_default):
        return
    base = min(_get_base_level(then), _BASE_LEVELS["regressions"]) if then.fail_on_default else _get_base_level(then)
    weaker = bool(_get_extra_conditions(then) - _get_extra_conditions(now)) or _get_base_level(now) < base
    kind = DifferenceKind.LOOSENED if weaker else DifferenceKind.TIGHTENED
    if then.fail_on_default and _get_base_level(now) == base and not _get_extra_conditions(now):
        kind = DifferenceKind.CHANGED
    yield _build_difference(kind, "fail-on", *(_format_fail_on(policy) for policy in (then, now)))


def _format_fail_on(policy: RunPolicy) -> str:
    words = ", ".join(policy.fail_on)
    return f"{words} (the default)" if policy.fail_on_default else words


def _get_base_level(policy: RunPolicy) -> int:
    return max((_BASE_LEVELS.get(word, 0) for word in policy.fail_on), default=0)


def _get_extra_conditions(policy: RunPolicy) -> frozenset[str]:
    return frozenset(policy.fail_on) - frozenset(_BASE_LEVELS)


def _compare_numbers(then: RunPolicy, now: RunPolicy) -> Iterator[Difference]:
    for name, (shown, strictness) in _NUMBER_RULES.items():
        was, is_now = getattr(then, name), getattr(now, name)
        if was == is_now or (None in {was, is_now} and name not in _OPTIONAL_RULES):
            continue
        before, after = (-math.inf if value is None else strictness(value) for value in (was, is_now))
        yield _build_difference(
            DifferenceKind.LOOSENED if after < before else DifferenceKind.TIGHTENED,
            shown,
            _format_value(was),
            _format_value(is_now),
        )


def _compare_lists(then: RunPolicy, now: RunPolicy) -> Iterator[Difference]:
    if gone := [pattern for pattern in then.must_pass if pattern not in now.must_pass]:
        yield _build_difference(DifferenceKind.LOOSENED, "must-pass", ", ".join(gone), None)
    if new := [pattern for pattern in now.must_pass if pattern not in then.must_pass]:
        yield _build_difference(DifferenceKind.TIGHTENED, "must-pass", None, ", ".join(new))
    if then.accepted != now.accepted:
        kind = DifferenceKind.LOOSENED if now.accepted else DifferenceKind.TIGHTENED
        yield _build_difference(kind, "accepted", then.accepted, now.accepted)
    if then.trials != now.trials and None not in {then.trials, now.trials}:
        yield _build_difference(DifferenceKind.CHANGED, "trials", _format_value(then.trials), _format_value(now.trials))


def _compare_base_agents(then: RunPolicy, now: RunPolicy) -> Iterator[Difference]:
    """Another agent asked as the base branch's: it can only clear, and may clear what the one before would not."""
    if then.control != now.control:
        yield _build_difference(
            DifferenceKind.LOOSENED if now.control else DifferenceKind.TIGHTENED, "control", then.control, now.control
        )


def _compare_other_rules(then: RunPolicy, now: RunPolicy) -> Iterator[Difference]:
    """Every rule of which nobody knows which value asks for less; None is its usual value."""
    for name in {*RunPolicy.__struct_fields__} - _RULES_COMPARED_APART:
        was, is_now = getattr(then, name), getattr(now, name)
        if was != is_now:
            yield _build_difference(
                DifferenceKind.CHANGED, name.replace("_", "-"), _format_value(was), _format_value(is_now)
            )


def _compare_score_rules(then: RunPolicy, now: RunPolicy) -> Iterator[Difference]:
    """Rules about scorers. One that came or went stands for or against a tool's own verdict, which may ask for more."""
    before, after = ({rule.name: rule for rule in _parse_score_rules(policy)} for policy in (then, now))
    for name in sorted(before.keys() | after.keys()):
        was, is_now = before.get(name), after.get(name)
        if was == is_now:
            continue
        kind = DifferenceKind.CHANGED if was is None or is_now is None else _classify_score_change(was, is_now)
        yield _build_difference(kind, "score", _format_score_rule(was), _format_score_rule(is_now))


def _parse_score_rules(policy: RunPolicy) -> Iterator[ScoreRule]:
    """What a record says; a text that is no rule is nobody's."""
    for text in policy.scores:
        with suppress(ValueError):
            yield parse_score_rule(text)


def _classify_score_change(was: ScoreRule, is_now: ScoreRule) -> DifferenceKind:
    """Whether the second asks for less; where it asks for something else, it does so for some score."""
    before, after = (
        (_STRICT_DIRECTIONS[rule.sign], _STRICT_DIRECTIONS[rule.sign] * rule.value, "=" not in rule.sign)
        for rule in (was, is_now)
    )
    stricter = before[0] == after[0] != 0 and after > before
    return DifferenceKind.TIGHTENED if stricter else DifferenceKind.LOOSENED


def _format_score_rule(rule: ScoreRule | None) -> str | None:
    return None if rule is None else str(rule)


def _format_value(value: JsonValue) -> str | None:
    return None if value is None else f"{value:.15g}" if isinstance(value, float) else str(value)


def _build_difference(kind: DifferenceKind, name: str, then: str | None, now: str | None) -> Difference:
    return Difference(kind=kind, subject=name, then=then, now=now)
