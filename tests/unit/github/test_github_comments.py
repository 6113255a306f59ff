"""Our comment among others: found by its id, or by author and first line; and never a second one."""

from __future__ import annotations

import pytest

from eval_gate.github.comments import PullRequestComment, read_thread, write_comment
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.text.escape import format_comment_marker
from tests.support.github import Fault

MARKER = format_comment_marker("gate.yml.gate")


@pytest.fixture
def pull(github):
    return github.state.add_pull(7)


def found(client, comment_id=None):
    return read_thread(client, 7, MARKER, comment_id).sticky


@pytest.mark.parametrize(
    "text",
    [
        f"quoted:\n{MARKER}",
        f" {MARKER}",
        f"\n{MARKER}",
        f"> {MARKER}",
        format_comment_marker("gate.yml.gate.more"),
        format_comment_marker("gate.yml"),
        MARKER.replace("v1", "v2"),
        "",
    ],
)
def test_find__marker_elsewhere_or_of_another__is_not_ours(github, pull, client, text) -> None:
    github.state.add_comment(7, f"{text}\nwords" if text else "words")
    assert found(client) is None


def test_find__same_text_by_somebody_else__is_not_ours(github, pull, client) -> None:
    github.state.add_comment(7, f"{MARKER}\nwords", mine=False, author="github-actions")
    assert found(client) is None


def test_find__several_of_ours__is_the_newest(github, pull, client) -> None:
    github.state.add_comment(7, f"{MARKER}\nfirst")
    newest = github.state.add_comment(7, f"{MARKER}\nsecond")
    github.state.add_comment(7, "talk", mine=False)
    sticky = found(client)
    assert sticky is not None
    assert (sticky.id, sticky.url.rpartition("-")[2]) == (newest.id, str(newest.id))


def test_find__known_by_its_id__is_ours_whatever_it_says_and_however_many_pages_back(github, pull, client) -> None:
    ours = github.state.add_comment(7, "somebody wrote over it")
    for number in range(120):
        github.state.add_comment(7, f"talk {number}", mine=False)
    forged = github.state.add_comment(7, f"{MARKER}\nforged")
    thread = read_thread(client, 7, MARKER, ours.id)
    assert [one.id for one in thread.own_comments] == [ours.id, forged.id]


@pytest.mark.parametrize("gone", [True, False])
def test_find__known_one_is_gone_or_somebody_else_s__is_the_newest_with_the_marker(github, pull, client, gone) -> None:
    other = github.state.add_comment(7, "hello", mine=False)
    newest = github.state.add_comment(7, f"{MARKER}\nwords")
    sticky = found(client, 999_999 if gone else other.id)
    assert sticky is not None
    assert sticky.id == newest.id


@pytest.mark.parametrize(("talk", "asked"), [(0, 1), (99, 1), (100, 2), (250, 3)])
def test_find__ours_is_the_oldest__as_many_pages_as_needed(github, pull, client, talk, asked) -> None:
    ours = github.state.add_comment(7, f"{MARKER}\nold")
    for number in range(talk):
        github.state.add_comment(7, f"talk {number}", mine=False)
    sticky = found(client)
    assert sticky is not None
    assert sticky.id == ours.id
    assert len(github.requests("POST", "/graphql")) == asked


def test_find__ours_is_the_newest_of_many__one_page(github, pull, client) -> None:
    for number in range(250):
        github.state.add_comment(7, f"talk {number}", mine=False)
    github.state.add_comment(7, f"{MARKER}\nnew")
    assert found(client) is not None
    assert len(github.requests("POST", "/graphql")) == 1


def test_find__not_there__all_pages_and_then_an_answer(github, pull, client) -> None:
    for number in range(201):
        github.state.add_comment(7, f"talk {number}", mine=False)
    conversation = read_thread(client, 7, MARKER)
    assert (conversation.sticky, conversation.head_sha, conversation.is_open) == (None, pull.head_sha, True)
    assert len(github.requests("POST", "/graphql")) == 3


