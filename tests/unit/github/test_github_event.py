"""Events as GitHub writes them, and files that are none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.errors import GateError
from eval_gate.github import event as module
from eval_gate.github.event import MergeGroupPayload, WorkflowEvent, read_event

SHA = "1" * 40
REPOSITORY = {"id": 1, "full_name": "acme/bot", "default_branch": "main", "fork": False}
SIDE = {"sha": SHA, "ref": "topic", "repo": REPOSITORY}
PULL = {"number": 7, "state": "open", "draft": True, "head": SIDE, "base": SIDE, "user": {"login": "octocat"}}


@pytest.fixture
def read(tmp_path):
    def read(data: object, name: str = "pull_request") -> WorkflowEvent:
        file = tmp_path / "event.json"
        file.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
        return read_event(name, file)

    return read


def test_event__pull_request__is_read_and_everything_unknown_is_ignored(read) -> None:
    more = {"installation": {"id": 1}, "pull_request": {**PULL, "labels": [{"name": "x"}], "_links": {}}}
    found = read({"action": "opened", "number": 7, "repository": REPOSITORY, "sender": {"login": "x"}} | more)
    assert found.pull_request is not None
    assert (found.action, found.pull_request.number) == ("opened", 7)
    assert found.pull_request.head.repo is not None
    assert found.repository is not None
    assert (found.pull_request.head.repo.full_name, found.repository.default_branch) == ("acme/bot", "main")


def test_event__fork_was_deleted__has_a_head_without_a_repository(read) -> None:
    found = read({"pull_request": {**PULL, "head": {**SIDE, "repo": None}, "user": None}})
    assert found.pull_request is not None
    assert found.pull_request.head.repo is None


def test_event__a_key_called_name__does_not_make_it_another_event(read) -> None:
    assert read({"name": "pull_request"}, "pull_request_target").name == "pull_request_target"


@pytest.mark.parametrize("data", [{}, {"schedule": "0 3 * * *"}, {"repository": None, "sender": None, "inputs": None}])
def test_event__with_hardly_anything_in_it__has_no_parts(read, data) -> None:
    found = read(data, "schedule")
    parts = (found.repository, found.pull_request, found.merge_group, found.workflow_run, found.inputs, found.sender)
    assert parts == (None,) * 6


def test_event__dispatch__keeps_inputs_of_any_kind(read) -> None:
    inputs = {"pr-number": "7", "deep": True, "empty": "", "none": None}
    assert read({"inputs": inputs}, "workflow_dispatch").inputs == inputs


def test_event__workflow_run__has_nullable_parts(read) -> None:
    run = {"id": 5, "event": "pull_request", "head_sha": SHA, "head_repository": None, "actor": None, "path": "p@ref"}
    found = read({"action": "completed", "workflow_run": {**run, "pull_requests": []}}, "workflow_run").workflow_run
    assert found is not None
    assert (found.id, found.head_repository, found.actor) == (5, None, None)


@pytest.mark.parametrize(
    ("ref", "number"),
    [
        (f"refs/heads/gh-readonly-queue/main/pr-7-{SHA}", 7),
        (f"refs/heads/gh-readonly-queue/release/1.x/pr-12345-{SHA}", 12345),
        (f"refs/heads/gh-readonly-queue/pr-1-{SHA}/pr-9-{SHA}", 9),
        (f"refs/heads/gh-readonly-queue/main/pr-7-{SHA[:39]}", None),
        (f"refs/heads/gh-readonly-queue/main/pr-7-{SHA}/more", None),
        (f"refs/heads/gh-readonly-queue/main/xpr-7-{SHA}", None),
        ("refs/heads/main", None),
        ("", None),
    ],
)
def test_merge_group__branch_of_the_queue__names_the_last_pull_request(ref, number) -> None:
    assert MergeGroupPayload(head_sha=SHA, head_ref=ref, base_sha=SHA, base_ref="refs/heads/main").pull_number == number


BROKEN = {
    "nothing": b"",
    "half": b'{"pull_request": {',
    "two documents": b"{}{}",
    "a list": b"[]",
    "null": b"null",
    "words": b'"push"',
    "a number": b"1" * 5_000,
    "not text": b"\x80\x81\xfe",
    "very deep": b"[" * 100_000,
    "very deep and complete": b'{"inputs":' * 50_000 + b"1" + b"}" * 50_000,
    "deep inputs": b'{"inputs": {"a": ' + b"[" * 900 + b"]" * 900 + b"}}",
    "a part that is none": b'{"repository": "acme/bot"}',
    "a repository without a name": b'{"repository": {"id": 1}}',
    "a number that is none": json.dumps({"pull_request": {**PULL, "number": "seven"}}).encode(),
    "no head": json.dumps({"pull_request": {**PULL, "head": None}}).encode(),
    "inputs that are a list": b'{"inputs": []}',
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_event__file_that_is_none__is_refused_in_one_sentence(read, data) -> None:
    with pytest.raises(GateError) as caught:
        read(data)
    assert (caught.value.code, int(caught.value.exit_code)) == ("invalid-event", 2)
    assert len(caught.value.message) < 600


def test_event__no_file__is_refused(tmp_path) -> None:
    for file in (tmp_path / "missing", tmp_path):
        with pytest.raises(GateError, match="cannot be used"):
            read_event("push", file)


def test_event__larger_than_anything_github_sends__is_not_read_to_its_end(read, monkeypatch) -> None:
    monkeypatch.setattr(module, "MAX_EVENT_BYTES", 100)
    assert read(b"{" + b" " * 50 + b"}").name == "pull_request"
    with pytest.raises(GateError):
        read(b"{" + b" " * 100 + b"}")


KEYS = st.sampled_from(["name", "repository", "pull_request", "merge_group", "workflow_run", "inputs", "sender", "x"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["number", "head", "base", "repo", "sha", "ref", "full_name", "id", "x"]), inner
        )
    ),
    max_leaves=10,
)


@pytest.mark.slow
@given(st.dictionaries(KEYS, VALUES) | VALUES)
def test_event__any_document__is_an_event_or_refused(tmp_path_factory, document) -> None:
    file = tmp_path_factory.mktemp("event") / "event.json"
    file.write_text(json.dumps(document))
    try:
        found = read_event("push", file)
    except GateError as error:
        assert error.code == "invalid-event"
    else:
        assert found.name == "push"
