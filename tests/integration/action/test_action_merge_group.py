"""The merge queue: checked against its base, commented nowhere."""

from __future__ import annotations

from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.jobs import repository_facts


def test_merge_group__checks_the_group_against_its_base_and_comments_nowhere(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    github.state.add_pull(7)
    base = github.state.branches["main"]
    head = github.state.add_commit("group", base).sha
    event = {
        "action": "checks_requested",
        "merge_group": {
            "head_sha": head,
            "head_ref": f"refs/heads/gh-readonly-queue/main/pr-7-{base}",
            "base_sha": base,
            "base_ref": "refs/heads/main",
        },
        "repository": repository_facts(github),
    }
    job.begin_run(event="merge_group", head_branch=f"gh-readonly-queue/main/pr-7-{base}", head_sha=head)
    with agent(fails_on(2)) as running:
        ended = job.step("merge_group", event, {"agent-endpoint": running.url}, GITHUB_SHA=head)
    assert (ended.code, github.state.comments) == (1, {})
    assert "last pull request #7" in ended.log
    assert "failure" in [check.fields["conclusion"] for check in github.state.check_runs.values()]
