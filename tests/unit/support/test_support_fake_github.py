"""The fake GitHub is believed by other tests: what it refuses, remembers and catches is held here."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import github as pygithub
import httpx
import pytest

from tests.support.github import FakeGitHub, Fault, fake_github, sha

# of the tests' own GitHub, which all tests of the action try in the fast tier
pytestmark = pytest.mark.slow

REPO = "/repos/acme/bot"
NAME = "eval-gate-results"

COMMENTS = """
query($owner:String!,$name:String!,$number:Int!,$before:String){
  repository(owner:$owner,name:$name){ pullRequest(number:$number){
    state headRefOid
    comments(last:100, before:$before){
      pageInfo{hasPreviousPage startCursor}
      nodes{ id databaseId viewerDidAuthor isMinimized body } } } } }
"""


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with fake_github() as running:
        yield running


@pytest.fixture
def api(github: FakeGitHub) -> Iterator[pygithub.Github]:
    with pygithub.Github(
        auth=pygithub.Auth.Token(github.token),
        base_url=github.base,
        retry=None,
        seconds_between_requests=0,
        seconds_between_writes=0,
    ) as client:
        yield client


@pytest.fixture
def http(github: FakeGitHub) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=github.base, headers={"Authorization": f"Bearer {github.token}"}) as client:
        yield client


def query(http: httpx.Client, text: str, **variables: Any) -> dict[str, Any]:
    answer = http.post("/graphql", json={"query": text, "variables": variables})
    assert answer.status_code == 200
    return answer.json()


def links(answer: httpx.Response) -> dict[str, str]:
    return {name: link["url"] for name, link in answer.links.items()}


# --- paging, comments


@pytest.mark.slow
def test_comments__more_than_a_page__are_listed_in_order_by_links_on_the_base_url(github, api, http):
    github.state.add_pull(7)
    pull = api.get_repo("acme/bot").get_pull(7)
    for number in range(65):
        pull.create_issue_comment(f"comment {number}")

    assert [each.body for each in pull.get_issue_comments()] == [f"comment {number}" for number in range(65)]
    first = http.get(f"{REPO}/issues/7/comments")
    assert len(first.json()) == 30
    assert links(first).keys() == {"next", "last"}
    assert all(url.startswith(github.base) for url in links(first).values())
    last = http.get(links(first)["last"])
    assert last.json()[-1]["body"] == "comment 64"
    assert links(last).keys() == {"first", "prev"}
    assert github.violations == []


def test_page_size__more_than_a_hundred__gives_a_hundred_and_a_violation(github, http):
    github.state.add_pull(7)
    for number in range(101):
        github.state.add_comment(7, str(number))

    assert len(http.get(f"{REPO}/issues/7/comments?per_page=200").json()) == 100
    assert "a page of 200" in github.violations[0]


def test_comment__changed_and_deleted__is_gone(github, api):
    github.state.add_pull(7)
    theirs = github.state.add_comment(7, "hello", mine=False)
    comment = api.get_repo("acme/bot").get_pull(7).create_issue_comment("first")
    comment.edit("second")
    assert github.state.comments[comment.id].body == "second"
    assert [each.author_is_viewer for each in github.state.comments.values()] == [False, True]
    comment.delete()

    assert list(github.state.comments) == [theirs.id]
    with pytest.raises(pygithub.UnknownObjectException):
        comment.update()
    assert github.violations == []


def test_comment__longer_than_the_documented_limit__is_refused_without_violation(github, http):
    github.state.add_pull(7)
    assert http.post(f"{REPO}/issues/7/comments", json={"body": "é" * 65_536}).status_code == 201
    refused = http.post(f"{REPO}/issues/7/comments", json={"body": "x" * 65_537})

    assert refused.status_code == 422
    assert refused.json()["errors"][0]["message"] == "Body is too long (maximum is 65536 characters)"
    assert len(github.state.comments) == 1
    assert github.violations == []


# --- GraphQL


def test_graphql_comments__more_than_a_page__come_newest_page_first_with_honest_cursors(github, http):
    github.state.add_pull(7, head_sha="head")
    for number in range(230):
        github.state.add_comment(7, str(number), mine=number == 3)
    seen: list[list[dict[str, Any]]] = []
    before = None
    while True:
        pull = query(http, COMMENTS, owner="acme", name="bot", number=7, before=before)["data"]["repository"][
            "pullRequest"
        ]
        seen.append(pull["comments"]["nodes"])
        before = pull["comments"]["pageInfo"]["startCursor"]
        if not pull["comments"]["pageInfo"]["hasPreviousPage"]:
            break

    assert (pull["state"], pull["headRefOid"]) == ("OPEN", sha("head"))
    assert [[int(node["body"]) for node in page] for page in seen] == [
        list(range(130, 230)),
        list(range(30, 130)),
        list(range(30)),
    ]
    assert [node["body"] for page in seen for node in page if node["viewerDidAuthor"]] == ["3"]
    assert seen[0][0].keys() == {"id", "databaseId", "viewerDidAuthor", "isMinimized", "body"}
    assert github.violations == []


def test_graphql__unknown_pull_request__answers_an_error_and_null(github, http):
    answer = query(http, COMMENTS, owner="acme", name="bot", number=99)

    assert answer["errors"][0]["type"] == "NOT_FOUND"
    assert answer["data"] == {"repository": {"pullRequest": None}}


@pytest.mark.parametrize(
    ("text", "variables", "complaint"),
    [
        (COMMENTS.replace("isMinimized", "isMinimised"), {"number": 7}, "Field 'isMinimised' doesn't exist"),
        (COMMENTS, {"number": "7"}, "Variable $number of type Int! was provided invalid value"),
        (COMMENTS.replace("last:100", "last:101"), {"number": 7}, "exceeds the `last` limit of 100"),
        (COMMENTS.replace("last:100", "latest:100"), {"number": 7}, "Field 'comments' was given wrong arguments"),
        (COMMENTS.rstrip()[:-1], {"number": 7}, "Parse error"),
        (COMMENTS, {"number": 7, "before": "nonsense"}, "does not appear to be a valid cursor"),
    ],
)
def test_graphql__mistake_in_a_query__is_told_and_a_violation(github, http, text, variables, complaint):
    github.state.add_pull(7)
    github.state.add_comment(7, "x")
    answer = query(http, text, owner="acme", name="bot", **variables)

    assert complaint in answer["errors"][0]["message"]
    assert complaint in github.violations[0]


TIMELINE = """
query($owner:String!,$name:String!){ repository(owner:$owner,name:$name){ pullRequest(number:7){
  timelineItems(last:1, itemTypes:[BASE_REF_CHANGED_EVENT, REOPENED_EVENT]){
    totalCount nodes{ __typename ... on BaseRefChangedEvent { createdAt } } } } } }
