"""REST: the repository, its commits and its pull requests with their comments."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.support.github.graph import compare, newest_first
from tests.support.github.loopback import Answer
from tests.support.github.records import Comment, Issue, PullRequest
from tests.support.github.rest import Call, Refused, not_found, refusal, route
from tests.support.github.state import ME, iso

READ = ("contents:read",)
READ_PULLS = ("public", "pull-requests:read")
READ_COMMENTS = ("public", "pull-requests:read", "issues:read")
WRITE_PULLS = ("pull-requests:write", "issues:write")

LONGEST_COMMENT = 65_536
LOCKED = "Unable to create comment because issue is locked."  # of a new one and of a change to one


@route("GET", "/rate_limit")
def rate_limit(call: Call) -> Answer:
    limits = call.github.rest.limits()
    return Answer(200, {"rate": limits, "resources": {"core": limits, "search": limits, "graphql": limits}})


@route("GET", "", *READ)
def repository(call: Call) -> Answer:
    return Answer(200, call.views.repository(call.state.full_name, "full-repository"))


@route("GET", "/commits", *READ)
def commits(call: Call) -> Answer:
    query = call.query
    tip = call.state.resolve(query.get("sha") or call.state.default_branch)
    if tip is None:
        raise not_found()
    found = [
        commit
        for commit in newest_first(call.state.commits, tip)
        if query.get("since", "") <= commit.date <= query.get("until", "9")
        and query.get("author", commit.author) == commit.author
        and ("path" not in query or any(f"{name}/".startswith(f"{query['path']}/") for name in commit.files))
    ]
    return call.listed(found, call.views.commit)


@route("GET", "/git/ref/{ref}", *READ)
def reference(call: Call) -> Answer:
    """One ref by its full name without `refs/`; what only begins like it is not found."""
    kind, _, name = call.args["ref"].partition("/")
    found = {"heads": call.state.branches, "tags": call.state.tags}.get(kind, {}).get(name)
    if found is None:
        raise not_found()
    return Answer(200, call.views.reference(call.args["ref"], found))


@route("GET", "/activity", *READ)
def activity(call: Call) -> Answer:
    """What changed branches, newest first. Pages are by cursor: a page number is none of its parameters."""
    wanted = call.query.get("ref", "").removeprefix("refs/heads/")
    changes = [(number, *one) for number, one in enumerate(call.state.branches.changes) if wanted in {"", one[0]}]
    size = min(int(call.query.get("per_page", 30)), 100)
    return Answer(200, [call.views.activity(*one) for one in changes[::-1][:size]])


@route("GET", "/commits/{ref}", *READ)
def commit(call: Call) -> Answer:
    return Answer(200, call.views.commit(call.state.commits[call.commit(call.args["ref"])], files=True))


@route("GET", "/compare/{basehead}", *READ)
def comparison(call: Call) -> Answer:
    state = call.state
    base, dots, head = call.args["basehead"].partition("...")
    ends = state.resolve(base), state.resolve(head)
    if not dots or ends[0] is None or ends[1] is None:
        raise not_found()
    found = compare(state.commits, ends[0], ends[1])
    if found is None:
        raise Refused(refusal(404, f"No common ancestor between {base} and {head}."))
    page, headers = call.page(found.ahead, default=250)
    return Answer(200, call.views.comparison(state.commits[ends[0]], call.args["basehead"], found, page), headers)


@route("GET", "/pulls", *READ_PULLS)
def pulls(call: Call) -> Answer:
    query = call.query

    def wanted(pull: PullRequest) -> bool:
        head = query.get("head", "")
        return (
            query.get("state", "open") in {"all", pull.state}
            and query.get("base", pull.base_ref) == pull.base_ref
            and (":" not in head or head == f"{pull.head_owner}:{pull.head_ref}")  # GitHub ignores a bare branch
        )

    descending = query.get("direction", "desc" if query.get("sort", "created") == "created" else "asc") == "desc"
    found = sorted(filter(wanted, call.state.pulls.values()), key=lambda pull: pull.number, reverse=descending)
    return call.listed(found, call.views.pull)


@route("GET", "/pulls/{pull_number}", *READ_PULLS)
def pull_request(call: Call) -> Answer:
    return Answer(200, call.views.pull(_pull(call, "pull_number"), "pull-request"))


@route("GET", "/commits/{commit_sha}/pulls", *READ_PULLS)
def pulls_of_commit(call: Call) -> Answer:
    """Open pull requests from branches of this repository that bring the commit, or the merged one that brought it."""
    state, wanted = call.state, call.commit(call.args["commit_sha"])
    merged = any(commit.sha == wanted for commit in newest_first(state.commits, state.branches[state.default_branch]))

    def brings(pull: PullRequest) -> bool:
        if merged:
            return pull.merged and wanted in {pull.merge_commit_sha, pull.head_sha}
        if pull.state != "open" or pull.head_repo != state.full_name:
            return False
        found = compare(state.commits, pull.base_sha, pull.head_sha)
        return found is not None and wanted in {commit.sha for commit in found.ahead}

    return call.listed([pull for pull in state.pulls.values() if brings(pull)], call.views.pull)


@route("GET", "/contents/{path}", *READ)
def content(call: Call) -> Answer:
    ref = call.state.resolve(call.query.get("ref") or call.state.default_branch)
    path = call.args["path"]
    if ref is None:
        raise Refused(refusal(404, f"No commit found for the ref {call.query.get('ref')}"))
    if (ref, path) not in call.state.files:
        raise not_found()
    return Answer(200, call.views.content(path, ref, call.state.files[ref, path]))


@route("GET", "/branches/{branch}", *READ)
def branch(call: Call) -> Answer:
    name = call.args["branch"]
    if name not in call.state.branches:
        raise Refused(refusal(404, "Branch not found"))
    return Answer(200, call.views.branch(name))


@route("GET", "/collaborators/{username}/permission")  # reading metadata is in every token
def permission(call: Call) -> Answer:
    login = call.args["username"]
    if login in call.state.strangers:
        raise Refused(refusal(404, f"{login} is not a user"))
    return Answer(200, call.views.collaborator(login, call.state.roles.get(login, "read")))


@route("POST", "/issues", "issues:write")
def create_issue(call: Call) -> Answer:
    made = call.state.add_issue(call.body["title"], _text(call), mine=True)
    view = call.views.issue(made)
    return Answer(201, view, {"Location": view["url"]})


@route("GET", "/issues/{issue_number}", "issues:read")
def issue(call: Call) -> Answer:
    return Answer(200, call.views.issue(_issue(call)))


@route("PATCH", "/issues/{issue_number}", "issues:write")
def edit_issue(call: Call) -> Answer:
    found, body = _issue(call), call.body
    for name in body.keys() & {"title", "state", "state_reason"}:
        setattr(found, name, body[name])
    if "body" in body:
        found.body = _text(call)
    found.updated_at = iso(datetime.now(UTC))
    if "state" in body:
        found.closed_at = found.updated_at if found.state == "closed" else None
    return Answer(200, call.views.issue(found))


@route("GET", "/issues/{issue_number}/comments", *READ_COMMENTS)
def comments(call: Call) -> Answer:
    number, since = _pull(call, "issue_number").number, call.query.get("since", "")
    found = [each for each in call.state.comments.values() if each.issue == number and each.updated_at >= since]
    return call.listed(sorted(found, key=lambda comment: comment.id), call.views.comment)


@route("POST", "/issues/{issue_number}/comments", *WRITE_PULLS)
def create_comment(call: Call) -> Answer:
    asked = call.number("issue_number")
    number = asked if asked in call.state.issues else _pull(call, "issue_number").number
    _refuse_locked(call, number)
    comment = call.state.add_comment(number, _text(call), mine=True)
    view = call.views.comment(comment)
    return Answer(201, view, {"Location": view["url"]})


@route("GET", "/issues/comments/{comment_id}", *READ_COMMENTS)
def comment(call: Call) -> Answer:
    return Answer(200, call.views.comment(_comment(call)))


@route("PATCH", "/issues/comments/{comment_id}", *WRITE_PULLS)
def edit_comment(call: Call) -> Answer:
    found = _comment(call)
    _refuse_locked(call, found.issue)
    call.state.edit_comment(found, _text(call), ME)
    return Answer(200, call.views.comment(found))


@route("DELETE", "/issues/comments/{comment_id}", *WRITE_PULLS)
def delete_comment(call: Call) -> Answer:
    found = _comment(call)
    _refuse_locked(call, found.issue)
    del call.state.comments[found.id]
    return Answer(204)


def _refuse_locked(call: Call, number: int) -> None:
    """The token is nobody's who could write in spite of the lock."""
    pull = call.state.pulls.get(number)
    if pull is not None and pull.locked:
        raise Refused(refusal(403, LOCKED))


def _pull(call: Call, name: str) -> PullRequest:
    if found := call.state.pulls.get(call.number(name)):
        return found
    raise not_found()


def _issue(call: Call) -> Issue:
    if found := call.state.issues.get(call.number("issue_number")):
        return found
    raise not_found()


def _comment(call: Call) -> Comment:
    if found := call.state.comments.get(call.number("comment_id")):
        return found
    raise not_found()


def _text(call: Call) -> str:
    """The text of a comment. A long one is refused, and trying is no violation: the true limit is not documented."""
    text: str = call.body["body"]
    if not text.strip():
        error = {"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": "Body can't be blank"}
        raise call.wrong("Validation Failed", error)
    if len(text) > LONGEST_COMMENT:
        message = f"Body is too long (maximum is {LONGEST_COMMENT} characters)"
        error = {"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": message}
        raise Refused(refusal(422, "Validation Failed", error))
    return text
