"""The fit of repeated executions finds what they were drawn from; the share of a run is estimated within its error."""

import importlib
import sys
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
MODULES = ("branch", "worlds", "measured_rates", "model_spread")


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "verdict"))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module


def draw_cases(spread: ModuleType, share: float, cases: int = 300, runs: int = 12, executions: int = 2):
    """Draw cases at 5 to 50 %, each run of which has a rate of its own if runs have a share of the variance."""
    random = Random(f"{share}")
    drawn = {}
    for case in range(cases):
        usual = random.uniform(0.05, 0.5)
        found = {}
        for run in range(runs):
            scale = (1 - share) / share if share else 0
            rate = random.betavariate(usual * scale, (1 - usual) * scale) if scale else usual
            shared = random.random() < usual
            found[run] = [
                spread.Execution("", "", str(case), run, shared if share == 1 else random.random() < rate, "", "", 0.1)
                for _ in range(executions)
            ]
        drawn[str(case)] = found
    return drawn


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 1.0])
def test_run_share__of_runs_that_share_so_much__is_estimated_within_its_error(load, share) -> None:
    spread = load("model_spread")
    found, error = spread.estimate_run_share(draw_cases(spread, share))
    assert error < 0.04
    assert abs(found - share) <= 3 * error + 1e-9


def test_run_share__of_cases_that_never_vary__is_not_known(load) -> None:
    spread = load("model_spread")
    one = spread.Execution("", "", "a", 0, True, "", "", 0.1)
    share, _ = spread.estimate_run_share({"a": {0: [one, one], 1: [one, one]}})
    assert share != share


def test_rate_after_passes__one_case_of_two_that_failed_once_of_two__is_a_third(load) -> None:
    assert load("model_spread").rate_after_passes({2: (1, 1, 0)}, 1) == pytest.approx(1 / 3)


def test_fit__of_cases_drawn_from_a_beta_distribution__finds_it(load) -> None:
    measured, random = load("measured_rates"), Random(1)
    counts = [0] * 21
    for _ in range(3000):
        rate = 1.0 if random.random() < 0.1 else random.betavariate(0.4, 1.2)
        counts[sum(random.random() < rate for _ in range(20))] += 1
    first, second, always = measured.fit_rates(measured.MeasuredSuite("drawn", {20: tuple(counts)}, ""))
    assert (first, second, always) == pytest.approx((0.4, 1.2, 0.1), rel=0.2)


def test_suites__as_published__fail_as_often_as_was_measured(load) -> None:
    measured = load("measured_rates")
    for suite in measured.SUITES:
        executions = sum(number * sum(cases) for number, cases in suite.failed.items())
        failures = sum(at * one for cases in suite.failed.values() for at, one in enumerate(cases))
        published = measured.rates(suite, 400, 1.0)
        assert sum(published) / 400 == pytest.approx(failures / executions, abs=0.04), suite.name
        assert list(published) == sorted(published)
        assert max(measured.rates(suite, 400)) <= measured.KEPT
        assert sum(share for share, _ in measured.shares(suite)) == pytest.approx(1.0)


def test_suite_named__by_how_its_name_begins__is_the_only_one(load) -> None:
    measured = load("measured_rates")
    assert measured.suite_named("tau-bench").cases == 50
    with pytest.raises(KeyError, match="begins 2 of"):
        measured.suite_named("Terminal-Bench")


def test_measured_worlds__of_a_suite__are_harmless_or_have_one_worse_case(load) -> None:
    worlds, measured = load("worlds"), load("measured_rates")
    for suite in measured.SUITES:
        harmless, *worse = worlds.measured_worlds(suite, 20)
        assert harmless.harmless
        assert [sum(group.changed for group in world.groups) for world in worse] == [1, 1, 1, 1]
        assert all(sum(group.cases for group in world.groups) == 20 for world in worse)
