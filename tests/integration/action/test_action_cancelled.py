"""A job that is cancelled while the evals run."""

from __future__ import annotations

import signal

import pytest


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_cancelled__while_running__what_was_done_is_written_and_the_check_says_cancelled(
    job, github, number, code
) -> None:
    ended = job.cancelled(github.state.add_pull(7), number)
    assert (ended.code, ended.outputs["verdict"], ended.outputs["exit-code"]) == (code, "inconclusive", str(code))
    (check,) = github.state.check_runs.values()
    assert check.fields["conclusion"] == "cancelled"
    assert check.fields["output"]["title"].startswith("Cancelled at ")
    assert github.state.comments == {}
