"""The benchmark of drafted suites in its small form: three planted changes are found, the unchanged agent passes."""

from __future__ import annotations

import json

import pytest

from benchmarks.drafts import measure
from benchmarks.drafts.plants import draw_plants

CHOSEN = {13: "tool swapped", 20: "parameter lost", 28: "wrong name"}


@pytest.mark.slow
def test_draft_benchmark__three_changes_and_two_runs_without__names_the_changed_cases_and_no_other(tmp_path) -> None:
    assert {plant.number: plant.kind for plant in draw_plants() if plant.number in CHOSEN} == CHOSEN
    to = tmp_path / "results.json"
    measure.main(
        ["--plants", *map(str, CHOSEN), "--unchanged", "2", "--to", str(to), "--folder", str(tmp_path / "made")]
    )
    measured = json.loads(to.read_text(encoding="utf-8"))["drafted"]
    assert (measured["cases"], measured["baselineFailures"]) == (20, [])
    assert {number: (one["exit"], one["failed"], one["others"]) for number, one in measured["plants"].items()} == {
        str(number): (1, True, []) for number in CHOSEN
    }
    assert [(run["exit"], run["failed"]) for run in measured["unchanged"]] == [(0, [])] * 2
