"""The page as an artifact of its own: one click away, whose it is, and what happens where it cannot be stored."""

from __future__ import annotations

import pytest

from tests.integration.action.test_action_legs import again, is_refused
from tests.integration.action.test_action_workflow_run import forked, relay
from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.browsing import follow
from tests.support.github import Fault
from tests.support.github.results_service import Upload
from tests.support.github.storage import Blob

__all__ = ["forked"]

PAGE = "eval-gate-results-report.html"


@pytest.fixture
def pull(github):
    return github.state.add_pull(7)


def test_pull_request__its_page__opens_by_one_click_and_is_the_one_in_the_archive(job, github, pull) -> None:
    with agent() as green, agent(fails_on(1)) as red:
        job.push(green.url)
        ended = job.pull_request(pull, red.url)
    (stored,) = [one for one in github.state.pages if one.run_id == github.current_run_id]
    assert ended.outputs["report-url"] == f"https://github.com/acme/bot/actions/runs/102/artifacts/{stored.id}"
    opened = follow(github, ended.outputs["report-url"])
    assert (opened.content_type, opened.disposition) == ("text/html", "inline")
    assert "<title>" in opened.text
    written = (job.workspace / ended.outputs["report-path"]).read_text()
    assert opened.text.startswith(written.rstrip())
    assert f"page stored as artifact {PAGE} ({stored.id})" in ended.log


def test_pull_request__the_page__is_kept_as_long_as_the_result(job, github, pull) -> None:
    with agent() as running:
        job.pull_request(pull, running.url, GITHUB_RETENTION_DAYS="5")
    result, page = (one.body for one in github.requests("POST", "CreateArtifact"))
    assert page["expires_at"][:16] == result["expires_at"][:16]
    assert (page["version"], page["mime_type"]) == (7, "text/html")
    assert (result["version"], "mime_type" in result) == (4, False)


def test_upload_false__neither_result_nor_page_is_stored(job, github, pull) -> None:
    with agent() as running:
        ended = job.pull_request(pull, running.url, {"upload": "false"})
    assert (github.state.artifacts, ended.outputs["report-url"]) == ({}, "")
    assert not github.requests("*", "/twirp/")


@pytest.mark.parametrize(
    "fault",
    [
        Fault.status(400, message="version 7 is not supported"),
        Fault.status(403, message="insufficient usage to create artifact"),
        Fault.status(404, message="bad route"),
    ],
)
def test_service_refuses_the_page__is_said_once_and_the_verdict_stands(job, github, pull, fault) -> None:
    github.faults.add("POST", "CreateArtifact", Fault.pass_(), fault)
    with agent() as running:
        ended = job.pull_request(pull, running.url)
    assert (ended.code, ended.outputs["report-url"]) == (0, "")
    assert ended.outputs["artifact-id"]
    said = [line for line in ended.log.splitlines() if "the page was not stored separately" in line]
    assert len(said) == 1
    assert said[0].endswith("; it is in the artifact eval-gate-results")
    assert not [line for line in ended.commands if "::warning" in line and "page" in line]


def test_act__which_calls_everything_a_zip__is_asked_for_the_archive_only(job, github, pull) -> None:
    with agent() as running:
        ended = job.pull_request(pull, running.url, ACT="true")
    assert ([one.name for one in github.state.artifacts.values()], ended.outputs["report-url"]) == (
        ["eval-gate-results"],
        "",
    )
    assert "the page was not stored separately: act stores only archives; it is in the artifact" in ended.log


def test_result_could_not_be_stored__the_page_is_not_tried(job, github, pull) -> None:
    github.faults.add("POST", "CreateArtifact", Fault.status(403, message="insufficient usage to create artifact"))
    with agent() as running:
        ended = job.pull_request(pull, running.url)
    assert (ended.code, github.state.artifacts, ended.outputs["report-url"]) == (0, {}, "")


def test_rerun__of_a_later_attempt__replaces_the_page(job, github, pull) -> None:
    with agent(fails_on(1)) as red, agent() as green:
        first = job.pull_request(pull, red.url, {"fail-on": "failures"})
        job.begin_attempt()
        second = again(job, github, pull, green.url, {"fail-on": "failures"})
    assert (first.code, second.code) == (1, 0)
    (page,) = github.state.pages
    assert second.outputs["report-url"].endswith(f"/artifacts/{page.id}")
    assert second.outputs["report-url"] != first.outputs["report-url"]


def test_matrix__two_legs__the_second_is_refused_and_the_first_ones_page_stays(job, github, pull) -> None:
    with agent() as running:
        job.pull_request(pull, running.url)
        before = github.state.pages
        job.begin_job()
        assert is_refused(again(job, github, pull, running.url))
    assert github.state.pages == before


@pytest.mark.parametrize("data", [b"<html>a report of another step</html>", b"", b"\xff <!-- eval-gate:page e30= -->"])
def test_a_file_of_this_name_that_another_step_stored__stays(job, github, pull, data) -> None:
    job.begin_run(event="pull_request", head_branch=pull.head_ref, head_sha=pull.head_sha)
    blob = Blob(data=data, content_type="text/html")
    github.results.uploads[PAGE] = upload = Upload(blob, mime_type="text/html")
    upload.artifact = github.state.add_artifact(github.current_run, data, PAGE, content_type="text/html")
    with agent() as running:
        ended = again(job, github, pull, running.url)
    assert (ended.code, github.state.pages, ended.outputs["report-url"]) == (0, [upload.artifact], "")
    assert "the page was not stored separately" in ended.log


def test_relay__page_of_a_fork__is_made_anew_from_our_own_verdict(forked, job, github) -> None:
    """The fork's run stored a page as well: nobody is sent there, for its own code made it."""
    _, run, first = forked
    theirs = next(one for one in github.state.pages if one.run_id == run.id)
    theirs.zip_bytes = b"<h1>passed</h1>"
    ended = relay(job, github, run)
    ours = next(one for one in github.state.pages if one.run_id == github.current_run_id)
    assert ended.outputs["report-url"].endswith(f"/actions/runs/{ours.run_id}/artifacts/{ours.id}")
    assert ended.outputs["report-url"] != first.outputs["report-url"]
    opened = follow(github, ended.outputs["report-url"])
    assert "1 regression" in opened.text
    assert "<h1>passed</h1>" not in opened.text
    # and what it leaves is nobody's baseline
    assert [one.name for one in github.state.artifacts.values() if one.run_id == github.current_run_id] == [PAGE]
