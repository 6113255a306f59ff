"""The comment says how a new baseline is made, where one would tell more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.action.test_action_pull_request import baseline_of_today, comments_of
from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.github import Fault
from tests.support.github.state import GATE

COMMAND = "`gh workflow run gate.yml --ref main`"
BY_HAND = b"on:\n  push:\n  workflow_dispatch:\n"
FETCH = rf"/contents/{GATE}"


def workflow_on_main(github, data: bytes) -> None:
    github.state.files[github.state.branches["main"], GATE] = data


def compare(job, github, **inputs: str) -> str:
    """The comment on a pull request that changes nothing."""
    with agent() as running:
        ended = job.pull_request(github.state.add_pull(7), running.url, inputs)
    assert ended.code == 0, ended.log
    (comment,) = comments_of(github)
    return comment


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (BY_HAND, f"(https://github.com/acme/bot/actions/workflows/gate.yml) on `main`: {COMMAND}."),
        (b"on: push\n", "(https://github.com/acme/bot/actions/workflows/gate.yml) on `main`.\n"),
    ],
)
def test_refresh__baseline_is_stale__comment_has_the_command_or_the_link(job, github, data, words) -> None:
    with agent() as running:
        job.push(running.url)
    workflow_on_main(github, data)
    assert f"To refresh it, run [the workflow]{words}" in compare(job, github)


def test_refresh__baseline_is_fresh__nothing_is_said_or_looked_up(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    workflow_on_main(github, BY_HAND)
    baseline_of_today(github)
    assert "gh workflow" not in compare(job, github)
    assert github.requests("GET", FETCH) == []


def test_refresh__workflow_cannot_be_read__comment_has_the_link_and_the_log_why(job, github) -> None:
    with agent() as running:
        job.push(running.url)
        workflow_on_main(github, BY_HAND)
        github.faults.add("GET", FETCH, Fault.permission())
        ended = job.pull_request(github.state.add_pull(7), running.url)
    (comment,) = comments_of(github)
    assert (ended.code, "To refresh it, run [the workflow](" in comment, COMMAND in comment) == (0, True, False)
    assert "cannot check how gate.yml is started" in ended.log


def test_refresh__no_baseline_yet__command_where_the_workflow_is_on_the_branch(job, github) -> None:
    workflow_on_main(github, BY_HAND)
    comment = compare(job, github)
    assert "No baseline: " in comment
    assert "To make a new baseline, run [the workflow](" in comment
    assert COMMAND in comment


def test_refresh__workflow_is_new_in_the_pull_request__nothing_to_run_is_named(job, github) -> None:
    comment = compare(job, github)
    assert "No baseline: " in comment
    assert "To make a new baseline" not in comment


def test_refresh__baseline_is_not_wanted__nothing_is_said(job, github) -> None:
    workflow_on_main(github, BY_HAND)
    assert "To make a new baseline" not in compare(job, github, baseline="none")


@pytest.mark.parametrize("more", [0, 1])
def test_refresh__no_case_is_comparable__command_where_the_branch_has_moved_on(job, github, more) -> None:
    """The evals ask something else than those of the baseline: so may those of a newer commit of main."""
    with agent() as running:
        job.push(running.url)
    for _ in range(more):
        github.state.branches["main"] = github.state.add_commit("more", github.state.branches["main"]).sha
    baseline_of_today(github)
    workflow_on_main(github, BY_HAND)
    file = job.workspace / "evals/weather.golden.json"
    file.write_text(file.read_text().replace('"message": "', '"message": "please '))
    comment = compare(job, github)
    assert "The baseline is not comparable, so this run cannot show" in comment
    assert (COMMAND in comment) is bool(more)


def test_refresh__run_of_the_branch_itself__names_no_run_of_the_branch(job, github) -> None:
    workflow_on_main(github, BY_HAND)
    with agent(fails_on()) as running:
        job.push(running.url)
    assert github.requests("GET", FETCH) == []


def test_refresh__baseline_has_expired__inconclusive_comment_has_the_command(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    for artifact in github.state.artifacts.values():
        artifact.expired = True
    workflow_on_main(github, BY_HAND)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(github.state.add_pull(7), running.url, {"fail-on": "regressions"})
    (comment,) = comments_of(github)
    assert (ended.code, ended.outputs["verdict"]) == (3, "inconclusive")
    assert "**Next step:** To make a new baseline, run [the workflow](" in comment
    assert "Run the workflow on main again" not in comment, "the offer says so, with its command"
    assert ended.summary.count(COMMAND) == 1
    assert "**Next step:** To make a new baseline, run [the workflow](" in ended.summary
    assert COMMAND in comment


BY_COMMENT = b"on:\n  issue_comment:\njobs:\n  a:\n    steps:\n      - with: {baseline-workflow: gate.yml}\n"
EXAMPLE = Path(__file__).parents[3] / "examples/workflows/refresh-baseline.yml"
HANDLER = ".github/workflows/refresh-baseline.yml"


@pytest.mark.parametrize(
    ("data", "offers"),
    [
        (BY_COMMENT, True),
        (BY_COMMENT.replace(b"gate.yml", b"other.yml"), False),
        (b"# starts gate.yml\n" + BY_COMMENT.replace(b"gate.yml", b"other.yml"), False),
        (BY_COMMENT.replace(b"gate.yml", b"agent-gate.yml"), False),
        (BY_COMMENT.replace(b"gate.yml", b'"other.yml, gate.yml"'), False),
        (BY_COMMENT.replace(b"gate.yml", b'".github/workflows/gate.yml, other.yml"'), True),
        (BY_COMMENT.replace(b"gate.yml", b"gate.yml, baseline-branch: develop"), False),
        (BY_COMMENT.replace(b"gate.yml", b"gate.yml, baseline-branch: refs/heads/main"), True),
        (BY_COMMENT.replace(b"with: {baseline-workflow: gate.yml}", b"run: echo gate.yml"), False),
        (BY_COMMENT.replace(b"issue_comment", b"push"), False),
        (EXAMPLE.read_bytes().replace(b"evals.yml", b"gate.yml"), True),
        (EXAMPLE.read_bytes(), False),
        (b"{", False),
        (None, False),
    ],
)
def test_refresh__workflow_for_comments__is_offered_where_it_would_start_this_one(job, github, data, offers) -> None:
    workflow_on_main(github, BY_HAND)
    if data is not None:
        github.state.files[github.state.branches["main"], HANDLER] = data
    comment = compare(job, github)
    assert ("comment `/eval-gate refresh`, or run [the workflow](" in comment) is offers
    assert COMMAND in comment


@pytest.mark.slow
def test_refresh__workflow_for_comments_cannot_be_read__comment_has_the_other_way_and_the_log_why(job, github) -> None:
    workflow_on_main(github, BY_HAND)
    github.faults.add("GET", rf"/contents/{HANDLER}", Fault.permission())
    with agent() as running:
        ended = job.pull_request(github.state.add_pull(7), running.url)
    (comment,) = comments_of(github)
    assert (ended.code, COMMAND in comment, "/eval-gate refresh" in comment) == (0, True, False)
    assert "cannot check whether comments can refresh the baseline: " in ended.log


@pytest.mark.slow
def test_refresh__baselines_of_another_branch__are_not_offered_by_comment(job, github) -> None:
    """A comment's workflow is the default branch's, and refreshes that branch unless it names another."""
    github.state.add_commit("dev", github.state.branches["main"], branch="develop")
    github.state.files[github.state.branches["develop"], GATE] = BY_HAND
    github.state.files[github.state.branches["main"], HANDLER] = BY_COMMENT
    comment = compare(job, github, **{"baseline-branch": "develop"})
    assert "`gh workflow run gate.yml --ref develop`" in comment
    assert "/eval-gate refresh" not in comment
