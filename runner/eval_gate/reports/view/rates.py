"""The pass rate that counts, how far chance may move it, and what changed between two runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from eval_gate.model.comparison import BaselineFacts, Tally
from eval_gate.model.result import RunResult
from eval_gate.reports.words.numbers import count, percent, points

_Z: Final = 1.959964
"""Standard deviations that hold 95 % of a normal distribution."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Passing and judged cases here; the baseline's rate where there is one. Cases in quarantine are on no side."""

    passed: int
    judged: int
    before: float | None = None
    set_aside: int = 0
    """Judged cases that are in quarantine."""

    @property
    def now(self) -> float | None:
        """The pass rate; None when nothing was judged."""
        return self.passed / self.judged if self.judged else None


def rates_of(run: RunResult) -> Rates:
    """Of a run as its verdict counts it."""
    quarantined = run.waiving.quarantined if run.waiving else frozenset()
    facts = run.comparison.baseline if run.comparison else None
    summary = run.summary
    if not quarantined:
        return Rates(summary.passed, summary.passed + summary.failed, facts.pass_rate if facts else None)
    aside = [
        case.passed
        for suite in run.suites
        for case in suite.cases
        if case.status.judged and (suite.eval_file, case.id) in quarantined
    ]
    judged = summary.passed + summary.failed - len(aside)
    changes = run.comparison.changes if run.comparison else ()
    then = [one.baseline for one in changes if (one.suite, one.case_id) in quarantined and one.baseline is not None]
    return Rates(summary.passed - sum(aside), judged, _before(facts, then), len(aside))


def _before(facts: BaselineFacts | None, aside: list[Tally]) -> float | None:
    """The baseline's rate without these cases."""
    if facts is None or not facts.pass_rate:
        return facts.pass_rate if facts else None
    judged = round(facts.passed / facts.pass_rate) - len(aside)
    passed = facts.passed - sum(map(_passes, aside))
    return passed / judged if 0 <= passed <= judged and judged else None


def certainty(run: RunResult) -> tuple[str, ...]:
    """How sure the pass rate and its change are, in half sentences. Nothing where only the plain rule was asked for."""
    if run.comparison is None or run.comparison.error_rate is None:
        return ()
    rates = rates_of(run)
    low, high = wilson(rates.passed, rates.judged)
    said = [f"pass rate {percent(rates.now)} of {count(rates.judged, 'case')} (95 % interval {_span(low, high)})"]
    pairs = list(_pairs(run))
    if pairs:
        worse = sum(then and not here for then, here in pairs)
        better = sum(here and not then for then, here in pairs)
        low, high = paired(worse, better, len(pairs))
        span = f"{points(0.0, low).removesuffix(' pp')} to {points(0.0, high)}"
        change = points(0.0, (better - worse) / len(pairs))
        both = f"of {count(len(pairs), 'case')} in both runs {worse} got worse and {better} better"
        said.append(f"{both}: {change} (95 % interval {span})")
    return tuple(said)


def wilson(passed: int, judged: int) -> tuple[float, float]:
    """The 95 % interval of a share, 0 to 1 (Wilson 1927, Journal of the American Statistical Association 22, 209-212).

    Nothing judged leaves everything possible.
    """
    if not judged:
        return 0.0, 1.0
    share, z2 = passed / judged, _Z**2
    middle = (share + z2 / (2 * judged)) / (1 + z2 / judged)
    half = _Z / (1 + z2 / judged) * math.sqrt(share * (1 - share) / judged + z2 / (4 * judged**2))
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))  # rounding leaves the ends out


def paired(worse: int, better: int, cases: int) -> tuple[float, float]:
    """The 95 % interval of the change of a pass rate, -1 to 1, where both runs asked the same cases.

    Half a case more in each cell of the table, which keeps it honest where few cases changed (Agresti and Min 2005,
    Statistics in Medicine 24, 729-740).
    """
    size = cases + 2
    change = (better - worse) / size
    spread = _Z * math.sqrt((worse + better + 1) / size - change**2) / math.sqrt(size)
    return max(-1.0, change - spread), min(1.0, change + spread)


def _pairs(run: RunResult) -> Iterator[tuple[bool, bool]]:
    """Whether a case passed then, and here, where both runs judged it by the same question."""
    passed = {(suite.eval_file, case.id): case.passed for suite in run.suites for case in suite.cases}
    quarantined = run.waiving.quarantined if run.waiving else frozenset()
    for change in run.comparison.changes if run.comparison else ():
        key = change.suite, change.case_id
        if change.change.compared and key in passed and key not in quarantined and change.baseline is not None:
            yield _passes(change.baseline), passed[key]


def _passes(tally: Tally) -> bool:
    return tally.k * 2 > tally.n


def _span(low: float, high: float) -> str:
    return f"{low * 100:.1f} to {high * 100:.1f} %"
