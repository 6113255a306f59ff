"""Several pushes of a pull request, simulated on the shipped code: the page shows what it found, and it still does."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "verdict.md"
MOST_COST = 1.25
"""Executions a case, re-runs included."""


@pytest.fixture
def pushes(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "verdict"))
    for name in ("branch", "worlds", "rules", "pushes"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("pushes")


def on_the_page() -> dict[str, list[tuple[float, float, float]]]:
    """Per cent, standard error and executions a case, by world: within 1, 3 and 5 pushes, then without memory."""
    found = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = re.findall(r"([\d.]+) % ± ([\d.]+)\*{0,2} \(([\d.]+)\)", line)
        if len(cells) == 5:
            found[line.split("|")[1].strip()] = [(float(a), float(b), float(c)) for a, b, c in cells]
    return found


def test_page__table_of_pushes__has_every_world_and_remembering_costs_little_and_finds_more(pushes) -> None:
    page = on_the_page()
    assert list(page) == [line.world.name for line in pushes.lines()]
    for line in pushes.lines():
        cells = page[line.world.name]
        (three, _, _), (five, error, _), (_, _, _), (five_without, _, _) = cells[1:]
        assert max(cost for _, _, cost in cells) <= MOST_COST
        if line.target is not None:
            assert three >= cells[3][0]
        else:  # what remembering adds to the false alarms of five pushes
            assert five - five_without <= 2 + error


@pytest.mark.contract("verdict.pushes")
@pytest.mark.parametrize(
    ("world", "least", "most"),
    [
        ("one case 100 → 50% (2%)", 0.45, 1.0),
        ("one case dead in the first push, then mended (2%)", 0.0, 0.08),
        # each of five pushes may be red two times in a hundred, and 15 pull requests have an error of eight
        ("nothing changed, every case fails 5% of the time", 0.0, 0.16),
    ],
)
def test_simulation__pushes__the_code_does_what_the_page_says(pushes, world, least, most) -> None:
    at = [line.world.name for line in pushes.lines()].index(world)
    remembering, alone = pushes.chunk(at, 3, 0, 15)
    within = pushes.LOOKED_AT if least else pushes.MOST_PUSHES
    assert least <= remembering.found[within - 1] / remembering.worlds <= most
    assert remembering.found[within - 1] >= alone.found[within - 1] - (1 if least else 0)
    assert max(remembering.executions) / remembering.worlds / pushes.CASES <= MOST_COST


def test_simulation__pushes__same_seed__same_figures_however_it_is_divided(pushes) -> None:
    whole, parts = pushes.chunk(0, 7, 0, 4), [pushes.chunk(0, 7, start, start + 2) for start in (0, 2)]
    assert whole == tuple(one.plus(other) for one, other in zip(*parts, strict=True))