def test_find__another_pull_request_has_one__is_not_ours(github, pull, client) -> None:
    github.state.add_pull(8, head_sha="eight", head_ref="eight")
    github.state.add_comment(8, f"{MARKER}\nwords")
    assert found(client) is None


@pytest.mark.parametrize("merged", [True, False])
def test_conversation__pull_request_is_over__is_not_open(github, pull, client, merged) -> None:
    pull.state, pull.merge_commit_sha = "closed", "c" * 40 if merged else None
    assert not read_thread(client, 7, MARKER).is_open


def test_conversation__no_such_pull_request__is_said(client) -> None:
    with pytest.raises(GitHubError) as caught:
        read_thread(client, 404, MARKER)
    assert caught.value.kind is FailureKind.NOT_FOUND


def test_write__nothing_there__makes_one_and_knows_its_address(github, pull, client) -> None:
    written = write_comment(client, 7, MARKER, f"{MARKER}\nnew", None)
    (comment,) = github.state.comments.values()
    assert (written.id, comment.body) == (comment.id, f"{MARKER}\nnew")
    assert written.url.endswith(f"#issuecomment-{comment.id}")


def test_write__one_is_there__is_updated_and_nothing_else_changes(github, pull, client) -> None:
    ours, other = github.state.add_comment(7, f"{MARKER}\nold"), github.state.add_comment(7, "mine too")
    write_comment(client, 7, MARKER, f"{MARKER}\nnew", found(client))
    assert (ours.body, other.body, len(github.state.comments)) == (f"{MARKER}\nnew", "mine too", 2)


def test_write__deleted_meanwhile_and_the_answer_lost__there_is_one(github, pull, client) -> None:
    github.state.add_comment(7, f"{MARKER}\nold")
    sticky = found(client)
    assert sticky is not None
    del github.state.comments[sticky.id]
    github.faults.add("POST", "/issues/7/comments$", Fault.reset_after_write())
    written = write_comment(client, 7, MARKER, f"{MARKER}\nnew", sticky)
    assert list(github.state.comments) == [written.id]


def test_write__nothing_was_done_when_the_connection_broke__is_made_after_a_look(github, pull, client) -> None:
    github.faults.add("POST", "/issues/7/comments$", Fault.reset(), Fault.status(502))
    write_comment(client, 7, MARKER, f"{MARKER}\nnew", None)
    assert len(github.state.comments) == 1
    assert len(github.requests("POST", "/graphql")) == 2


def test_write__an_older_one_of_another_key__is_not_taken_for_the_lost_one(github, pull, client) -> None:
    other = github.state.add_comment(7, f"{format_comment_marker('other')}\nold")
    github.faults.add("POST", "/issues/7/comments$", Fault.reset())
    written = write_comment(client, 7, MARKER, f"{MARKER}\nnew", None)
    assert written.id != other.id
    assert (other.body, len(github.state.comments)) == (f"{format_comment_marker('other')}\nold", 2)


def test_write__the_one_there_may_not_be_changed__is_an_error_and_no_second_comment(github, pull, client) -> None:
    github.state.add_comment(7, f"{MARKER}\nold")
    github.faults.add("PATCH", "/issues/comments/", Fault.permission())
    with pytest.raises(GitHubError) as caught:
        write_comment(client, 7, MARKER, f"{MARKER}\nnew", found(client))
    assert caught.value.kind is FailureKind.FORBIDDEN
    assert len(github.state.comments) == 1


def test_sticky__comment_whose_number_graphql_cannot_hold__is_known_by_its_address() -> None:
    """Comment ids have outgrown GraphQL's 32-bit `databaseId`, which is null then."""
    body = "<!-- eval-gate:v1 key=k -->"
    url = "https://github.com/acme/bot/pull/7#issuecomment-3141592653"
    rest = {"author": None, "createdAt": "2026-11-21T10:00:00Z", "isMinimized": False}
    rest |= {"lastEditedAt": None, "editor": None}
    node = PullRequestComment.model_validate(
        {"databaseId": None, "viewerDidAuthor": True, "body": body, "url": url, **rest}
    )
    assert node.number == 3141592653
