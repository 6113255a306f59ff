"""Accepting by comment: who may, for how long, and that nothing else on a pull request ever accepts anything."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from eval_gate.action.trust.trusted_waivers import mark_new_waivers, read_base_waivers
from eval_gate.gate.waivers.waiver_file import KnownWaivers, parse_waivers
from eval_gate.github import command_comments, waiver_comments
from eval_gate.github.client import GitHubClient
from eval_gate.github.waiver_comments import Discussion, read_comment_waivers
from eval_gate.model.waiver import CommentOrigin, FileOrigin, Waiver, WaiverKind
from eval_gate.struct import replace
from eval_gate.text.secret import Secret
from tests.support.github import Fault
from tests.support.github.loopback import Answer

TODAY = date(2026, 11, 21)
NOW = "2026-11-20T23:30:00Z"
LABEL = "eval-gate:waive"
LINE = "/eval-gate waive refund/partial -- known, #481"
PATH = ".eval-gate/waivers.yaml"


@pytest.fixture
def pull(github):
    """A pull request of the repository's own, with the label, in a repository where ada may write and eve may not."""
    made = github.state.add_pull(7, user="eve")
    made.labels.append(LABEL)
    github.state.roles |= {"ada": "write", "mo": "maintain", "root": "admin", "tri": "triage", "odd": "none"}
    return made


@pytest.fixture
def fork(github, pull):
    pull.head_repo, pull.head_owner = "eve/bot", "eve"
    return pull


def say(github, body=LINE, author="ada", created_at=NOW):
    return github.state.add_comment(7, body, mine=False, author=author, created_at=created_at)


def ask(client, pull, **changes) -> KnownWaivers:
    return read_comment_waivers(
        client, Discussion(**({"number": 7, "commit": pull.head_sha, "today": TODAY} | changes))
    )


def refused(found: KnownWaivers) -> list[str]:
    assert found.waivers == ()
    return [one.message for one in found.refusals]


# --- what counts ------------------------------------------------------------------------------------------------------


def test_waive__comment_by_somebody_who_may_write__is_a_waiver_with_all_about_it(github, client, pull) -> None:
    comment = say(github, f"{LINE}\n/eval-gate waive faq/* b until 2026-11-30 at {pull.head_sha} -- also\nThanks!")
    url = f"{github.base}/acme/bot/pull/7#issuecomment-{comment.id}"
    origin = CommentOrigin(author="ada", url=url, written_at=NOW)
    first = Waiver(
        kind=WaiverKind.WAIVER,
        case="refund/partial",
        reason="known, #481",
        until=date(2026, 12, 4),
        owner="ada",
        origin=origin,
    )
    found = ask(client, pull)
    assert found.waivers[0] == first
    assert [(one.case, one.reason, one.until) for one in found.waivers[1:]] == [
        ("faq/*", "also", date(2026, 11, 30)),
        ("b", "also", date(2026, 11, 30)),
    ]
    assert found.waivers[1].origin == replace(origin, commit=pull.head_sha)
    assert (found.refusals, found.troubles) == ((), ())


@pytest.mark.contract("accepting.comment-author")
@pytest.mark.parametrize(
    ("author", "role"),
    [
        ("ada", None),
        ("mo", None),
        ("root", None),
        ("tri", "read"),
        ("eve", "read"),
        ("odd", "none"),
        ("nobody", "none"),
    ],
)
def test_waive__author_with_this_role__counts_only_with_write_access(github, client, pull, author, role) -> None:
    github.state.strangers.add("nobody")
    say(github, author=author)
    found = ask(client, pull)
    assert len(found.waivers) == (role is None)
    said = [f"commands need write access to the repository, and {author} has `{role}`"] if role else []
    assert [one.message for one in found.refusals] == said


@pytest.mark.contract("accepting.comment-author")
@pytest.mark.parametrize("association", ["OWNER", "MEMBER", "COLLABORATOR"])
def test_waive__association_without_write_access__is_no_proof(github, client, pull, association) -> None:
    say(github, author="eve").association = association
    assert len(refused(ask(client, pull))) == 1


def test_waive__role_of_an_organization__counts_as_what_github_maps_it_to(github, client, pull, says) -> None:
    oracle = says(*answers(LINE, permission={"permission": "write", "role_name": "eval-owner", "user": ADA}))
    odd = GitHubClient(oracle.base, Secret("t"), "acme/bot")
    assert len(ask(odd, pull).waivers) == 1
    odd.close()


