"""Which rules are others than they were, and whether they ask for less now. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from operator import neg as _less
from operator import pos as _more
from typing import Final

from eval_gate.config.score_rule import ScoreRule, parse_rule
from eval_gate.config.settings import RECORDED_RULES
from eval_gate.model.base import JsonValue
from eval_gate.model.policy import RunPolicy
from eval_gate.model.yardstick import Difference, DifferenceKind
from eval_gate.struct import replace

_BASE: Final = {"never": 0, "regressions": 1, "failures": 2}
"""Words of fail-on that say what a failing case does, from what asks for less; all others only add to them."""
_Strictness = Callable[[float], float]


def _reruns(times: float) -> float:
    """Without re-runs every failure counts; with them, the fewer there are the less can be found."""
    return times or math.inf


_WAY: Final = {">=": 1, ">": 1, "=": 0, "<": -1, "<=": -1}
"""Whether a rule about a scorer asks for more the higher its number is, or the lower."""

_NUMBERS: Final[dict[str, tuple[str, _Strictness]]] = {
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
    "confirm": ("confirm", _reruns),
}
"""Rules that are numbers, by their names for people, and what makes one stricter."""
_BY_THEMSELVES: Final = frozenset(
    {"fail_on", "fail_on_default", "typed", "must_pass", "accepted", "trials", "scores", "control", *_NUMBERS}
)
"""Rules of which it is known what asks for less."""
_TYPED: Final = frozenset(RECORDED_RULES.values())
"""Rules that a person may type at a terminal as they like."""
_OPTIONAL: Final = frozenset(
    {
        *("min_pass_rate", "max_score_drop", "min_coverage"),
        *("max_latency_increase", "max_cost_increase", "max_token_increase"),
    }
)
"""Rules that may be absent, which asks for nothing. Of the others None is a record that does not say."""


def changed_rules(then: RunPolicy, now: RunPolicy) -> tuple[Difference, ...]:
    """Every rule that is another one, those apart that one of the two records does not know, or that a person typed."""
    then = _but_for_typed(then, now)
    return (
        *_fail_on(then, now),
        *_numbers(then, now),
        *_lists(then, now),
        *_scores(then, now),
        *_control(then, now),
        *_others(then, now),
    )


def _but_for_typed(then: RunPolicy, now: RunPolicy) -> RunPolicy:
    """The earlier rules, with those of now where a person types them at a terminal, or did so then.

    A pull request changes rules in its files. In CI options stand in a workflow, which is such a file.
    """
    if now.typed is None:
        return then
    typed = {*now.typed, *(then.typed or ())} & _TYPED
    return replace(then, **{name: getattr(now, name) for name in typed})


def _fail_on(then: RunPolicy, now: RunPolicy) -> Iterator[Difference]:
    """Whoever says one of the two defaults for the first time, the command line's or the action's, loosens nothing.

    What nobody had said asks for no more than the milder of them.
    """
    if set(then.fail_on) == set(now.fail_on) or (then.fail_on_default and now.fail_on_default):
        return
    base = min(_base(then), _BASE["regressions"]) if then.fail_on_default else _base(then)
    weaker = bool(_extras(then) - _extras(now)) or _base(now) < base
    kind = DifferenceKind.LOOSENED if weaker else DifferenceKind.TIGHTENED
    if then.fail_on_default and _base(now) == base and not _extras(now):
        kind = DifferenceKind.CHANGED
    yield _rule(kind, "fail-on", *(_said_of(policy) for policy in (then, now)))


def _said_of(policy: RunPolicy) -> str:
    words = ", ".join(policy.fail_on)
    return f"{words} (the default)" if policy.fail_on_default else words


def _base(policy: RunPolicy) -> int:
    return max((_BASE.get(word, 0) for word in policy.fail_on), default=0)


def _extras(policy: RunPolicy) -> frozenset[str]:
    return frozenset(policy.fail_on) - frozenset(_BASE)


def _numbers(then: RunPolicy, now: RunPolicy) -> Iterator[Difference]:
    for name, (shown, strictness) in _NUMBERS.items():
        was, is_now = getattr(then, name), getattr(now, name)
        if was == is_now or (None in {was, is_now} and name not in _OPTIONAL):
            continue
        before, after = (-math.inf if value is None else strictness(value) for value in (was, is_now))
        yield _rule(
            DifferenceKind.LOOSENED if after < before else DifferenceKind.TIGHTENED, shown, _words(was), _words(is_now)
        )


def _lists(then: RunPolicy, now: RunPolicy) -> Iterator[Difference]:
    if gone := [pattern for pattern in then.must_pass if pattern not in now.must_pass]:
        yield _rule(DifferenceKind.LOOSENED, "must-pass", ", ".join(gone), None)
    if new := [pattern for pattern in now.must_pass if pattern not in then.must_pass]:
        yield _rule(DifferenceKind.TIGHTENED, "must-pass", None, ", ".join(new))
    if then.accepted != now.accepted:
        kind = DifferenceKind.LOOSENED if now.accepted else DifferenceKind.TIGHTENED
        yield _rule(kind, "accepted", then.accepted, now.accepted)
    if then.trials != now.trials and None not in {then.trials, now.trials}:
        yield _rule(DifferenceKind.CHANGED, "trials", _words(then.trials), _words(now.trials))


def _control(then: RunPolicy, now: RunPolicy) -> Iterator[Difference]:
    """Another agent asked as the base branch's: it can only clear, and may clear what the one before would not."""
    if then.control != now.control:
        yield _rule(
            DifferenceKind.LOOSENED if now.control else DifferenceKind.TIGHTENED, "control", then.control, now.control
        )


