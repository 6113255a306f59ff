"""What a step is called: several gates of one repository do not take each other's comment, check and artifact."""

from __future__ import annotations

import pytest

from eval_gate.action.inputs import read_inputs
from eval_gate.action.step import open_step
from eval_gate.config.settings import RunConfig
from eval_gate.errors import ExitCode, GateError

PUSH = {"ref": "refs/heads/main"}


@pytest.mark.parametrize(
    ("inputs", "name", "key"),
    [
        ({}, None, "gate.yml.gate"),
        ({"config": "evals/support.yaml"}, "support", "gate.yml.gate.support"),
        ({"config": "support/eval-gate.yaml"}, "support", "gate.yml.gate.support"),
        ({"config": "eval-gate.yaml"}, None, "gate.yml.gate"),
        ({"artifact-name": "mine"}, "mine", "gate.yml.gate.mine"),
        ({"comment-key": "ours", "config": "evals/support.yaml"}, "ours", "ours"),
    ],
)
def test_step__inputs_of_a_gate__tell_it_from_others(desk, inputs, name, key) -> None:
    step = desk.step("push", PUSH, inputs)
    assert (step.name, step.key) == (name, key)


@pytest.mark.parametrize(
    ("inputs", "artifacts", "checks"),
    [
        ({}, ("eval-gate-results", "eval-gate-results.gate.yml.gate"), ("eval-gate", "eval-gate (gate.yml.gate)")),
        ({"artifact-name": "mine", "check-run": "ours"}, ("mine",), ("ours",)),
        ({"check-run": ""}, ("eval-gate-results", "eval-gate-results.gate.yml.gate"), ()),
    ],
)
def test_step__names_that_nobody_chose__give_way_to_another_gate(desk, inputs, artifacts, checks) -> None:
    step = desk.step("push", PUSH, inputs)
    assert (step.artifact_names, step.check_names) == (artifacts, checks)


def test_open_step__no_token__is_said(desk) -> None:
    desk.event("push", PUSH)
    with pytest.raises(GateError) as caught:
        open_step(desk.environment("push"), read_inputs({"INPUT_GITHUB-TOKEN": ""}), RunConfig())
    assert (caught.value.code, caught.value.exit_code) == ("no-token", ExitCode.USAGE)


def test_inputs__shard_that_is_none__is_named() -> None:
    with pytest.raises(GateError) as caught:
        read_inputs({"INPUT_GITHUB-TOKEN": "x", "INPUT_SHARD": "5/4"})
    assert [one.field for one in caught.value.problems] == ["shard"]