@pytest.mark.contract("accepting.comment-author")
def test_waive__bot_with_the_login_of_a_maintainer__is_still_a_bot(github, client, pull) -> None:
    """GraphQL calls `ada[bot]` just `ada`."""
    say(github, author="ada[bot]")
    assert refused(ask(client, pull)) == ["a bot cannot give commands"]
    assert github.requests("GET", "/collaborators/") == []


def test_waive__bot_that_only_talks_about_it__gets_no_sentence(github, client, pull) -> None:
    say(github, f"You may write:\n{LINE}", author="helper[bot]")
    assert ask(client, pull).refusals == ()


def test_waive__our_own_comment_that_shows_the_command__is_none_whoever_the_token_belongs_to(
    github, client, pull
) -> None:
    say(github, f"<!-- eval-gate:v1 key=k -->\nAccept them:\n{LINE}")
    say(github, f"<!-- eval-gate:v1 key=k -->\nAccept them:\n{LINE}", author="github-actions[bot]")
    assert (ask(client, pull).waivers, ask(client, pull).refusals) == ((), ())


@pytest.mark.contract("accepting.comment-author")
def test_waive__account_is_gone__counts_for_nothing(github, client, pull) -> None:
    say(github, author="ghost")
    assert refused(ask(client, pull)) == ["the account of its author was deleted"]


@pytest.mark.contract("accepting.comment-author")
def test_waive__written_by_an_app_in_somebodys_name__counts_for_nothing(github, client, pull) -> None:
    say(github).via_app = "assistant"
    assert refused(ask(client, pull)) == ["it was written by the app `assistant`, and only people can give commands"]


@pytest.mark.contract("accepting.comment-author")
@pytest.mark.parametrize(("editor", "counts"), [("ada", True), ("mo", False), ("eve", False), (None, False)])
def test_waive__edited_comment__counts_only_as_its_authors_own_words(github, client, pull, editor, counts) -> None:
    comment = say(github, "Looks good.")
    github.state.edit_comment(comment, LINE, editor)
    found = ask(client, pull)
    assert (len(found.waivers), len(found.refusals)) == ((1, 0) if counts else (0, 1))


def test_waive__edited_by_a_bot_of_the_same_name__counts_for_nothing(github, client, pull) -> None:
    github.state.edit_comment(say(github), LINE, "ada[bot]")
    assert len(refused(ask(client, pull))) == 1


def test_waive__edited_later__still_ends_by_the_day_it_was_written(github, client, pull) -> None:
    comment = say(github, created_at="2026-11-01T00:00:00Z")
    github.state.edit_comment(comment, LINE, "ada")
    (one,) = ask(client, pull).waivers
    assert one.until == date(2026, 11, 15)


def test_waive__hidden_comment__counts_for_nothing(github, client, pull) -> None:
    say(github).minimized = "OUTDATED"
    assert refused(ask(client, pull)) == ["the comment is hidden"]


def test_waive__comment_gone_between_two_questions__counts_for_nothing(github, client, pull) -> None:
    say(github)
    github.faults.add("GET", "/issues/comments/", Fault.status(404))
    assert refused(ask(client, pull)) == ["it was deleted"]


def test_waive__comment_on_another_pull_request__is_not_seen(github, client, pull) -> None:
    github.state.add_pull(8, head_sha="eight", head_ref="eight")
    github.state.add_comment(8, LINE, mine=False, author="ada", created_at=NOW)
    assert ask(client, pull).waivers == ()


@pytest.mark.contract("accepting.comment-form")
@pytest.mark.parametrize("body", [f"> {LINE}", f"```\n{LINE}\n```", f"<!-- {LINE} -->", f"    {LINE}", "Looks good."])
def test_waive__command_that_is_quoted__is_none(github, client, pull, body) -> None:
    say(github, body)
    found = ask(client, pull)
    assert (found.waivers, found.refusals) == ((), ())
    assert github.requests("GET", "/collaborators/") == []


