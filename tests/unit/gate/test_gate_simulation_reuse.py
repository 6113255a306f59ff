"""A small simulation of branches that reuse results: no more false alarms, and the same dead cases found."""

import importlib
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def reuse(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "verdict"))
    for name in ("reuse", "branch", "printing"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("reuse")


def test_simulation__suites_reused_on_both_sides__finds_dead_cases_and_is_not_red_for_nothing(reuse) -> None:
    world = reuse.World("small", 15, ((0.8, 0.02), (0.2, 0.3)), changed=0.3, runs=12, pull_requests=3)
    counts = sum((reuse.measure(world, 3, number)["reused"] for number in range(2)), Counter())
    assert counts["suites"] < 2 * 12 * len(reuse.FILES) * 0.7
    assert counts["dead"] == counts["pull requests"] == 6
    assert counts["red"] + counts["red, all executed"] <= 1
    assert not counts["alarms"]
