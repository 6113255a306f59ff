"""REST: workflow runs and their artifacts."""

from __future__ import annotations

from typing import Any

import yaml

from tests.support.github.loopback import Answer
from tests.support.github.records import Artifact, WorkflowRun
from tests.support.github.rest import Call, Refused, not_found, refusal, route
from tests.support.github.state import ME

READ = ("actions:read",)

MOST_FILTERED = 1000  # what a filtered search of runs gives at most


@route("GET", "/actions/artifacts", *READ)
def artifacts(call: Call) -> Answer:
    return _artifacts(call, list(call.state.artifacts.values()))


@route("GET", "/actions/runs/{run_id}/artifacts", *READ)
def artifacts_of_run(call: Call) -> Answer:
    run = _run(call)
    return _artifacts(call, [each for each in call.state.artifacts.values() if each.run_id == run.id])


@route("GET", "/actions/artifacts/{artifact_id}", *READ)
def artifact(call: Call) -> Answer:
    return Answer(200, call.views.artifact(_artifact(call)))


@route("GET", "/actions/artifacts/{artifact_id}/{archive_format}", *READ)
def download(call: Call) -> Answer:
    """A redirect to the blob host, good for one download within a minute."""
    found = _artifact(call)
    if call.args["archive_format"] != "zip":
        raise call.wrong("Validation Failed", "archive_format must be zip")
    if found.expired:
        raise Refused(refusal(410, "Artifact has expired"))
    return Answer(302, headers={"Location": call.github.storage.offer(found)})


@route("GET", "/actions/runs", *READ)
def runs(call: Call) -> Answer:
    return _runs(call, list(call.state.runs.values()))


@route("GET", "/actions/runs/{run_id}", *READ)
def run(call: Call) -> Answer:
    return Answer(200, call.views.run(_run(call), pulls=call.query.get("exclude_pull_requests") != "true"))


@route("GET", "/actions/workflows/{workflow_id}", *READ)
def workflow(call: Call) -> Answer:
    return Answer(200, call.views.workflow(_workflow(call)))


@route("GET", "/actions/workflows/{workflow_id}/runs", *READ)
def runs_of_workflow(call: Call) -> Answer:
    path = _workflow(call)
    return _runs(call, [each for each in call.state.runs.values() if each.path == path])


@route("POST", "/actions/workflows/{workflow_id}/dispatches", "actions:write")
def dispatch(call: Call) -> Answer:
    """Start a run by hand, of the workflow as it is on this branch, or by a tag of the same name."""
    ref = call.body["ref"]
    sha = call.state.resolve(ref)
    if sha is None:
        raise Refused(refusal(422, f"No ref found for: {ref}"))
    path = _workflow(call)
    if (sha, path) not in call.state.files:
        raise not_found()
    if "workflow_dispatch" not in _triggers(call.state.files[sha, path]):
        raise Refused(refusal(422, "Workflow does not have 'workflow_dispatch' trigger"))
    branch = ref.removeprefix("refs/heads/").removeprefix("refs/tags/")
    call.state.add_run(
        event="workflow_dispatch", path=path, head_branch=branch, head_sha=sha, status="queued", actor=ME
    )
    return Answer(204)


def _triggers(workflow: bytes) -> Any:
    """What stands below `on`, which the safe loader takes for true."""
    return yaml.load(workflow, Loader=yaml.BaseLoader).get("on", ())


def _artifact(call: Call) -> Artifact:
    if found := call.state.artifacts.get(call.number("artifact_id")):
        return found
    raise not_found()


def _run(call: Call) -> WorkflowRun:
    if found := call.state.runs.get(call.number("run_id")):
        return found
    raise not_found()


def _workflow(call: Call) -> str:
    """The path of the workflow meant: by its id or by its file's name; the default branch's are known without a run."""
    wanted = call.args["workflow_id"]
    tip = call.state.branches[call.state.default_branch]
    for sha, path in call.state.files:
        if sha == tip and path.startswith(".github/workflows/"):
            call.state.workflow_id(path)
    for path in call.state.workflows:
        if wanted in {str(call.state.workflow_id(path)), path.rpartition("/")[2], path}:
            return path
    raise not_found()


def _artifacts(call: Call, found: list[Artifact]) -> Answer:
    name = call.query.get("name")
    newest_first = sorted(
        (each for each in found if name in {None, each.name}),
        key=lambda each: (each.created_at, each.id),
        reverse=call.query.get("direction", "desc") == "desc",
    )
    return call.listed(newest_first, call.views.artifact, "artifacts")


def _runs(call: Call, found: list[WorkflowRun]) -> Answer:
    query = call.query

    def wanted(each: WorkflowRun) -> bool:
        return (
            query.get("branch", each.head_branch) == each.head_branch
            and query.get("event", each.event) == each.event
            and query.get("head_sha", each.head_sha) == each.head_sha
            and query.get("actor", each.actor) == each.actor
            and query.get("status", each.status) in {each.status, each.conclusion}
            and query.get("check_suite_id", str(each.id + 1_000_000)) == str(each.id + 1_000_000)
            and _within(each.created_at, query.get("created", "*..*"))
        )

    newest_first = sorted(filter(wanted, found), key=lambda each: (each.created_at, each.id), reverse=True)
    if query.keys() - {"page", "per_page", "exclude_pull_requests"}:
        newest_first = newest_first[:MOST_FILTERED]
    pulls = query.get("exclude_pull_requests") != "true"
    return call.listed(newest_first, lambda each: call.views.run(each, pulls=pulls), "workflow_runs")


def _within(date: str, wanted: str) -> bool:
    """GitHub's way to search by date: `2026-01-01`, `>=2026-01-01`, `2026-01-01..2026-02-01`, `*..2026-02-01`."""
    if wanted.startswith((">=", "<=", ">", "<")):
        sign, bound = wanted.rstrip("0123456789-T:Z"), wanted.lstrip("<>=")
        day = date[: len(bound)]
        return {">=": day >= bound, "<=": day <= bound, ">": day > bound, "<": day < bound}[sign]
    first, dots, last = wanted.partition("..")
    last = last if dots else first
    return (first == "*" or date[: len(first)] >= first) and (last == "*" or date[: len(last)] <= last)
