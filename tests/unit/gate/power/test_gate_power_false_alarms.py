"""How often a harmless pull request is red: the kinds of cases that are told apart, and what more runs would change."""

import math

import pytest

from eval_gate.gate.evidence.rerun_decision import RerunCriteria
from eval_gate.gate.power.case_groups import CaseGroup, CaseGroups, relearn_prior
from eval_gate.gate.power.false_alarms import (
    PROMISED_SHARE,
    FalseAlarms,
    compute_promised_share,
    compute_red_chance,
    estimate_false_alarms,
    fit_mixture,
    project_history,
)
from eval_gate.model.evidence import CaseHistorySummary, Counts
from eval_gate.reports.wording.power import format_false_alarms
from eval_gate.struct import replace

A_FIFTH_IS_FLAKY = ((0.0, 400), (0.3, 100))
A_FIFTH_IS_A_COIN = ((0.0, 400), (0.45, 100))
"""One in 270 of these fails all seven executions by chance, which no bar keeps from being a regression."""
ALL_ALIKE = ((0.05, 500),)


def seen(suite: tuple[tuple[float, int], ...], runs: int) -> frozenset[tuple[tuple[int, int], int]]:
    """How many cases pass and fail so often in so many runs, on average."""
    expected: dict[tuple[int, int], float] = {}
    for rate, number in suite:
        for failures in range(runs + 1):
            chance = math.comb(runs, failures) * rate**failures * (1 - rate) ** (runs - failures)
            passes = runs - failures
            expected[passes, failures] = expected.get((passes, failures), 0.0) + number * chance
    return frozenset((history, round(number)) for history, number in expected.items() if round(number))


def known(suite: tuple[tuple[float, int], ...], runs: int) -> CaseGroups:
    """These cases after so many runs of main."""
    kinds = tuple(
        CaseGroup(
            CaseHistorySummary(
                counts=Counts(passes=passes, failures=failures),
                newest_run=Counts(passes=1) if passes else Counts(failures=1),
                newest_failed=not passes,
            ),
            number,
        )
        for (passes, failures), number in seen(suite, runs)
    )
    return relearn_prior(CaseGroups(kinds, RerunCriteria(500, max_reruns=6), runs))


def test_two_kinds__a_fifth_is_flaky__is_what_is_found() -> None:
    found = fit_mixture(seen(A_FIFTH_IS_FLAKY, 6))
    assert found is not None
    assert found.flaky_rate == pytest.approx(0.3)
    assert found.flaky_share == pytest.approx(0.2, abs=0.02)
    assert found.solid_rate <= 0.005


@pytest.mark.parametrize("suite", [ALL_ALIKE, ((0.0, 500),), ((0.1, 500),)])
def test_two_kinds__one_rate_explains_it__says_nothing(suite) -> None:
    assert fit_mixture(seen(suite, 6)) is None


def test_two_kinds__cases_that_never_pass__are_broken_and_not_flaky() -> None:
    dead = frozenset({((6, 0), 480), ((0, 6), 20)})
    assert fit_mixture(dead) is None


def test_false_alarms__few_runs_and_many_flaky_cases__are_said_with_what_helps() -> None:
    found = estimate_false_alarms(known(A_FIFTH_IS_A_COIN, 1), seen(A_FIFTH_IS_A_COIN, 4))
    assert found is not None
    assert found.chance > PROMISED_SHARE
    assert (found.cases, found.runs) == (500, 1)
    assert found.flaky == pytest.approx(100, abs=10)
    assert found.more_runs in {1, 2, 3, 4, 5, 7, 10}


def test_false_alarms__the_runs_that_were_asked_for__keep_the_promise() -> None:
    cases, kinds = known(A_FIFTH_IS_A_COIN, 1), fit_mixture(seen(A_FIFTH_IS_A_COIN, 4))
    assert kinds is not None
    found = estimate_false_alarms(cases, seen(A_FIFTH_IS_A_COIN, 4))
    assert found is not None
    assert found.more_runs is not None
    assert compute_red_chance(project_history(cases, kinds, found.more_runs), kinds) <= PROMISED_SHARE


@pytest.mark.parametrize(
    ("suite", "runs"), [(ALL_ALIKE, 1), (ALL_ALIKE, 3), (A_FIFTH_IS_FLAKY, 1), (A_FIFTH_IS_FLAKY, 10)]
)
def test_false_alarms__the_promise_holds__nothing_is_said(suite, runs) -> None:
    assert estimate_false_alarms(known(suite, runs), seen(suite, max(runs, 4))) is None


@pytest.mark.parametrize(("false_alarm_rate", "promised"), [(0.01, 0.02), (0.05, 0.02), (0.2, 0.08)])
def test_promise__a_higher_false_alarm_rate_is_accepted__is_higher_in_proportion(false_alarm_rate, promised) -> None:
    cases = known(A_FIFTH_IS_FLAKY, 1)
    assert compute_promised_share(
        replace(cases, criteria=replace(cases.criteria, false_alarm_rate=false_alarm_rate))
    ) == pytest.approx(promised)


def test_chance_of_red__twice_as_many_cases__is_about_twice_as_large() -> None:
    cases, kinds = known(A_FIFTH_IS_FLAKY, 1), fit_mixture(seen(A_FIFTH_IS_FLAKY, 4))
    assert kinds is not None
    twice = replace(cases, groups=tuple(replace(kind, number=kind.number * 2) for kind in cases.groups))
    one, two = compute_red_chance(cases, kinds), compute_red_chance(twice, kinds)
    assert math.log1p(-two) == pytest.approx(2 * math.log1p(-one))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            FalseAlarms(chance=0.126, cases=500, flaky=100, runs=2, more_runs=3),
            (
                "With 2 runs on main and about 100 of 500 cases flaky, "
                "about 1 in 8 harmless pull requests would fail. "
                "3 more runs on main reduce this to under 1 in 50."
            ),
        ),
        (
            FalseAlarms(chance=0.9, cases=2000, flaky=1, runs=1, more_runs=1),
            (
                "With 1 run on main and about 1 of 2,000 cases flaky, "
                "about 1 in 2 harmless pull requests would fail. "
                "1 more run on main reduces this to under 1 in 50."
            ),
        ),
        (
            FalseAlarms(chance=0.03, cases=500, flaky=100, runs=9, more_runs=None),
            (
                "With 9 runs on main and about 100 of 500 cases flaky, "
                "about 1 in 33 harmless pull requests would fail. "
                "More runs do not change this soon: fix or quarantine the flaky cases."
            ),
        ),
    ],
)
def test_words__how_often_it_would_be_red__and_what_would_change_it(found, words) -> None:
    assert format_false_alarms(found, "on main") == words
