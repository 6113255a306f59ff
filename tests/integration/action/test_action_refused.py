"""Where the action must not run, or cannot."""

from __future__ import annotations

from tests.integration.test_integration_run import gate
from tests.support.agents import agent
from tests.support.jobs import pull_request_event


def test_pull_request_target__is_refused_before_anything_runs(job, github) -> None:
    pull = github.state.add_pull(7)
    with agent() as running:
        event = pull_request_event(github, pull)
        ended = job.step("pull_request_target", event, {"agent-endpoint": running.url})
    assert (ended.code, running.requests) == (2, [])
    assert "unsafe-event" in ended.log
    assert github.log == []


def test_action__outside_of_a_workflow__says_what_to_use_instead(tmp_path) -> None:
    ended = gate(tmp_path, "action")
    assert ended.returncode == 2
    assert "eval-gate run" in ended.stderr
