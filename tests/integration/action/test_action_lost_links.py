"""A pull request takes away the name under which its baseline is stored: that is not "no baseline yet"."""

from __future__ import annotations

import shutil

import pytest

from tests.integration.action.test_action_other_commits import RENAMED, in_workflow
from tests.support.github import GATE
from tests.support.github.faults import Fault
from tests.support.world import ActionWorld, cases_of, scripted

CONFIG = {"config": "bot/eval-gate.yaml"}
MOVED = {"config": "other/eval-gate.yaml"}


@pytest.fixture
def world(tmp_path, github):
    with scripted() as script:
        made = ActionWorld(tmp_path, github, script)
        for folder in ("bot", "other"):
            (made.job.workspace / folder).mkdir()
            (made.job.workspace / folder / "eval-gate.yaml").write_text("evals: [evals]\n")
        yield made


WAYS = [
    pytest.param({}, {"comment_key": "new"}, ("gate.yml.gate", "new"), id="a comment-key"),
    pytest.param({"comment_key": "old"}, {"comment_key": "new"}, ("old", "new"), id="another comment-key"),
    pytest.param(
        CONFIG,
        MOVED,
        ("gate.yml.gate.bot-eval-gate.yaml-12dc6afe", "gate.yml.gate.other-eval-gate.yaml-c42d083c"),
        id="config moved",
    ),
    pytest.param({}, {"artifact_name": "new"}, ("gate.yml.gate", "gate.yml.gate.new"), id="an artifact-name"),
    pytest.param(
        {"artifact_name": "old"},
        {"artifact_name": "new"},
        ("gate.yml.gate.old", "gate.yml.gate.new"),
        id="artifact renamed",
    ),
]


@pytest.mark.parametrize(("before", "now", "names"), WAYS)
def test_gate_has_another_name__a_case_that_passes_under_the_old_one_fails__is_inconclusive_and_names_both(
    world, before, now, names
) -> None:
    world.main("PPPF*2", **before)
    seen = world.here("PPFF", world.merged(world.pull()), **now)
    assert (seen.code, seen.reasons[0]) == (3, "baseline-lost"), seen.text
    shown = f"gate `{names[0]}` → `{names[1]}`"
    assert shown in " ".join(seen.head.split()), seen.report
    assert shown in " ".join(seen.text.split()), seen.text
    assert "1 case that passes there fails here" in " ".join(seen.text.split()), seen.text
    assert seen.json["lostBaseline"]["baseline"] == names[0]


@pytest.mark.parametrize(("before", "now", "names"), WAYS[1:3])
def test_gate_has_another_name__what_fails_there_too_or_passes__passes_and_names_both(
    world, before, now, names
) -> None:
    world.main("PPPF", **before)
    seen = world.here("PPPF", world.merged(world.pull()), **now)
    assert seen.code == 0, seen.text
    assert f"gate `{names[0]}` → `{names[1]}`" in " ".join(seen.head.split()), seen.report
    assert "no baseline yet" not in seen.title


def test_workflow_job_artifact_and_key_all_have_other_names__is_inconclusive(world) -> None:
    world.main("PPPP*2", artifact_name="old")
    seen = in_workflow(
        world, RENAMED, "PPFP", GITHUB_JOB="evals", **{"INPUT_ARTIFACT-NAME": "x", "INPUT_COMMENT-KEY": "k"}
    )
    assert (seen.code, f"gate `{WAYS[4].values[2][0]}` → `k`" in " ".join(seen.text.split())) == (3, True), seen.text
    assert "Restore `artifact-name: old`" in " ".join(seen.text.split())


@pytest.mark.slow
def test_many_results_of_another_workflow_are_nearer__do_not_hide_the_earlier_name(world, github) -> None:
    world.main("PPPP", artifact_name="old")
    kept = github.state.archives[0]
    world.suite, world.cases = "other.golden.json", cases_of(5)[4:]
    (world.job.workspace / "evals" / "weather.golden.json").unlink()
    world.write()
    world.script.begin("PPPPP")
    for number in range(12):
        github.state.add_commit(f"night {number}", branch="main")
        world.job.begin_run(event="schedule", path=RENAMED)
        where = {"GITHUB_WORKFLOW_REF": f"{github.state.full_name}/{RENAMED}@refs/heads/main"}
        given = {"agent-endpoint": world.script.url} | world._given({})
        world.job.step("schedule", {"schedule": "17 3 * * *"}, given, **where)
    world.suite, world.cases = "weather.golden.json", cases_of(4)
    (world.job.workspace / "evals" / "other.golden.json").unlink()
    world.write()
    assert not kept.expired
    assert world.here("PPFP", world.merged(world.pull()), comment_key="new").code == 3


def test_cases_are_moved_with_their_gate__is_inconclusive(world) -> None:
    world.main("PPPP", comment_key="old")
    (world.job.workspace / "evals" / world.suite).unlink()
    world.suite = "moved.golden.json"
    world.cases = [one | {"id": f"moved-{at}"} for at, one in enumerate(world.cases)]
    world.write()
    assert world.here("PPFP", world.merged(world.pull()), comment_key="new").code == 3


