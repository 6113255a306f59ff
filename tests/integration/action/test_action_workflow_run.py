"""Forks and Dependabot: the first stage cannot publish, the second publishes and trusts nothing."""

from __future__ import annotations

import base64
import io
import json
import zipfile

import pytest

from eval_gate.errors import PAGES
from tests.integration.action.test_action_workflow_dispatch import check_out
from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.canaries import texts_of
from tests.support.github import GATE, Fault, zipped
from tests.support.jobs import repository_facts

RELAY = "acme/bot/.github/workflows/publish.yml@refs/heads/main"


def workflow_run_event(github, run, actor: str = "octocat") -> dict[str, object]:
    head = {"id": run.head_repository_id, "full_name": run.head_repository_full_name}
    return {
        "action": "completed",
        "workflow_run": {
            "id": run.id,
            "event": run.event,
            "path": run.path,
            "conclusion": "failure",
            "head_sha": run.head_sha,
            "head_branch": run.head_branch,
            "head_repository": head,
            "actor": {"login": actor},
            "pull_requests": [],
        },
        "repository": repository_facts(github),
    }


@pytest.fixture
def forked(job, github):
    """A baseline on main, and a pull request from a fork whose branch is called main too; its own run is over."""
    with agent() as running:
        job.push(running.url)
    pull = github.state.add_pull(9, head_repo="mallory/bot", head_ref="main", user="mallory")
    github.read_only = True
    with agent(fails_on(2)) as running:
        first = job.pull_request(pull, running.url)
    github.read_only = False
    run = github.state.runs[github.current_run_id]
    run.status, run.conclusion = "completed", "failure"
    return pull, run, first


def relay(job, github, run, inputs=None, *, command=("action",), actor="octocat", **variables):
    job.begin_run(event="workflow_run", path=".github/workflows/publish.yml")
    event = workflow_run_event(github, run, actor)
    return job.step("workflow_run", event, inputs, command=command, GITHUB_WORKFLOW_REF=RELAY, **variables)


def test_relay__fork_makes_links_of_its_own__they_go_where_the_configuration_of_main_says(job, github, forked) -> None:
    _, run, _ = forked
    state = github.state
    artifact = state.archives[-1]
    with zipfile.ZipFile(io.BytesIO(artifact.zip_bytes)) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    record = json.loads(files["run.json"])
    for case in record["suites"][0]["cases"]:
        case["details"] |= {"trace": "t-1", "traceUrl": "https://evil.example/t-1"}
    artifact.zip_bytes, artifact.digest = zipped(files | {"run.json": json.dumps(record).encode()}), None
    state.files[state.branches["main"], "eval-gate.yaml"] = b"traceUrl: https://traces.example/{{traceId}}\n"
    ended = relay(job, github, run)
    (comment,) = state.comments.values()
    assert ended.outputs["verdict"] == "failed", ended.log
    assert "[trace](https://traces.example/t-1)" in comment.body
    assert "evil.example" not in comment.body


def test_fork__read_only_token__no_crash_the_summary_holds_the_result_and_the_verdict_stands(forked, github) -> None:
    _, _, first = forked
    assert (first.code, first.outputs["verdict"], github.state.comments) == (1, "failed", {})
    assert "# ❌ Agent eval gate — 1 regression" in first.summary
    assert f"No comment: a pull request from a fork gets a read-only token; see {PAGES}/action.md#forks" in first.log
    # expected, so no alarm; and the cases are annotated by the step itself
    assert [line.split(" ")[0] for line in first.commands if line.startswith(("::warning", "::error"))] == ["::error"]


def test_relay__result_of_a_fork__is_published_on_the_pull_request(forked, job, github) -> None:
    pull, run, _ = forked
    ended = relay(job, github, run)
    assert (ended.code, ended.outputs["verdict"], ended.outputs["regressions"]) == (0, "failed", "1")
    (comment,) = github.state.comments.values()
    assert comment.issue == 9
    assert "## ❌ Agent eval gate — 1 regression" in comment.body
    check = next(one for one in github.state.check_runs.values() if one.fields["head_sha"] == pull.head_sha)
    assert (check.fields["conclusion"], len(check.annotations)) == ("failure", 1)
    assert ended.outputs["artifact-id"] == ""


