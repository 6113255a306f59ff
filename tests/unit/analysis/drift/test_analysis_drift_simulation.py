"""The benchmark of main's own alarm: a small form of it, and the page that has its figures."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[4]
MODULES = ("branch", "drift")


@pytest.fixture
def benchmark(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "verdict"))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("drift")


def test_page__table__has_every_branch_of_the_benchmark(benchmark) -> None:
    page = (ROOT / "benchmarks" / "verdict" / "drift.md").read_text(encoding="utf-8")
    assert [rot.name for rot in benchmark.ROTS if f"| {rot.name} | {rot.history} |" not in page] == []


@pytest.mark.slow
def test_slow_rot__two_points_a_merge__is_seen_within_eight_merges(benchmark) -> None:
    rot = benchmark.ROTS[0]
    seen = [benchmark.branch_with(rot, 3, number) for number in range(6)]
    late = [one for one in seen if (one.after or 99) > benchmark.SOON and one.merges >= benchmark.SOON]
    assert len(late) <= 1  # one in forty is
    assert any(one.after for one in seen)


@pytest.mark.slow
def test_nothing_changes__a_few_branches__raise_no_alarm(benchmark) -> None:
    rot = next(one for one in benchmark.ROTS if one.harmless)
    assert [benchmark.branch_with(rot, 3, number).after for number in range(2)] == [None, None]
