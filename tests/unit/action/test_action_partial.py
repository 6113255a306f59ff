"""A run of some cases only, on the branch that makes baselines: what it did not ask, nobody knows."""

from __future__ import annotations

import pytest

from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.jobs import Job


@pytest.fixture
def job(tmp_path, github) -> Job:
    made = Job(tmp_path, github)
    made.write_suite()
    return made


@pytest.mark.slow
@pytest.mark.parametrize("part", [{"case": "gs-000"}, {"shard": "1/4"}])
def test_baseline__a_later_run_of_some_cases_on_the_same_commit__does_not_hide_a_regression(job, github, part) -> None:
    """Somebody looks at one case by hand: from then on every other case would be new, and never a regression."""
    with agent() as running:
        job.push(running.url)
        job.push(running.url, part)
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    assert (ended.code, ended.outputs["verdict"], ended.outputs["regressions"]) == (1, "failed", "1")
