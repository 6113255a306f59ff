"""What GitHub refuses whatever the permissions are: the verdict stands, and the words say what it is about."""

from __future__ import annotations

import pytest

from tests.support.agents import agent


def warnings_of(ended) -> list[str]:
    return [line for line in ended.commands if line.startswith("::warning")]


def test_conversation__locked__no_permission_is_asked_for(job, github) -> None:
    pull = github.state.add_pull(7)
    pull.locked = True
    with agent() as running:
        ended = job.pull_request(pull, running.url)
    (warning,) = warnings_of(ended)
    assert (ended.code, ended.outputs["verdict"]) == (0, "passed")
    assert "No comment" in warning
    assert "unlock the conversation" in warning
    assert "needs `permissions" not in ended.log


def test_artifacts__quota_is_used_up__is_named_and_no_other_upload_is_advised(job, github) -> None:
    github.results.full = True
    pull = github.state.add_pull(7)
    with agent() as running:
        ended = job.pull_request(pull, running.url)
    (warning,) = warnings_of(ended)
    assert (ended.code, ended.outputs["artifact-id"]) == (0, "")
    assert "the quota for artifact storage is used up" in warning
    assert "upload-artifact" not in warning


@pytest.mark.parametrize("mode", ["never", "always"])
def test_comment__nobody_wants_one__is_not_missed(job, github, mode) -> None:
    github.state.private = True
    github.permissions -= {"pull-requests:write"}
    pull = github.state.add_pull(7)
    with agent() as running:
        ended = job.pull_request(pull, running.url, {"comment": mode})
    assert ended.code == 0
    assert any("No comment" in one for one in warnings_of(ended)) == (mode == "always")


@pytest.mark.parametrize("branch", ["", "develop"])
def test_console__baseline_of_another_branch_than_the_base__names_its_branch(job, github, branch) -> None:
    with agent() as running:
        job.push(running.url)
        github.state.branches["develop"] = github.state.branches["main"]
        github.state.runs[github.current_run_id].head_branch = branch or "main"
        pull = github.state.add_pull(7, base_ref="develop" if not branch else "main")
        ended = job.pull_request(pull, running.url, {"baseline-branch": branch or "main"})
    assert f"baseline {branch or 'main'}@" in ended.log, ended.log
