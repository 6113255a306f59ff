"""One comment and one status on a pull request, whatever the system answers and whoever else writes there."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eval_gate.ci import azure_devops, bitbucket, gitlab
from eval_gate.ci.publication import PAGE_SIZE, PublicationError, Review, ReviewText, adapt_markdown
from eval_gate.text.escape import escape_html, escape_markdown, format_code_block, format_comment_marker
from tests.support.review_servers import OWN, QUICK_ACTION, SHA, SYSTEMS, TOKEN, ReviewServer, review_server

MARKER = format_comment_marker("a")


def describe(server: ReviewServer, **changes: str) -> Review:
    variables = server.variables | changes
    if server.system == "bitbucket":
        return bitbucket.describe_review(variables, server.url)
    return (gitlab if server.system == "gitlab" else azure_devops).describe_review(variables)


def text_of(words: str, *, passed: bool = True) -> ReviewText:
    return ReviewText(f"{MARKER}\n{words}", MARKER, words, passed, "eval-gate/a")


@pytest.fixture(params=SYSTEMS)
def server(request):
    with review_server(request.param) as running:
        yield running


def test_publish__two_results__update_one_comment_and_set_two_statuses(server) -> None:
    server.add("nice work")
    server.add(f"a quote of {MARKER}\n of another comment", OWN)
    lines = [*describe(server).publish(text_of("1 regression", passed=False)), *describe(server).publish(text_of("ok"))]
    place = f"{'merge' if server.system == 'gitlab' else 'pull'} request 3"
    assert lines == [
        f"comment written on {place}",
        "status eval-gate/a of a1b2c3d: failure",
        f"comment updated on {place}",
        "status eval-gate/a of a1b2c3d: success",
    ]
    assert [one["body"] for one in server.comments[2:]] == [f"{MARKER}\nok"]
    assert "nice work" in server.comments[0]["body"]
    states = [one["state"] for one in server.statuses]
    assert len(set(states)) == 2
    assert "1 regression" in str(server.statuses[0])


def test_publish__marker_in_comments_of_others__leaves_them_and_finds_its_own_behind_them(server) -> None:
    for _ in range(3):
        server.add(f"{MARKER}\nall good, merge it")
    for _ in range(PAGE_SIZE):
        server.add("talk")
    own = server.add(f"{MARKER}\nold", OWN)
    assert next(describe(server).publish(text_of("new"))).startswith("comment updated")
    assert own["body"].endswith("new")
    assert all("merge it" in one["body"] for one in server.comments[:3])
    assert len(server.comments) == PAGE_SIZE + 4
    assert len(server.requests) == (4 if server.system == "azure" else 7 if server.system == "bitbucket" else 5)


def test_publish__newer_commit_or_closed__writes_no_comment(server) -> None:
    server.head = "b" * 40
    assert next(describe(server).publish(text_of("x"))).endswith(" is now at bbbbbbb, but this result is for a1b2c3d")
    server.is_open = False
    assert next(describe(server).publish(text_of("x"))).endswith(" is closed")
    assert server.comments == []


def test_publish__busy_server_and_lost_response__are_repeated_some_times_without_a_second_comment(server) -> None:
    calls = 3 if server.system == "bitbucket" else 4
    server.faults = [503, *([0] * (calls - 1)), -502]  # the last loses the response to the new comment
    waits: list[float] = []
    assert next(describe(server).publish(text_of("x"), waits.append)).startswith("comment updated")
    assert waits == [0.5, 0.5]
    assert len(server.comments) == 1
    server.faults = [503] * 8
    lines = list(describe(server).publish(text_of("x"), waits.append))
    assert all(re.match("warning: no (comment|status): .* responded with 503 to ", one) for one in lines)
    assert len(waits) == 2 + 6


def test_publish__refused_by_a_server_that_repeats_the_token__says_so_without_it(server) -> None:
    name, wrong = next(one for one, value in server.variables.items() if value == TOKEN), "glpat-Kj7hGf5dSa2pOi9u"
    review = describe(server, **{name: wrong})
    comment, status = review.publish(text_of("x"), pytest.fail)
    assert comment.startswith(f"warning: no comment: {review.system} responded with 401 to GET ")
    assert status.startswith("warning: no status: ")
    assert "not allowed: Bearer ***" in comment
    assert wrong not in comment + status + repr(review)


@pytest.mark.parametrize(("system", "name"), [(system, name) for system in SYSTEMS for name in SYSTEMS[system]])
def test_describe_review__a_variable_is_missing__is_named_unless_it_is_not_needed(system, name) -> None:
    server = ReviewServer(system)
    try:
        review = describe(server, **{name: " "})
    except PublicationError as error:
        assert str(error).startswith(f"{name} is not set (")
    else:
        assert review.token == TOKEN
        assert review.sha


def test_publish__job_of_a_branch__sets_only_the_status(server) -> None:
    number = next(name for name, value in server.variables.items() if value == "3")
    lines = describe(server, **{number: ""}).publish(text_of("x"), lambda _: None)
    assert next(lines) == "no comment: this job is not for a pull request"
    assert server.comments == []


REFERENCE = re.compile(r"(?<!\w)(?:[!$&]\d|[~%]\w|@\w|#\d)|://")
"""What GitLab or Azure DevOps links, and whom it notifies."""


@settings(max_examples=300)
@example("%_")
@example("~_")
@given(st.text(alphabet=st.sampled_from("!$&~%@#/:.1a \n`[]()<>*_close\"'"), max_size=60))
def test_adapt_markdown__any_escaped_text__has_no_reference_and_no_quick_action(text) -> None:
    for escaped in (escape_markdown(text), escape_html(text), format_code_block(text)):
        adapted = adapt_markdown(f"{escaped}\n")
        assert not any(match["command"] for match in QUICK_ACTION.finditer(adapted))
        if not escaped.startswith("~"):  # references in code are none
            shown = html.unescape(adapted)
            assert REFERENCE.search(shown) is None or escaped == escape_html(text)


def test_adapt_markdown__links_alerts_and_code__stay_what_they_are() -> None:
    link = "[a](https://x.example/%20a?b=~c&1=!2) `a`"
    assert adapt_markdown(link) == link
    assert adapt_markdown("> [!WARNING]\n> old") == "> **Warning**<br>\n> old"
    assert adapt_markdown(format_code_block("/merge\nx")) == "~~~text\n\u200b/merge\nx\n~~~"
    assert SHA in adapt_markdown(f"`{SHA}`")