@pytest.mark.contract("accepting.comment-form", "accepting.names")
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("/eval-gate waive * -- all of it", "is too general"),
        ("/eval-gate waive refund/partial", "the reason is missing"),
        ("/eval-gate waive a until 2026-02-30 -- x1", "is not a calendar date"),
        ("/eval-gate waive a until 2026-11-19 -- x1", "2026-11-19 is not within 90 days of the comment ("),
        ("/eval-gate waive a until 2027-02-19 -- x1", "2027-02-19 is not within 90 days of the comment"),
        ("/eval-gate waive a until 0001-01-01 -- x1", "0001-01-01 is not within 90 days"),
        ("/eval-gate waive a until 9999-12-31 -- x1", "9999-12-31 is not within 90 days"),
        (f"Please:\n{LINE}", "the first line"),
        (f"/eval-gate waive a at {'0' * 40} -- x1", f"it is for the commit {'0' * 40}, but this run evaluates"),
    ],
)
def test_waive__command_that_cannot_be_followed__gets_a_sentence_and_no_question(
    github, client, pull, body, said
) -> None:
    say(github, body)
    (sentence,) = refused(ask(client, pull))
    assert said in sentence
    assert github.requests("GET", "/collaborators/") == []


@pytest.mark.parametrize("body", ["/eval-gate refresh", "/eval-gate refresh main"])
def test_waive__command_that_waives_nothing__is_not_a_waivers_matter(github, client, pull, body) -> None:
    say(github, body)
    say(github, f"/eval-gate refresh\n{LINE}")
    found = ask(client, pull)
    assert (len(found.waivers), found.refusals) == (1, ())


# --- how long ---------------------------------------------------------------------------------------------------------


@pytest.mark.contract("accepting.expires")
@pytest.mark.parametrize(
    ("until", "expected"),
    [("", date(2026, 12, 4)), ("2026-11-20", date(2026, 11, 20)), ("2027-02-18", date(2027, 2, 18))],
)
def test_waive__until__is_what_it_says_or_14_days_from_the_comment(github, client, pull, until, expected) -> None:
    say(github, f"/eval-gate waive a {f'until {until} ' if until else ''}-- x1")
    (one,) = ask(client, pull).waivers
    assert one.until == expected


def test_waive__comment_from_long_ago__is_not_even_looked_for(github, client, pull) -> None:
    say(github, created_at="2026-08-22T00:00:00Z")
    for number in range(250):
        say(github, f"talk {number}")
    found = ask(client, pull)
    assert (found.waivers, found.refusals) == ((), ())
    say(github, created_at="2026-08-23T00:00:00Z")
    (one,) = ask(client, pull).waivers
    assert one.until == date(2026, 9, 6)  # expired, which is for the matching to say


# --- the label --------------------------------------------------------------------------------------------------------


@pytest.mark.contract("accepting.comment-label")
@pytest.mark.parametrize("labels", [[], ["bug"], ["eval-gate:accepted"], ["eval-gate"]])
def test_label__missing__nothing_counts_and_whoever_waits_is_told(github, client, pull, labels) -> None:
    pull.labels = labels
    say(github)
    assert ask(client, pull) == KnownWaivers(
        TODAY, troubles=(f"no case is waived by comment without the label `{LABEL}`",)
    )
    assert len(github.log) == 1


def test_label__missing_and_nobody_waits__is_one_request_and_no_word(github, client, pull) -> None:
    pull.labels = ["bug"]
    for number in range(150):
        say(github, f"talk {number}")
    assert ask(client, pull) == KnownWaivers(TODAY)
    assert len(github.log) == 1


@pytest.mark.contract("accepting.comment-label")
def test_label__without_a_comment__does_nothing_and_is_told(github, client, pull) -> None:
    say(github, "talk")
    found = ask(client, pull)
    assert (found.waivers, found.refusals) == ((), ())
    assert found.troubles[0].startswith(f"the label `{LABEL}` is set, but no comment waives a case: write `/eval-gate")


def test_label__in_other_letters_or_of_another_name__is_the_one_that_was_asked_for(github, client, pull) -> None:
    say(github)
    pull.labels = ["Eval-Gate:Waive"]
    assert len(ask(client, pull).waivers) == 1
    assert ask(client, pull, label="other").waivers == ()
    pull.labels = ["bug", "other"]
    assert len(ask(client, pull, label="other").waivers) == 1


# --- forks ------------------------------------------------------------------------------------------------------------


@pytest.mark.contract("accepting.fork-commit")
def test_fork__command_without_a_commit__is_told_what_to_add(github, client, fork) -> None:
    say(github)
    assert refused(ask(client, fork)) == [
        f"a command on a pull request from a fork must name the commit: add `at {fork.head_sha}`"
    ]


