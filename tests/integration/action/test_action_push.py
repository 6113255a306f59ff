"""Pushes to the default branch and to others, and what becomes of their results."""

from __future__ import annotations

import io
import json
import zipfile

from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.github import Fault, sha
from tests.support.github.results_service import Upload
from tests.support.github.storage import Blob
from tests.support.jobs import push_event, repository_facts


def run_in(artifact) -> dict:
    with zipfile.ZipFile(io.BytesIO(artifact.zip_bytes)) as packed:
        return json.loads(packed.read("run.json"))


def test_push__default_branch__stores_the_baseline_comments_nowhere_and_checks_the_commit(job, github) -> None:
    github.state.add_pull(7)
    (job.workspace / "eval-gate.yaml").write_text("store: nowhere\n")
    with agent(fails_on(1)) as running:
        ended = job.push(running.url)
    assert ended.code == 0
    assert "ignoring store: the action keeps its baselines as artifacts" in ended.log
    assert not (job.workspace / "nowhere").exists()
    assert github.state.comments == {}
    (artifact,) = github.state.archives
    stored = run_in(artifact)
    assert (stored["complete"], stored["git"]["sha"]) == (True, github.state.branches["main"])
    names = zipfile.ZipFile(io.BytesIO(artifact.zip_bytes)).namelist()
    trend = ["trend/trend.html", "trend/badge.svg", "trend/badge.json"]
    assert names == ["run.json", "history.json", "report.html", "weather.golden.json", *trend]
    (check,) = github.state.check_runs.values()
    assert (check.fields["head_sha"], check.fields["conclusion"]) == (github.state.branches["main"], "success")
    assert "no pull request to comment on, its result is the next baseline" in ended.log


def test_push__red__is_stored_all_the_same_and_is_the_next_baseline(job, github) -> None:
    with agent(fails_on(1)) as running:
        ended = job.push(running.url, {"fail-on": "failures"})
    assert (ended.code, len(github.state.archives)) == (1, 1)
    github.state.runs[github.current_run_id].conclusion = "failure"
    github.state.add_commit("next", branch="main")
    with agent(fails_on(1)) as running:
        ended = job.push(running.url)
    assert (ended.code, ended.outputs["regressions"]) == (0, "0")
    assert ended.outputs["baseline-run-id"] == run_in(github.state.archives[0])["runId"]