def _others(then: RunPolicy, now: RunPolicy) -> Iterator[Difference]:
    """Every rule of which nobody knows which value asks for less; None is its usual value."""
    for name in {*RunPolicy.__struct_fields__} - _BY_THEMSELVES:
        was, is_now = getattr(then, name), getattr(now, name)
        if was != is_now:
            yield _rule(DifferenceKind.CHANGED, name.replace("_", "-"), _words(was), _words(is_now))


def _scores(then: RunPolicy, now: RunPolicy) -> Iterator[Difference]:
    """Rules about scorers. One that came or went stands for or against a tool's own verdict, which may ask for more."""
    before, after = ({rule.name: rule for rule in _rules(policy)} for policy in (then, now))
    for name in sorted(before.keys() | after.keys()):
        was, is_now = before.get(name), after.get(name)
        if was == is_now:
            continue
        kind = DifferenceKind.CHANGED if was is None or is_now is None else _than(was, is_now)
        yield _rule(kind, "score", _shown(was), _shown(is_now))


def _rules(policy: RunPolicy) -> Iterator[ScoreRule]:
    """What a record says; a text that is no rule is nobody's."""
    for text in policy.scores:
        with suppress(ValueError):
            yield parse_rule(text)


def _than(was: ScoreRule, is_now: ScoreRule) -> DifferenceKind:
    """Whether the second asks for less; where it asks for something else, it does so for some score."""
    before, after = ((_WAY[rule.sign], _WAY[rule.sign] * rule.value, "=" not in rule.sign) for rule in (was, is_now))
    stricter = before[0] == after[0] != 0 and after > before
    return DifferenceKind.TIGHTENED if stricter else DifferenceKind.LOOSENED


def _shown(rule: ScoreRule | None) -> str | None:
    return None if rule is None else str(rule)


def _words(value: JsonValue) -> str | None:
    return None if value is None else f"{value:.15g}" if isinstance(value, float) else str(value)


def _rule(kind: DifferenceKind, name: str, then: str | None, now: str | None) -> Difference:
    return Difference(kind=kind, subject=name, then=then, now=now)
