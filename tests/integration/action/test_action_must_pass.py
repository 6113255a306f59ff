"""What must pass and is not there, in the action."""

from __future__ import annotations

import pytest

from tests.integration.action.test_action_pull_request import baseline_of_today, comments_of
from tests.support.agents import agent
from tests.support.jobs import push_event

SAID = 'matches no case (did you mean "gs-002"?)'


def test_pull_request__must_pass_that_names_nothing__is_a_warning_in_the_comment(job, github) -> None:
    with agent() as running:
        assert job.push(running.url).code == 0
        baseline_of_today(github)
        pull = github.state.add_pull(7)
        ended = job.pull_request(pull, running.url, {"must-pass": "gs-02"})
    assert (ended.code, ended.outputs["verdict"]) == (0, "passed"), ended.log
    (body,) = comments_of(github)
    assert "1 warning" in body
    assert "matches no case (did you mean" in body
    assert SAID in ended.log


@pytest.mark.parametrize("made", ["here", "before"])
def test_push__must_pass_that_names_nothing_under_strict__is_refused(job, github, made) -> None:
    with agent() as running:
        assert job.push(running.url, {"output-dir": "out"}).code == 0
        asked = len(running.requests)
        job.begin_run(event="push")
        inputs = {"agent-endpoint": running.url} if made == "here" else {"results": "out"}
        ended = job.step("push", push_event(github), {**inputs, "must-pass": "gs-02", "strict": "true"})
        assert len(running.requests) == asked
    assert ended.code == 2, ended.log
    assert SAID in ended.log