def test_relay__comment_claims_that_the_forks_run_has_published_itself__is_not_believed(forked, job, github) -> None:
    """Another workflow with the same token may post a text of the fork's."""
    pull, run, _ = forked
    state = json.dumps({"sha": pull.head_sha, "run_id": run.id, "attempt": 1, "outcome": "passed"})
    line = f"<!-- eval-gate:state {base64.b64encode(state.encode()).decode()} -->"
    github.state.add_comment(9, f"<!-- eval-gate:v1 key=gate.yml.gate -->\n## All is well\n{line}\n")
    ended = relay(job, github, run)
    assert (ended.code, ended.outputs["verdict"]) == (0, "failed"), ended.log
    assert any("## ❌ Agent eval gate — 1 regression" in one.body for one in github.state.comments.values())
    assert ended.outputs["check-run-url"]


@pytest.mark.parametrize("told", ["by the result", "by GitHub"])
def test_relay__a_later_attempt_left_nothing__its_pull_request_gets_no_result(forked, job, github, told) -> None:
    """A green result of the first attempt is none of the second one, which has broken."""
    pull, run, _ = forked
    artifact = next(one for one in github.state.archives if one.run_id == run.id)
    made = json.loads(zipfile.ZipFile(io.BytesIO(artifact.zip_bytes)).read("run.json"))
    assert made["producer"]["attempt"] == 1
    if told == "by GitHub":
        made["producer"]["attempt"] = 2
        artifact.zip_bytes = zipped({"run.json": json.dumps(made).encode()})
        artifact.digest = None
        run.started_at = github.state.now()
    run.run_attempt = 2
    ended = relay(job, github, run)
    assert (ended.code, ended.outputs["verdict"]) == (3, "inconclusive"), ended.log
    assert f"attempt 2 of run {run.id} stored no result" in ended.log
    (check,) = [one.fields for one in github.state.check_runs.values() if one.fields["head_sha"] == pull.head_sha]
    assert check["conclusion"] == "failure"
    assert f".{run.id}-2." in check["external_id"]


def test_relay__the_event_is_of_the_first_attempt__its_result_is_published_as_that(forked, job, github) -> None:
    """As where somebody re-runs the fork's run before this one has begun."""
    pull, run, _ = forked
    run.run_attempt, run.started_at = 2, github.state.now()
    event = workflow_run_event(github, run)
    event["workflow_run"]["run_attempt"] = 1
    job.begin_run(event="workflow_run", path=".github/workflows/publish.yml")
    ended = job.step("workflow_run", event, GITHUB_WORKFLOW_REF=RELAY)
    assert (ended.code, ended.outputs["verdict"]) == (0, "failed"), ended.log
    (check,) = [one.fields for one in github.state.check_runs.values() if one.fields["head_sha"] == pull.head_sha]
    assert f".{run.id}-1." in check["external_id"]


@pytest.mark.parametrize("event", ["push", "pull_request"])
def test_workflow_run__of_this_repository_with_inputs_of_a_gate__is_refused_and_nobody_is_asked(
    job, github, event
) -> None:
    """As for evals after a workflow that deploys: they would be green without one case."""
    run = github.state.add_run(event=event, head_branch="topic")
    with agent() as running:
        ended = relay(job, github, run, {"agent-endpoint": running.url})
    assert (ended.code, ended.outputs["verdict"]) == (2, "inconclusive"), ended.log
    assert "a workflow started by workflow_run does not evaluate" in ended.log
    assert "nothing ran" in ended.summary
    assert relay(job, github, run).code == 0


def test_relay__the_forks_head_is_checked_out__its_configuration_is_refused(forked, job, github) -> None:
    """Only what is read counts: without a configuration nothing is."""
    pull, run, _ = forked
    check_out(job.workspace, pull.head_sha)
    assert relay(job, github, run).code == 0
    (job.workspace / "eval-gate.yaml").write_text("evals: ['**']\n")
    ended = relay(job, github, run)
    assert ended.code == 2, ended.log
    said = f"workflow_run runs with the default branch's secrets, but the workspace has {pull.head_sha[:12]}"
    assert f"unsafe-event]: {said}" in ended.log


def test_relay__into_a_branch_that_is_not_protected__is_judged_by_the_rules_of_the_default_branch(
    forked, job, github
) -> None:
    pull, run, _ = forked
    state = github.state
    state.add_commit("mine", state.branches["main"], branch="mine")
    state.files[state.branches["mine"], "eval-gate.yaml"] = b"failOn: [never]\n"
    state.pulls[pull.number].base_ref = "mine"
    ended = relay(job, github, run)
    assert (ended.code, ended.outputs["verdict"]) == (0, "failed"), ended.log
    state.protected.add("mine")
    assert relay(job, github, run).outputs["verdict"] == "passed"


