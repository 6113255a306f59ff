"""A small form of the table of single cases: red when a promise is broken by more than its error.

That of suites of any size is added up exactly, in `test_gate_evidence_spent`; here is what the page says of them.
"""

import importlib
import re
import sys
from pathlib import Path

import pytest

from tests.support.sizes import size

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "benchmarks" / "verdict" / "figures.md"
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


@pytest.mark.contract("verdict.targets")
def test_page__suites_of_any_size__are_red_in_two_of_a_hundred_harmless_runs_within_their_error() -> None:
    text = PAGE.read_text(encoding="utf-8").split("## Suites of any size")[1]
    head, _, *lines = [line for line in text.split("\n## ")[0].splitlines() if line.startswith("|")]
    assert re.findall(r"[\d,]+(?= cases)", head) == ["20", "100", "500", "1,000", "2,000"]
    assert len(lines) == 3
    for line in lines:
        cells = [(float(share), float(error)) for share, error in re.findall(r"([\d.]+) % ± ([\d.]+) \(", line)]
        assert len(cells) == 5
        assert all(share - 2 * error <= 2.0 for share, error in cells)