def test_same_key_in_another_workflow__names_the_workflow_files(world) -> None:
    world.main("PPPP", comment_key="bot")
    seen = in_workflow(world, RENAMED, "PPFP", **{"INPUT_COMMENT-KEY": "bot"})
    shown = " ".join(seen.text.split())
    assert (seen.code, f"workflow `{GATE}` → `{RENAMED}`" in shown) == (3, True), seen.text


def test_github_does_not_list_runs__a_failing_case_is_inconclusive(world, github) -> None:
    github.faults.add("GET", r"/actions/runs\?", *[Fault.status(502)] * 5)
    assert world.here("PPFP", world.merged(world.pull())).code == 3


def test_further_gate_beside_an_existing_one__is_new(world) -> None:
    """The other gate has judged the same commit, in an earlier step."""
    world.main("PPPP", comment_key="old")
    pull = world.merged(world.pull())
    assert world.here("PPPP", pull, comment_key="old").code == 0
    world.script.begin("PPFP")
    seen = world.seen_step(pull, **world._given({"comment_key": "new", "artifact_name": "second"}))
    assert (seen.code, "no baseline yet" in seen.title) == (0, True), seen.text
    assert "further gate" in seen.text


WORKFLOW = """\
on: [push, pull_request]
jobs:
  gate:
    steps:
      - uses: actions/checkout@v5
      - uses: eval-gate/eval-gate@main
        with: {comment-key: new}
  other:
    strategy:
      matrix: {name: [old, older]}
    steps:
      - uses: eval-gate/eval-gate@main
        with: {comment-key: "${{ matrix.name }}"}
"""


STEP = 'uses: eval-gate/eval-gate@main\n        with: {comment-key: "$'


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("", "", 0),
        ("[old, older]", "[older]", 3),
        ("  other:\n", "  other:\n    if: false\n", 3),
        (STEP, STEP.replace("eval-gate/eval-gate@main", "actions/cache@v4"), 3),
        ("  other:\n", "  build: {}\n  other:\n    needs: build\n", 0),
        ("  other:\n", "  build: {if: false}\n  third: {needs: build}\n  other:\n    needs: [third]\n", 3),
        ("  other:\n", "  other:\n    continue-on-error: true\n", 3),
    ],
    ids=["beside it", "renamed", "switched off", "another action", "after", "after nothing", "optional"],
)
def test_further_gate_beside_one_that_the_workflow_still_has__is_new(world, github, old, new, code) -> None:
    """Both run at the same time, so the other gate has not judged the commit yet."""
    world.main("PPPP", comment_key="old")
    pull = world.merged(world.pull())
    github.state.files[pull.head_sha, GATE] = WORKFLOW.replace(old, new).encode()
    assert world.here("PPFP", pull, comment_key="new").code == code


def test_no_result_of_the_branch_has_these_cases__no_baseline_yet(world) -> None:
    world.main("PPPP", comment_key="old")
    for number, case in enumerate(world.cases):
        case["id"], case["input"] = f"new-{number}", {"message": f"ask {number} anew"}
    (world.job.workspace / "evals" / world.suite).unlink()
    world.suite = "anew.golden.json"
    world.write()
    seen = world.here("PPFP", world.merged(world.pull()), comment_key="new")
    assert (seen.code, "no baseline yet" in seen.title) == (0, True), seen.text


def test_old_result_is_of_a_pull_request__is_no_lost_baseline(world) -> None:
    world.main("PPPP*0")
    world.here("PPPP", world.merged(world.pull()), comment_key="old", artifact_name="old")
    seen = world.here("PPFP", world.merged(world.pull()), comment_key="new", artifact_name="new")
    assert (seen.code, "no baseline yet" in seen.title) == (0, True), seen.text


@pytest.mark.parametrize("now", [{"baseline": "none"}, {"baseline": "latest"}, {"baseline_branch": "empty"}])
def test_another_baseline_is_configured_and_it_is_none__is_inconclusive(world, github, now) -> None:
    world.main("PPPP*2")
    github.state.branches["empty"] = github.state.branches["main"]
    shutil.rmtree(world.job.workspace / "evals" / "results")  # another machine
    seen = world.here("PPFP", world.merged(world.pull()), **now)
    assert (seen.code, seen.reasons[0]) == (3, "baseline-lost"), seen.text


def test_ordinary_repository__asks_github_a_bounded_number_of_times(world, github) -> None:
    for number in range(60):
        github.state.add_commit(f"before {number}", branch="main")
        run = github.state.add_run(None, head_sha=f"before {number}", path=f".github/workflows/w{number % 20}.yml")
        github.state.add_artifact(run, {"coverage.xml": b"<x/>"}, name=f"coverage-{number}")
    seen = world.here("PPFP", world.merged(world.pull()))
    assert (seen.code, "no baseline yet" in seen.title) == (0, True), seen.text
    asked = github.requests("GET", r"/actions/(runs/\d+/artifacts|artifacts/\d+/zip)")
    assert 0 < len(asked) <= 20, len(asked)
