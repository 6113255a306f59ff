"""A slow provider, simulated on the shipped code: the page has its worlds, and late answers are no regressions."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.sizes import size

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "benchmarks" / "verdict" / "figures.md"


@pytest.fixture
def late(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "verdict"))
    for name in ("branch", "worlds", "rules", "late"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("late")


def test_page__table_of_late_answers__has_every_world_of_the_simulation(late) -> None:
    names = [world.name for world in late.late_worlds()]
    lines = re.findall(r"^\| ([^|]*) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [line for line in lines if line in names] == names


@pytest.mark.contract("verdict.targets")
@pytest.mark.parametrize("share", ["10%", "40%"])
def test_simulation__many_answers_are_late__they_are_no_regressions_and_what_is_wrong_is(late, share) -> None:
    names = [world.name for world in late.late_worlds()]
    fine, died = (
        late.days(names.index(f"{what}, {share} of the answers come too late"), 2, 0, size(25))
        for what in ("nothing changed", "one case died")
    )
    assert fine.wrongly <= 1
    assert fine.undecided >= (fine.worlds - 1 if share == "40%" else 1)
    assert died.heard_found >= died.heard - 1 >= 1
    assert died.red + died.undecided == died.worlds
