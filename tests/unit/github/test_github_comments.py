"""Our comment among others: found by author, first line and key; its memory; and never a second one."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.github.client import GitHubClient
from eval_gate.github.comments import CommentState, _CommentNode, format_marker, read_thread, write_comment
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.github.marked_texts import append_state
from eval_gate.text.secret import Secret
from tests.support.github import Fault, fake_github

KEY = "gate.yml.gate"
HEAD = "a" * 40
STATE = CommentState(sha=HEAD, run_id=42, attempt=2, outcome="fail", red_sha=HEAD)


@pytest.fixture
def pull(github):
    return github.state.add_pull(7)


def found(client, key=KEY):
    return read_thread(client, 7, key).sticky


def body_with(state_line: str) -> str:
    return f"{format_marker(KEY)}\ntext\n{state_line}"


def packed(data: object) -> str:
    text = data if isinstance(data, bytes) else json.dumps(data).encode()
    return f"<!-- eval-gate:state {base64.b64encode(text).decode()} -->"


SHA = st.text("0123456789abcdef", min_size=7, max_size=64)
STATES = st.builds(
    CommentState,
    sha=SHA,
    run_id=st.integers(0, 10**18),
    attempt=st.integers(1, 10**6),
    outcome=st.sampled_from(["pass", "fail", "error"]),
    red_sha=st.none() | SHA,
    regressed=st.none() | st.binary(max_size=2_000).map(lambda data: base64.b64encode(data).decode()),
    regressed_at=st.none() | SHA,
)
BODY = st.lists(
    st.sampled_from(["-->", "<!--", "<!-- eval-gate:state AAAA -->", "\n", "\r\n", packed({}), "`", "| a |"])
    | st.text(max_size=20),
    max_size=8,
).map("".join)


@pytest.mark.slow
def test_state__any_state_under_any_text__is_remembered() -> None:
    with fake_github() as github:
        github.state.add_pull(7)
        comment = github.state.add_comment(7, "")
        client = GitHubClient(github.base, Secret(github.token), "acme/bot")

        @given(STATES, BODY)
        def remembered(state, text) -> None:
            comment.body = append_state(f"{format_marker(KEY)}\n{text}", state)
            sticky = found(client)
            assert sticky is not None
            assert sticky.state == state

        remembered()
        client.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "",
        "<!-- eval-gate:state -->",
        "<!-- eval-gate:state !!!! -->",
        "<!-- eval-gate:state AAA -->",
        packed(b"\xff\xfe"),
        packed(b"{"),
        packed([]),
        packed("x"),
        packed(None),
        packed({}),
        packed({"sha": HEAD, "outcome": "pass"}),
        packed({"sha": HEAD, "run_id": "many", "outcome": "pass"}),
        packed({"sha": "](http://evil.test)", "run_id": 1, "outcome": "pass"}),
        packed({"sha": HEAD.upper(), "run_id": 1, "outcome": "pass"}),
        packed({"sha": f"{HEAD}\n", "run_id": 1, "outcome": "pass"}),
        packed({"sha": HEAD, "run_id": 1, "outcome": "pass", "red_sha": "<script>"}),
        packed({"sha": HEAD, "run_id": 1, "outcome": "x" * 21}),
        packed({"sha": HEAD, "run_id": 1, "outcome": "pass", "regressed": "-->"}),
        packed({"sha": HEAD, "run_id": 1, "outcome": "pass", "regressed": "A" * 2_704}),
        packed(b'{"sha": "aaaaaaa", "outcome": "pass", "run_id": ' + b"9" * 2_900 + b".5}"),
        packed(b"[" * 2_900),
        packed({"sha": HEAD, "run_id": 1, "outcome": "pass", "more": "x" * 20_000}),
        packed({"sha": HEAD, "run_id": 1, "outcome": "pass"}) + "\nafterwards",
        packed({"sha": HEAD, "run_id": 1, "outcome": "pass"}).replace("eval-gate:state", "eval-gate:stat"),
    ],
)
def test_state__line_that_is_none__the_comment_is_ours_and_remembers_nothing(github, pull, client, line) -> None:
    """Whoever may edit the comment may write anything there."""
    comment = github.state.add_comment(7, body_with(line))
    sticky = found(client)
    assert sticky is not None
    assert (sticky.id, sticky.state) == (comment.id, None)


def test_state__two_of_them__the_last_one_counts(github, pull, client) -> None:
    forged = packed({"sha": "b" * 40, "run_id": 999, "outcome": "pass"})
    github.state.add_comment(7, append_state(body_with(forged), STATE))
    sticky = found(client)
    assert sticky is not None
    assert sticky.state == STATE


def test_state__line_breaks_of_a_browser__are_read_too(github, pull, client) -> None:
    github.state.add_comment(7, append_state(body_with(""), STATE).replace("\n", "\r\n") + "\r\n")
    sticky = found(client)
    assert sticky is not None
    assert sticky.state == STATE


@pytest.mark.parametrize(
    "text",
    [
        f"quoted:\n{format_marker(KEY)}",
        f" {format_marker(KEY)}",
        f"\n{format_marker(KEY)}",
        f"> {format_marker(KEY)}",
        format_marker(f"{KEY}.more"),
        format_marker("gate.yml"),
        format_marker(KEY).replace("v1", "v2"),
        "",
    ],
)
def test_find__marker_elsewhere_or_of_another__is_not_ours(github, pull, client, text) -> None:
    github.state.add_comment(7, f"{text}\nwords" if text else "words")
    assert found(client) is None


def test_find__same_text_by_somebody_else__is_not_ours(github, pull, client) -> None:
    github.state.add_comment(7, f"{format_marker(KEY)}\nwords", mine=False, author="github-actions")
    assert found(client) is None


def test_find__several_of_ours__is_the_newest(github, pull, client) -> None:
    github.state.add_comment(7, f"{format_marker(KEY)}\nfirst")
    newest = github.state.add_comment(7, f"{format_marker(KEY)}\nsecond")
    github.state.add_comment(7, "talk", mine=False)
    sticky = found(client)
    assert sticky is not None
    assert (sticky.id, sticky.url.rpartition("-")[2]) == (newest.id, str(newest.id))


@pytest.mark.parametrize(("talk", "asked"), [(0, 1), (99, 1), (100, 2), (250, 3)])
def test_find__ours_is_the_oldest__as_many_pages_as_needed(github, pull, client, talk, asked) -> None:
    ours = github.state.add_comment(7, f"{format_marker(KEY)}\nold")
    for number in range(talk):
        github.state.add_comment(7, f"talk {number}", mine=False)
    sticky = found(client)
    assert sticky is not None
    assert sticky.id == ours.id
    assert len(github.requests("POST", "/graphql")) == asked


def test_find__ours_is_the_newest_of_many__one_page(github, pull, client) -> None:
    for number in range(250):
        github.state.add_comment(7, f"talk {number}", mine=False)
    github.state.add_comment(7, f"{format_marker(KEY)}\nnew")
    assert found(client) is not None
    assert len(github.requests("POST", "/graphql")) == 1


def test_find__not_there__all_pages_and_then_an_answer(github, pull, client) -> None:
    for number in range(201):
        github.state.add_comment(7, f"talk {number}", mine=False)
    conversation = read_thread(client, 7, KEY)
    assert (conversation.sticky, conversation.head_sha, conversation.is_open) == (None, pull.head_sha, True)
    assert len(github.requests("POST", "/graphql")) == 3


def test_find__another_pull_request_has_one__is_not_ours(github, pull, client) -> None:
    github.state.add_pull(8, head_sha="eight", head_ref="eight")
    github.state.add_comment(8, f"{format_marker(KEY)}\nwords")
    assert found(client) is None


@pytest.mark.parametrize("merged", [True, False])
def test_conversation__pull_request_is_over__is_not_open(github, pull, client, merged) -> None:
    pull.state, pull.merge_commit_sha = "closed", "c" * 40 if merged else None
    assert not read_thread(client, 7, KEY).is_open


def test_conversation__no_such_pull_request__is_said(client) -> None:
    with pytest.raises(GitHubError) as caught:
        read_thread(client, 404, KEY)
    assert caught.value.kind is FailureKind.NOT_FOUND


def test_write__nothing_there__makes_one_and_knows_its_address(github, pull, client) -> None:
    written = write_comment(client, 7, KEY, f"{format_marker(KEY)}\nnew", None)
    (comment,) = github.state.comments.values()
    assert (written.id, comment.body) == (comment.id, f"{format_marker(KEY)}\nnew")
    assert written.url.endswith(f"#issuecomment-{comment.id}")


def test_write__one_is_there__is_updated_and_nothing_else_changes(github, pull, client) -> None:
    ours, other = github.state.add_comment(7, f"{format_marker(KEY)}\nold"), github.state.add_comment(7, "mine too")
    write_comment(client, 7, KEY, f"{format_marker(KEY)}\nnew", found(client))
    assert (ours.body, other.body, len(github.state.comments)) == (f"{format_marker(KEY)}\nnew", "mine too", 2)


def test_write__deleted_meanwhile_and_the_answer_lost__there_is_one(github, pull, client) -> None:
    github.state.add_comment(7, f"{format_marker(KEY)}\nold")
    sticky = found(client)
    assert sticky is not None
    del github.state.comments[sticky.id]
    github.faults.add("POST", "/issues/7/comments$", Fault.reset_after_write())
    written = write_comment(client, 7, KEY, f"{format_marker(KEY)}\nnew", sticky)
    assert list(github.state.comments) == [written.id]


def test_write__nothing_was_done_when_the_connection_broke__is_made_after_a_look(github, pull, client) -> None:
    github.faults.add("POST", "/issues/7/comments$", Fault.reset(), Fault.status(502))
    write_comment(client, 7, KEY, f"{format_marker(KEY)}\nnew", None)
    assert len(github.state.comments) == 1
    assert len(github.requests("POST", "/graphql")) == 2


def test_write__an_older_one_of_another_key__is_not_taken_for_the_lost_one(github, pull, client) -> None:
    other = github.state.add_comment(7, f"{format_marker('other')}\nold")
    github.faults.add("POST", "/issues/7/comments$", Fault.reset())
    written = write_comment(client, 7, KEY, f"{format_marker(KEY)}\nnew", None)
    assert written.id != other.id
    assert (other.body, len(github.state.comments)) == (f"{format_marker('other')}\nold", 2)


def test_write__the_one_there_may_not_be_changed__is_an_error_and_no_second_comment(github, pull, client) -> None:
    github.state.add_comment(7, f"{format_marker(KEY)}\nold")
    github.faults.add("PATCH", "/issues/comments/", Fault.permission())
    with pytest.raises(GitHubError) as caught:
        write_comment(client, 7, KEY, f"{format_marker(KEY)}\nnew", found(client))
    assert caught.value.kind is FailureKind.FORBIDDEN
    assert len(github.state.comments) == 1


def test_sticky__comment_whose_number_graphql_cannot_hold__is_known_by_its_address() -> None:
    """Comment ids have outgrown GraphQL's 32-bit `databaseId`, which is null then."""
    body = "<!-- eval-gate:v1 key=k -->"
    url = "https://github.com/acme/bot/pull/7#issuecomment-3141592653"
    node = _CommentNode.model_validate({"databaseId": None, "viewerDidAuthor": True, "body": body, "url": url})
    assert node.number == 3141592653
