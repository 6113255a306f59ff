"""Several executions of every case: the test of all cases together counts each of them, and the gate goes by it."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

MODULES = ("branch", "worlds", "trials")
ROOT = Path(__file__).parents[3]


@pytest.fixture
def trials(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "verdict"))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("trials")


def of_world(trials: ModuleType, name: str, many: int, pull_requests: int = 10):
    world = next(one for one in trials.worlds(60) if one.name == name)
    return trials.simulate(world, many, 1, pull_requests, seed=1)


@pytest.mark.contract("verdict.trials")
def test_simulation__ten_trials_of_each_case__a_loss_of_five_points_is_found_and_nothing_is_red_without_one(
    trials,
) -> None:
    """Of 30 pull requests 26 are red; a paired t-test at the same limit finds 47 of 60 where this gate finds 45."""
    lost = of_world(trials, "every case 95% → 90%", 10)
    assert (lost.red >= 7, lost.named <= 3, lost.executions / lost.gates < 10.1) == (True, True, True)
    same = of_world(trials, "nothing changed, every case fails 5%", 10)
    assert (same.red, same.gates) == (0, 10)


def test_paired_tests__known_examples__have_their_chances(trials) -> None:
    assert trials.paired([0.1, 0.2, 0.3]) == pytest.approx(0.0371, abs=1e-4)  # t = 3.464, two degrees of freedom
    assert trials.paired([0.0, 0.0]) == 1.0
    assert trials.mcnemar([(True, False)] * 3 + [(False, True)] + [(True, True)] * 9) == pytest.approx(5 / 16)