def test_relay__as_a_command__does_the_same(forked, job, github) -> None:
    _, run, _ = forked
    token = github.token
    command = ("publish", "--comment-key", "forks", "--check-run", "")
    ended = relay(job, github, run, {"github-token": ""}, command=command, GITHUB_TOKEN=token)
    assert ended.code == 0
    assert "<!-- eval-gate:v1 key=gate.yml.forks -->" in next(iter(github.state.comments.values())).body
    assert len(github.state.check_runs) == 1


def test_relay__the_fork_claims_to_have_passed__counts_and_verdict_are_our_own(forked, job, github) -> None:
    _, run, _ = forked
    artifact = next(one for one in github.state.archives if one.run_id == run.id)
    with zipfile.ZipFile(io.BytesIO(artifact.zip_bytes)) as packed:
        claimed = json.loads(packed.read("run.json"))
    claimed["verdict"] = {"outcome": "passed", "exitCode": 0, "reasons": [], "rules": []}
    claimed["comparison"] = None
    claimed["summary"] |= {"passed": 4, "failed": 0, "passRate": 1.0}
    claimed["runId"] = "../../../../tmp/evil"
    claimed["git"]["sha"] = "f" * 40
    github.state.artifacts.pop(artifact.id)
    github.state.add_artifact(run, zipped({"run.json": json.dumps(claimed).encode()}))
    ended = relay(job, github, run)
    assert (ended.code, ended.outputs["verdict"], ended.outputs["failed"]) == (0, "failed", "1")
    assert not list(job.workspace.glob("evals/results/../../../../tmp/evil"))


def test_relay__several_gates_left_a_result__none_of_them_is_published_by_chance(forked, job, github) -> None:
    _, run, _ = forked
    github.state.add_artifact(run, b"PK", "eval-gate-results.gate.yml.other")
    ended = relay(job, github, run)
    assert ended.code == 3
    assert "several gates of run 102 stored a result" in next(iter(github.state.comments.values())).body.lower()


@pytest.mark.parametrize(
    "data",
    [
        b"not a zip",
        zipped({"run.json": b"{}"}),
        zipped({"../run.json": b"{}"}),
        zipped({"other.json": b"{}"}),
        zipped({"run.json": b'{"schemaVersion": 1, "runId": 7, "complete": [], "suites": [{"cases": 1}]}'}),
    ],
)
def test_relay__artifact_that_is_no_result__says_could_not_decide_on_the_pull_request(
    forked, job, github, data
) -> None:
    pull, run, _ = forked
    artifact = next(one for one in github.state.archives if one.run_id == run.id)
    github.state.artifacts.pop(artifact.id)
    github.state.add_artifact(run, data)
    ended = relay(job, github, run)
    assert (ended.code != 0, ended.outputs["verdict"]) == (True, "inconclusive")
    (comment,) = github.state.comments.values()
    assert "This says nothing about your change" not in comment.body, "a change may have ended the first workflow"
    check = next(one for one in github.state.check_runs.values() if one.fields["head_sha"] == pull.head_sha)
    assert check.fields["conclusion"] == "failure"


def test_relay__run_left_nothing__says_so_on_the_pull_request(forked, job, github) -> None:
    _, run, _ = forked
    for artifact in [one for one in github.state.artifacts.values() if one.run_id == run.id]:
        github.state.artifacts.pop(artifact.id)
    ended = relay(job, github, run)
    assert ended.code == 3
    assert "has no artifact eval-gate-results" in next(iter(github.state.comments.values())).body


def test_relay__pull_request_moved_on__publishes_nothing(forked, job, github) -> None:
    pull, run, _ = forked
    github.state.add_commit("newer", pull.head_sha)
    pull.head_sha = github.state.add_commit("newest", pull.head_sha).sha
    before = len(github.state.check_runs)
    ended = relay(job, github, run)
    assert (ended.code, ended.outputs["verdict"], github.state.comments) == (0, "", {})
    assert len(github.state.check_runs) == before


def test_relay__run_of_our_own_branch__had_a_token_itself(job, github) -> None:
    pull = github.state.add_pull(7)
    with agent() as running:
        job.pull_request(pull, running.url)
    run = github.state.runs[github.current_run_id]
    comments = [comment.body for comment in github.state.comments.values()]
    ended = relay(job, github, run)
    assert ended.code == 0
    assert "it published its own result with its own token" in ended.log
    assert [comment.body for comment in github.state.comments.values()] == comments


