"""Failure rates of real agents: how cases of one suite differ, fitted to executions that were repeated.

Each suite is a Beta distribution of the cases' failure rates, and a share of cases that fail always, by maximum
likelihood (beta-binomial) from how often each case failed of its executions; numbers only, with their source. A team
keeps a case in its suite if it passes most of the time, so that `rates` leaves out what fails more often than `KEPT`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from types import MappingProxyType

KEPT = 0.5
"""Cases that fail more often are not in a suite that gates."""
_DRAWS = 50_000
Failed = Mapping[int, tuple[int, ...]]
"""By the number of executions of a case: how many such cases failed 0, 1, 2 … times."""
Fit = tuple[float, float, float]
"""Both parameters of the Beta distribution, and the share of cases beside it that always fail."""


@dataclass(frozen=True, eq=False)
class MeasuredSuite:
    """What was measured of one agent, and where the numbers are from: repository, commit and file."""

    name: str
    failed: Failed
    source: str

    @property
    def cases(self) -> int:
        """How many cases were executed several times."""
        return sum(map(sum, self.failed.values()))


_TERMINAL = "laude-institute/terminal-bench-leaderboard 8e1925a3, results/terminal-bench-core@0.1.1"
SUITES: tuple[MeasuredSuite, ...] = (
    MeasuredSuite(
        "gpt-4o at temperature 0, questions of seven tasks",
        MappingProxyType({5: (977, 88, 83, 61, 69, 129)}),
        "breckbaldwin/llm-stability c089c02e, experiments/strict_json_schema/runs.tgz",
    ),
    MeasuredSuite(
        "coding agents in a product's CI, June to August 2026",
        MappingProxyType(
            {
                4: (23, 4, 4, 0, 4),
                5: (17, 6, 3, 1, 0, 7),
                6: (4, 1, 0, 0, 0, 0, 5),
                7: (7, 2, 0, 1, 1, 1, 2, 0),
                8: (1, 1, 0, 0, 0, 2, 0, 0, 0),
                9: (0, 1, 0, 1, 1, 0, 0, 0, 0, 0),
                10: (4, 2, 0, 0, 2, 1, 1, 0, 0, 0, 0),
                11: (2, 2, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0),
                12: (4, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1),
                13: (4, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0),
                14: (2, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0),
                15: (2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0),
                17: (*(0,) * 17, 3),
                18: (*(0,) * 13, 1, 0, 0, 0, 0, 0),
            }
        ),
        "supabase/evals 3316c3f6, apps/web/src/data/eval-results.json over its 47 commits",
    ),
    MeasuredSuite(
        "Terminal-Bench, Droid with Claude Opus 4.1",
        MappingProxyType({5: (35, 9, 2, 5, 2, 24)}),
        f"{_TERMINAL}/20250923_droid_claude-4-1-opus",
    ),
    MeasuredSuite(
        "Terminal-Bench, Droid with GPT-5",
        MappingProxyType({5: (26, 12, 6, 2, 5, 24)}),
        f"{_TERMINAL}/20250924_droid_gpt-5",
    ),
    MeasuredSuite(
        "tau-bench airline, gpt-4o",
        MappingProxyType({4: (10, 4, 10, 12, 14)}),
        "sierra-research/tau-bench 59a200c6, historical_trajectories/gpt-4o-airline.json",
    ),
    MeasuredSuite(
        "SmolLM2-135M at temperature 0.7, three agents",
        MappingProxyType(
            {
                5: (2, 4, 0, 0, 0, 0),
                6: (8, 3, 4, 4, 0, 3, 2),
                8: (8, 4, 4, 4, 0, 3, 1, 1, 2),
                9: (0, 1, 1, 0, 1, 0, 0, 0, 0, 0),
            }
        ),
        "model_runs.py, the good prompt in five runs, 2026-11-28",
    ),
)


def suite_named(name: str) -> MeasuredSuite:
    """Return the suite whose name begins so; KeyError where none or several do."""
    found = [suite for suite in SUITES if suite.name.startswith(name)]
    if len(found) != 1:
        raise KeyError(f"{name!r} begins {len(found)} of {[suite.name for suite in SUITES]}")
    return found[0]


@lru_cache(maxsize=64)
def rates(suite: MeasuredSuite, cases: int, kept: float = KEPT) -> tuple[float, ...]:
    """Return the failure rates of a suite of so many cases, in rising order: quantiles of what was fitted.

    Cases that fail more often than `kept` are left out; with 1 the suite is as it was published.
    """
    first, second, always = fit_rates(suite)
    random = Random(1)
    drawn = (1.0 if random.random() < always else random.betavariate(first, second) for _ in range(_DRAWS))
    usable = sorted(rate for rate in drawn if rate <= kept)
    return tuple(round(usable[int((at + 0.5) / cases * len(usable))], 4) for at in range(cases))


def shares(suite: MeasuredSuite, parts: int = 20) -> tuple[tuple[float, float], ...]:
    """Return a suite as `year_parts.LINES` has them: equal shares of its cases, each with how often they fail."""
    return tuple((1 / parts, rate) for rate in rates(suite, parts))


@lru_cache(maxsize=64)
def fit_rates(suite: MeasuredSuite) -> Fit:
    """Fit the distribution of the cases' failure rates: the likeliest one, by steps that become smaller."""
    best: Fit = max(
        itertools.product((0.1, 0.3, 1.0), (0.1, 0.3, 1.0), (0.001, 0.1, 0.3)),
        key=lambda fit: _log_likelihood(suite.failed, fit),
    )
    factor = 2.0
    while factor > 1.001:
        (first, second, always), sizes = best, (1.0, factor, 1 / factor)
        near = ((first * one, second * two, always * three) for one, two, three in itertools.product(sizes, repeat=3))
        better = max((fit for fit in near if fit[2] < 1), key=lambda fit: _log_likelihood(suite.failed, fit))
        if better == best:
            factor = math.sqrt(factor)
        best = better
    return best


def _log_likelihood(failed: Failed, fit: Fit) -> float:
    """Of how often cases failed, up to a constant."""
    first, second, always = fit
    total = 0.0
    for executions, cases in failed.items():
        for failures, number in enumerate(cases):
            if number:
                beta = _log_beta(first + failures, second + executions - failures) - _log_beta(first, second)
                total += number * math.log((1 - always) * math.exp(beta) + always * (failures == executions))
    return total


def _log_beta(first: float, second: float) -> float:
    return math.lgamma(first) + math.lgamma(second) - math.lgamma(first + second)