def test_push__a_regression_on_the_branch__is_red_there_too(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    github.state.add_commit("next", branch="main")
    with agent(fails_on(3)) as running:
        ended = job.push(running.url)
    assert (ended.code, ended.outputs["regressions"]) == (1, "1")
    assert "1 commit behind" in ended.summary


def test_push__artifact_service_down__warns_and_the_verdict_stands(job, github) -> None:
    github.faults.add("POST", "CreateArtifact", *[Fault.status(403, message="insufficient usage to create artifact")])
    with agent() as running:
        ended = job.push(running.url)
    assert (ended.code, ended.outputs["artifact-id"]) == (0, "")
    assert any("The result was not stored" in line and "insufficient usage" in line for line in ended.commands)


def test_push__enterprise_server__has_no_artifact_service_and_is_told_the_other_way(job, github) -> None:
    with agent() as running:
        ended = job.push(running.url, GITHUB_SERVER_URL="https://github.acme.example")
    assert (ended.code, github.state.artifacts) == (0, {})
    assert any("actions/upload-artifact" in line for line in ended.commands)


def test_push__the_name_is_an_upload_steps__the_first_stays_and_the_remedy_is_said(job, github) -> None:
    job.begin_run(event="push")
    github.results.uploads["eval-gate-results"] = upload = Upload(Blob())
    upload.artifact = github.state.add_artifact(github.current_run, {"notes.txt": b"of a step of its own"})
    upload.blob.data = upload.artifact.zip_bytes
    with agent() as running:
        ended = job.step("push", {"repository": repository_facts(github)}, {"agent-endpoint": running.url})
    assert ended.code == 0
    assert list(github.state.artifacts.values()) == [upload.artifact]
    assert any("set another `artifact-name`" in line for line in ended.commands)


def test_push__last_step_of_the_upload_is_refused__a_re_run_stores_under_its_own_name(job, github) -> None:
    github.faults.add("POST", "FinalizeArtifact", *[Fault.status(403, message="insufficient usage")] * 2)
    with agent() as running:
        ended = job.push(running.url)
        assert (ended.code, ended.outputs["artifact-id"]) == (0, ""), ended.log
        job.begin_attempt()
        ended = job.step("push", push_event(github), {"agent-endpoint": running.url})
        assert (ended.code, [one.name for one in github.state.archives]) == (0, ["eval-gate-results.gate.yml.gate"])
        assert "an unfinished upload of an earlier attempt blocks the name" in ended.log
        github.state.add_commit("next", branch="main")
        ended = job.push(running.url)
    assert ended.outputs["baseline-run-id"] == run_in(github.state.archives[0])["runId"]


def test_push__last_step_of_the_upload_is_refused__a_name_that_was_chosen_is_said_to_be_lost(job, github) -> None:
    inputs = {"artifact-name": "mine"}
    github.faults.add("POST", "FinalizeArtifact", *[Fault.status(403, message="insufficient usage")] * 2)
    with agent() as running:
        job.push(running.url, inputs)
        job.begin_attempt()
        ended = job.step("push", push_event(github), {"agent-endpoint": running.url, **inputs})
    assert (ended.code, github.state.archives) == (0, [])
    assert any("an unfinished upload of an earlier attempt" in line for line in ended.commands)
    assert not any("another step" in line for line in ended.commands)


def test_push__other_branch__is_compared_and_its_result_is_no_baseline(job, github) -> None:
    with agent() as running:
        job.push(running.url)
        github.state.add_commit("topic", github.state.branches["main"], branch="topic")
        job.begin_run(event="push", head_branch="topic")
        where = {"GITHUB_REF": "refs/heads/topic", "GITHUB_SHA": sha("topic")}
        event = {"ref": "refs/heads/topic", "repository": repository_facts(github)}
        inputs = {"agent-endpoint": running.url}
        first = job.step("push", event, inputs, **where)
        job.begin_run(event="push", head_branch="topic")
        second = job.step("push", event, inputs, **where)
    baseline = github.state.archives[0].id
    for ended in (first, second):
        assert (ended.code, ended.outputs["regressions"]) == (0, "0")
        assert f"baseline: artifact {baseline} of run 101" in ended.log


def test_push__outputs_and_summary__are_appended_never_truncated(job, github) -> None:
    with agent() as running:
        process = job.start("push", {"repository": repository_facts(github)}, {"agent-endpoint": running.url})
        (job.folder / "output").write_text("earlier<<x\nstep\nx\n")
        (job.folder / "summary").write_text("# earlier step\n")
        out, _ = process.communicate(timeout=60)
        ended = job.ended(process.returncode, out)
    assert ended.outputs["earlier"] == "step"
    assert ended.outputs["verdict"] == "passed"
    assert ended.summary.startswith("# earlier step\n# ✅ Agent eval gate")


def test_push__tag_called_like_the_branch__stores_nothing_and_no_other_step_s_artifact_is_a_baseline(
    job, github
) -> None:
    """Who may push tags and not main: all is told in the run's short name alone, which is main."""
    state = github.state
    with agent() as running:
        job.push(running.url)
        state.add_commit("evil", state.branches["main"])
        state.tags["main"] = sha("evil")
        run = job.begin_run(event="push", head_branch="main", head_sha="evil")
        where = {"GITHUB_REF": "refs/tags/main", "GITHUB_SHA": sha("evil")}
        event = {"ref": "refs/tags/main", "repository": repository_facts(github)}
        ended = job.step("push", event, {"agent-endpoint": running.url}, **where)
        assert (ended.code, ended.outputs["artifact-id"]) == (0, ""), ended.log
        assert "its result is not stored, because the ref is not a branch" in ended.log
        forged = json.dumps(run_in(state.archives[0]) | {"git": None}).encode()
        state.add_artifact(run, {"run.json": forged})  # by actions/upload-artifact
    pull = state.add_pull(7)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    assert ended.outputs["baseline-sha"] == state.branches["main"], ended.log
