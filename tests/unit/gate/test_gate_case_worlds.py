"""A small form of the table of single cases: red when a promise is broken by more than its error."""

import importlib
import sys
from pathlib import Path

import pytest

from tests.support.sizes import size

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
GATES = size(25)


@pytest.mark.contract("verdict.targets")
def test_case_worlds__few_pull_requests__keep_each_promise_within_its_error(monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "verdict"))
    for name in ("branch", "worlds", "rules", "case_worlds"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    worlds = importlib.import_module("case_worlds")
    broken = []
    for line in worlds.lines(100):
        if line.least is not None and line.world.groups[0].branch > 0.4:
            continue  # whether it is found is up to the record of its branch, of which there are two here
        found = worlds.measured(line, GATES)
        if line.most is not None and found.share - 3 * found.error > line.most:
            broken.append((line.world.name, found.share))
        if line.least is not None and found.share + 3 * found.error < line.least:
            broken.append((line.world.name, found.share))
    assert broken == []
