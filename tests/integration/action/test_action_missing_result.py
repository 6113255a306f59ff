"""A result that is gone: what the branch passed is not known then, and nothing passes as if there were none yet."""

from __future__ import annotations

import pytest

from tests.integration.action.test_action_base import forked
from tests.integration.action.test_action_workflow_run import relay
from tests.support.github import Fault
from tests.support.world import ActionWorld, scripted


@pytest.fixture
def world(tmp_path, github):
    with scripted() as script:
        yield ActionWorld(tmp_path, github, script)


@pytest.mark.parametrize(
    ("gone", "letters", "code"), [("artifacts", "PPFP", 3), ("runs", "PPFP", 3), ("runs", "PPPP", 0)]
)
def test_results_were_deleted__a_failing_case_is_inconclusive(world, github, gone, letters, code) -> None:
    *_, base = world.main("PPPP*3")
    github.state.artifacts.clear()
    if gone == "runs":
        github.state.runs.clear()
    seen = world.here(letters, world.merged(world.pull()))
    assert (seen.code, seen.ended.outputs["baseline-sha"]) == (code, ""), seen.text
    assert f"the gate ran on {base[:7]} of main" in seen.ended.log
    assert "no baseline yet" not in seen.title


@pytest.mark.slow
def test_results_were_deleted__commits_without_a_run_since__are_no_help(world, github) -> None:
    world.main("PPPP")
    github.state.artifacts.clear()
    for number in range(3):
        github.state.add_commit(f"docs {number}", branch="main")
    assert world.here("PPFP", world.merged(world.pull())).code == 3


@pytest.mark.slow
@pytest.mark.parametrize("job", ["gate", "publish"])
def test_results_were_deleted__second_stage_for_forks__says_so_too(world, github, job) -> None:
    _, run, _ = forked(world)
    main = {artifact.id for artifact in github.state.archives if artifact.run_id != run.id}
    for one in main:
        del github.state.artifacts[one]
    ended = relay(world.job, github, run, GITHUB_JOB=job)
    assert (ended.outputs["verdict"], ended.outputs["exit-code"]) == ("inconclusive", "3"), ended.log
    assert "but its result is missing" in ended.log


def test_gate_never_ran_on_the_branch__there_is_no_baseline_yet(world, github) -> None:
    """A change that adds the gate, and was pushed on as it was: its own check is on main now."""
    pull = world.merged(world.pull())
    first = world.here("PPFP", pull)
    github.state.artifacts.clear()
    github.state.branches["main"] = pull.head_sha
    second = world.here("PPFP", world.merged(world.pull()))
    assert [(one.code, "no baseline yet" in one.title) for one in (first, second)] == [(0, True)] * 2, second.text


@pytest.mark.slow
def test_another_gate_ran_there__is_no_result_of_this_one(world, github) -> None:
    world.main("PPPP", comment_key="other")
    github.state.artifacts.clear()
    seen = world.here("PPFP", world.merged(world.pull()))
    assert (seen.code, "no baseline yet" in seen.title) == (0, True), seen.text


@pytest.mark.slow
def test_checks_cannot_be_read__is_said_and_fails_nothing(world, github) -> None:
    github.faults.add("GET", r"/commits/\w+/check-runs", *[Fault.status(403, message="Resource not accessible")] * 2)
    seen = world.here("PPFP", world.merged(world.pull()))
    assert (seen.code, "no baseline yet" in seen.title) == (0, True), seen.text
    assert "cannot check whether one was deleted" in seen.ended.log


@pytest.mark.slow
@pytest.mark.parametrize(("letters", "code"), [("PPFP", 3), ("PPPP", 0)])
def test_listed_results_cannot_be_fetched__a_failing_case_is_inconclusive(world, github, letters, code) -> None:
    """The older ones are of a time when the case was broken: they excuse nothing."""
    world.main("PPFP*2 PPPP")
    github.faults.add("GET", r"/actions/artifacts/\d+/zip", Fault.status(404))
    seen = world.here(letters, world.merged(world.pull()))
    assert seen.code == code, seen.text
    assert "lists it as not expired" in seen.ended.log


def test_results_have_expired__a_failing_case_is_inconclusive(world, github) -> None:
    world.main("PPPP")
    for artifact in github.state.artifacts.values():
        artifact.expired = True
    seen = world.here("PPFP", world.merged(world.pull()))
    assert (seen.code, "seen 1: 1 expired; run the workflow on main again" in seen.report) == (3, True), seen.report
