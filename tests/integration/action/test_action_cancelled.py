"""A job that is cancelled while the evals run."""

from __future__ import annotations

import asyncio
import signal
import time

import pytest

from tests.support.agents import agent
from tests.support.jobs import pull_request_event


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_cancelled__while_running__what_was_done_is_written_and_the_check_says_cancelled(
    job, github, number, code
) -> None:
    pull = github.state.add_pull(7)
    job.write_suite(50)

    async def slow(exchange) -> None:
        await asyncio.sleep(0.2)
        exchange.answer({"response": "ok", "toolCalls": []})

    with agent(slow) as running:
        process = job.start("pull_request", pull_request_event(github, pull), {"agent-endpoint": running.url})
        deadline = time.monotonic() + 120
        while len(running.requests) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        out, _ = process.communicate(timeout=120)
    ended = job.ended(process.returncode, out)
    assert (ended.code, ended.outputs["verdict"], ended.outputs["exit-code"]) == (code, "error", str(code))
    (check,) = github.state.check_runs.values()
    assert check.fields["conclusion"] == "cancelled"
    assert check.fields["output"]["title"].startswith("Cancelled at ")
    assert github.state.comments == {}