@pytest.mark.contract("accepting.fork-commit")
def test_fork__command_for_this_commit__counts_until_the_next_push(github, client, fork) -> None:
    say(github, f"/eval-gate waive a at {fork.head_sha} -- x1")
    (one,) = ask(client, fork).waivers
    assert isinstance(one.origin, CommentOrigin)
    assert one.origin.commit == fork.head_sha
    (sentence,) = refused(ask(client, fork, commit="f" * 40))
    assert sentence == f"it is for the commit {fork.head_sha}, but this run evaluates {'f' * 40}"


@pytest.mark.contract("accepting.comment-author", "accepting.fork-commit")
def test_fork__its_author_accepts_for_themselves__counts_for_nothing(github, client, fork) -> None:
    say(github, f"/eval-gate waive a at {fork.head_sha} -- x1", author="eve").association = "CONTRIBUTOR"
    assert refused(ask(client, fork)) == ["commands need write access to the repository, and eve has `read`"]


def test_fork__deleted__is_still_one(github, client, fork) -> None:
    fork.head_repo = None
    say(github)
    assert "from a fork" in refused(ask(client, fork))[0]


def test_own_branch__after_a_push__what_was_accepted_still_counts(github, client, pull) -> None:
    say(github)
    assert len(ask(client, pull, commit="f" * 40).waivers) == 1


# --- bounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_bounds__ten_thousand_comments__the_newest_are_looked_at_and_that_is_said(github, client, pull) -> None:
    say(github)
    for number in range(10_000):
        say(github, f"talk {number}", author="eve")
    found = ask(client, pull)
    assert found.waivers == ()
    assert len(github.requests("POST", "/graphql")) == command_comments.MAX_PAGES
    assert found.troubles[0] == "only the newest 2,000 comments were read"


def test_bounds__many_comments_after_a_good_one__it_is_found_within_the_pages(github, client, pull) -> None:
    say(github)
    for number in range(450):
        say(github, f"talk {number}", author="eve")
    assert len(ask(client, pull).waivers) == 1
    assert len(github.requests("POST", "/graphql")) == 5


def test_bounds__commands_by_a_crowd__cannot_keep_a_member_from_being_asked_about(github, client, pull) -> None:
    say(github).association = "MEMBER"
    for number in range(300):
        say(github, author=f"sock{number}")
    found = ask(client, pull)
    assert [one.owner for one in found.waivers] == ["ada"]
    assert len(github.requests("GET", "/collaborators/")) == command_comments.MAX_PEOPLE
    assert len(found.refusals) == waiver_comments.MAX_REFUSALS
    assert found.troubles == (
        f"only {waiver_comments.MAX_COMMENTS} of 301 comments with commands were read",
        "19 more commands were refused",
    )


def test_bounds__many_comments_by_one_person__are_one_question_about_them(github, client, pull) -> None:
    for author in ("ada", "Ada", "eve", "eve"):
        say(github, author=author)
    github.state.roles["Ada"] = "write"
    assert [one.owner for one in ask(client, pull).waivers] == ["Ada", "ada"]
    assert len(github.requests("GET", "/collaborators/")) == 2


def test_bounds__login_that_would_be_another_address__is_asked_about_as_one_name(github, client, pull, says) -> None:
    oracle = says(*answers(LINE, login="../../ada"))
    odd = GitHubClient(oracle.base, Secret("t"), "acme/bot")
    assert ask(odd, pull).waivers == ()
    assert oracle.requests[1].path == "/repos/acme/bot/collaborators/..%2F..%2Fada/permission"
    odd.close()


# --- failures of GitHub -----------------------------------------------------------------------------------------------


@pytest.mark.contract("accepting.failure")
@pytest.mark.parametrize(
    "faults",
    [[Fault.status(502)] * 5, [Fault.permission()], [Fault.reset()] * 5, [Fault.primary_limit(3_000)]],
    ids=lambda faults: faults[0].name,
)
def test_failure__comments_cannot_be_read__nothing_is_accepted_and_that_is_said(github, client, pull, faults) -> None:
    say(github)
    github.faults.add("POST", "/graphql", *faults)
    found = ask(client, pull)
    assert (found.waivers, found.refusals) == ((), ())
    assert found.troubles[0].startswith("no case is waived by comment, because comments could not be read: ")


