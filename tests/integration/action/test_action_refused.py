"""Where the action must not run, or cannot."""

from __future__ import annotations

import pytest

from tests.integration.action.test_action_workflow_dispatch import check_out
from tests.integration.test_integration_settings import FAIL_ON, OTHERS, THREE_MISTAKES
from tests.support.agents import agent
from tests.support.jobs import pull_request_event, push_event
from tests.support.program import gate


def test_pull_request_target__is_refused_before_anything_runs(job, github) -> None:
    pull = github.state.add_pull(7)
    with agent() as running:
        event = pull_request_event(github, pull)
        ended = job.step("pull_request_target", event, {"agent-endpoint": running.url})
    assert (ended.code, running.requests) == (2, [])
    assert "unsafe-event" in ended.log
    assert github.log == []


@pytest.mark.parametrize("event", ["issue_comment", "discussion_comment"])
def test_comment__somebodys_code_is_checked_out__is_refused_before_anything_runs(job, github, event) -> None:
    """A workflow that answers a comment such as `/evals` has the keys, whoever wrote the code that it checks out."""
    pull = github.state.add_pull(7, head_repo="eve/bot", user="eve")
    check_out(job.workspace, pull.head_sha)
    job.begin_run(event=event)
    with agent() as running:
        ended = job.step(event, push_event(github), {"agent-endpoint": running.url})
    assert (ended.code, running.requests) == (2, [])
    assert f"unsafe-event]: {event} has the default branch's secrets, and the workspace holds {pull.head_sha[:12]}" in (
        ended.log
    )


def test_comment__the_events_own_commit_is_checked_out__is_evaluated(job, github) -> None:
    check_out(job.workspace, github.state.branches["main"])
    job.begin_run(event="issue_comment")
    with agent() as running:
        ended = job.step("issue_comment", push_event(github), {"agent-endpoint": running.url})
    assert (ended.code, ended.outputs["verdict"]) == (0, "pass"), ended.log


def test_refused__mistake_without_a_place__is_an_annotation_of_no_line(job, github) -> None:
    ended = job.step("pull_request_target", pull_request_event(github, github.state.add_pull(7)))
    (error,) = [line.strip() for line in ended.commands if line.strip().startswith("::error")]
    assert error.startswith("::error title=Eval Gate%3A unsafe-event::")


def test_action__outside_of_a_workflow__says_what_to_use_instead(tmp_path) -> None:
    ended = gate(tmp_path, "action")
    assert ended.returncode == 2
    assert "eval-gate run" in ended.stderr


def test_configuration__three_mistakes__are_said_at_once_with_their_places(job, github) -> None:
    pull = github.state.add_pull(7)
    (job.workspace / "eval-gate.yaml").write_text(THREE_MISTAKES)
    with agent() as running:
        ended = job.pull_request(pull, running.url, {"fail-on": "regresion"})
    assert (ended.code, running.requests) == (2, [])
    said = ['fail-on[0]: "regresion" is not known (did you mean "regressions"?)', *OTHERS]
    assert [line for line in said if line not in ended.log] == []
    assert FAIL_ON not in ended.log, "an input wins over the file, whose value counts for nothing then"
    assert ended.outputs["exit-code"] == "2"
    assert str(job.workspace) not in ended.log + ended.summary, "a place of the container says nothing to its author"
    (error,) = [line.strip() for line in ended.commands if line.strip().startswith("::error")]
    assert "file=eval-gate.yaml,line=" in error, "GitHub shows it at a file of the checkout, and none else"


def test_configuration__named_and_not_there__is_said_as_it_was_named(job, github) -> None:
    ended = job.pull_request(github.state.add_pull(7), "http://localhost:9", {"config": "ci/gate.yaml"})
    assert ended.code == 2
    assert "error[no-configuration]: ci/gate.yaml cannot be read: No such file or directory" in ended.log
