"""Several gates in one run never take each other's comment, check, artifact or baseline (10 of what was wrong)."""

from __future__ import annotations

import pytest

from tests.support.world import cases_of, expect

ONE, TWO = {"evals": "evals/one.golden.json"}, {"evals": "evals/two.golden.json"}


@pytest.fixture
def legs(action):
    """A repository with two suites of the same cases."""
    for name in ("one.golden.json", "two.golden.json"):
        action.suite, action.cases = name, cases_of(4)
        action.write()
    return action


def in_another_job(legs) -> None:
    legs.job.begin_job()


def test_two_legs_with_default_names__the_second_is_refused_and_the_firsts_red_comment_stays(legs) -> None:
    legs.main("PPPP*2", **ONE)
    pull = legs.pull()
    first = legs.here("FPPP", pull, **ONE)
    expect(first, 1, "1 regression", regression=[0])
    in_another_job(legs)
    legs.script.begin("PPPP")
    second = legs.seen_step(pull, **TWO)
    assert (second.code, second.ended.outputs["verdict"]) == (2, "inconclusive"), second.text
    assert legs.script.asked == []
    assert "give each job or step its own `comment-key`" in second.text
    assert (second.report, second.check) == (first.report, first.check)
    (check,) = [one for one in legs.github.state.check_runs.values() if one.fields["head_sha"] == pull.head_sha]
    assert check.fields["conclusion"] == "failure"


def test_two_legs_with_keys__each_is_compared_with_its_own(legs) -> None:
    one, two = ONE | {"comment-key": "one"}, TWO | {"comment-key": "two"}
    legs.main("PPPP", **one)
    in_another_job(legs)
    legs.main_again("FPPP", **two)
    pull = legs.pull()
    first = legs.here("FPPP", pull, **one)
    expect(first, 1, "1 regression", regression=[0])
    in_another_job(legs)
    legs.script.begin("FPPP")
    second = legs.seen_step(pull, **two)
    assert (second.code, second.classes["gs-000"]) == (0, "still_failing"), second.text
    assert "no regressions" in second.title
    assert first.json["baselineRunId"] != second.json["baselineRunId"]


def test_red_main_run_again__its_later_attempt_is_the_baseline(legs) -> None:
    legs.main("FFFF", **ONE)
    legs.job.begin_attempt()
    ended = legs.main_again("PPPP", **ONE)
    assert ended.code == 0, ended.log
    assert "artifact-name" not in "".join(ended.commands)
    seen = legs.here("FPPP", **ONE)
    expect(seen, 1, "1 regression", regression=[0])
    assert seen.json["baselineRunId"] == ended.outputs["run-id"]
