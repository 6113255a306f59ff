"""Answers that are not what GitHub documents: whatever comes, it is a GitHubError and never a crash."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import pytest

from eval_gate.github.background_calls import call_with_timeout
from eval_gate.github.client import ATTEMPTS, ApiResponse, GitHubClient
from eval_gate.github.comments import read_thread
from eval_gate.github.commits import compare_commits, get_default_branch, get_pull_request
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.text.secret import Secret
from tests.support.github import Fault
from tests.support.github.loopback import Answer


class Thing(ApiResponse):
    id: int


HTML = b"<!DOCTYPE html><html>a proxy's page</html>"
ODD = {
    "empty": Answer(200),
    "null": Answer(200, raw=b"null"),
    "a list": Answer(200, body=[1]),
    "a number": Answer(200, body=7),
    "a page": Answer(200, raw=HTML, content_type="text/html"),
    "broken JSON": Answer(200, raw=b'{"id": 1'),
    "not UTF-8": Answer(200, raw=b'{"id": "\xff\xfe"}'),
    "another shape": Answer(200, body={"id": "x"}),
    "moved to another host": Answer(301, headers={"Location": "https://elsewhere.test/repos/acme/bot"}),
    "moved to itself": Answer(301, headers={"Location": "/repos/acme/bot/thing"}),
    "a limit that is no number": Answer(200, body={"x": 1}, headers={"X-RateLimit-Reset": "soon"}),
    "refused with a number": Answer(422, body={"message": "no", "errors": 5}),
    "refused with a mapping": Answer(422, body={"message": "no", "errors": {"a": 1}}),
    "refused with a sentence": Answer(422, body={"message": "no", "errors": "because"}),
    "refused with nothing": Answer(422, body={"message": None, "errors": None}),
    "refused with a list": Answer(403, body=["no"]),
    "refused with a page": Answer(403, raw=HTML, content_type="text/html"),
}
ODD_GRAPH = {
    "empty": Answer(200),
    "null": Answer(200, raw=b"null"),
    "a list": Answer(200, body=[]),
    "a page": Answer(200, raw=HTML, content_type="text/html"),
    "errors are null": Answer(200, body={"data": None, "errors": None}),
    "errors are none": Answer(200, body={"data": None, "errors": []}),
    "errors are words": Answer(200, body={"errors": ["no"]}),
    "an error without words": Answer(200, body={"errors": [{"type": "FORBIDDEN"}]}),
}


@pytest.fixture
def asking(says, waits):
    """A client of a server that gives this answer."""

    def ask(*answers: Answer) -> GitHubClient:
        return GitHubClient(says(*answers).base, Secret("t0ken"), "acme/bot", sleep=waits.append)

    return ask


@pytest.mark.slow
@pytest.mark.parametrize("answer", ODD.values(), ids=ODD)
def test_get__answer_that_is_not_documented__is_an_error_that_names_the_call(asking, answer) -> None:
    with pytest.raises(GitHubError) as caught:
        asking(answer).get("reading the thing", "/thing", Thing, permission="contents: read")
    assert str(caught.value).startswith("reading the thing: ")
    assert "t0ken" not in str(caught.value)


@pytest.mark.parametrize("body", [None, 7, {}, {"things": None}, {"things": {"id": 1}}, {"things": [{"id": "x"}]}])
def test_page__no_list_of_what_was_asked_for__is_an_error_that_names_the_call(asking, body) -> None:
    client = asking(Answer(200, body=body))
    with pytest.raises(GitHubError) as caught:
        client.get_page("listing things", "/things", Thing, permission="contents: read", key="things")
    assert str(caught.value).startswith("listing things: GitHub's response does not match its documentation (")


@pytest.mark.parametrize("answer", ODD_GRAPH.values(), ids=ODD_GRAPH)
def test_graphql__answer_that_is_not_documented__is_an_error_that_names_the_call(asking, answer) -> None:
    with pytest.raises(GitHubError) as caught:
        read_thread(asking(answer), 7, "k")
    assert str(caught.value).startswith("looking for the comment on #7: ")


def test_graphql__trouble_of_theirs_inside_a_success__is_repeated(asking, waits) -> None:
    """GitHub says a timeout of its own with status 200, in words and without a type."""
    words = (
        "Something went wrong while executing your query. This may be the result of a timeout, or it could be a bug."
    )
    client = asking(Answer(200, body={"data": None, "errors": [{"message": words}]}), Answer(200, body={"data": {}}))
    assert client.run_graphql("asking", "query { viewer { login } }", {}, permission="pull-requests: read") == {}
    assert len(waits) == 1


def test_page__pages_of_exactly_the_asked_size__are_read_until_a_shorter_one(says) -> None:
    full, rest = [{"id": n} for n in range(100)], [{"id": 100}]
    oracle = says(Answer(200, body=full), Answer(200, body=rest))
    client = GitHubClient(oracle.base, Secret("t0ken"), "acme/bot")
    found = list(client.iter_items("listing", "/things", Thing, permission="contents: read"))
    assert [one.id for one in found] == list(range(101))
    assert [request.query["page"] for request in oracle.requests] == ["1", "2"]
    assert {request.query["per_page"] for request in oracle.requests} == {"100"}


def test_pages__only_the_first_item_is_wanted__one_page_is_asked_for(says) -> None:
    oracle = says(Answer(200, body=[{"id": n} for n in range(100)]))
    client = GitHubClient(oracle.base, Secret("t0ken"), "acme/bot")
    assert next(client.iter_items("listing", "/things", Thing, permission="contents: read")).id == 0
    assert len(oracle.requests) == 1


def test_post__answer_unreadable__is_looked_for_before_it_is_made_again(says, waits) -> None:
    oracle = says(Answer(201, raw=b'{"id": 1'), Answer(201, body={"id": 2}))
    client = GitHubClient(oracle.base, Secret("t0ken"), "acme/bot", sleep=waits.append)
    written = client.post("making", "/things", {}, Thing, permission="checks: write", probe=lambda: Thing(id=7))
    assert (written.id, len(oracle.requests)) == (7, 1)


def test_post__refused_for_now__is_not_looked_for(says, waits) -> None:
    """A limit is said before anything is done: looking costs requests that are short already."""
    oracle = says(Answer(429, body={"message": "slow down"}), Answer(201, body={"id": 2}))
    client = GitHubClient(oracle.base, Secret("t0ken"), "acme/bot", sleep=waits.append)
    looked: list[int] = []
    written = client.post("making", "/things", {}, Thing, permission="checks: write", probe=lambda: looked.append(1))
    assert (written.id, looked, len(waits)) == (2, [], 1)


@pytest.mark.parametrize(
    "lost",
    [
        Answer(502, body={"message": "x"}),
        Answer(500, raw=HTML, content_type="text/html"),
        Answer(200, raw=b'{"id": 1'),
    ],
)
def test_post_once__outcome_is_unknown__is_an_error_and_not_sent_again(says, waits, lost) -> None:
    oracle = says(lost, Answer(204))
    client = GitHubClient(oracle.base, Secret("t0ken"), "acme/bot", sleep=waits.append)
    with pytest.raises(GitHubError) as caught:
        client.post_once("starting", "/things", {"a": 1}, permission="actions: write")
    assert (caught.value.is_outcome_unknown, len(oracle.requests), waits) == (True, 1, [])


def test_post_once__refused_for_now__is_sent_until_it_is_taken(says, waits) -> None:
    oracle = says(Answer(429, body={"message": "slow down"}), Answer(204), Answer(204))
    client = GitHubClient(oracle.base, Secret("t0ken"), "acme/bot", sleep=waits.append)
    client.post_once("starting", "/things", {"a": 1}, permission="actions: write")
    assert (len(oracle.requests), len(waits)) == (2, 1)


@pytest.mark.parametrize("after", ["-5", "nan", "inf", "", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_limit__time_to_wait_is_odd__waits_are_never_negative_nor_endless(says, after) -> None:
    waits: list[float] = []
    oracle = says(
        Answer(429, body={"message": "slow down"}, headers={"Retry-After": after}), Answer(200, body={"id": 1})
    )
    client = GitHubClient(oracle.base, Secret("t0ken"), "acme/bot", sleep=waits.append)
    try:
        client.get("reading", "/thing", Thing, permission="contents: read")
    except GitHubError as error:
        assert error.kind is FailureKind.RATE_LIMITED
    assert all(0 <= wait <= 60 for wait in waits)


def test_requests__every_one__names_its_sender_its_version_and_the_token_once(github, client) -> None:
    github.state.add_pull(7)
    get_default_branch(client)
    get_pull_request(client, 7)
    for exchange in github.requests("*"):
        assert exchange.headers["user-agent"].startswith("eval-gate/")
        assert exchange.headers["x-github-api-version"] == "2022-11-28"
        assert exchange.headers["authorization"].endswith(github.token)
        assert github.token not in exchange.path


@pytest.mark.parametrize("token", ["tök€n", "a\nb", "a\x00b", "\ufeffghs_x"])
def test_token__that_no_header_can_hold__is_an_error_and_is_not_shown(github, token) -> None:
    with pytest.raises(GitHubError) as caught:
        get_default_branch(GitHubClient(github.base, Secret(token), "acme/bot", sleep=lambda _: None))
    assert token not in str(caught.value)


@pytest.mark.parametrize("branch", ["release/1.x", "a#b", "a b?c=d&e", "ü/日本", "100%25"])
def test_compare__branch_with_any_name__is_one_part_of_the_path(github, client, branch) -> None:
    github.state.add_commit("next", github.state.branches["main"], branch=branch)
    found = compare_commits(client, "main", branch)
    assert found is not None
    assert (found.ahead_by, found.merge_base_commit.sha) == (1, github.state.branches["main"])


def test_broken_for_a_while__every_try_is_counted_and_none_is_left(github, client, waits) -> None:
    github.faults.add("GET", "/repos/acme/bot$", *[Fault.status(500)] * (ATTEMPTS - 1))
    assert get_default_branch(client) == "main"
    assert len(waits) == ATTEMPTS - 1
    assert all(0 <= wait <= 8 for wait in waits)


def test_calls__two_at_a_time_each_refused_once__each_is_repeated_by_itself(github, client, waits) -> None:
    """Both wait at GitHub for each other: the first time to be refused, the second time to be answered."""
    github.state.add_pull(7)
    refused, answered = threading.Barrier(2, timeout=20), threading.Barrier(2, timeout=20)
    for path in ("/repos/acme/bot$", "/pulls/7$"):
        github.faults.add("GET", path, Fault.meet(refused, 502), Fault.meet(answered))
    with ThreadPoolExecutor(2) as beside:
        first, second = beside.submit(get_default_branch, client), beside.submit(get_pull_request, client, 7)
        assert (first.result(), second.result().number) == ("main", 7)
    assert len(waits) == 2


@pytest.mark.slow
@pytest.mark.parametrize("status", [403, 429])
def test_limit__told_to_one_call__holds_back_the_calls_beside_it(says, status) -> None:
    """A limit is one for all calls of a token, and whoever goes on asking is refused for longer."""
    limit = Answer(status, body={"message": "secondary rate limit"}, headers={"Retry-After": "7"})
    oracle = says(limit, Answer(200, body={"id": 1}))
    waited: list[tuple[float, int]] = []
    told, beside_waits = threading.Event(), threading.Event()

    def sleep(seconds: float) -> None:
        waited.append((seconds, len(oracle.requests)))
        if len(waited) == 1:
            told.set()
            beside_waits.wait(5)
        else:
            beside_waits.set()

    client = GitHubClient(oracle.base, Secret("t0ken"), "acme/bot", sleep=sleep)

    def get() -> int:
        return client.get("reading the thing", "/thing", Thing, permission="contents: read").id

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(get)
        assert told.wait(5)
        beside = threads.submit(get)
        assert (first.result(), beside.result()) == (1, 1)
    assert [asked for _, asked in waited] == [1, 1]
    assert waited[0][0] == 7
    assert 0 < waited[1][0] < 7
    client.get("reading it later", "/thing", Thing, permission="contents: read")
    assert len(waited) == 2


def test_limit__that_nobody_waits_for__holds_back_no_other_call(says, waits) -> None:
    """One of REST's calls may be an hour away, and GraphQL's not."""
    limit = Answer(403, body={"message": "API rate limit exceeded"}, headers={"Retry-After": "3000"})
    client = GitHubClient(
        says(limit, Answer(200, body={"id": 1})).base, Secret("t0ken"), "acme/bot", sleep=waits.append
    )
    with pytest.raises(GitHubError, match="for another 3000 s"):
        client.get("reading the thing", "/thing", Thing, permission="contents: read")
    assert client.get("reading the thing", "/thing", Thing, permission="contents: read").id == 1
    assert waits == []


def test_call__asked_on_the_way_of_another_from_within_a_time_limit__is_tried_once(says, waits) -> None:
    """The way to an artifact of our own: its address is asked in the thread that has so much time for the whole."""
    oracle = says(Answer(500))
    client = GitHubClient(oracle.base, Secret("t0ken"), "acme/bot", sleep=waits.append)
    with pytest.raises(GitHubError):
        client.call_with_retries(lambda: call_with_timeout(20, "fetching", lambda: get_default_branch(client)))
    assert len(oracle.requests) == ATTEMPTS


def test_calls__one_after_the_other__share_a_connection(says) -> None:
    oracle = says(Answer(200, body={"id": 1}))
    client = GitHubClient(oracle.base, Secret("t0ken"), "acme/bot")
    for _ in range(3):
        client.get("reading", "/thing", Thing, permission="contents: read")
    assert oracle.connections == 1


class Seen(deque):
    """Connections of which one was seen a moment ago, before another thread took it."""

    def __len__(self) -> int:
        return super().__len__() or 1


def test_close__another_thread_takes_the_last_connection__is_no_error(github, monkeypatch) -> None:
    """A step ends while calls that nobody waits for any more are under way."""
    client = GitHubClient(github.base, Secret(github.token), "acme/bot")
    assert get_default_branch(client) == "main"
    monkeypatch.setattr(client, "_idle", Seen(client._idle))
    client.close()
    assert get_default_branch(client) == "main"
