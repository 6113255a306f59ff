"""Changes of a repository with three suites, one after another: what reuse saves, and that the gate says the same."""

from pathlib import Path

import pytest

from tests.support.reuse_stories.sixty import CASES, SUITES, Ran, draw_kinds, run_changes


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
