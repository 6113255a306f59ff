"""Changes of a repository with three suites, one after another: what reuse saves, and that the gate says the same."""

from pathlib import Path

import pytest

from tests.support.reuse_stories.sixty import CASES, SUITES, Ran, draw_kinds, run_changes


def check(kinds: list[str], without: list[Ran], reusing: list[Ran]) -> None:
    """Hold both ways to run these changes against each other, and each run against its kind."""
    assert [one.code for one in reusing] == [one.code for one in without]
    assert all(one.reused == 0 for one in without)
    was_red = False
    for kind, run in zip(kinds, reusing, strict=True):
        red = run.code != 0
        if not (red or was_red):
            suites = {"document": 0, "evals": len(SUITES), "configuration": len(SUITES)}.get(kind, 1)
            assert (run.requests, run.reused) == (suites * CASES, len(SUITES) - suites), run
        was_red = red


def test_changes__one_of_each_kind__execute_only_what_they_can_have_changed(tmp_path: Path) -> None:
    kinds = ["document", "support", "billing", "evals", "document", "configuration"]
    without, reusing = run_changes(tmp_path, kinds)
    check(kinds, without, reusing)
    assert [one.requests for one in without] == [len(SUITES) * CASES] * len(kinds)


@pytest.mark.slow
def test_changes__sixty__the_gate_says_the_same_and_most_requests_are_saved(tmp_path: Path) -> None:
    kinds = draw_kinds(seed=1)
    without, reusing = run_changes(tmp_path, kinds)
    check(kinds, without, reusing)
    assert any(one.code for one in reusing), "a change that breaks an agent is found"
    assert sum(one.requests for one in reusing) < sum(one.requests for one in without) / 2
