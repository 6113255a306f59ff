"""From a baseline that says nothing, by one comment, to a pull request that is compared."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.integration.action.test_action_pull_request import baseline_of_today
from tests.integration.action.test_action_refresh_command import FILE, VARIABLES, event_of, replies, say
from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.github import FakeGitHub, fake_github
from tests.support.github.state import GATE
from tests.support.jobs import Job, repository_facts

HANDLER = b"on:\n  issue_comment:\njobs:\n  a:\n    steps:\n      - with: {baseline-workflow: gate.yml}\n"


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with fake_github() as server:
        yield server
        assert server.violations == []


def put_workflows(github) -> None:
    """What main has of workflows, at its newest commit."""
    tip = github.state.branches["main"]
    github.state.files[tip, GATE] = b"on:\n  push:\n  pull_request:\n  workflow_dispatch:\n"
    github.state.files[tip, FILE] = HANDLER


def test_refresh__baseline_is_of_other_evals__one_comment_later_the_change_is_compared(github, tmp_path) -> None:
    """Main's evals changed without a run; a pull request that breaks one of them cannot be judged."""
    job = Job(tmp_path, github)
    job.write_suite()
    github.state.roles["ada"] = "write"
    with agent() as running:
        job.push(running.url)
    file = job.workspace / "evals/weather.golden.json"
    file.write_text(re.sub(r'"(ask \d)"', r'"\1 please"', file.read_text()))
    github.state.add_commit("evals", branch="main")
    put_workflows(github)
    baseline_of_today(github)
    pull = github.state.add_pull(7)

    with agent(fails_on(1)) as running:
        first = job.pull_request(pull, running.url)
    (comment,) = replies(github)
    assert (first.code, first.outputs["regressions"]) == (0, "0"), first.log
    assert "The baseline is not comparable, so this run cannot show" in comment
    offer = "To make a new baseline, comment `/eval-gate refresh`, or run [the workflow]("
    for shown in (comment, first.summary):
        assert offer in shown

    github.permissions.add("actions:write")  # of the workflow for comments alone
    job.begin_run(event="issue_comment", path=FILE)
    heard = job.step("issue_comment", event_of(github, say(github)), {"baseline-workflow": "gate.yml"}, **VARIABLES)
    github.permissions.remove("actions:write")
    assert heard.code == 0, heard.log
    (started,) = [one for one in github.state.runs.values() if one.event == "workflow_dispatch"]
    assert (started.path, started.head_sha) == (GATE, github.state.branches["main"])
    assert "**The baseline is being refreshed.**" in replies(github)[-1]

    job.pick_up(started)
    event = {"inputs": None, "ref": "refs/heads/main", "repository": repository_facts(github)}
    with agent() as running:
        assert job.step("workflow_dispatch", event, {"agent-endpoint": running.url}).code == 0
    started.status, started.conclusion = "completed", "success"
    baseline_of_today(github)

    with agent(fails_on(1)) as running:
        then = job.pull_request(pull, running.url)
    assert (then.code, then.outputs["regressions"]) == (1, "1"), then.log
    assert "1 regression" in replies(github)[0]
    assert offer not in replies(github)[0] + then.summary
