"""REST: check runs with their annotations, and commit statuses."""

from __future__ import annotations

from typing import Any

from tests.support.github.loopback import Answer
from tests.support.github.records import CheckRun, Status
from tests.support.github.rest import Call, Refused, not_found, refusal, route

READ_CHECKS = ("contents:read", "checks:read")
READ_STATUSES = ("contents:read", "statuses:read")

LONGEST = {"title": 255, "message": 65_536, "raw_details": 65_536}
LONGEST_DESCRIPTION = 140
MOST_STATUSES = 1000


@route("POST", "/check-runs", "checks:write")
def create_check(call: Call) -> Answer:
    head_sha = call.body["head_sha"]
    if head_sha not in call.state.commits:
        raise Refused(refusal(422, f"No commit found for SHA: {head_sha}"))
    annotations = _annotations(call)
    now = call.state.now()
    check = CheckRun(call.state.next_id(), {"status": "queued", "started_at": now}, annotations)
    _take(call, check)
    call.state.check_runs[check.id] = check
    return Answer(201, call.views.check_run(check))


@route("GET", "/check-runs/{check_run_id}", *READ_CHECKS)
def check_run(call: Call) -> Answer:
    return Answer(200, call.views.check_run(_check(call)))


@route("PATCH", "/check-runs/{check_run_id}", "checks:write")
def edit_check(call: Call) -> Answer:
    check = _check(call)
    check.annotations += _annotations(call)
    _take(call, check)
    return Answer(200, call.views.check_run(check))


@route("GET", "/check-runs/{check_run_id}/annotations", *READ_CHECKS)
def annotations(call: Call) -> Answer:
    check = _check(call)
    return call.listed(check.annotations, lambda each: call.views.annotation(check, each))


@route("GET", "/commits/{ref}/check-runs", *READ_CHECKS)
def checks_of_commit(call: Call) -> Answer:
    sha, query = call.commit(call.args["ref"]), call.query
    newest_first = sorted(call.state.check_runs.values(), key=lambda check: check.id, reverse=True)
    found: list[CheckRun] = []
    for check in newest_first:
        fields, names = check.fields, {each.fields["name"] for each in found}
        if (
            fields["head_sha"] == sha
            and query.get("check_name", fields["name"]) == fields["name"]
            and query.get("status", fields["status"]) == fields["status"]
            and (query.get("filter") == "all" or fields["name"] not in names)
        ):
            found.append(check)
    return call.listed(found, call.views.check_run, "check_runs")


@route("POST", "/statuses/{sha}", "statuses:write")
def create_status(call: Call) -> Answer:
    state, body, sha = call.state, call.body, call.args["sha"]
    if sha not in state.commits:
        raise Refused(refusal(422, f"No commit found for SHA: {sha}"))
    context, description = body.get("context", "default"), body.get("description")
    if len(description or "") > LONGEST_DESCRIPTION:
        raise call.wrong("Validation Failed", f"description is too long (maximum is {LONGEST_DESCRIPTION} characters)")
    if sum((each.sha, each.context) == (sha, context) for each in state.statuses) >= MOST_STATUSES:
        raise call.wrong("Validation Failed", "This SHA and context has reached the maximum number of statuses.")
    made = Status(state.next_id(), sha, body["state"], context, description, body.get("target_url"), state.now())
    state.statuses.append(made)
    return Answer(201, call.views.status(made))


@route("GET", "/statuses/{ref}", *READ_STATUSES)
@route("GET", "/commits/{ref}/statuses", *READ_STATUSES)
def statuses(call: Call) -> Answer:
    sha = call.commit(call.args["ref"])
    return call.listed([each for each in reversed(call.state.statuses) if each.sha == sha], call.views.status)


def _check(call: Call) -> CheckRun:
    if found := call.state.check_runs.get(call.number("check_run_id")):
        return found
    raise not_found()


def _annotations(call: Call) -> list[dict[str, Any]]:
    """The annotations of a request, after the rules that the description does not hold."""
    output = call.body.get("output")
    if output is not None and not output.get("title"):
        raise call.wrong('Invalid request.\n\n"title" wasn\'t supplied.')
    found: list[dict[str, Any]] = (output or {}).get("annotations", [])
    for each in found:
        columns = {"start_column", "end_column"} & each.keys()
        if columns and each["start_line"] != each["end_line"]:
            raise call.wrong("Validation Failed", "columns are only for annotations within one line")
        if each["end_line"] < each["start_line"] or each["start_line"] < 1:
            raise call.wrong("Validation Failed", "an annotation's lines are out of order")
        if long := [name for name, most in LONGEST.items() if len(each.get(name, "").encode()) > most]:
            raise call.wrong("Validation Failed", f"too long in an annotation: {long}")
    return found


def _take(call: Call, check: CheckRun) -> None:
    """Keep what the request says. A conclusion completes the run; an output's parts replace their like."""
    given = {name: value for name, value in call.body.items() if name != "output"}
    if given.get("status") == "completed" and not (given.get("conclusion") or check.fields.get("conclusion")):
        raise call.wrong('Invalid request.\n\n"conclusion" wasn\'t supplied.')
    if given.get("conclusion"):
        given = {"completed_at": call.state.now()} | given | {"status": "completed"}
    said = {name: value for name, value in call.body.get("output", {}).items() if name != "annotations"}
    check.fields |= given | {"output": check.fields.get("output", {}) | said}
