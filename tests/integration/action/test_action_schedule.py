"""The nightly run, whose event does not even name the default branch."""

from __future__ import annotations

from tests.support.agents import agent


def test_schedule__nightly__asks_for_the_default_branch_and_stores(job, github) -> None:
    job.begin_run(event="schedule")
    with agent() as running:
        ended = job.step("schedule", {"schedule": "0 3 * * *"}, {"agent-endpoint": running.url})
    assert (ended.code, len(github.state.archives)) == (0, 1)
    assert len(github.requests("GET", r"/repos/acme/bot$")) == 1