@pytest.mark.contract("accepting.failure")
def test_failure__on_a_later_page__nothing_is_accepted(github, client, pull) -> None:
    for _ in range(150):
        say(github)
    github.faults.add("POST", "/graphql", Fault.pass_(), Fault.permission())
    assert ask(client, pull).waivers == ()


@pytest.mark.contract("accepting.failure")
@pytest.mark.parametrize("path", ["/collaborators/", "/issues/comments/"])
def test_failure__of_what_is_asked_about_somebody__counts_for_nothing_and_no_more_is_asked(
    github, client, pull, path
) -> None:
    say(github, author="mo")
    say(github, author="root")
    say(github).association = "MEMBER"
    github.faults.add("GET", path, Fault.pass_(), *[Fault.status(500)] * 5)
    found = ask(client, pull)
    assert [one.owner for one in found.waivers] == ["ada"]
    assert found.troubles[0].startswith("2 comments with commands are ignored: ")
    assert len(github.requests("GET", path)) == 6


def test_failure__that_passes__is_no_failure(github, client, pull) -> None:
    say(github)
    github.faults.add("POST", "/graphql", Fault.status(502))
    github.faults.add("GET", "/collaborators/", Fault.status(429, retry_after=1))
    assert len(ask(client, pull).waivers) == 1


def test_failure__no_such_pull_request__is_said(github, client, pull) -> None:
    (said,) = ask(client, pull, number=404).troubles
    assert "no case is waived by comment" in said


ADA = {"login": "ada", "type": "User"}


def answers(body: str, *, login: str = "ada", permission: object = None, user: object = ADA) -> list[Answer]:
    """What GitHub would say, with these things in it: comments, what the author may do, the comment again."""
    node = {
        "author": {"__typename": "User", "login": login},
        "authorAssociation": "NONE",
        "body": body,
        "url": "https://github.com/acme/bot/pull/7#issuecomment-5",
        "createdAt": NOW,
        "isMinimized": False,
        "lastEditedAt": None,
        "editor": None,
        "viewerDidAuthor": False,
    }
    comments = {"pageInfo": {"hasPreviousPage": False, "startCursor": None}, "nodes": [node]}
    pull = {
        "state": "OPEN",
        "headRefOid": "1" * 40,
        "headRepository": {"nameWithOwner": "acme/bot"},
        "labels": {"nodes": [{"name": LABEL}]},
        "comments": comments,
    }
    data = {"data": {"repository": {"nameWithOwner": "acme/bot", "pullRequest": pull}}}
    may = permission or {"permission": "write", "role_name": "write", "user": {"login": login, "type": "User"}}
    return [Answer(200, data), Answer(200, may), Answer(200, {"user": user, "performed_via_github_app": None})]


@pytest.mark.contract("accepting.failure", "accepting.comment-author")
@pytest.mark.parametrize(
    "odd",
    [
        {"permission": {"permission": "write", "role_name": "write", "user": None}},
        {"permission": {"permission": "write", "role_name": "write", "user": {"login": "mo", "type": "User"}}},
        {"permission": {"permission": "write", "role_name": "write", "user": {"login": "ada", "type": "Bot"}}},
        {"permission": {"permission": "WRITE", "role_name": "write", "user": ADA}},
        {"permission": {"permission": "read", "role_name": "admin", "user": ADA}},
        {"user": None},
        {"user": {"login": "eve", "type": "User"}},
        {"user": {"login": "ada", "type": "Bot"}},
    ],
)
def test_waive__answers_that_do_not_agree_about_the_author__count_for_nothing(pull, says, odd) -> None:
    oracle = says(*answers(LINE, **odd))
    client = GitHubClient(oracle.base, Secret("t"), "acme/bot")
    assert len(refused(ask(client, pull))) == 1
    client.close()


@pytest.mark.parametrize("data", [{"data": {"repository": None}}, {"data": {}}, {"data": None}, []])
def test_failure__answer_of_another_shape__accepts_nothing(pull, says, data, waits) -> None:
    oracle = says(Answer(200, data))
    client = GitHubClient(oracle.base, Secret("t"), "acme/bot", sleep=waits.append)
    found = ask(client, pull)
    assert (found.waivers, len(found.troubles)) == ((), 1)
    client.close()


# --- the file on the base branch --------------------------------------------------------------------------------------

