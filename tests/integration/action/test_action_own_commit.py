"""A commit that has a result already is run again: its own result is a baseline only where the gate passed."""

from __future__ import annotations

import pytest

from tests.integration.action.test_action_one_answer import on_branch, shown
from tests.support.git import commit_all
from tests.support.jobs import Ended, push_event
from tests.support.world import ActionWorld, scripted


@pytest.fixture
def world(tmp_path, github):
    with scripted() as script:
        yield ActionWorld(tmp_path, github, script)


def again(world: ActionWorld, event_name: str, letters: str) -> Ended:
    """Another run of main's newest commit."""
    world.job.begin_run(event=event_name, head_branch="main")
    world.script.begin(letters)
    given = {"agent-endpoint": world.script.url} | world._given({})
    return world.job.step(event_name, push_event(world.github), given)


@pytest.mark.parametrize("event_name", ["schedule", "workflow_dispatch"])
def test_red_commit_again__is_as_red_as_before(world, github, event_name) -> None:
    *_, green, red = world.main("PPPP*3 PPFP")
    ended = again(world, event_name, "PPFP")
    assert (ended.code, ended.outputs["regressions"], ended.outputs["baseline-sha"]) == (1, "1", green), ended.log
    assert shown(github, red) == {"eval-gate": "failure"}
    assert "broken before" not in ended.summary
    assert "of this commit, where the gate did not pass" in ended.log


@pytest.mark.slow
def test_red_commit_again__a_third_time_and_repaired_outside__is_told_by_its_first_parent(world, github) -> None:
    *_, green, red = world.main("PPPP*3 PPFP")
    assert [again(world, "schedule", letters).code for letters in ("PPFP", "PPPP", "PPFP")] == [1, 0, 1]
    assert shown(github, red) == {"eval-gate": "failure"}
    assert green != red


def test_push_that_breaks__its_own_commit_is_none_before_it(world) -> None:
    *_, green, _ = world.main("PPPP*2 PPFP")
    assert world.ended.outputs["baseline-sha"] == green
    assert "1 regression" in world.ended.summary
    assert ("counting" in world.ended.summary, "no result of its own" in world.ended.summary) == (False, False)


def test_green_commit_again__what_broke_since_is_told(world) -> None:
    *_, own = world.main("PPFP*2 PPFP")
    ended = again(world, "schedule", "FPFP")
    assert (ended.code, ended.outputs["regressions"], ended.outputs["baseline-sha"]) == (1, "1", own), ended.log


@pytest.mark.slow
def test_red_commit_again__by_a_comment__stays_red(world, github) -> None:
    world.main("PPPP*2")
    own = commit_all(world.job.workspace)
    github.state.add_commit(own, branch="main")
    world.script.begin("PPFP")
    assert world.job.push(world.script.url, world._given({})).code == 1
    assert again(world, "issue_comment", "PPFP").code == 1
    assert shown(github, own) == {"eval-gate": "failure"}


@pytest.mark.slow
def test_red_commit_again__nothing_before_it_is_kept__is_inconclusive_and_never_green(world, github) -> None:
    world.main("PPPP PPFP")
    first = min(one.run_id for one in github.state.artifacts.values())
    for one in [one for one in github.state.artifacts.values() if one.run_id == first]:  # result and page, in any order
        del github.state.artifacts[one.id]
    ended = again(world, "schedule", "PPFP")
    assert ended.code == 3, ended.log
    assert "name an earlier run with `baseline`" in ended.log
    assert again(world, "schedule", "PPPP").code == 0


@pytest.mark.parametrize(("letters", "code"), [("PPFP", 1), ("PPPP", 0)])
def test_red_merge_group_that_was_merged__push_of_that_commit__is_as_red(world, github, letters, code) -> None:
    state = github.state
    *_, base = world.main("PPPP*3")
    assert world.in_queue(letters).code == code
    head = next(sha for name, sha in state.branches.items() if name.startswith("gh-readonly-queue/"))
    state.branches["main"] = head
    world.script.begin("PPFP")
    ended = world.job.push(world.script.url, world._given({}))
    assert (ended.code, ended.outputs["baseline-sha"]) == (1, base if code else head), ended.log
    assert shown(github, head) == {"eval-gate": "failure"}


# --- another commit than the event's is checked out


@pytest.mark.parametrize("event_name", ["push", "schedule"])
def test_branch_holds_another_commit__is_refused_and_that_is_published(world, github, event_name) -> None:
    older, newest = world.main("PPPP*2")
    stored = len(github.state.archives)
    world.job.check_out(older)
    ended = again(world, event_name, "PPPP")
    assert (ended.code, len(github.state.archives)) == (2, stored), ended.log
    assert f"error[checkout-mismatch]: the workspace is at {older[:12]}" in ended.log
    assert f"actions/checkout with `ref: {newest}`, or without `ref`" in ended.log
    assert shown(github, newest) == {"eval-gate": "failure"}


def test_own_branch_holds_main__is_refused(world, github) -> None:
    world.main("PPPP")
    pull = world.pull()
    world.job.check_out(github.state.branches["main"])
    assert on_branch(world, pull, "push", "PPPP").code == 2
    assert shown(github, pull.head_sha) == {"eval-gate (push)": "failure"}
