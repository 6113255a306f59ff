"""A run that somebody starts by hand, with or without a pull request in mind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.git import point_head
from tests.support.github.results_service import Upload
from tests.support.github.storage import Blob
from tests.support.jobs import repository_facts


def dispatch(github, **inputs: str) -> dict[str, object]:
    return {"inputs": inputs or None, "ref": "refs/heads/main", "repository": repository_facts(github)}


def check_out(workspace: Path, commit: str) -> None:
    point_head(workspace / ".git", commit)


def test_dispatch__by_hand__compares_and_comments_nowhere(job, github) -> None:
    github.state.add_pull(7)
    with agent() as running:
        job.push(running.url)
        job.begin_run(event="workflow_dispatch")
        ended = job.step("workflow_dispatch", dispatch(github), {"agent-endpoint": running.url})
    assert (ended.code, github.state.comments, ended.outputs["regressions"]) == (0, {}, "0")


def test_dispatch__for_a_pull_request_that_is_checked_out__comments_and_checks_its_head(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    pull = github.state.add_pull(7)
    check_out(job.workspace, pull.head_sha)
    job.begin_run(event="workflow_dispatch")
    with agent(fails_on(1)) as running:
        event = dispatch(github, **{"pr-number": "7"})
        ended = job.step("workflow_dispatch", event, {"agent-endpoint": running.url})
    assert (ended.code, len(github.state.comments)) == (1, 1)
    assert {check.fields["head_sha"] for check in github.state.check_runs.values()} >= {pull.head_sha}


def test_dispatch__for_a_pull_request_on_the_default_branch__never_becomes_the_baseline_of_others(job, github) -> None:
    """GitHub counts the run as one of main: whatever it stored would be what main last did."""
    with agent(fails_on(1)) as running:
        main = job.push(running.url, {"fail-on": "never"})
    pull = github.state.add_pull(7)
    check_out(job.workspace, pull.head_sha)
    job.begin_run(event="workflow_dispatch")
    with agent() as running:
        inputs = {"agent-endpoint": running.url}
        ended = job.step("workflow_dispatch", dispatch(github, **{"pr-number": "7"}), inputs)
    assert (ended.code, ended.outputs["artifact-id"]) == (0, ""), ended.log
    assert [str(one.id) for one in github.state.archives] == [main.outputs["artifact-id"]]
    # its page has another name, under which nobody seeks a baseline
    names = [one.body["name"] for one in github.requests("POST", "CreateArtifact")]
    assert names == ["eval-gate-results", *["eval-gate-results-report.html"] * 2]
    other = github.state.add_pull(8)
    point_head(job.workspace / ".git", other.head_sha)
    with agent(fails_on(1)) as running:
        compared = job.pull_request(other, running.url)
    assert (compared.outputs["baseline-run-id"], compared.outputs["regressions"]) == (main.outputs["run-id"], "0")


def test_dispatch__for_a_pull_request__is_not_refused_for_a_name_that_it_does_not_use(job, github) -> None:
    """No result of such a run is stored by us; what an upload step of another leg has stored is in nobody's way."""
    pull = github.state.add_pull(7)
    check_out(job.workspace, pull.head_sha)
    job.write_suite(name="one.golden.json")
    job.write_suite(name="two.golden.json")
    job.begin_run(event="workflow_dispatch")
    event = dispatch(github, **{"pr-number": "7"})
    with agent() as running:
        names = {"agent-endpoint": running.url, "artifact-name": "evals"}
        legs = [names | {"evals": f"evals/{leg}.golden.json", "comment-key": leg} for leg in ("one", "two")]
        first = job.step("workflow_dispatch", event, legs[0])
        record = next((job.workspace / "evals/results").glob("*/run.json")).read_bytes()
        github.results.uploads["evals"] = upload = Upload(Blob())
        upload.artifact = github.state.add_artifact(github.current_run, {"run.json": record}, "evals")
        upload.blob.data = upload.artifact.zip_bytes
        job.begin_job()
        second = job.step("workflow_dispatch", event, legs[1])
    assert (first.code, second.code, second.outputs["verdict"]) == (0, 0, "passed"), second.log
    assert github.state.archives == [upload.artifact]


@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("7", "checkout-mismatch"),
        ("8", "pull request #8 not found"),
        ("seven", '"seven" is not the number of a pull request'),
    ],
)
def test_dispatch__pull_request_that_is_not_what_is_here__is_refused(job, github, number, said) -> None:
    github.state.add_pull(7)
    check_out(job.workspace, github.state.branches["main"])
    ended = job.step(
        "workflow_dispatch", dispatch(github, **{"pr-number": number}), {"agent-endpoint": "http://x.test"}
    )
    assert (ended.code, github.state.comments) == (2, {})
    assert said in ended.log