ENTRY = "waivers:\n- {case: a, reason: known, until: 2026-12-05}\n"
HERE = parse_waivers(f"{ENTRY}- {{case: b, reason: new, until: 2026-12-05}}\n".encode(), TODAY, shown_as=PATH)


def news(found) -> dict[str, bool | None]:
    return {one.case: one.origin.is_new for one in found.waivers if isinstance(one.origin, FileOrigin)}


@pytest.mark.contract("accepting.fork-file")
@pytest.mark.parametrize(
    ("base", "expected"),
    [
        (ENTRY, {"a": False, "b": True}),
        (ENTRY.replace("12-05", "12-04"), {"a": True, "b": True}),
        ("", {"a": True, "b": True}),
        (None, {"a": True, "b": True}),
    ],
)
def test_base__file_there__tells_what_the_pull_request_brings(github, client, pull, base, expected) -> None:
    if base is not None:
        github.state.files[pull.base_sha, PATH] = base.encode()
    found = mark_new_waivers(client, KnownWaivers(TODAY, HERE), PATH, pull.base_ref)
    assert (news(found), found.troubles) == (expected, ())


def test_base__not_valid_there__everything_is_new_and_that_is_said(github, client, pull) -> None:
    for data in (b"waivers: 7", b"waivers: [", b"#" * 300_000):
        github.state.files[pull.base_sha, PATH] = data
        found = mark_new_waivers(client, KnownWaivers(TODAY, HERE), PATH, pull.base_ref)
        assert news(found) == {"a": True, "b": True}
        assert f"every entry of {PATH} counts as new" in found.troubles[0]


@pytest.mark.contract("accepting.failure")
@pytest.mark.parametrize("path", [PATH, "../../other/contents/x.yaml", "/etc/passwd", "", "."])
def test_base__not_to_be_had__nothing_is_known_of_any(github, client, pull, path) -> None:
    if path == PATH:
        github.faults.add("GET", "/contents/", Fault.permission())
    found = mark_new_waivers(client, KnownWaivers(TODAY, HERE), path, pull.base_ref)
    assert news(found) == {"a": None, "b": None}
    assert "cannot check which entries" in found.troubles[0]
    assert len(github.log) == (path == PATH)


def test_base__too_large_for_the_answer__nothing_is_known(github, client, pull) -> None:
    github.state.files[pull.base_sha, PATH] = b"#" * 1_000_001
    assert news(mark_new_waivers(client, KnownWaivers(TODAY, HERE), PATH, pull.base_ref)) == {"a": None, "b": None}


def test_base__nothing_to_compare__asks_nobody(github, client, pull) -> None:
    assert mark_new_waivers(client, KnownWaivers(TODAY), PATH, pull.base_ref).waivers == ()
    assert github.log == []


def test_base__path_and_branch_with_odd_characters__are_asked_for_as_they_are(github, client, pull) -> None:
    path = "evals/a b#c?.yaml"
    github.state.files[pull.base_sha, path] = ENTRY.encode()
    found = mark_new_waivers(client, KnownWaivers(TODAY, HERE), path, github.state.default_branch)
    assert news(found) == {"a": False, "b": True}


def test_read_base__file_there__is_all_that_counts(github, client, pull) -> None:
    assert read_base_waivers(client, PATH, pull.base_ref, TODAY).waivers == ()
    github.state.files[pull.base_sha, PATH] = ENTRY.encode()
    found = read_base_waivers(client, PATH, pull.base_ref, TODAY)
    assert (news(found), found.troubles) == ({"a": False}, ())


@pytest.mark.contract("accepting.failure")
def test_read_base__not_to_be_had_or_not_valid__nothing_counts_and_that_is_said(github, client, pull) -> None:
    github.state.files[pull.base_sha, PATH] = b"waivers: 7"
    for _ in range(2):
        found = read_base_waivers(client, PATH, pull.base_ref, TODAY)
        assert found.waivers == ()
        assert found.troubles[0].startswith(f"{PATH} is ignored: ")
        github.faults.plans.clear()
        github.faults.add("GET", "/contents/", Fault.permission())
    github.faults.plans.clear()


def test_waive__a_later_day__the_same_comment_gives_the_same_waiver(github, client, pull) -> None:
    say(github)
    found = ask(client, pull).waivers
    assert len(found) == 1
    assert ask(client, pull, today=TODAY + timedelta(days=60)).waivers == found
