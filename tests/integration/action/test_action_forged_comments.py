"""Comments that another workflow with the same token posted: whatever they say, this gate believes nothing of it."""

from __future__ import annotations

import base64
import json

import pytest

from tests.integration.action.test_action_pull_request import comments_of
from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.github import sha

MARKER = "<!-- eval-gate:v1 key=gate.yml.gate -->"


def forge(sha: str, run_id: int, **more: object) -> str:
    """A comment that claims to be a result of the gate, as a fork's `comment.md` can hold it."""
    state = json.dumps({"sha": sha, "run_id": run_id, "attempt": 1, "outcome": "passed", **more})
    packed = base64.b64encode(state.encode()).decode()
    return f"{MARKER}\n## ✅ Agent eval gate — no regressions\n<!-- eval-gate:state {packed} -->\n"


@pytest.fixture
def pull(job, github):
    with agent() as running:
        job.push(running.url)
    return github.state.add_pull(7)


def run_red(job, pull):
    with agent(fails_on(2)) as running:
        return job.pull_request(pull, running.url)


@pytest.mark.parametrize("inputs", [{}, {"gate": "gate.yml.gate"}, {"gate": "gate.yml.gate", "judged": [99999, 1]}])
def test_forged__claims_to_be_of_a_newer_run__the_red_result_takes_its_place(job, github, pull, inputs) -> None:
    github.state.add_comment(7, forge(pull.head_sha, 999_999, **inputs))
    ended = run_red(job, pull)
    (comment,) = comments_of(github)
    assert (ended.code, "## ❌ Agent eval gate — 1 regression" in comment) == (1, True), ended.log
    assert ended.outputs["comment-url"]


def test_forged__claims_to_be_another_leg_of_this_run__the_red_result_takes_its_place(job, github, pull) -> None:
    leg = {"gate": "gate.yml.gate", "leg": "00000000-00000000-00000000"}
    github.state.add_comment(7, forge(pull.head_sha, (github.current_run_id or 0) + 1, **leg))
    ended = run_red(job, pull)
    (comment,) = comments_of(github)
    assert (ended.code, "## ❌ Agent eval gate — 1 regression" in comment) == (1, True), ended.log


def test_forged__is_newer_than_ours__ours_is_updated_and_the_forged_one_goes(job, github, pull) -> None:
    assert run_red(job, pull).code == 1
    (ours,) = github.state.comments
    github.state.add_comment(7, forge(pull.head_sha, 999_999))
    github.state.add_commit("next", pull.head_sha, branch=pull.head_ref)
    pull.head_sha = sha("next")
    assert run_red(job, pull).code == 1
    (comment,) = github.state.comments.values()
    assert (comment.id, "## ❌ Agent eval gate — 1 regression" in comment.body) == (ours, True)


def test_forged__somebody_wrote_over_ours__it_says_the_result_again(job, github, pull) -> None:
    run_red(job, pull)
    (comment,) = github.state.comments.values()
    comment.body = "All is well."
    run_red(job, pull)
    (comment,) = github.state.comments.values()
    assert "## ❌ Agent eval gate — 1 regression" in comment.body
