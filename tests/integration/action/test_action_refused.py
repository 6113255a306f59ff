"""Where the action must not run, or cannot."""

from __future__ import annotations

from tests.integration.test_integration_settings import FAIL_ON, OTHERS, THREE_MISTAKES
from tests.support.agents import agent
from tests.support.jobs import pull_request_event
from tests.support.program import gate


def test_pull_request_target__is_refused_before_anything_runs(job, github) -> None:
    pull = github.state.add_pull(7)
    with agent() as running:
        event = pull_request_event(github, pull)
        ended = job.step("pull_request_target", event, {"agent-endpoint": running.url})
    assert (ended.code, running.requests) == (2, [])
    assert "unsafe-event" in ended.log
    assert github.log == []


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
