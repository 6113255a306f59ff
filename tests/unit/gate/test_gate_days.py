"""Bad days and trade-offs, simulated on the path of a user's run: the page says it, and the code does it."""

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.sizes import size

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "benchmarks" / "verdict" / "figures.md").read_text(encoding="utf-8")
LINE = re.compile(r"^\| (?P<world>[^|]*) \| [^|]* \| [^|]* \| [^|]* \| \*\*(?P<red>[\d.]+) %\*\* ± ", re.MULTILINE)
BAD = "a bad day (2%, failures × 3), 3 of the branch's runs were such days"
SOMETIMES = "one run in ten is a bad day (2%, failures × 3)"
LOST = "every case lost 10 points (2%)"
LOST_AFTER = "every case lost 10 points, the branch's newest run was a bad day (2%, failures × 3)"
MENDED = "20 cases pass 70% instead of 98%, and 20 others 98% instead of 70%"
ERRORS = 3.5
"""Standard errors by which a promise may be missed: by chance once in four thousand times."""


@pytest.fixture
def table(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "verdict"))
    for name in ("branch", "worlds", "days", "rules", "suites_table"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("suites_table")


def on_the_page() -> dict[str, float]:
    """Red gates in per cent, by world."""
    return {line["world"]: float(line["red"]) for line in LINE.finditer(PAGE)}


def test_page__table_of_days__has_every_world(table) -> None:
    assert list(on_the_page()) == [world.name for world in table.day_worlds()]


@pytest.mark.contract("verdict.record.bad-days", "verdict.suite.trade-offs")
@pytest.mark.parametrize("name", [BAD, SOMETIMES, LOST, LOST_AFTER, MENDED])
def test_simulation__days_and_trade_offs__are_as_the_page_says(table, name) -> None:
    at = [world.name for world in table.day_worlds()].index(name)
    found, said = table.reds(at, 2, 0, size(40)), on_the_page()[name] / 100
    expected = found.number * min(max(said, 0.01), 0.99)
    away = abs(found.gate - expected) / (expected * (1 - expected / found.number)) ** 0.5
    # pull requests of one branch share its record: five of them are worth about two
    assert away <= ERRORS * 1.6
    assert (found.gate > found.number / 2) == (said > 0.5)
