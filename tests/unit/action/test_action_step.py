"""What a step is called: several gates of one repository do not take each other's comment, check and artifact."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from eval_gate.action.inputs import read_inputs
from eval_gate.action.step import open_publishing_step, open_step, open_temporary_folder
from eval_gate.errors import ExitCode, GateError
from eval_gate.text.escape import MAX_KEY
from tests.support.github import FakeGitHub
from tests.support.jobs import RUNNER_ID, pull_request_event
from tests.unit.action.conftest import Desk

PUSH = {"ref": "refs/heads/main"}


@pytest.mark.parametrize(
    ("inputs", "name", "key"),
    [
        ({}, None, "gate.yml.gate"),
        ({"config": "evals/support.yaml"}, "evals/support", "gate.yml.gate.evals-support.yaml-KEY"),
        ({"config": "support/eval-gate.yaml"}, "support", "gate.yml.gate.support-eval-gate.yaml-KEY"),
        ({"config": "eval-gate.yaml"}, None, "gate.yml.gate"),
        ({"config": "./eval-gate.yaml"}, None, "gate.yml.gate"),
        ({"artifact-name": "mine"}, "mine", "gate.yml.gate.mine"),
        ({"comment-key": "ours", "config": "evals/support.yaml"}, "ours", "ours"),
    ],
)
def test_step__inputs_of_a_gate__tell_it_from_others(desk, inputs, name, key) -> None:
    step = desk.step("push", PUSH, inputs)
    assert (step.name, re.sub(r"-[0-9a-f]{8}$", "-KEY", step.key)) == (name, key)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"config": "a/bot/eval-gate.yaml"}, {"config": "b/bot/eval-gate.yaml"}),
        ({"config": "a/support.yaml"}, {"config": "b/support.yaml"}),
        ({"config": "support.yaml"}, {"config": "support/eval-gate.yaml"}),
        ({"config": "support.yaml"}, {"artifact-name": "support.yaml"}),
        ({"config": "support.yaml"}, {"config": "support.json"}),
        ({"config": "eval-gate.json"}, {}),
        ({"comment-key": "support/eu"}, {"comment-key": "support-eu"}),
        ({"comment-key": "日本"}, {"comment-key": "中国"}),
        ({"comment-key": "x" * 250}, {"comment-key": "x" * 249 + "y"}),
        ({"artifact-name": "日本"}, {"artifact-name": "中国"}),
    ],
)
def test_step__inputs_that_look_alike__are_two_gates(desk, one, other) -> None:
    steps = [desk.step("push", PUSH, inputs) for inputs in (one, other)]
    for made in ([step.key for step in steps], [step.publication.maker.gate for step in steps]):
        assert made[0] != made[1]
        assert max(map(len, made)) <= MAX_KEY
    assert not {*steps[0].artifact_names[1:]} & {*steps[1].artifact_names[1:]}
    assert steps[0].check_names[1] != steps[1].check_names[1]


@pytest.mark.parametrize("path", ["a/bot/eval-gate.yaml", "./a//bot/eval-gate.yaml", "a/x/../bot/eval-gate.yaml"])
def test_step__one_path_written_in_several_ways__is_one_gate(desk, path) -> None:
    assert desk.step("push", PUSH, {"config": path}).key == "gate.yml.gate.a-bot-eval-gate.yaml-adddaca3"


@pytest.mark.parametrize(
    ("inputs", "artifacts", "checks"),
    [
        ({}, ("eval-gate-results", "eval-gate-results.gate.yml.gate"), ("eval-gate", "eval-gate (gate.yml.gate)")),
        ({"artifact-name": "mine", "check-run": "ours"}, ("mine",), ("ours", "ours (gate.yml.gate.mine)")),
        ({"check-run": ""}, ("eval-gate-results", "eval-gate-results.gate.yml.gate"), ()),
    ],
)
def test_step__names_that_nobody_chose__give_way_to_another_gate(desk, inputs, artifacts, checks) -> None:
    step = desk.step("push", PUSH, inputs)
    assert (step.artifact_names, step.check_names) == (artifacts, checks)


@pytest.mark.parametrize(
    ("event", "inputs", "name"),
    [
        (("push", "refs/heads/main"), {}, "eval-gate"),
        (("push", "refs/heads/main"), {"tag": "smoke"}, "eval-gate (some cases)"),
        (("push", "refs/tags/main"), {}, "eval-gate (push)"),
        (("workflow_dispatch", "refs/heads/topic"), {"tier": "golden"}, "eval-gate (workflow_dispatch, some cases)"),
        (("workflow_dispatch", "refs/heads/topic"), {"check-run": "ours"}, "ours (workflow_dispatch)"),
        (("push", "refs/heads/main"), {"shard": "1/2"}, "eval-gate"),
    ],
)
def test_step__another_question_about_a_commit__has_another_check(desk, event, inputs, name) -> None:
    step = desk.step(event[0], PUSH, inputs, GITHUB_REF=event[1])
    assert step.check_names[0] == name


@pytest.mark.parametrize(
    ("base", "inputs", "name"),
    [
        ("main", {}, "eval-gate"),
        ("release", {}, "eval-gate (into release)"),
        ("release", {"baseline-branch": "release"}, "eval-gate (into release)"),
    ],
)
def test_step__pull_request_into_another_branch__has_a_check_of_its_own(desk, github, base, inputs, name) -> None:
    github.state.add_commit("older", github.state.branches["main"], branch="release")
    pull = github.state.add_pull(7, base_ref=base)
    assert desk.step("pull_request", pull_request_event(github, pull), inputs).check_names[0] == name


@pytest.mark.parametrize(("base", "name"), [("main", "eval-gate"), ("release/1", "eval-gate (into release/1)")])
def test_step__merge_group__has_the_check_of_the_pull_requests_in_it(desk, github, base, name) -> None:
    github.state.add_commit("older", github.state.branches["main"], branch="release/1")
    pull = github.state.add_pull(7, base_ref=base)
    head = github.state.branches["main"]
    group = {"head_sha": head, "head_ref": f"refs/heads/gh-readonly-queue/{base}/pr-7-{head}", "base_sha": head}
    event = {"merge_group": {**group, "base_ref": f"refs/heads/{base}"}}
    assert desk.step("merge_group", event).check_names[0] == name
    assert desk.step("pull_request", pull_request_event(github, pull)).check_names[0] == name
    desk.event("merge_group", event)
    broken = open_publishing_step(desk.environment("merge_group"), read_inputs({"INPUT_GITHUB-TOKEN": github.token}))
    assert broken is not None
    assert broken.check_names[0] == name
    broken.client.close()


@pytest.mark.parametrize(
    ("inputs", "gate"),
    [
        ({}, "gate.yml.gate"),
        ({"comment-key": "ours"}, "gate.yml.ours"),
        ({"comment-key": "ours", "case": "a"}, "gate.yml.ours.some-cases"),
    ],
)
def test_step__publication__names_the_workflow_and_whether_it_is_of_all_cases(desk, inputs, gate) -> None:
    step = desk.step("push", PUSH, inputs)
    assert (step.publication.maker.gate, step.maker.gate) == (gate, step.key)


def test_open_step__no_token__is_said(desk) -> None:
    desk.event("push", PUSH)
    with pytest.raises(GateError) as caught:
        open_step(desk.environment("push"), read_inputs({"INPUT_GITHUB-TOKEN": ""}))
    assert (caught.value.code, caught.value.exit_code) == ("missing-token", ExitCode.USAGE)


def test_inputs__shard_that_is_none__is_named() -> None:
    with pytest.raises(GateError) as caught:
        read_inputs({"INPUT_GITHUB-TOKEN": "x", "INPUT_SHARD": "5/4"})
    assert [one.field for one in caught.value.problems] == ["shard"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
@pytest.mark.parametrize(("mode", "taken"), [(0o755, True), (0o1777, True), (0o777, False)])
def test_temporary__on_the_machine_of_the_job__is_not_where_others_may_put_another_in_its_place(
    desk, mode, taken
) -> None:
    """Rules of the base branch and the baseline are read from there."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(mode)
        os.chown(folder, RUNNER_ID, RUNNER_ID)
        os.seteuid(RUNNER_ID)
        try:
            with open_temporary_folder(desk.environment("push", RUNNER_TEMP=folder)) as environment:
                place = environment.temporary_folder
        finally:
            os.seteuid(0)
    assert place is not None
    assert place.is_relative_to(folder) is taken


@pytest.fixture
def unplannable(desk) -> Desk:
    """A step that asks GitHub for its pull request, which is none."""
    desk.event("workflow_dispatch", {"ref": "refs/heads/main", "inputs": {"pr-number": "99"}})
    return desk


def closes_its_connections(github: FakeGitHub) -> bool:
    """Whether GitHub sees the end of all connections, of which there were some, within a minute."""
    assert github.log, "nothing was requested: this test says nothing"
    end = time.monotonic() + 60
    while github.open_connections and time.monotonic() < end:
        time.sleep(0.01)
    return not github.open_connections


def test_open_step__planning_fails__closes_its_connection(unplannable, github) -> None:
    environment = unplannable.environment("workflow_dispatch")
    with pytest.raises(GateError, match="pull request #99 not found") as caught:
        open_step(environment, read_inputs({"INPUT_GITHUB-TOKEN": github.token}))
    assert closes_its_connections(github)
    assert caught.value.code == "pull-request-not-found"
