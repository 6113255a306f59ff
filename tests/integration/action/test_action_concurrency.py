"""What the action says about an agent that takes fewer requests at the same time than it gets."""

from __future__ import annotations

from tests.integration.test_integration_concurrency import crowded


def test_action__agent_takes_two_requests_at_once__passes_and_the_comment_says_what_was_lowered(job, github) -> None:
    job.write_suite(64)
    pull = github.state.add_pull(7)
    with crowded(2) as running:
        ended = job.pull_request(pull, running.url, {"concurrency": "8"})
    assert (ended.code, ended.outputs["passed"]) == (0, "64"), ended.log
    (comment,) = [one.body for one in github.state.comments.values()]
    said = f"the agent answered 429 to {running.refusals} requests: concurrency was lowered from 8 to 2"
    assert said in comment
    assert said in ended.summary
    assert said in ended.log
