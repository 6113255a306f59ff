"""Every line at every size and history: a small form of it here, what is kept of it, and what its page says."""

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.sizes import size

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "benchmarks" / "verdict" / "tables.md"
MODULES = ("branch", "worlds", "days", "rules", "case_worlds", "grid")


@pytest.fixture
def grid(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "verdict"))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("grid")


@pytest.mark.contract("verdict.targets")
@pytest.mark.parametrize(("cases", "history"), [(20, 1), (20, 3), (100, 2), (500, 1), (20, 50)])
def test_grid__nothing_changed_on_usual_days__is_red_in_two_of_a_hundred_at_most_within_its_error(
    grid, cases, history
) -> None:
    usual = [name for name in grid.known(cases) if name.startswith(grid.USUAL)]
    assert len(usual) >= 9
    places = [grid.Place(name, cases, history) for name in usual]
    number = size({20: 5, 100: 3, 500: 2}[cases]) if history < grid.LONG else 1
    found = grid.Cell.of(grid.of_branch(place, at, seed=2) for place in places for at in range(number))
    assert found.share - 3 * found.error <= 2.0


@pytest.mark.contract("verdict.targets")
def test_grid__a_case_that_died__is_found_in_a_suite_of_any_size(grid) -> None:
    for cases in (20, 500):
        found = grid.Cell.of([grid.of_branch(grid.Place("one case died (2%)", cases, 10), 0, seed=2)])
        assert found.said == found.gates


def test_simulated__a_run_that_was_killed__goes_on_where_it_was(grid, tmp_path) -> None:
    places = [grid.Place("one case died (2%)", 20, 1), grid.Place("every case lost 10 points (2%)", 20, 2)]
    file = tmp_path / "grid.jsonl"
    whole = {(one.place, one.branch): one for one in grid.simulated(file, 0.25, 1, places)}
    assert len(whole) == 6
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([*lines[:3], lines[3][:40]]), encoding="utf-8")
    again = grid.simulated(file, 0.25, 1, places)
    assert {(one.place, one.branch): one for one in again} == whole
    assert {(one.place, one.branch): one for one in grid.simulated(file, 0.25, 1, places)} == whole


def test_places__what_a_size_or_a_history_has_no_room_for__is_no_cell(grid) -> None:
    places = set(grid.places())
    mended = "20 cases pass 70% instead of 98%, and 20 others 98% instead of 70%"
    assert grid.Place(mended, 20, 10) not in places
    assert grid.Place(mended, 100, 10) in places
    lost = "the branch itself lost one case three runs ago (2%)"
    assert [history for history in grid.HISTORIES if (lost, 20, history) in places] == [10, 50]


def test_page__tables__have_every_line_at_every_size(grid) -> None:
    rows = re.findall(r"^\| ([^|]+) \|((?: *(?:\d+ ± \d+|–) \|)+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    at = 0
    for cases in grid.SIZES:
        lines = grid.known(cases)
        wanted = sorted(lines, key=lambda name: not lines[name].harmless)
        assert [name for name, _ in rows[at : at + len(wanted)]] == wanted
        for name, cells in rows[at : at + len(wanted)]:
            there = ["±" in cell for cell in cells.split("|")[:-1]]
            assert there == [grid.fits(lines[name], cases, history) for history in grid.HISTORIES]
        at += len(wanted)
    assert at == len(rows)


@pytest.mark.contract("verdict.targets")
def test_page__nothing_changed_on_usual_days__is_red_in_two_of_a_hundred_within_its_error() -> None:
    rows = re.findall(
        r"^\| [\d,]+ cases \| ((?:[\d.]+ % of \d+(?: \| )?)+) \|$", PAGE.read_text(encoding="utf-8"), re.M
    )
    assert len(rows) == 4
    for row in rows:
        for share, gates in re.findall(r"([\d.]+) % of (\d+)", row):
            error = (max(float(share), 100 / int(gates)) / 100 * 0.98 / int(gates)) ** 0.5 * 100
            assert float(share) - 2 * error <= 2.0
