"""A key as an input of the action: no part of it is in what a step says, posts or leaves, in any case."""

from __future__ import annotations

import json

import pytest

from eval_gate.action.inputs import INPUTS
from tests.support.canaries import KEY, files_below, shown_in, texts_of

ADDRESS = "http://127.0.0.1:1/"
NAMES = {
    *("waivers", "must-pass", "output-dir"),
    *("artifact-name", "baseline-branch", "check-run", "comment-key"),
}
"""Inputs to which any text is what they want: the record keeps them, or people read them on GitHub."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [one.name for one in INPUTS if not one.host_only])
def test_each_input_of_the_action__is_given_a_key__shows_none_of_it(job, github, name) -> None:
    assert name in NAMES or left_of_step(job, github, {name: KEY}) == []


def test_all_inputs_of_the_action__are_given_a_key__none_of_it_is_shown(job, github) -> None:
    own = {"github-token", "config", "baseline", "baseline-workflow"}
    names = {one.name for one in INPUTS if not one.host_only} - own - NAMES
    assert left_of_step(job, github, dict.fromkeys(names, KEY)) == []


def test_all_headers_of_a_target__are_one_secret__none_of_it_is_shown(job, github) -> None:
    target = {"name": "a", "url": ADDRESS, "headers": "${{ AGENT_HEADERS }}", "method": "${{ AGENT_HEADERS }}"}
    (job.workspace / "eval-gate.json").write_text(json.dumps({"targets": [target]}))
    inputs = {"agent-endpoint": "", "secrets-for": "head"}
    assert left_of_step(job, github, inputs, said="headers: expected a mapping", AGENT_HEADERS=KEY) == []


def left_of_step(job, github, inputs: dict[str, str], said: str = "", **variables: str) -> list[str]:
    """Where something of the key is found in all that a step of a pull request says and leaves."""
    ended = job.pull_request(
        github.state.add_pull(7), "" if "agent-endpoint" in inputs else ADDRESS, inputs, **variables
    )
    assert ended.code, ended.log
    assert said in ended.log
    log = "\n".join(line for line in ended.log.splitlines() if not line.startswith("::add-mask::"))
    texts = [("log", log), ("summary", ended.summary), ("outputs", json.dumps(ended.outputs))]
    texts += [("comment", one.body) for one in github.state.comments.values()]
    texts += [("check", json.dumps([run.fields, run.annotations])) for run in github.state.check_runs.values()]
    texts += [text for one in github.state.artifacts.values() for text in texts_of(one.name, one.zip_bytes)]
    texts += files_below(job.workspace / "evals/results") if (job.workspace / "evals/results").is_dir() else []
    return shown_in(texts)
