"""Changes of a repository with three suites, one after another: what reuse saves, and that the gate says the same."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.reuse_stories.sixty import CASES, SUITES, Ran, draw_kinds, open_repository, run_changes


def check(kinds: list[str], without: list[Ran], reusing: list[Ran]) -> None:
    """Hold both ways to run these changes against each other, and each run against its kind."""
    assert [one.code for one in reusing] == [one.code for one in without]
    assert all(one.reused == 0 for one in without)
    executed = {"document": 0, "evals": len(SUITES), "configuration": len(SUITES)}
    was_red = False
    for kind, plain, run in zip(kinds, without, reusing, strict=True):
        if not was_red:  # after a red run, the last passed one is compared with
            assert run.reused == len(SUITES) - executed.get(kind, 1)
        whole = run.reused == 0
        assert run.requests == (plain.requests if whole else run.requests)
        assert (run.requests == 0) is (run.reused == len(SUITES))
        was_red = run.code != 0


def test_changes__one_of_each_kind__execute_only_what_they_can_have_changed(tmp_path: Path) -> None:
    kinds = ["document", "support", "billing", "evals", "document", "configuration"]
    without, reusing = run_changes(tmp_path, kinds)
    check(kinds, without, reusing)
    assert [one.requests for one in reusing] == [0, CASES, CASES, without[3].requests, 0, len(SUITES) * CASES]


@pytest.mark.slow
def test_changes__sixty__the_gate_says_the_same_and_most_requests_are_saved(tmp_path: Path) -> None:
    kinds = draw_kinds(seed=1)
    without, reusing = run_changes(tmp_path, kinds)
    check(kinds, without, reusing)
    assert any(one.code for one in reusing), "a change that breaks an agent is found"
    assert sum(one.requests for one in reusing) < sum(one.requests for one in without) / 2


WAIVER = "waivers:\n- case: search-*\n  reason: known\n  until: {until}\n"
RULES = {"none": [], "must pass": ["--must-pass", "search-0"], "pass rate": ["--min-pass-rate", "0.9"]}


@pytest.mark.parametrize("rule", RULES)
def test_verdict__failures_of_a_reused_suite_are_waived_no_longer__is_decided_anew(tmp_path: Path, rule) -> None:
    place, copy = tmp_path / "here", tmp_path / "copy"
    until = (datetime.now(UTC) + timedelta(days=5)).date()
    with open_repository(place, uses_measures=True) as repository:
        for _ in range(3):
            repository.run("document", "--no-reuse")
        repository.write(".eval-gate/waivers.yaml", WAIVER.format(until=until))
        repository.write("agents/search/prompt.txt", "is broken")
        repository.run("search")
        repository.write(".eval-gate/waivers.yaml", "waivers: []\n")
        shutil.copytree(place, copy)
        repository.run("document", *RULES[rule])
        shutil.rmtree(place)
        shutil.copytree(copy, place)
        repository.run("document", *RULES[rule], "--no-reuse")
    waived, reusing, executing = repository.runs[-3:]
    assert (waived.code, reusing.requests, reusing.reused, executing.reused) == (0, 0, len(SUITES), 0)
    assert (reusing.code, executing.code) == (1, 1)
