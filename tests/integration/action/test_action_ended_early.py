"""A step that is ended from outside, or by an error, while something of it is still under way."""

from __future__ import annotations

import pytest

from tests.integration.action.test_action_pull_request import baseline_of_today
from tests.support.agents import agent


@pytest.fixture
def pull(job, github):
    """A pull request with a baseline."""
    with agent() as running:
        assert job.push(running.url).code == 0
    baseline_of_today(github)
    return github.state.add_pull(7)


@pytest.mark.parametrize("there", [False, True], ids=["no file", "no certificate in it"])
def test_certificates__cannot_be_read__the_verdict_is_there_and_what_is_lost_is_said(job, github, pull, there) -> None:
    named = job.folder / "proxy.pem"
    if there:
        named.write_text("none")
    with agent() as running:
        ended = job.pull_request(pull, running.url, SSL_CERT_FILE=str(named))
    assert (ended.code, ended.outputs["verdict"]) == (0, "pass")
    assert "the result was not stored: reading the certificates that SSL_CERT_FILE" in ended.log.replace("The", "the")
    assert ended.outputs["comment-url"]
    assert "baseline not available" in ended.summary