"""


def test_graphql_timeline__items_of_several_kinds__have_the_fields_of_their_kind_alone(github, http):
    pull = github.state.add_pull(7)
    for kind in ("ReopenedEvent", "BaseRefChangedEvent", "ClosedEvent"):
        github.state.note_event(pull, kind)
    found = query(http, TIMELINE, owner="acme", name="bot")["data"]["repository"]["pullRequest"]["timelineItems"]
    newest = {"__typename": "BaseRefChangedEvent", "createdAt": pull.timeline[1][1]}
    assert found == {"totalCount": 2, "nodes": [newest]}
    assert github.violations == []
    of_none = TIMELINE.replace("... on BaseRefChangedEvent { createdAt }", "createdAt")
    assert "doesn't exist" in query(http, of_none, owner="acme", name="bot")["errors"][0]["message"]
    github.violations.clear()


def test_minimize__own_comment__is_hidden_and_needs_the_right_to_write(github, api, http):
    github.state.add_pull(7)
    comment = api.get_repo("acme/bot").get_pull(7).create_issue_comment("old")
    text = (
        "mutation($id:ID!){minimizeComment(input:{subjectId:$id,classifier:OUTDATED}){minimizedComment{isMinimized}}}"
    )
    github.read_only = True
    assert query(http, text, id=comment.node_id)["errors"][0]["type"] == "FORBIDDEN"
    assert github.state.comments[comment.id].minimized is None
    github.read_only = False

    assert comment.minimize("OUTDATED") is True
    assert query(http, text, id=comment.node_id)["data"] == {
        "minimizeComment": {"minimizedComment": {"isMinimized": True}}
    }
    assert github.state.comments[comment.id].minimized == "OUTDATED"
    assert github.violations == []


# --- commits and pull requests


@pytest.fixture
def history(github: FakeGitHub) -> FakeGitHub:
    """main: root - one - two - four; a branch from one: three - five; the clock was wrong for one."""
    state = github.state
    state.add_commit("one", branch="main", date="2025-02-01T00:00:00Z")
    state.add_commit("two", branch="main", date="2026-02-02T00:00:00Z", files=["prompts/a.md"])
    state.add_commit("three", "one", branch="feature/x", date="2026-02-03T00:00:00Z", files=["runner/a.py"])
    state.add_commit("five", branch="feature/x", date="2026-02-04T00:00:00Z")
    state.add_commit("four", branch="main", date="2026-02-05T00:00:00Z")
    return github


@pytest.mark.parametrize(
    ("base", "head", "status", "ahead", "behind", "merge_base"),
    [
        ("main", "feature/x", "diverged", 2, 2, "one"),
        (sha("one"), "main", "ahead", 2, 0, "one"),
        ("main", sha("one"), "behind", 0, 2, "one"),
        ("main", sha("four")[:10], "identical", 0, 0, "four"),
    ],
)
def test_compare__two_commits__counts_along_the_graph(history, api, base, head, status, ahead, behind, merge_base):
    found = api.get_repo("acme/bot").compare(base, head)

    assert (found.status, found.ahead_by, found.behind_by) == (status, ahead, behind)
    assert found.merge_base_commit.sha == sha(merge_base)
    assert history.violations == []


def test_compare__renamed_and_too_many_files__says_where_from_and_lists_300(history, http):
    history.state.add_commit("six", branch="main", files=["b.md <- a.py", *(f"c/{at:03}" for at in range(400))])
    files = http.get(f"{REPO}/compare/{sha('four')}...{sha('six')}").json()["files"]
    assert len(files) == 300
    assert [files[0][name] for name in ("status", "filename", "previous_filename")] == ["renamed", "b.md", "a.py"]
    assert history.violations == []


def test_compare__commit_gone_or_unrelated__is_not_found(history, http):
    history.state.add_commit("island", ())
    answers = [http.get(f"{REPO}/compare/main...{head}") for head in (sha("gone"), sha("island"), "no-branch")]

    assert [answer.status_code for answer in answers] == [404, 404, 404]
    assert history.violations == []


def test_commits__from_a_sha__are_its_ancestors_newest_first(history, api):
    history.state.add_commit("merge", [sha("four"), sha("five")], branch="main", date="2026-02-06T00:00:00Z")
    repository = api.get_repo("acme/bot")

    assert [each.sha for each in repository.get_commits(sha=sha("five"))][:3] == [sha("five"), sha("three"), sha("one")]
    everything = ["merge", "four", "five", "three", "two", "one", "root"]
    assert [each.sha for each in repository.get_commits()] == [sha(word) for word in everything]
    assert [each.sha for each in repository.get_commits(path="runner")] == [sha("three")]
    assert history.violations == []


def test_branch__name_with_everything_that_git_allows__is_read(github, http):
    name = "a'b\"c`d$(id)#1&x=y%2F"
    commit = github.state.add_commit("one", branch=name).sha
    found = http.get(f"{REPO}/git/ref/{quote(f'heads/{name}')}").json()
    assert (found["ref"], found["object"]["sha"]) == (f"refs/heads/{name}", commit)
    assert http.get(f"{REPO}/branches/{quote(name, safe='')}").json()["name"] == name


def test_pull_requests__from_forks__are_found_by_owner_and_branch_only(github, api):
    state = github.state
    state.add_pull(1, head_sha="ours", head_ref="fix")
    state.add_pull(2, head_sha="theirs", head_ref="fix", head_repo="eve/bot")
    state.add_pull(3, head_sha="gone", head_ref="fix", head_repo=None, head_owner="mallory", state="closed")
    repository = api.get_repo("acme/bot")

    assert [each.number for each in repository.get_pulls(state="open", head="eve:fix")] == [2]
    assert [each.number for each in repository.get_pulls(state="all", head="fix")] == [3, 2, 1], "GitHub ignores it"
    assert [each.number for each in repository.get_commit(sha("ours")).get_pulls()] == [1]
    assert [each.number for each in repository.get_commit(sha("theirs")).get_pulls()] == []
    assert repository.get_pull(2).head.repo.full_name == "eve/bot"
    assert repository.get_pull(3).head.repo is None
    assert github.violations == []


def test_test_merge__main_moves_on__is_another_commit_at_the_next_event(github, api):
    state = github.state
    left = state.branches["main"]
    pull = state.add_pull(7, head_sha="head")
    first = pull.merge_sha
    moved = state.add_commit("newer", branch="main").sha
    repository = api.get_repo("acme/bot")

    assert repository.get_commit("refs/pull/7/merge").sha == first, "what a run is given stays"
    assert repository.get_pull(7).merge_commit_sha == first
    assert state.merge_again(pull) == pull.merge_sha != first
    assert state.merge_again(pull) == pull.merge_sha, "nothing is new"
    parents = {one: [each.sha for each in repository.get_commit(one).parents] for one in (first, "refs/pull/7/merge")}
    assert parents == {first: [left, pull.head_sha], "refs/pull/7/merge": [moved, pull.head_sha]}
    assert repository.get_commit("refs/pull/7/head").sha == pull.head_sha
    assert github.violations == []


# --- checks and statuses

TWO_LINES = {"start_line": 1, "end_line": 2, "end_column": 1}
ANNOTATION = {"path": "evals/a.yaml", "start_line": 1, "end_line": 1, "annotation_level": "failure", "message": "m"}


def test_check_run__annotations_in_two_requests__are_appended(github, api):
    github.state.add_pull(7, head_sha="head")
    repository = api.get_repo("acme/bot")
    check = repository.create_check_run("gate", sha("head"), status="in_progress")
    output: Any = {"title": "t", "summary": "s", "annotations": [ANNOTATION] * 50}
    check.edit(status="completed", conclusion="failure", output=output)
    check.edit(output=output | {"annotations": [ANNOTATION] * 5})

    assert len(list(check.get_annotations())) == 55
    (found,) = repository.get_commit(sha("head")).get_check_runs(check_name="gate")
    assert (found.status, found.conclusion, found.output.annotations_count) == ("completed", "failure", 55)
    assert github.violations == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"output": {"title": "t", "summary": "s", "annotations": [ANNOTATION] * 51}}, "is too long"),
        ({"output": {"title": "t"}}, "'summary' is a required property"),
        ({"output": {"summary": "s"}}, "title"),
        ({"output": {"title": "t", "summary": "x" * 65_536}}, "is too long"),
        ({"status": "completed", "conclusion": "failed"}, "'failed' is not one of"),
        ({"output": {"title": "t", "summary": "s", "annotations": [ANNOTATION | TWO_LINES]}}, "columns"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_check_run__what_github_refuses__is_refused_and_a_violation(github, api, http, method, change, complaint):
    github.state.add_pull(7, head_sha="head")
    check = api.get_repo("acme/bot").create_check_run("gate", sha("head"))
    made = {"name": "gate", "head_sha": sha("head")} if method == "POST" else {}
    path = f"{REPO}/check-runs" if method == "POST" else f"{REPO}/check-runs/{check.id}"
    answer = http.request(method, path, json=made | change)

    assert answer.status_code == 422
    assert any(complaint in each for each in github.violations)
    assert github.state.check_runs.keys() == {check.id}
    assert "conclusion" not in github.state.check_runs[check.id].fields


def test_status__on_a_commit__is_listed_newest_first(github, api):
    github.state.add_pull(7, head_sha="head")
    commit = api.get_repo("acme/bot").get_commit(sha("head"))
    commit.create_status("pending", context="gate")
    commit.create_status("success", "https://example.com/run", "all well", "gate")

    assert [each.state for each in commit.get_statuses()] == ["success", "pending"]
    assert github.violations == []
    with pytest.raises(pygithub.GithubException, match="too long"):
        commit.create_status("success", description="x" * 141)
    assert len(github.violations) == 1


# --- runs and artifacts


def test_artifacts__by_name__are_newest_first_with_the_facts_of_their_run(github, api):
    state = github.state
    ours = state.add_run(event="push")
    fork = state.add_run(event="pull_request", head_branch="main", head_repo="eve/bot", head_sha="theirs")
    gone = state.add_run(event="pull_request", head_branch="main", head_repo=None, head_sha="gone")
    old = state.add_artifact(ours, {"a.json": b"1"}, expired=True)
    new = state.add_artifact(ours, {"a.json": b"2"})
    theirs = state.add_artifact(fork, {"a.json": b"3"}, digest=None)
    state.add_artifact(gone, {"a.json": b"3"}, "other")
    repository = api.get_repo("acme/bot")
    listed = list(repository.get_artifacts(name=NAME))

    assert [each.id for each in listed] == [theirs.id, new.id, old.id]
    assert [each.expired for each in listed] == [False, False, True]
    facts = [each.workflow_run for each in listed]
    assert [each.head_repository_id == each.repository_id for each in facts] == [False, True, True]
    assert {each.head_branch for each in facts} == {"main"}
    assert listed[1].raw_data["digest"] == "sha256:" + hashlib.sha256(new.zip_bytes).hexdigest()
    assert [each.name for each in repository.get_workflow_run(gone.id).get_artifacts()] == ["other"]
    assert github.violations == []


def test_runs__of_a_workflow__are_filtered_as_asked(github, api, http):
    state = github.state
    state.add_pull(7, head_sha="head")
    green = state.add_run(created_at="2026-03-01T10:00:00Z")
    red = state.add_run(conclusion="failure", created_at="2026-03-02T10:00:00Z")
    going = state.add_run(status="in_progress", created_at="2026-03-03T10:00:00Z")
    ours = state.add_run(event="pull_request", head_branch="feature", head_sha="head")
    fork = state.add_run(event="pull_request", head_branch="feature", head_sha="head", head_repo="eve/bot")
    state.add_run(path=".github/workflows/other.yml")
    workflow = api.get_repo("acme/bot").get_workflow("gate.yml")

    assert [each.id for each in workflow.get_runs(branch="main", event="push")] == [going.id, red.id, green.id]
    assert [each.id for each in workflow.get_runs(status="success", branch="main")] == [green.id]
    assert [each.id for each in workflow.get_runs(status="completed", branch="main")] == [red.id, green.id]
    assert [each.id for each in workflow.get_runs(created=">=2026-03-02")] == [going.id, red.id]
    assert [each.id for each in workflow.get_runs(created="2026-03-01..2026-03-02")] == [red.id, green.id]
    pulls = {run.id: http.get(f"{REPO}/actions/runs/{run.id}").json()["pull_requests"] for run in (ours, fork)}
    assert [each["number"] for each in pulls[ours.id]] == [7]
    assert pulls[fork.id] == [], "as GitHub does for forks"
    assert github.violations == []


def test_download__by_the_redirect__needs_no_token_works_once_and_not_for_long(github, http):
    artifact = github.state.add_artifact(github.state.add_run(), {"a.json": b"{}"})
    path = f"{REPO}/actions/artifacts/{artifact.id}/zip"
    whole = http.get(path, follow_redirects=True)
    assert zipfile.ZipFile(io.BytesIO(whole.content)).read("a.json") == b"{}"
    assert whole.headers["Content-Type"] == "application/zip"
    assert whole.url.host == "localhost"
    assert whole.url.port != httpx.URL(github.base).port

    assert httpx.get(str(whole.url)).status_code == 403, "once is enough"
    github.storage.lifetime = 0
    assert http.get(path, follow_redirects=True).status_code == 403, "too late"
    assert github.violations == []
    github.storage.lifetime = 60
    address = http.get(path).headers["Location"]
    assert http.get(address).status_code == 400, "with the token"
    assert github.violations == [f"GET {address.removeprefix(github.storage.base)}: a token was sent to the blob host"]


def test_download__expired_or_no_zip__is_gone_or_another_type(github, http):
    run = github.state.add_run()
    expired = github.state.add_artifact(run, {"a.json": b"{}"}, expired=True)
    bare = github.state.add_artifact(run, b"{}", content_type="application/json", digest="sha256:wrong")

    gone = http.get(f"{REPO}/actions/artifacts/{expired.id}/zip")
    assert (gone.status_code, gone.json()["message"]) == (410, "Artifact has expired")
    found = http.get(f"{REPO}/actions/artifacts/{bare.id}/zip", follow_redirects=True)
    assert (found.content, found.headers["Content-Type"]) == (b"{}", "application/json")
    assert http.get(f"{REPO}/actions/artifacts/{bare.id}").json()["digest"] == "sha256:wrong"
    assert github.violations == []


def test_comments__written_at_once__are_all_kept(github, http):
    github.state.add_pull(7)

    def write(number: int) -> int:
        return http.post(f"{REPO}/issues/7/comments", json={"body": str(number)}).status_code

    with ThreadPoolExecutor(12) as pool:
        assert set(pool.map(write, range(60))) == {201}
    assert {each.body for each in github.state.comments.values()} == {str(number) for number in range(60)}
    assert len(github.requests("POST")) == 60
    assert github.violations == []


# --- who may do what


@pytest.mark.parametrize(
    ("missing", "method", "path", "body"),
    [
        ("contents:read", "GET", f"{REPO}/compare/main...main", None),
        ("actions:read", "GET", f"{REPO}/actions/artifacts", None),
        ("pull-requests:write", "POST", f"{REPO}/issues/7/comments", {"body": "x"}),
        ("checks:write", "POST", f"{REPO}/check-runs", {"name": "x", "head_sha": sha("head")}),
        ("statuses:write", "POST", f"{REPO}/statuses/{sha('head')}", {"state": "success"}),
    ],
)
def test_permission__missing_or_read_only__is_refused_in_github_s_words(github, http, missing, method, path, body):
    github.state.add_pull(7, head_sha="head")
    assert http.request(method, path, json=body).status_code in {200, 201}
    github.permissions.discard(missing)
    refused = http.request(method, path, json=body)
    assert (refused.status_code, refused.json()["message"]) == (403, "Resource not accessible by integration")
    github.permissions.add(missing)
    github.read_only = True

    assert http.request(method, path, json=body).status_code == (200 if method == "GET" else 403)
    assert github.violations == []


def test_token__wrong__is_bad_credentials(github, api, http):
    http.headers["Authorization"] = "Bearer another"
    assert http.get(REPO).json()["message"] == "Bad credentials"
    github.token = "new"
    with pytest.raises(pygithub.BadCredentialsException):
        api.get_repo("acme/bot")


def test_rate_limit__on_every_answer__counts_down_to_a_refusal(github, http):
    github.rate_limit = 3
    answers = [http.get(REPO), http.get("/repos/acme/other"), http.get(REPO), http.get(REPO)]

    assert [answer.status_code for answer in answers] == [200, 404, 200, 403]
    assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["2", "1", "0", "0"]
    assert http.get("/rate_limit").json()["rate"]["remaining"] == 0


# --- judging


def test_mistakes__planted_one_by_one__are_each_a_violation(github, http):
    github.state.add_pull(7)
    comments = f"{REPO}/issues/7/comments"
    for complaint, send in {
        "body.boddy is not in the description": lambda: http.post(comments, json={"body": "x", "boddy": "y"}),
        "'body' is a required property": lambda: http.post(comments, json={"text": "x"}),
        "query.brnch is not in the description": lambda: http.get(f"{REPO}/actions/runs?brnch=main"),
        "'new' is not one of": lambda: http.get(f"{REPO}/pulls?state=new"),
        "path.issue_number: 'seven' is not of type 'integer'": lambda: http.get(f"{REPO}/issues/seven/comments"),
        "no such operation: GET /user": lambda: http.get("/user"),
        "no User-Agent header": lambda: http.get(REPO, headers={"User-Agent": ""}),
        "no Authorization header": lambda: httpx.get(github.base + REPO),
        "the body is not JSON": lambda: http.post(comments, content=b"{", headers={"Content-Type": "application/json"}),
        "no such version of the API": lambda: http.get(REPO, headers={"X-GitHub-Api-Version": "2020-01-01"}),
        "a body, where the operation takes none": lambda: http.request("GET", REPO, json={}),
    }.items():
        before = len(github.violations)
        send()
        assert any(complaint in each for each in github.violations[before:]), complaint


def test_answers__of_every_kind__hold_addresses_on_the_base_url_only(github, http):
    state = github.state
    state.add_pull(7, head_sha="head")
    comment = state.add_comment(7, "x")
    artifact = state.add_artifact(run := state.add_run(), {})
    check = http.post(f"{REPO}/check-runs", json={"name": "x", "head_sha": sha("head")}).json()
    http.post(f"{REPO}/statuses/{sha('head')}", json={"state": "success"})
    paths = [
        "", "/pulls", "/pulls/7", "/commits", f"/commits/{sha('head')}", f"/commits/{sha('head')}/pulls",
        "/compare/main...feature", "/issues/7/comments", f"/issues/comments/{comment.id}", f"/check-runs/{check['id']}",
        f"/commits/{sha('head')}/check-runs", f"/commits/{sha('head')}/statuses", "/actions/artifacts",
        f"/actions/artifacts/{artifact.id}", "/actions/runs", f"/actions/runs/{run.id}",
        f"/actions/runs/{run.id}/artifacts", "/actions/workflows/gate.yml", "/actions/workflows/gate.yml/runs",
    ]  # fmt: skip
    for path in paths:
        answer = http.get(REPO + path)
        assert answer.status_code == 200, path
        addresses = re.findall(r'"([a-z]+://[^"]*)"', answer.text)
        assert [each for each in addresses if not each.startswith(github.base + "/")] == [], path
    assert github.violations == []


def test_answer__that_does_not_fit_the_description__is_a_violation(github, http):
    github.state.add_pull(7).state = "merged"
    for _ in range(2):
        http.get(f"{REPO}/pulls/7")

    assert len(github.violations) == 2
    assert "answer['state']: 'merged' is not one of ['open', 'closed']" in github.violations[1]


def test_defect_of_the_fake__while_answering__is_a_violation_and_no_silence(github, http):
    github.state.default_branch = "gone"

    assert http.get(f"{REPO}/commits/HEAD").status_code == 500
    assert "the fake failed: " in github.violations[0]
    assert "KeyError: 'gone'" in github.violations[0]


# --- faults


def test_faults__of_a_plan__come_one_per_request_and_then_the_usual(github, http):
    github.state.add_pull(7)
    path = f"{REPO}/issues/7/comments"
    github.faults.add(
        "POST",
        "/issues/7/",
        Fault.status(502),
        Fault.status(429, retry_after=1),
        Fault.status(429),
        Fault.pass_(),
        Fault.permission(),
        Fault.primary_limit(reset_in=5),
        Fault.secondary_limit(retry_after=2),
        Fault.secondary_limit(),
        Fault.status(502, html=True),
    )
    http.get(path)
    answers = [http.post(path, json={"body": "x"}) for _ in range(10)]

    assert [answer.status_code for answer in answers] == [502, 429, 429, 201, 403, 403, 403, 403, 502, 201]
    assert [answer.headers.get("Retry-After") for answer in answers[1:3]] == ["1", None]
    assert answers[4].json()["message"] == "Resource not accessible by integration"
    assert answers[5].headers["x-ratelimit-remaining"] == "0"
    assert 4 <= int(answers[5].headers["x-ratelimit-reset"]) - time.time() <= 6
    assert answers[6].headers["Retry-After"] == "2"
    assert "secondary rate limit" in answers[7].json()["message"]
    assert answers[8].headers["Content-Type"] == "text/html"
    assert len(github.state.comments) == 2
    assert github.faults.unused == []
    assert github.violations == []
    assert [each.fault for each in github.requests("POST", "comments$")][:2] == ["status 502", "status 429"]


def test_faults__of_graphql__are_told_as_github_does(github, http):
    github.state.add_pull(7)
    github.faults.add("*", "^/graphql", Fault.permission(), Fault.primary_limit(), Fault.status(502))
    kinds = [query(http, COMMENTS, owner="acme", name="bot", number=7)["errors"][0]["type"] for _ in range(2)]

    assert kinds == ["FORBIDDEN", "RATE_LIMITED"]
    assert http.post("/graphql", json={"query": COMMENTS}).status_code == 502


def test_resets__before_and_after_a_write__differ_in_the_state_alone(github, http):
    github.state.add_pull(7)
    path = f"{REPO}/issues/7/comments"
    github.faults.add("POST", "comments", Fault.reset(), Fault.reset_after_write())
    for body in ("lost", "made"):
        with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            http.post(path, json={"body": body})

    assert [each["body"] for each in http.get(path).json()] == ["made"]
    assert [each.status for each in github.log] == [0, 0, 200]
    assert github.violations == []


def test_slow_and_cut_answers__meet_a_client__as_a_timeout_and_a_short_body(github, http):
    artifact = github.state.add_artifact(github.state.add_run(), b"0123456789", content_type="text/plain")
    github.faults.add("GET", f"^{REPO}$", Fault.slow(30))
    github.faults.add("GET", "^/artifacts/", Fault.cut(4))
    with pytest.raises(httpx.ReadTimeout):
        http.get(REPO, timeout=0.05)
    with pytest.raises(httpx.RemoteProtocolError, match="received 4 bytes, expected 10"):
        http.get(f"{REPO}/actions/artifacts/{artifact.id}/zip", follow_redirects=True)


# --- the artifact service


class Upload:
    """An upload as `@actions/artifact` makes it, step by step."""

    def __init__(self, github: FakeGitHub, name: str = "mine") -> None:
        self.github, self.name = github, name
        claims = json.loads(base64.urlsafe_b64decode(github.runtime_token.split(".")[1] + "=="))
        scope = next(each for each in claims["scp"].split() if each.startswith("Actions.Results:"))
        _, run, job = scope.split(":")
        self.ids = {"workflow_run_backend_id": run, "workflow_job_run_backend_id": job}

    def call(self, method: str, **more: Any) -> httpx.Response:
        url = f"{self.github.results_url}twirp/github.actions.results.api.v1.ArtifactService/{method}"
        headers = {"Authorization": f"Bearer {self.github.runtime_token}"}
        return httpx.post(url, json=self.ids | {"name": self.name} | more, headers=headers)

    def create(self) -> str:
        answer = self.call("CreateArtifact", version=7, mime_type="application/zip", expires_at="2027-01-01T00:00:00Z")
        return answer.json()["signed_upload_url"]

    def put(self, address: str, *blocks: bytes) -> list[int]:
        names = [base64.b64encode(f"{number:08}".encode()).decode() for number in range(len(blocks))]
        done = [
            httpx.put(f"{address}&comp=block&blockid={name}", content=block)
            for name, block in zip(names, blocks, strict=True)
        ]
        listed = "".join(f"<Latest>{name}</Latest>" for name in names)
        body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{listed}</BlockList>'
        headers = {"x-ms-blob-content-type": "application/zip"}
        done.append(httpx.put(f"{address}&comp=blocklist", content=body, headers=headers))
        return [each.status_code for each in done]

    def finalize(self, data: bytes) -> httpx.Response:
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        return self.call("FinalizeArtifact", size=str(len(data)), hash=digest)


def test_upload__in_blocks__is_read_back_by_rest(github, api, http):
    upload = Upload(github)
    assert upload.put(upload.create(), b"first ", b"second") == [201, 201, 201]
    done = upload.finalize(b"first second").json()

    (artifact,) = api.get_repo("acme/bot").get_artifacts(name="mine")
    assert str(artifact.id) == done["artifact_id"]
    assert artifact.workflow_run.id == github.current_run_id
    found = http.get(artifact.archive_download_url.removeprefix(github.base), follow_redirects=True)
    assert (found.content, found.headers["Content-Type"]) == (b"first second", "application/zip")
    del upload.ids["workflow_job_run_backend_id"]
    assert github.violations == []


@pytest.mark.slow
def test_upload__same_name_twice__is_a_conflict_until_it_is_deleted(github):
    upload = Upload(github)
    upload.put(upload.create(), b"one")
    upload.finalize(b"one")
    again = upload.call("CreateArtifact", version=4)
    assert (again.status_code, again.json()["code"]) == (409, "already_exists")

    assert upload.call("DeleteArtifact").json()["ok"] is True
    assert github.state.artifacts == {}
    assert upload.put(upload.create(), b"two") == [201, 201]
    assert upload.finalize(b"two").json()["ok"] is True
    assert github.violations == []


def test_upload__in_one_piece__needs_the_blob_type(github):
    upload = Upload(github)
    address = upload.create()
    assert httpx.put(address, content=b"x").status_code == 400
    assert httpx.put(address, content=b"x", headers={"x-ms-blob-type": "BlockBlob"}).status_code == 201
    assert upload.finalize(b"x").status_code == 200
    assert len(github.violations) == 1


@pytest.mark.parametrize(
    ("call", "more", "status"),
    [
        ("CreateArtifact", {"version": 3}, 400),
        ("CreateArtifact", {"version": 7, "name": "a/b"}, 400),
        ("CreateArtifact", {"version": "7"}, 400),
        ("CreateArtifact", {"version": 7, "mimetype": "application/zip"}, 400),
        ("CreateArtifact", {"version": 7, "workflow_run_backend_id": "another"}, 403),
        ("FinalizeArtifact", {"size": "1"}, 400),
        ("FinalizeArtifact", {"size": 5}, 400),
        ("FinalizeArtifact", {"size": "5", "hash": "sha256:0"}, 400),
        ("FinalizeArtifact", {"size": "5", "name": "other"}, 404),
        ("ArchiveArtifact", {}, 404),
    ],
)
def test_upload__what_the_service_refuses__is_refused(github, call, more, status):
    upload = Upload(github)
    upload.put(upload.create(), b"12345")
    answer = upload.call(call, **({"name": "fresh"} if call == "CreateArtifact" else {}) | more)

    assert answer.status_code == status
    assert answer.json().keys() == {"code", "msg"}
    assert github.state.artifacts == {}


def test_blob_host__mistakes_of_an_uploader__are_refused(github):
    upload = Upload(github)
    address = upload.create()
    assert upload.put(address.replace("sig=", "sig=x"), b"x") == [403, 403]
    assert httpx.put(address, content=b"x", headers={"Authorization": "Bearer t"}).status_code == 400
    assert httpx.put(f"{address}&comp=block&blockid=!", content=b"x").status_code == 400
    unknown = "<BlockList><Latest>AAAA</Latest></BlockList>"
    assert httpx.put(f"{address}&comp=blocklist", content=unknown).status_code == 400
    assert httpx.get(address).status_code == 403, "an address to write is not one to read"


def test_faults__of_the_artifact_service__are_in_its_own_words(github):
    message = "artifact storage quota: insufficient usage"
    github.faults.add("POST", "/CreateArtifact$", Fault.status(503), Fault.status(429, message=message))
    github.faults.add("PUT", "comp=block", Fault.status(503))
    upload = Upload(github)
    answers = [upload.call("CreateArtifact", version=7).json() for _ in range(2)]

    assert answers == [{"code": "unavailable", "msg": "told to fail"}, {"code": "resource_exhausted", "msg": message}]
    assert upload.put(upload.create(), b"x") == [503, 400]
    assert github.violations == []


def test_camel_case__when_asked_for__is_how_the_service_answers(github):
    github.results.camel_case = True

    assert Upload(github).call("CreateArtifact", version=7).json().keys() == {"ok", "signedUploadUrl"}


@pytest.mark.parametrize(
    ("facts", "declares", "status"),
    [
        ({}, False, 201),
        ({"head_repo": "stranger/bot"}, True, 403),
        ({"head_repo": None}, True, 403),
        ({"actor": "dependabot[bot]"}, True, 201),
        ({"actor": "dependabot[bot]"}, False, 403),
        ({"actor": "dependabot[bot]", "event": "push"}, False, 201),
        ({"head_repo": "stranger/bot", "event": "pull_request_target"}, False, 201),
    ],
)
def test_token__of_a_fork_or_of_dependabot__writes_as_github_lets_it(github, http, facts, declares, status) -> None:
    github.state.add_pull(7)
    github.declares = declares
    github.current_run_id = github.state.add_run(**{"event": "pull_request"} | facts).id
    assert http.post(f"{REPO}/issues/7/comments", json={"body": "x"}).status_code == status


def test_repository__private__pull_requests_want_their_own_permission(github, http) -> None:
    github.state.add_pull(7)
    github.permissions -= {"pull-requests:write"}
    paths = [f"{REPO}/pulls/7", f"{REPO}/pulls", f"{REPO}/issues/7/comments"]
    assert [http.get(path).status_code for path in paths] == [200, 200, 200]
    github.state.private = True
    assert [http.get(path).status_code for path in paths] == [403, 403, 403]
    github.permissions.add("issues:read")
    assert [http.get(path).status_code for path in paths] == [403, 403, 200]
    assert http.get(REPO).json()["private"] is True


def test_conversation__locked__takes_no_comment_and_no_change(github, http) -> None:
    pull = github.state.add_pull(7)
    mine = github.state.add_comment(7, "x")
    pull.locked = True
    calls = [
        http.post(f"{REPO}/issues/7/comments", json={"body": "y"}),
        http.patch(f"{REPO}/issues/comments/{mine.id}", json={"body": "y"}),
        http.delete(f"{REPO}/issues/comments/{mine.id}"),
    ]
    assert {(one.status_code, one.json()["message"]) for one in calls} == {
        (403, "Unable to create comment because issue is locked.")
    }
    assert http.get(f"{REPO}/pulls/7").json()["locked"] is True


@pytest.mark.parametrize(
    ("workflow", "ref", "status"),
    [
        (b"on:\n  workflow_dispatch:\n", "main", 204),
        (b"on: [push, workflow_dispatch]\n", "refs/heads/main", 204),
        (b"on: push\n", "main", 422),
        (b"on: workflow_dispatch\n", "nowhere", 422),
        (None, "main", 404),
    ],
)
def test_workflow__started_by_hand__makes_a_run_where_it_has_that_trigger(github, http, workflow, ref, status) -> None:
    github.permissions.add("actions:write")
    if workflow is not None:
        github.state.files[github.state.branches["main"], ".github/workflows/gate.yml"] = workflow
    made = http.post(f"{REPO}/actions/workflows/gate.yml/dispatches", json={"ref": ref})
    assert made.status_code == status
    assert [one.head_branch for one in github.state.runs.values()] == ["main"] * (status == 204)
    github.permissions.remove("actions:write")
    assert http.post(f"{REPO}/actions/workflows/gate.yml/dispatches", json={"ref": ref}).status_code == 403


def test_workflow__started_by_a_name_of_a_tag_too__is_the_tags(github, http) -> None:
    github.permissions.add("actions:write")
    pull = github.state.add_pull(7)
    for commit in (github.state.branches["main"], pull.head_sha):
        github.state.files[commit, ".github/workflows/gate.yml"] = b"on: workflow_dispatch\n"
    github.state.tags["main"] = pull.head_sha
    for ref in ("main", "refs/heads/main"):
        http.post(f"{REPO}/actions/workflows/gate.yml/dispatches", json={"ref": ref})
    assert [one.head_sha for one in github.state.runs.values()] == [pull.head_sha, github.state.branches["main"]]
