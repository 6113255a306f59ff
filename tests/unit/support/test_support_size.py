"""The table of lines: packages add up to the whole, and what is above the budget is named."""

from __future__ import annotations

import json

from benchmarks.size import HERE, KEPT, count_package_lines, list_excess


def test_package_lines__of_this_checkout__add_up_and_name_what_is_noted() -> None:
    lines = count_package_lines(HERE)
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    assert lines.total() == sum(
        len(file.read_text(encoding="utf-8").splitlines()) for file in (HERE / "runner" / "eval_gate").rglob("*.py")
    )
    assert kept["budget"].keys() == {"lines of the package", "lines of tests"}
    assert kept["noted"].keys() >= lines.keys()


def test_excess__one_line_more_than_the_budget__is_named_and_the_budget_itself_is_not() -> None:
    budget = {"lines of the package": 84_000, "lines of tests": 90_000}
    assert list_excess({"lines of the package": 84_000, "lines of tests": 90_001}, budget) == [
        "lines of tests: 90,001, 1 more than the budget of 90,000 in benchmarks/size.json"
    ]
