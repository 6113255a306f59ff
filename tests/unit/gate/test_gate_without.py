"""The gate without one of its parts, as the benchmark simulates it: a small form of it, and how it is counted."""

import importlib
import math
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
MODULES = ("branch", "worlds", "days", "rules", "case_worlds", "grid", "late", "control", "parts", "without")


@pytest.fixture
def without(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "verdict"))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("without")


def test_moved__pairs_of_two_branches__have_the_error_of_whole_branches_where_it_is_larger(without) -> None:
    apart = without.moved("line", "part", "red", [([0, 0], [1, 1]), ([0, 0], [0, 0])])
    assert (apart.with_it, apart.without_it, apart.only_with, apart.only_without) == (0.0, 0.5, 0, 2)
    assert apart.error == pytest.approx(math.sqrt(2) / 4)
    mixed = without.moved("line", "part", "red", [([0, 1], [1, 0]), ([0, 0], [0, 0])])
    assert (mixed.by, mixed.only_with, mixed.only_without) == (0.0, 1, 1)
    assert mixed.error == pytest.approx(math.sqrt(2) / 4)
    assert without.moved("line", "part", "red", [([1, 0], [1, 0])]).errors == 0.0
    every = without.moved("line", "part", "red", [([0] * 5, [1] * 5), ([0] * 5, [1] * 5)])
    assert (every.by, every.error, every.errors) == (1.0, 0.1, 10.0)


def test_cells__every_part__is_switched_off_in_a_line_in_which_it_could_matter(without) -> None:
    asked = {part for _, parts in without.cells([20, 100], [3, 10]) for part in parts}
    assert asked == {name for name, part in without.PARTS.items() if part.program == "without.py"}
    assert all("days" not in parts for _, parts in without.cells([20], [3]))


@pytest.mark.slow
def test_of_branch__without_sparing__is_as_red_and_costs_more_on_the_same_pull_requests(without) -> None:
    cell = without.Cell("20 of 40 cases died (2%)", 40, 3)
    on, off = without.of_branch(cell, 0, 1, ("", "sparing"))
    assert (on.part, off.part, on.said, off.said) == ("", "sparing", "11111", "11111")
    assert all(one < other for one, other in zip(on.executions, off.executions, strict=True))
    assert without.of_branch(cell, 0, 1, ("sparing",)) == [off]


@pytest.mark.slow
def test_simulate__a_part_is_asked_for_later__adds_only_what_is_missing(without, tmp_path) -> None:
    file, cell = tmp_path / "done.jsonl", without.Cell("every case lost 10 points (2%)", 20, 3)
    without.simulate(file, [(cell, ("suite",))], range(1), 1)
    first = without.read(file)
    assert [one.part for one in first] == ["", "suite"]
    file.write_text(file.read_text(encoding="utf-8")[:-30], encoding="utf-8")
    without.simulate(file, [(cell, ("suite", "bars"))], range(1), 1)
    again = without.read(file)
    assert sorted(one.part for one in again) == ["", "bars", "suite"]
    assert {one.part: one for one in again if one.part != "bars"} == {one.part: one for one in first}
    shown = "\n".join(without.tables(again, by_cell=True))
    assert "every case lost 10 points (2%) (20 cases, 3 runs)" in shown


def test_readme__table_of_parts__has_all_of_them(without) -> None:
    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    assert [name for name in without.PARTS if f"`{name}`" not in page] == []
