"""The push before this one among the pull request's own artifacts: which run's is taken, and whose never."""

from __future__ import annotations

import pytest

from eval_gate.github.artifacts.pushes import MAX_SOUGHT, WatchedChange, remembered
from eval_gate.github.failure import GitHubError
from eval_gate.results.pushes import PUSHES_NAME, Pushes, pushes_bytes
from tests.support.github import GATE, Fault, zipped
from tests.support.results import make_run

KEY, NAME, BRANCH = "gate.yml.gate", "eval-gate-results", "feature"
CHANGE = WatchedChange(7, BRANCH, "pull_request", GATE, (NAME, f"{NAME}.{KEY}"), KEY, 9001)


def pushes_of(run_id: str, pull: int = 7, gate: str = KEY) -> bytes:
    return pushes_bytes(Pushes(pull_request=pull, gate=gate).with_run(make_run({"a": "failed"}, run_id=run_id)))


@pytest.fixture
def left(github):
    """A run of the pull request that left an artifact."""

    def left(number: int, data: bytes | None = None, name: str = NAME, *, expired: bool = False, **facts):
        run = github.state.add_run(number, **{"event": "pull_request", "head_branch": BRANCH} | facts)
        files = {PUSHES_NAME: data if data is not None else pushes_of(f"push-{number}"), "run.json": b"{}"}
        return github.state.add_artifact(run, zipped(files), name, expired=expired)

    return left


def found(client, tmp_path) -> str | None:
    pushes = remembered(client, CHANGE, tmp_path).pushes
    assert (pushes.pull_request, pushes.gate) == (7, KEY)
    return pushes.ledger.runs[0].run_id if pushes.ledger.runs else None


def test_remembered__several_pushes__is_the_newest_before_this_run(client, tmp_path, left) -> None:
    for number in (10, 30, 20, 9001, 9002):
        left(number)
    assert found(client, tmp_path) == "push-30"


def test_remembered__no_push_before__is_nothing(client, tmp_path, left) -> None:
    left(9001)
    assert found(client, tmp_path) is None


@pytest.mark.parametrize(
    "facts",
    [
        {"head_repo": "eve/bot"},
        {"head_repo": None},
        {"event": "push"},
        {"event": "workflow_dispatch"},
        {"path": ".github/workflows/other.yml"},
        {"head_branch": "another"},
    ],
)
def test_remembered__run_of_a_fork_another_event_workflow_or_branch__is_never_read(
    github, client, tmp_path, left, facts
) -> None:
    left(10)
    left(20, **facts)
    assert found(client, tmp_path) == "push-10"
    assert len(github.requests("GET", r"/artifacts/\d+/zip$")) == 1


@pytest.mark.parametrize("data", [pushes_of("x", pull=8), pushes_of("x", gate="another"), b"{", b""])
def test_remembered__of_another_pull_request_or_damaged__is_passed_over(client, tmp_path, left, data) -> None:
    left(10)
    left(20, data)
    assert found(client, tmp_path) == "push-10"


def test_remembered__expired_or_gone__is_passed_over(github, client, tmp_path, left) -> None:
    left(10)
    left(20)
    left(30, expired=True)
    github.faults.add("GET", r"/artifacts/\d+/zip$", Fault.status(410))
    assert found(client, tmp_path) == "push-10"


def test_remembered__artifact_of_another_gate_under_the_plain_name__finds_its_own(client, tmp_path, left) -> None:
    own = left(10, name=f"{NAME}.{KEY}")
    assert own.name != NAME
    assert found(client, tmp_path) == "push-10"


def test_remembered__not_an_archive__is_a_note(github, client, tmp_path, left) -> None:
    run = github.state.add_run(10, event="pull_request", head_branch=BRANCH)
    artifact = github.state.add_artifact(run, b"<html>")
    assert remembered(client, CHANGE, tmp_path).notes == [
        f"artifact {artifact.id} cannot be used: it is not a zip archive"
    ]


def test_remembered__many_without_one__looks_at_a_few(github, client, tmp_path, left) -> None:
    left(10)
    for number in range(20, 20 + MAX_SOUGHT):
        left(number, b"{")
    assert found(client, tmp_path) is None
    assert len(github.requests("GET", r"/artifacts/\d+/zip$")) == MAX_SOUGHT


def test_remembered__no_permission__comes_out(github, client, tmp_path) -> None:
    github.faults.add("GET", r"/workflows/gate.yml/runs", Fault.permission())
    with pytest.raises(GitHubError, match="actions: read"):
        remembered(client, CHANGE, tmp_path)
