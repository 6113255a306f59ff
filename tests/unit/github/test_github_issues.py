"""The one issue about main: never two, never a stranger's, and closed with a word."""

from __future__ import annotations

import pytest

from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.github.issues import (
    MAX_PAGES,
    close_issue,
    find_issue,
    format_issue_marker,
    open_issue,
    update_issue,
)
from tests.support.github import Fault

KEY = "evals.yml.gate"


@pytest.fixture(autouse=True)
def allowed(github) -> None:
    github.permissions.add("issues:write")


def test_find__none__is_none(client) -> None:
    assert find_issue(client, KEY) is None


def test_find__what_was_written__comes_back(client) -> None:
    made = open_issue(client, KEY, "main got worse", "why", None)
    assert find_issue(client, KEY) == made
    assert find_issue(client, "another") is None


def test_find__a_strangers_issue_with_our_marker__is_not_ours(client, github) -> None:
    github.state.add_issue("mine", format_issue_marker(KEY), "mallory")
    assert find_issue(client, KEY) is None


def test_find__open_one_beside_a_newer_closed_one__is_the_open_one(client, github) -> None:
    one = github.state.add_issue("a", format_issue_marker(KEY), mine=True)
    other = github.state.add_issue("b", format_issue_marker(KEY), mine=True)
    other.state = "closed"
    found = find_issue(client, KEY)
    assert found is not None
    assert (found.number, found.is_open) == (one.number, True)


def test_find__among_more_than_a_page__is_found_and_the_search_is_bounded(client, github) -> None:
    ours = github.state.add_issue("a", format_issue_marker(KEY), mine=True)
    for number in range(150):
        github.state.add_issue(f"{number}", "x")
    found = find_issue(client, KEY)
    assert found is not None
    assert found.number == ours.number
    for number in range(100 * MAX_PAGES):
        github.state.add_issue(f"{number}", "x")
    github.log.clear()
    assert find_issue(client, KEY) is None
    assert len(github.requests("POST", "/graphql")) == MAX_PAGES


def test_open__answer_lost__there_is_one(client, github) -> None:
    github.faults.add("POST", "/issues$", Fault.reset_after_write())
    made = open_issue(client, KEY, "t", "b", None)
    assert list(github.state.issues) == [made.number]


def test_open__answer_lost_beside_a_closed_one__the_closed_one_is_not_taken_for_it(client, github) -> None:
    first = open_issue(client, KEY, "t", "b", None)
    close_issue(client, "over", first)
    github.faults.add("POST", "/issues$", Fault.reset())
    made = open_issue(client, KEY, "t", "b", find_issue(client, KEY))
    assert made.number != first.number
    assert len(github.state.issues) == 2


def test_update_and_close__say_what_is_true_and_why(client, github) -> None:
    made = open_issue(client, KEY, "t", "b", None)
    update_issue(client, KEY, "t", "better", made)
    close_issue(client, "as it was", made)
    issue = github.state.issues[made.number]
    assert "better" in issue.body
    assert (issue.state, issue.state_reason) == ("closed", "completed")
    assert [one.body for one in github.state.comments.values()] == ["as it was"]


def test_open__not_permitted__names_the_permission(client, github) -> None:
    github.permissions.discard("issues:write")
    with pytest.raises(GitHubError) as raised:
        open_issue(client, KEY, "t", "b", None)
    assert raised.value.kind is FailureKind.FORBIDDEN
    assert "issues: write" in str(raised.value)
