"""The branch has results of the cases here, by another workflow, job or event: that is not "no baseline yet"."""

from __future__ import annotations

import pytest

from tests.support.jobs import pull_request_event, repository_facts
from tests.support.world import ActionWorld, expect, scripted

RENAMED = ".github/workflows/evals.yml"
KEY = "gate.yml.gate"


@pytest.fixture
def world(tmp_path, github):
    with scripted() as script:
        yield ActionWorld(tmp_path, github, script)


def in_workflow(world: ActionWorld, path: str, letters: str, **variables: str):
    """A pull request's run of this workflow file."""
    pull = world.merged(world.pull())
    world.of_length(letters)
    world.job.begin_run(event="pull_request", head_branch=pull.head_ref, head_sha=pull.head_sha, path=path)
    world.script.begin(letters)
    ref = f"{world.github.state.full_name}/{path}@refs/pull/{pull.number}/merge"
    given = {"agent-endpoint": world.script.url} | world._given({})
    event = pull_request_event(world.github, pull)
    return world.seen(world.job.step("pull_request", event, given, GITHUB_WORKFLOW_REF=ref, **variables), pull)


@pytest.mark.parametrize(
    ("path", "job", "key"),
    [
        (RENAMED, "gate", "evals.yml.gate"),
        pytest.param(".github/workflows/gate.yml", "evals", "gate.yml.evals", marks=pytest.mark.slow),
    ],
)
def test_workflow_or_job_was_renamed__a_failing_case_is_inconclusive_and_both_names_are_shown(
    world, path, job, key
) -> None:
    world.main("PPPP*2")
    seen = in_workflow(world, path, "PPFP", GITHUB_JOB=job)
    assert (seen.code, seen.reasons[0]) == (3, "baseline-lost"), seen.text
    for shown in (seen.text, seen.ended.log):
        assert "name its workflow file with `baseline-workflow: gate.yml`" in " ".join(shown.split()), shown
        assert f"gate `{KEY}` → `{key}`" in " ".join(shown.split()), shown
        assert "Next step: The next run" not in shown
    followed = in_workflow(world, path, "PPFP", GITHUB_JOB=job, **{"INPUT_BASELINE-WORKFLOW": "gate.yml"})
    expect(followed, 1, "1 regression", regression=[2])
    green = in_workflow(world, path, "PPPP", GITHUB_JOB=job)
    assert (green.code, "passed, baseline lost" in green.title) == (0, True), green.title


@pytest.mark.slow
@pytest.mark.parametrize("event_name", ["deployment_status", "release"])
def test_branch_is_evaluated_by_an_event_that_makes_no_baselines__is_said(world, github, event_name) -> None:
    commit = github.state.add_commit("main 1", branch="main").sha
    world.of_length("PPPP")
    world.job.check_out(commit)
    world.job.begin_run(event=event_name, head_branch="main", head_sha=commit)
    world.script.begin("PPPP")
    event = {"repository": repository_facts(github), "deployment": {"sha": commit}}
    given = {"agent-endpoint": world.script.url} | world._given({})
    world.job.step(event_name, event, given, GITHUB_SHA=commit, GITHUB_REF="refs/heads/main")
    seen = world.here("PPFP", world.merged(world.pull()))
    assert (seen.code, f"it is from a run of {event_name}" in seen.ended.log) == (3, True), seen.text
    assert "run the workflow on pushes to main, or by schedule" in seen.ended.log


@pytest.mark.slow
def test_a_new_gate_beside_another__has_no_baseline_yet(world, github) -> None:
    """Of another name, or of other cases."""
    world.main("PPPP", comment_key="other")
    pull = world.merged(world.pull())
    assert world.here("PPPP", pull, comment_key="other").code == 0
    assert world.here("PPFP", pull).code == 0
    world.main("PPPP")
    for number, case in enumerate(world.cases):
        case["id"], case["input"] = f"new-{number}", {"message": f"ask {number} anew"}
    world.suite = "anew.golden.json"
    (world.job.workspace / "evals" / "weather.golden.json").unlink()
    world.write()
    seen = in_workflow(world, RENAMED, "PPFP")
    assert (seen.code, "no baseline yet" in seen.title) == (0, True), seen.text
