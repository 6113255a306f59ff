"""What the cases cost in time, money and tokens, beside the baseline. Pure.

Two runs of the same agent never take equally long, so totals are not compared: one slow case would decide. What counts
is the median over cases of "here divided by then", and it counts as too much only when a sign test is sure that more
than half of the cases are above the limit (one in a hundred; Conover, Practical Nonparametric Statistics, 3.4). With
fewer than seven cases nothing can be that sure, and the rule says so instead of guessing.

What the baseline knows and this run does not tell may be anything: where the median would be above the limit if that
were endless, nobody knows whether the typical case costs too much.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from statistics import median
from typing import Final

from eval_gate.model.comparison import Comparison
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.struct import FrozenStruct

LIMIT: Final = 0.01
"""The accepted chance of calling an increase too much where none is."""


class Increase(FrozenStruct):
    """One kind of cost on both sides: `ratio` is the median of here/then over `cases`; None without any.

    It is endless where the typical case cost nothing then and something here.
    """

    cases: int
    ratio: float | None
    chance: float
    """Of so many cases above the limit when the median is not."""
    over: bool
    """The typical case costs more than allowed, and a sign test is sure of it."""
    untold: int = 0
    """Cases whose cost the baseline knows and this run does not tell."""
    unknown: bool = False
    """So many of them that nobody knows whether the typical case costs more than allowed."""


Pairs = tuple[tuple[float, float | None], ...]
"""Then and here, of every case that has both; None where it is not told here."""


def increase(pairs: Pairs, most: float) -> Increase:
    """Whether the typical case costs more than `most` (0.2 is 20 %) above the baseline."""
    ratios = [_ratio(then, here) for then, here in pairs if here is not None]
    untold = sum(here is None for _, here in pairs)
    unknown = untold > 0 and median([*ratios, *[math.inf] * untold]) > 1 + most
    if not ratios:
        return Increase(0, None, 1.0, over=False, untold=untold, unknown=unknown)
    above = sum(ratio > 1 + most for ratio in ratios)
    chance = _chance_of_at_least(above, len(ratios))
    over = median(ratios) > 1 + most and chance <= LIMIT
    return Increase(len(ratios), median(ratios), chance, over=over, untold=untold, unknown=unknown and not over)


def _ratio(then: float, here: float) -> float:
    """Here divided by then: what cost nothing and costs something now costs endlessly more."""
    if then > 0:
        return here / then
    return math.inf if here > 0 else 1.0


def _chance_of_at_least(above: int, cases: int) -> float:
    """Of at least so many heads in so many throws of a fair coin."""
    return float(Fraction(sum(math.comb(cases, heads) for heads in range(above, cases + 1)), 2**cases))


def pairs_of(
    comparison: Comparison, run: RunResult, baseline: RunResult, measure: Callable[[CaseResult], float | None]
) -> Pairs:
    """Then and here of every case that both runs judged by the same question, as `measure` has it.

    A case that was answered from a recording took nothing, and has no side here.
    """
    here, then = run.by_key(), baseline.by_key()
    both = (one.key for one in comparison.changes if one.change.compared and one.key in here and one.key in then)
    measured = ((measure(then[key]), measure(here[key]), here[key].details.replayed) for key in both)
    return tuple(
        (before, after)
        for before, after, replayed in measured
        if before is not None and (after is not None or not replayed)
    )


def latency(case: CaseResult) -> float | None:
    """Milliseconds of the typical execution; None where unknown, and of a replayed answer, which took none."""
    durations = [trial.duration_ms for trial in case.trials if trial.status.judged] or [case.duration_ms]
    return None if case.details.replayed else median(durations) or None


def cost(case: CaseResult) -> float | None:
    """US dollars of one execution, judges left out; None where unknown or replayed."""
    return None if case.cost_usd is None or case.details.replayed else case.cost_usd / _executions(case)


def tokens(case: CaseResult) -> float | None:
    """Tokens of one execution, both ways; None where unknown."""
    if case.usage is None or case.usage.input_tokens is None or case.usage.output_tokens is None:
        return None
    return (case.usage.input_tokens + case.usage.output_tokens) / _executions(case) or None


def _executions(case: CaseResult) -> int:
    return max(sum(trial.status.judged for trial in case.trials), 1)