def test_relay__dependabot__is_published_though_the_branch_is_our_own(job, github) -> None:
    pull = github.state.add_pull(7, head_ref="dependabot/pip/x", user="dependabot[bot]")
    github.read_only = True
    with agent() as running:
        ended = job.pull_request(pull, running.url, GITHUB_ACTOR="dependabot[bot]")
    assert ended.code == 0
    assert "a pull request by Dependabot gets a read-only token" in ended.log
    github.read_only = False
    run = github.state.runs[github.current_run_id]
    assert relay(job, github, run, actor="dependabot[bot]").code == 0
    assert len(github.state.comments) == 1


def test_relay__event_names_another_commit_than_github__is_refused(forked, job, github) -> None:
    _, run, _ = forked
    event = workflow_run_event(github, run)
    event["workflow_run"]["head_sha"] = github.state.branches["main"]
    job.begin_run(event="workflow_run", path=".github/workflows/publish.yml")
    ended = job.step("workflow_run", event, GITHUB_WORKFLOW_REF=RELAY)
    assert (ended.code, github.state.comments) == (3, {})


def test_publish__any_other_event__is_refused(job, github) -> None:
    ended = job.step("push", {"repository": repository_facts(github)}, command=("publish",))
    assert (ended.code, ended.outputs["verdict"]) == (2, "inconclusive")
    assert "not by push" in ended.summary
    assert (
        "error[unsupported-event]: publish works only in workflows that start by workflow_run, not by push" in ended.log
    )


@pytest.mark.slow
def test_relay__github_does_not_list_what_the_run_left__could_not_decide_and_is_no_crash(forked, job, github) -> None:
    _, run, _ = forked
    github.faults.add("GET", rf"/actions/runs/{run.id}/artifacts", *[Fault.status(502)] * 5)
    ended = relay(job, github, run)
    assert (ended.code, ended.outputs["verdict"]) == (3, "inconclusive")
    assert "error[github-unreachable]" in ended.log
    assert "Traceback" not in ended.log


def test_baseline__a_forks_branch_called_main__is_not_main(forked, job, github) -> None:
    """Its run, its name, its branch's name: all like the real one. Only the repository tells."""
    _, run, _ = forked
    assert (run.head_branch, run.path) == ("main", GATE)
    pull = github.state.add_pull(10, head_sha="tenth", head_ref="tenth")
    with agent() as running:
        ended = job.pull_request(pull, running.url)
    assert f"baseline: artifact {github.state.archives[0].id} of run 101" in ended.log
    assert "from a fork" in ended.log


@pytest.mark.parametrize(
    "file",
    [
        "src/app.py",
        ".github/workflows/release.yml",
        "package.json",
        "config/prod.yaml",
        "evals/.hidden/x.json",
        "/etc/x.json",
    ],
)
def test_finding_10__forged_result_names_another_file__only_eval_files_are_annotated(job, github, forked, file) -> None:
    pull, run, _ = forked
    (artifact,) = [one for one in github.state.archives if one.run_id == run.id]
    members = dict(texts_of("a", artifact.zip_bytes))
    record = json.loads(members["a!run.json"])
    for case in record["suites"][0]["cases"]:
        case["location"] = {"file": file, "line": 1}
    record["suites"][0]["evalFile"] = file
    artifact.zip_bytes = zipped({"run.json": json.dumps(record)})
    artifact.digest = None
    ended = relay(job, github, run)
    assert ended.code == 0, ended.log
    checks = [one for one in github.state.check_runs.values() if one.fields["head_sha"] == pull.head_sha]
    assert checks
    assert [remark["path"] for one in checks for remark in one.annotations] == []
    assert not [line for line in ended.commands if f"file={file}" in line]


def test_relay__fork_left_one_shard_of_two__is_inconclusive_and_names_the_other(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    pull = github.state.add_pull(9, head_repo="mallory/bot", head_ref="main", user="mallory")
    github.read_only = True
    with agent() as running:
        assert job.pull_request(pull, running.url, {"shard": "1/2"}).code == 0
    github.read_only = False
    run = github.state.runs[github.current_run_id]
    run.status, run.conclusion = "completed", "success"
    relay(job, github, run)
    (comment,) = github.state.comments.values()
    assert "hard 2 of 2 is missing" in comment.body
    assert "inconclusive" in comment.body
