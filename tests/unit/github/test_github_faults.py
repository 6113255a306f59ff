"""Every call to GitHub against everything that may happen to it: what is repeated, what is waited for, what comes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eval_gate.github.artifacts.artifact_search import list_run_artifacts
from eval_gate.github.artifacts.artifact_service import ArtifactService, reserve_artifact
from eval_gate.github.artifacts.download import BadArchiveError, fetch_artifact
from eval_gate.github.check_runs import (
    Annotation,
    AnnotationLevel,
    CheckConclusion,
    CheckContent,
    copy_check_result,
    list_commit_checks,
    write_check,
)
from eval_gate.github.client import ATTEMPTS, GitHubClient, GitHubTimeouts
from eval_gate.github.comments import delete_comment, read_thread, write_comment
from eval_gate.github.commits import (
    compare_commits,
    get_default_branch,
    get_pull_request,
    get_workflow_run,
    iter_ancestors,
    list_pull_requests,
)
from eval_gate.github.failure import MAX_WAIT_S, FailureKind, GitHubError
from eval_gate.results.archive import write_archive
from eval_gate.text.secret import Secret
from tests.support.agents import unused_port
from tests.support.github import FakeGitHub, Fault, fake_github, sha

MARKER = "<!-- eval-gate:v1 key=gate.yml.gate -->"


@dataclass
class World:
    """A GitHub with one of everything, and our connection to it, which notes waits instead of waiting."""

    github: FakeGitHub
    client: GitHubClient
    waits: list[float]
    folder: Path

    @property
    def head(self) -> str:
        return self.github.state.pulls[7].head_sha


@dataclass(frozen=True)
class Call:
    """One call: how it is made, which requests are its own, and whether a second one would do harm."""

    name: str
    make: Callable[[World], object]
    method: str
    path: str
    looks_first: bool = False
    """Whether a lost answer is looked for before the request is sent again."""
    gone_is_fine: frozenset[int] = frozenset()
    """Statuses that are an answer to this call, not a failure."""


def check(world: World) -> object:
    remarks = tuple(Annotation("evals/a.json", n + 1, AnnotationLevel.FAILURE, "t", "m") for n in range(10))
    texts = ("title", "summary", "", "https://github.com/acme/bot/actions/runs/1", "us.1")
    return write_check(world.client, CheckContent("eval-gate", world.head, CheckConclusion.FAILURE, *texts, remarks))


def repeat(world: World) -> object:
    check(world)
    (written,) = list_commit_checks(world.client, world.head)
    return copy_check_result(world.client, written, written)


def comment(world: World) -> object:
    return write_comment(world.client, 7, MARKER, f"{MARKER}\nnew", None)


def update(world: World) -> object:
    sticky = read_thread(world.client, 7, MARKER).sticky
    return write_comment(world.client, 7, MARKER, f"{MARKER}\nupdated", sticky)


def existing(world: World) -> World:
    world.github.state.add_comment(7, f"{MARKER}\nold")
    return world


def store(world: World) -> object:
    file = world.folder / "x.zip"
    write_archive([(Path(__file__), "run.json")], file)
    service = ArtifactService(world.github.results_url, Secret(world.github.runtime_token))
    return reserve_artifact(world.client, service, "eval-gate-results", moment=datetime.now(UTC)).upload_file(file)


def download(world: World) -> object:
    artifact = next(iter(world.github.state.artifacts.values()))
    return fetch_artifact(world.client, artifact.id, artifact.digest, world.folder / "down.zip")


CALLS = [
    Call("repository", lambda w: get_default_branch(w.client), "GET", r"/repos/acme/bot$"),
    Call("pull request", lambda w: get_pull_request(w.client, 7), "GET", r"/pulls/7$"),
    Call("pull request of", lambda w: list_pull_requests(w.client, "acme", "feature", w.head), "GET", r"/pulls\?"),
    Call("run", lambda w: get_workflow_run(w.client, 50), "GET", r"/actions/runs/50$"),
    Call("artifacts", lambda w: list_run_artifacts(w.client, 50, "eval-gate-results"), "GET", r"/runs/50/artifacts"),
    Call(
        "compare",
        lambda w: compare_commits(w.client, "main", w.head),
        "GET",
        "/compare/",
        gone_is_fine=frozenset({404}),
    ),
    Call(
        "commits", lambda w: list(iter_ancestors(w.client, w.head)), "GET", r"/commits\?", gone_is_fine=frozenset({404})
    ),
    Call("find comment", lambda w: read_thread(w.client, 7, MARKER), "POST", "/graphql"),
    Call("write comment", comment, "POST", "/issues/7/comments$", looks_first=True),
    Call(
        "update comment",
        lambda w: update(existing(w)),
        "PATCH",
        "/issues/comments/",
        gone_is_fine=frozenset({404, 410}),
    ),
    Call(
        "delete comment",
        lambda w: delete_comment(w.client, 7, read_thread(existing(w).client, 7, MARKER).own_comments[0]),
        "DELETE",
        "/issues/comments/",
        gone_is_fine=frozenset({404, 410}),
    ),
    Call("write check", check, "POST", "/check-runs$", looks_first=True),
    Call("repeat check", repeat, "PATCH", "/check-runs/"),
    Call("checks", lambda w: list_commit_checks(w.client, w.head), "GET", "/check-runs"),
    Call("download", download, "GET", r"/artifacts/\d+/zip$"),
    Call("download the blob", download, "GET", r"^/artifacts/\d+\?"),
    Call("create artifact", store, "POST", "CreateArtifact"),
    Call("put block", store, "PUT", "comp=block&"),
    Call("put block list", store, "PUT", "comp=blocklist"),
    Call("finalize artifact", store, "POST", "FinalizeArtifact"),
]
BLOB = "download the blob"
"""Whatever the blob host answers, the next try begins with a new address."""
BLOB_HOST = frozenset({BLOB, "put block", "put block list"})
"""Calls to a host that is not GitHub: it knows neither its permissions nor its limits."""


@pytest.fixture
def world(tmp_path):
    with fake_github() as github:
        github.state.add_pull(7)
        github.state.add_artifact(github.state.add_run(50), {"run.json": b"{}"})
        waits: list[float] = []
        client = GitHubClient(github.base, Secret(github.token), "acme/bot", sleep=waits.append)
        yield World(github, client, waits, tmp_path)
        client.close()
        assert github.violations == []


def tries(world: World, call: Call) -> int:
    return len(world.github.requests(call.method, call.path))


def made(world: World) -> tuple[int, int]:
    state = world.github.state
    comments = [one for one in state.comments.values() if one.author_is_viewer]
    return len(comments), len(state.check_runs)


def failing(world: World, call: Call, *faults: Fault) -> GitHubError | None:
    world.github.faults.add(call.method, call.path, *faults)
    try:
        call.make(world)
    except GitHubError as error:
        return error
    return None


each_call = pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)


@each_call
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, FailureKind.UNAUTHORIZED),
        (404, FailureKind.NOT_FOUND),
        (409, FailureKind.CONFLICT),
        (410, FailureKind.GONE),
        (422, FailureKind.REFUSED),
    ],
)
def test_call__refused_for_good__is_said_at_once_and_asked_once(world, call, status, kind) -> None:
    if call.name == BLOB:
        pytest.skip("an address that is refused is asked for anew: see the test of expired addresses")
    error = failing(world, call, Fault.status(status, message="no"))
    if status in call.gone_is_fine:
        assert error is None
    else:
        assert error is not None
        assert error.kind is kind
        assert f"GitHub responded with {status} (" in str(error) or call.path == "/graphql"
    assert world.waits == []
    assert tries(world, call) == 1


@each_call
def test_call__without_permission__names_the_missing_one_and_is_not_repeated(world, call) -> None:
    if call.name in BLOB_HOST:
        pytest.skip("the blob host knows no permissions")
    error = failing(world, call, Fault.permission())
    assert error is not None
    assert error.kind is FailureKind.FORBIDDEN
    if call.name not in {"create artifact", "finalize artifact"}:
        assert "; the job needs `permissions: " in str(error)
    assert (tries(world, call), world.waits) == (1, [])


@each_call
@pytest.mark.parametrize(
    ("fault", "least"),
    [
        (Fault.status(429, retry_after=7), 7),
        (Fault.status(429), 0),
        (Fault.secondary_limit(retry_after=5), 5),
        (Fault.secondary_limit(), 60),
    ],
    ids=["429 with Retry-After", "429 bare", "secondary with Retry-After", "secondary bare"],
)
def test_call__limited_for_a_while__waits_as_long_as_asked_and_works(world, call, fault, least) -> None:
    if call.name in BLOB_HOST:
        pytest.skip("the blob host knows no limits")
    assert failing(world, call, fault) is None
    assert len(world.waits) == 1
    assert least <= world.waits[0] <= max(least, 8)
    assert tries(world, call) == 2


@each_call
def test_call__primary_limit_that_ends_soon__is_waited_for(world, call) -> None:
    if call.name in BLOB_HOST:
        pytest.skip("the blob host knows no limits")
    assert failing(world, call, Fault.primary_limit(reset_in=20)) is None
    assert 15 <= world.waits[0] <= 23


@each_call
def test_call__primary_limit_for_an_hour__is_not_slept_through(world, call) -> None:
    if call.name in BLOB_HOST:
        pytest.skip("the blob host knows no limits")
    error = failing(world, call, Fault.primary_limit(reset_in=3600))
    assert error is not None
    assert error.kind is FailureKind.RATE_LIMITED
    assert error.wait_s is not None
    assert error.wait_s > MAX_WAIT_S
    assert (world.waits, tries(world, call)) == ([], 1)


@each_call
@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_call__broken_once__is_repeated_and_made_once(world, call, status) -> None:
    assert failing(world, call, Fault.status(status)) is None
    assert len(world.waits) == 1
    assert max(made(world)) <= 1


@each_call
def test_call__broken_for_good__ends_after_its_tries(world, call) -> None:
    error = failing(world, call, *[Fault.status(502)] * ATTEMPTS)
    assert error is not None
    assert error.kind is FailureKind.SERVER
    assert (len(world.waits), tries(world, call)) == (ATTEMPTS - 1, ATTEMPTS)


@each_call
def test_call__connection_reset_before__is_repeated(world, call) -> None:
    assert failing(world, call, Fault.reset()) is None
    assert max(made(world)) <= 1


@each_call
def test_call__answer_lost_after_the_work__is_never_done_twice(world, call) -> None:
    error = failing(world, call, Fault.reset_after_write())
    if call.name == "create artifact":
        # it cannot be told from another job's artifact of the same name, which must not be touched
        assert error is not None
        assert error.kind is FailureKind.CONFLICT
        return
    assert error is None
    assert max(made(world)) <= 1
    if call.looks_first:
        assert tries(world, call) == 1
    if call.name == "add annotations":
        (one,) = world.github.state.check_runs.values()
        assert len(one.annotations) in {51, 52}


@each_call
def test_call__page_of_a_proxy_instead_of_an_answer__is_an_error_of_the_server(world, call) -> None:
    error = failing(world, call, *[Fault.status(502, html=True)] * ATTEMPTS)
    assert error is not None
    assert error.kind is FailureKind.SERVER
    assert "<html" not in str(error).lower()


IMPATIENT = GitHubTimeouts(silence_s=1, response_s=1.2, transfer_silence_s=0.5, transfer_s=1.0)


def impatient(world: World) -> World:
    """The same world, asked by somebody who waits a second at most."""
    token = Secret(world.github.token)
    client = GitHubClient(world.github.base, token, "acme/bot", sleep=world.waits.append, patience=IMPATIENT)
    return World(world.github, client, world.waits, world.folder)


@each_call
def test_call__nobody_listens__ends_after_its_tries_and_says_so(world, call) -> None:
    nobody, asked = f"127.0.0.1:{unused_port()}", world
    if call.name in BLOB_HOST:
        world.github.storage.base = f"http://{nobody}"
    elif call.make is store:
        world.github.results_url = f"http://{nobody}/"
    else:
        client = GitHubClient(f"http://{nobody}", Secret("t0ken"), "acme/bot", sleep=world.waits.append)
        asked = World(world.github, client, world.waits, world.folder)
    with pytest.raises(GitHubError) as caught:
        call.make(asked)
    assert caught.value.kind is FailureKind.UNREACHABLE
    assert len(world.waits) == ATTEMPTS - 1
    assert max(made(world)) <= 1


@pytest.mark.slow
@each_call
def test_call__hangs_once__is_given_up_and_made_anew(world, call) -> None:
    begun = time.monotonic()
    assert failing(impatient(world), call, Fault.hang()) is None
    assert time.monotonic() - begun < 30
    assert len(world.waits) >= 1
    assert max(made(world)) <= 1


@pytest.mark.slow
@each_call
def test_call__answer_comes_byte_by_byte__is_given_up_after_its_time_and_never_done_twice(world, call) -> None:
    """Each byte comes in time, so that no limit on silence ever ends it."""
    begun = time.monotonic()
    error = failing(impatient(world), call, Fault.drip(0.05))
    assert time.monotonic() - begun < 30
    assert world.github.faults.unused == []
    if call.name == "create artifact":
        assert error is not None
        assert error.kind is FailureKind.CONFLICT  # as after any answer that is lost
        return
    assert error is None
    assert len(world.waits) >= 1
    assert max(made(world)) <= 1


@pytest.mark.slow
def test_download__drips_for_ever__ends_after_its_tries(world) -> None:
    blob = next(call for call in CALLS if call.name == BLOB)
    error = failing(impatient(world), blob, *[Fault.drip(0.05)] * ATTEMPTS)
    assert error is not None
    assert (error.kind, len(world.waits)) == (FailureKind.UNREACHABLE, ATTEMPTS - 1)


@each_call
@pytest.mark.parametrize(
    "fault",
    [Fault.cut(after=0), Fault.cut(after=3), Fault.wrong_length(+7), Fault.wrong_length(-2)],
    ids=["cut at once", "cut", "too short", "too long"],
)
def test_call__half_an_answer__is_never_taken_for_a_whole_one(world, call, fault) -> None:
    if call.name == BLOB and fault.too_long < 0:
        with pytest.raises(BadArchiveError, match="digest"):
            failing(world, call, fault)
        return
    error = failing(world, call, fault)
    empty = call.name in {"put block", "put block list", "download"} and fault.too_long <= 0
    if empty or call.name == "delete comment":
        assert (error, world.waits) == (None, [])  # there is nothing in this answer that could be cut
        return
    if call.name == "create artifact":
        assert error is not None
        assert error.kind is FailureKind.CONFLICT
        return
    assert error is None
    # what is left over of a longer answer may be in the way of the next
    assert len(world.waits) in ({1, 2} if fault.too_long < 0 else {1})
    assert max(made(world)) <= 1


@each_call
def test_call__limited_again_and_again__ends_after_its_tries(world, call) -> None:
    error = failing(world, call, *[Fault.status(429, retry_after=7)] * ATTEMPTS)
    assert error is not None
    # the blob host's words are not read: the next try asks for a new address
    assert error.kind is (FailureKind.SERVER if call.name == BLOB else FailureKind.RATE_LIMITED)
    assert tries(world, call) == ATTEMPTS
    assert len(world.waits) == ATTEMPTS - 1
    assert call.name == BLOB or all(7 <= wait <= 8 for wait in world.waits)
    before = (call.name in {"update comment", "delete comment"}, call.name == "repeat check")
    assert made(world) == tuple(map(int, before))


@each_call
@pytest.mark.parametrize("hours", [-1, 1])
def test_call__clocks_are_an_hour_apart__limit_is_waited_for_as_long_as_it_lasts(world, call, hours) -> None:
    if call.name in BLOB_HOST:
        pytest.skip("the blob host knows no limits")
    assert failing(world, call, Fault.primary_limit(reset_in=20, ahead=hours * 3600)) is None
    assert len(world.waits) == 1
    assert 15 <= world.waits[0] <= 23


@each_call
@pytest.mark.parametrize("hours", [-1, 1])
def test_call__our_clock_jumps_while_waiting__is_repeated_all_the_same(world, call, hours, monkeypatch) -> None:
    def jump(seconds: float) -> None:
        world.waits.append(seconds)
        now = time.time
        monkeypatch.setattr(time, "time", lambda: now() + hours * 3600)

    client = GitHubClient(world.github.base, Secret(world.github.token), "acme/bot", sleep=jump)
    assert (
        failing(World(world.github, client, world.waits, world.folder), call, Fault.status(502), Fault.reset()) is None
    )
    assert len(world.waits) == 2
    assert max(made(world)) <= 1


def test_download__address_expired__asks_for_a_new_one(world) -> None:
    blob = next(call for call in CALLS if call.name == BLOB)
    assert failing(world, blob, Fault.status(403), Fault.status(404)) is None
    assert len(world.github.requests("GET", r"/artifacts/\d+/zip$")) == 3


def test_download__broken_half_way__begins_anew_with_a_new_address(world) -> None:
    blob = next(call for call in CALLS if call.name == BLOB)
    assert failing(world, blob, Fault.cut(after=10)) is None
    assert len(world.github.requests("GET", r"/artifacts/\d+/zip$")) == 2
    assert all("authorization" not in one.headers for one in world.github.requests("GET", r"^/artifacts/\d+\?"))


@pytest.mark.slow
def test_call__slow_answer__is_waited_for(world) -> None:
    world.github.faults.add("GET", r"/pulls/7$", Fault.slow(0.5))
    assert get_pull_request(world.client, 7).head.sha == world.head


def test_call__answer_of_another_shape__is_an_error_and_no_crash(world, monkeypatch) -> None:
    monkeypatch.setattr(world.github.views, "repository", lambda *_, **__: {"id": "not a number"}, raising=False)
    world.github.log.clear()
    try:
        get_default_branch(world.client)
    except GitHubError as error:
        assert error.kind is FailureKind.SERVER
    world.github.log.clear()


def test_error__never_holds_the_token(world) -> None:
    error = failing(world, CALLS[0], Fault.status(401, message="Bad credentials"))
    assert error is not None
    assert world.github.token not in f"{error} {error!r} {error.__cause__!r}"


def test_comment__deleted_meanwhile__is_made_anew(world) -> None:
    existing(world)
    sticky = read_thread(world.client, 7, MARKER).sticky
    assert sticky is not None
    world.github.state.comments.pop(sticky.id)
    written = write_comment(world.client, 7, MARKER, f"{MARKER}\nnew", sticky)
    assert written.id in world.github.state.comments


def test_commits__unknown_sha__is_no_failure(world) -> None:
    assert compare_commits(world.client, sha("gone"), "main") is None
    assert list(iter_ancestors(world.client, sha("gone"))) == []
