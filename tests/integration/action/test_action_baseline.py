"""Which of the branch's results is the baseline, however busy and however crowded the repository is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.github import sha
from tests.support.github.state import iso
from tests.support.world import ActionWorld, cases_of, scripted


@pytest.fixture
def world(tmp_path, github):
    with scripted() as script:
        yield ActionWorld(tmp_path, github, script)


def of_two_days_ago(github) -> None:
    for artifact in github.state.artifacts.values():
        artifact.created_at = iso(datetime.now(UTC) - timedelta(days=2))


def crowd(github, count: int, days: float) -> None:
    """So many artifacts of pull requests, made so many days ago."""
    for number in range(count):
        run = github.state.add_run(None, event="pull_request", head_branch=f"f{number}", head_sha=f"pr head {number}")
        made = iso(datetime.now(UTC) - timedelta(days=days))
        github.state.add_artifact(run, {"run.json": b"{}"}, created_at=made)


@pytest.mark.slow
@pytest.mark.parametrize(("newer", "code"), [({"job": "sales"}, 1), ({"case": "gs-000"}, 1)])
def test_twelve_newer_results_that_cannot_serve__do_not_hide_the_baseline(world, github, newer, code) -> None:
    world.of_length("PPPP")
    for number in range(13):
        github.state.add_commit(f"main {number}", branch="main")
        world.script.begin("PPPP")
        given = newer if number else {}
        inputs = {name: value for name, value in given.items() if name == "case"}
        world.job.push(world.script.url, world._given({}) | inputs, GITHUB_JOB=given.get("job", "gate"))
    of_two_days_ago(github)
    seen = world.here("PPFF")
    assert (seen.code, seen.ended.outputs["baseline-sha"]) == (code, sha("main 0")), seen.text


@pytest.mark.slow
def test_only_results_of_another_gate_as_far_as_anybody_looks__a_failing_case_is_not_decided(world, github) -> None:
    world.main("PPPP")
    stored = github.state.archives[-1]
    for number in range(30):
        github.state.add_commit(f"later {number}", branch="main")
        run = github.state.add_run(None, head_sha=f"later {number}")
        github.state.add_artifact(run, stored.zip_bytes)
    of_two_days_ago(github)
    for artifact in github.state.archives[1:]:
        run = github.state.runs[artifact.run_id]
        run.head_sha = github.state.branches["main"]  # another commit than the result says
    assert world.here("PPFF").code == 3
    assert world.here("PPPP").code == 0


@pytest.mark.slow
def test_the_commit_s_own_result_is_behind_300_newer_ones_of_pull_requests__is_taken(world, github) -> None:
    world.main("PPFP")
    pull = world.pull()
    world.main("PPPP")
    crowd(github, 310, days=1)
    github.state.archives[1].created_at = iso(datetime.now(UTC) - timedelta(hours=1))
    seen = world.here("PPFP", pull)
    assert (seen.code, seen.ended.outputs["baseline-sha"]) == (0, pull.base_sha), seen.text


@pytest.mark.slow
def test_baseline_workflow_is_misspelt_and_the_list_is_full__the_file_is_named(world, github) -> None:
    world.main("PPFP")
    crowd(github, 310, days=1)
    seen = world.here("PPFP", world.merged(world.pull()), baseline_workflow="nihgtly.yml")
    assert seen.code == 3, seen.text
    assert "workflow nihgtly.yml not found; check the spelling in `baseline-workflow`" in seen.text


NIGHTLY = ".github/workflows/nightly.yml"


def nightly(world, github, *gates: tuple[str, str]) -> None:
    """One nightly run with these gates: the job of each, and the ids of its three cases."""
    github.state.add_commit("tonight", branch="main")
    world.job.begin_run(event="schedule", path=NIGHTLY)
    where = {"GITHUB_WORKFLOW_REF": f"{github.state.full_name}/{NIGHTLY}@refs/heads/main"}
    for job, ids in gates:
        cases(world, ids)
        world.script.begin("PPP")
        world.job.begin_job(job)
        given = {"agent-endpoint": world.script.url} | world._given({})
        ended = world.job.step("schedule", {"schedule": "17 3 * * *"}, given, GITHUB_JOB=job, **where)
        assert ended.outputs.get("artifact-id"), ended.log
    of_two_days_ago(github)


def cases(world, ids: str) -> None:
    world.cases = [
        one | {"id": f"{ids}-{at}", "input": {"message": f"{ids}: ask {at}"}} for at, one in enumerate(cases_of(3))
    ]
    world.suite = f"{ids}.golden.json"
    for old in (world.job.workspace / "evals").glob("*.golden.json"):
        old.unlink()
    world.write()


@pytest.mark.parametrize("job", ["sales", "support"])
def test_two_gates_of_one_nightly_workflow__each_is_compared_with_its_own(world, github, job) -> None:
    nightly(world, github, ("support", "help"), ("sales", "buy"))
    cases(world, {"support": "help", "sales": "buy"}[job])
    world.script.begin("PPF")
    pull = world.pull()
    ended = world.job.pull_request(
        pull, world.script.url, world._given({"baseline_workflow": "nightly.yml"}), GITHUB_JOB=job
    )
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log


@pytest.mark.parametrize(("letters", "code"), [("PPF", 3), ("PPP", 0)])
def test_nightly_result_is_of_another_gate_and_none_of_its_cases_is_here__is_not_compared_with(
    world, github, letters, code
) -> None:
    nightly(world, github, ("support-at-night", "help"), ("sales-at-night", "buy"))
    cases(world, "buy")
    world.script.begin(letters)
    pull = world.pull()
    ended = world.job.pull_request(
        pull, world.script.url, world._given({"baseline_workflow": "nightly.yml"}), GITHUB_JOB="sales"
    )
    assert (ended.code, ended.outputs["regressions"]) == (code, ""), ended.log
    comment = next(iter(github.state.comments.values())).body
    assert "was removed" not in comment
    assert "is from another gate (nightly.yml.support-at-night) and has none of these cases" in ended.log


@pytest.mark.slow
@pytest.mark.parametrize("overlap", [1, 4])
def test_runs_of_main_overlap__the_record_has_all_of_them(world, github, overlap) -> None:
    """A merge each five minutes and runs of twenty: none knows the three before it."""
    state = github.state
    world.of_length("PPPP")
    for number in range(16):
        for artifact in state.artifacts.values():
            artifact.expired = False
        for artifact in state.archives[-(overlap - 1) :] if overlap > 1 else []:
            artifact.expired = True  # its run has not ended yet
        state.add_commit(f"main {number}", branch="main")
        world.script.begin("PPPF" if number % 4 == 1 else "PPPP")
        world.job.push(world.script.url, world._given({"reruns": "0"}))
    for artifact in state.artifacts.values():
        artifact.expired = False
    of_two_days_ago(github)
    seen = world.here("PPPF(FP)")
    assert (seen.code, "its history has 16 runs" in seen.ended.log) == (0, True), seen.text
    asked = github.requests("GET", r"/actions/artifacts/\d+/zip")
    assert len(asked) < 16 * overlap + 8


def test_the_default_branch_was_renamed__heading_and_reason_say_what_to_do(world, github) -> None:
    world.main("PPPP*2")
    state = github.state
    state.branches["trunk"] = state.branches["main"]
    del state.branches["main"]
    state.default_branch = "trunk"
    seen = world.here("PPFP")
    assert seen.code == 0
    assert "no baseline yet under the branch's new name: run the workflow on it" in seen.title
    assert "trunk was renamed from main; run the workflow on trunk to store a baseline" in seen.text


def test_the_baseline_branch_does_not_exist__a_failing_case_is_not_decided(world) -> None:
    world.main("PPPP")
    seen = world.here("PPFP", baseline_branch="trunk")
    assert (seen.code, "branch trunk not found" in " ".join(seen.text.split())) == (3, True), seen.text
