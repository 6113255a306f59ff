"""Warm-up: a run of main fills a short history itself, and pull requests are judged as after ten runs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.test_acceptance_first_runs import first_runs
from tests.support.world import expect, plain

STEADY = "P" * 8
LINE = "9 warm-up rounds: the history has 10 runs now; 72 executions"


def rounds_of(history: dict[str, Any]) -> list[str | None]:
    return [run.get("warmUpOf") for run in history["runs"]]


def test_warm_up__first_push_to_main__gives_the_pull_request_ten_runs_of_history(action) -> None:
    action.main(STEADY, warm_up="10")
    assert LINE in plain(action.ended.log)
    assert LINE in plain(action.ended.summary)
    seen = action.here(STEADY)
    expect(seen, 0, "no regressions")
    assert first_runs(seen.report + seen.text) == []
    assert "With these 8 cases and 10 runs of history" in plain(seen.ended.summary)
    assert "warm-up" not in seen.report


def test_warm_up__change_breaks_a_case_half_of_the_time__is_found_as_after_ten_runs(action) -> None:
    action.main(STEADY, warm_up="10")
    seen = action.here("F(PFFFFF)PPPPPPP")
    expect(seen, 1, "1 regression", regression=[0])
    assert "0 of 10 on main" in plain(seen.report)


def test_warm_up__pull_request_and_later_runs_of_main__make_no_rounds(action) -> None:
    action.main(STEADY)
    seen = action.here(STEADY, warm_up="10")
    assert "warm-up" not in seen.text + seen.report
    action.main(STEADY, warm_up="4")
    assert "2 warm-up rounds: the history has 4 runs now" in plain(action.ended.log)
    action.main(STEADY, warm_up="4")
    assert "warm-up" not in plain(action.ended.log)


def test_warm_up__a_round_fails_cases__changes_neither_the_verdict_nor_the_counts_of_the_run(action) -> None:
    action.main("F(P)" + STEADY[1:], warm_up="3")
    assert action.ended.code == 0
    assert "2 warm-up rounds: the history has 3 runs now; 16 executions" in plain(action.ended.summary)
    assert "8 executions" not in plain(action.ended.summary)


@pytest.mark.parametrize("baseline", ["latest", None])
def test_warm_up__command_line__is_for_runs_that_go_on_from_the_latest_one(empty, baseline) -> None:
    given = ["--baseline", baseline] if baseline else []
    empty.of_length(STEADY)
    done = empty.run(STEADY, "--output-dir", "main", "--warm-up", "5", *given)
    assert done.returncode == 0, done.stderr
    said = "4 warm-up rounds: the history has 5 runs now; 32 executions"
    assert (said in plain(done.stdout)) is (baseline is not None)
    latest = json.loads((empty.folder / "main/latest.json").read_text())
    folder = empty.folder / "main" / latest["runId"]
    history, run = (json.loads((folder / name).read_text()) for name in ("history.json", "run.json"))
    assert rounds_of(history) == [None, *([run["runId"]] * 4 if baseline else [])]
    assert run["summary"]["totalCases"] == 8
    assert (run["warmUp"] or {}).get("executions") == (32 if baseline else None)
