"""Results that an earlier step made."""

from __future__ import annotations

from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.jobs import push_event
from tests.support.program import gate


def test_results__made_by_an_earlier_step__are_compared_and_published_and_nothing_runs(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        assert gate(job.workspace, "run", "--agent-endpoint", running.url, "--output-dir", "elsewhere").returncode == 1
        asked = len(running.requests)
        ended = job.pull_request(pull, "http://127.0.0.1:9", {"results": "elsewhere"})
        assert len(running.requests) == asked
    assert (ended.code, ended.outputs["regressions"]) == (1, "1")
    assert "## ❌ Agent eval gate — 1 regression" in next(iter(github.state.comments.values())).body


def test_results__that_are_not_there__are_an_error_that_says_so(job, github) -> None:
    ended = job.step("push", push_event(github), {"results": "nowhere"})
    assert ended.code == 2
    assert 'there is no stored result "nowhere"' in ended.log
