"""A new user's mistakes in a workflow: console, comment and summary name one next step, in the input's own name."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from tests.support.jobs import Ended, pull_request_event
from tests.support.mistakes import WAITS, find_next_step
from tests.support.world import NOBODY, ActionWorld, plain


@dataclass(frozen=True)
class WorkflowMistake:
    """A mistake in a job of a pull request, and what somebody who made it has to be told.

    `message` stands on one line of the log; `next_step` is in the next step of log, comment and summary, or there is
    none.
    """

    message: str
    next_step: str = ""
    code: int = 2
    inputs: Mapping[str, str] = field(default_factory=dict)
    lacks: str = ""
    """A permission that the job does not have."""
    letters: str = "PPPP"
    main: str = ""
    expired: bool = False
    """Whether the artifacts of main are no longer there."""
    event: str = "pull_request"
    checked_out: bool = True


INPUTS = "correct each input; "
ROWS = {
    "no permission to comment": WorkflowMistake(
        "No comment: looking for the comment on #7: GitHub responded with 400 (Resource not accessible by integration);"
        " the job needs `permissions: pull-requests: write`",
        code=0,
        lacks="pull-requests:write",
    ),
    "no permission for check runs": WorkflowMistake(
        "the job needs `permissions: checks: write`", code=0, lacks="checks:write"
    ),
    "empty token": WorkflowMistake(
        "`github-token` is empty", "remove the input to use the job's own token", inputs={"github-token": ""}
    ),
    "event with secrets for anybody's code": WorkflowMistake(
        "pull_request_target runs with the default branch's secrets", "use pull_request; ", event="pull_request_target"
    ),
    "misspelt key of set": WorkflowMistake(
        'set: line 1: "concurency" is not a key that a workflow can set (did you mean the input `concurrency`?)',
        INPUTS,
        inputs={"set": "concurency: 3"},
    ),
    "misspelt flag": WorkflowMistake('upload: "yess" is neither true nor false', INPUTS, inputs={"upload": "yess"}),
    "misspelt rule": WorkflowMistake(
        'fail-on[0]: "regresion" is not known (did you mean "regressions"?)',
        "correct each place; ",
        inputs={"fail-on": "regresion"},
    ),
    "no target": WorkflowMistake(
        "no target to evaluate", "in a workflow, the input `agent-endpoint`", inputs={"agent-endpoint": ""}
    ),
    "no permission to read the baseline": WorkflowMistake(
        "the job needs `permissions: actions: read`",
        "the job needs `permissions: actions: read`",
        code=3,
        lacks="actions:read",
        letters="FPPP",
    ),
    "baseline that has expired": WorkflowMistake(
        "seen 1: 1 expired", "run the workflow on main", code=3, letters="FPPP", main="PPPP", expired=True
    ),
    "agent that is not started": WorkflowMistake(
        "no connection to 127.0.0.1",
        "the agent did not start: see the log of the step that starts it",
        code=3,
        inputs={"agent-endpoint": NOBODY},
    ),
    "no checkout": WorkflowMistake('there is no "evals"', "name files, folders or globs", checked_out=False),
}


@pytest.mark.parametrize("name", ROWS)
def test_mistake__in_a_workflow__is_told_with_one_next_step_everywhere(action, name) -> None:
    row = ROWS[name]
    ended, comment = run_job(row, action)
    assert ended.code == row.code, ended.log
    log = re.sub(r"\n  +(?!hint: )", " ", ended.log)
    assert any(row.message in line for line in log.splitlines()), log
    step = find_next_step(log).rstrip(".").lower()
    assert row.next_step.lower() in step, log
    assert bool(row.next_step) == bool(step), log
    for page in (ended.summary, comment or ended.summary):
        shown = find_next_step(plain(page)).lower()
        assert (shown.startswith(step), bool(shown)) == (True, bool(step)), (step, shown)


def run_job(row: WorkflowMistake, action: ActionWorld) -> tuple[Ended, str]:
    """Run the job, and return what it left with the comment."""
    if row.main:
        action.main(row.main)
    for artifact in action.github.state.artifacts.values() if row.expired else ():
        artifact.expired = True
    action.github.state.private = True
    action.github.permissions -= {row.lacks}
    pull = action.pull()
    action.of_length(row.letters)
    action.script.begin(row.letters)
    if not row.checked_out:
        shutil.rmtree(action.job.workspace / "evals")
    inputs = {"agent-endpoint": action.script.url} | row.inputs
    if row.event == "pull_request":
        ended = action.job.pull_request(pull, inputs["agent-endpoint"], inputs, **WAITS)
    else:
        action.job.begin_run(event=row.event, head_branch=pull.head_ref, head_sha=pull.head_sha)
        ended = action.job.step(row.event, pull_request_event(action.github, pull), inputs, **WAITS)
    comments = [one.body for one in action.github.state.comments.values() if one.issue == pull.number]
    return ended, comments[-1] if comments else ""
