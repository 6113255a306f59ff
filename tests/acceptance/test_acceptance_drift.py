"""Main gets worse over its runs: one issue is opened, kept up to date and closed, and nobody else's is touched."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime

import pytest

from eval_gate.github.issues import format_issue_marker
from tests.support.github.state import iso

KEY = "evals.yml.gate"
WELL, BROKEN = "PPPPP", "FPPPP"
WATCHED = {"drift_issue": "true"}
# Each test has fourteen runs of main: the fast tier has the one that opens, updates and closes an issue.


def issues_of(github) -> list:
    return list(github.state.issues.values())


def last(action, letters: str, **inputs: str):
    """One more commit on main, and what its run left behind."""
    action.main(letters, **inputs)
    return action.ended


@pytest.fixture
def watched(action, github):
    """Main was well for ten runs, with an issue wanted and the permission for it."""
    github.permissions.add("issues:write")
    action.main(f"{WELL}*10", **WATCHED)
    assert issues_of(github) == []
    return action


def test_main_breaks_a_case__run_by_run__one_issue_is_opened_updated_and_closed(watched, github) -> None:
    action = watched
    stranger = github.state.add_issue("mine", f"{format_issue_marker(KEY)}\nhello", "mallory")
    good = github.state.branches["main"]
    first_bad = action.main(BROKEN, **WATCHED)[0]
    seen = [last(action, BROKEN, **WATCHED) for _ in range(2)]
    (issue,) = [one for one in issues_of(github) if one.author_is_viewer]
    time.sleep(1)  # times of runs and of issues are whole seconds: the next run is of a later one
    assert seen[-1].outputs["drift"] == "single cases"
    assert seen[-1].outputs["drift-issue-url"].endswith(f"/issues/{issue.number}")
    assert "got worse over several runs" in seen[-1].summary
    assert issue.title == "main got worse over several runs"
    assert f"compare/{good}...{first_bad}" in issue.body
    assert "`gs-000`" in issue.body
    assert "failed in 3 of 3 runs since, in 0 of 10 before" in issue.body

    last(action, BROKEN, **WATCHED)
    assert [one for one in issues_of(github) if one.author_is_viewer] == [issue]
    assert "failed in 4 of 4 runs since" in issue.body
    assert issue.state == "open"

    action.main(f"{WELL}*2", **WATCHED)
    assert issue.state == "closed"
    assert [one.body for one in github.state.comments.values() if one.issue == issue.number][-1].startswith(
        "`main` has recovered: its newest runs, up to ["
    )
    assert (stranger.body, stranger.state) == (f"{format_issue_marker(KEY)}\nhello", "open")


@pytest.mark.slow
def test_main_breaks_a_case__issue_closed_by_hand__is_not_opened_again_for_the_same(watched, github) -> None:
    watched.main(f"{BROKEN}*3", **WATCHED)
    (issue,) = issues_of(github)
    issue.state, issue.closed_at = "closed", iso(datetime.now(UTC))
    ended = last(watched, BROKEN, **WATCHED)
    assert issues_of(github) == [issue]
    assert issue.state == "closed"
    assert "was closed by hand" in ended.log


@pytest.mark.slow
@pytest.mark.parametrize("is_open", [True, False])
def test_main_breaks_a_case__closed_issue_claims_to_know_it__an_issue_is_opened(watched, github, is_open) -> None:
    """Another workflow with the same token may write such a text: neither its run nor its names are believed."""
    watched.main(f"{BROKEN}*3", **WATCHED)
    (issue,) = issues_of(github)
    body, known = issue.body, json.dumps({"run_id": 999_999, "names": ["x"] * 40})
    github.state.issues.clear()
    line = f"<!-- eval-gate:state {base64.b64encode(known.encode()).decode()} -->"
    forged = github.state.add_issue("mine", f"{format_issue_marker(KEY)}\n{line}\n", mine=True)
    if not is_open:
        forged.state, forged.closed_at = "closed", "2026-01-01T00:00:00Z"
    ended = last(watched, BROKEN, **WATCHED)
    newest = issues_of(github)[-1]
    assert (newest.state, newest.body.partition("failed in")[0]) == ("open", body.partition("failed in")[0]), ended.log
    assert ended.outputs["drift-issue-url"].endswith(f"/issues/{newest.number}")


@pytest.mark.slow
def test_main_breaks_a_case__older_run_again__leaves_the_issue_to_the_newer_one(watched, github) -> None:
    watched.main(f"{BROKEN}*3", **WATCHED)
    (issue,) = issues_of(github)
    body = issue.body
    github.state.add_run(999_999, path=next(iter(github.state.runs.values())).path)
    ended = last(watched, BROKEN, **WATCHED)
    assert "the drift issue is left to a newer run" in ended.log
    assert issue.body == body


@pytest.mark.slow
def test_main_breaks_a_case__token_may_not_write_issues__is_a_warning_and_no_failure(watched, github) -> None:
    watched.main(f"{BROKEN}*2", **WATCHED)
    github.permissions.discard("issues:write")
    ended = last(watched, BROKEN, **WATCHED)
    assert "issues: write" in ended.log
    assert "got worse over several runs" in ended.summary
    assert ended.outputs["drift-issue-url"] == ""
    assert ended.outputs["verdict"] == "passed"


@pytest.mark.slow
def test_main_breaks_a_case__nobody_wants_an_issue__only_the_summary_says_it(action, github) -> None:
    action.main(f"{WELL}*10 {BROKEN}*2")
    ended = last(action, BROKEN)
    assert "got worse over several runs" in ended.summary
    assert issues_of(github) == []
    assert github.requests("POST", r"/issues$") == []


@pytest.mark.slow
def test_pull_request__on_a_main_that_got_worse__touches_no_issue(watched, github) -> None:
    watched.main(f"{BROKEN}*3", **WATCHED)
    (issue,) = issues_of(github)
    body = issue.body
    seen = watched.here(WELL, **WATCHED)
    assert (issue.body, issue.state) == (body, "open")
    assert seen.ended.outputs["drift"] == ""
