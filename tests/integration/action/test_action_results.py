"""Results that an earlier step made."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.github import PullRequest
from tests.support.jobs import pull_request_event, push_event
from tests.support.program import gate

FILES = Path(__file__).parents[2] / "unit" / "external_results" / "files"


def test_results__made_by_an_earlier_step__are_compared_and_published_and_nothing_runs(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        assert gate(job.workspace, "run", "--agent-endpoint", running.url, "--output-dir", "elsewhere").returncode == 1
        asked = len(running.requests)
        ended = job.pull_request(pull, "http://127.0.0.1:9", {"results": "elsewhere"})
        assert len(running.requests) == asked
    assert (ended.code, ended.outputs["regressions"]) == (1, "1")
    assert "## ❌ Agent eval gate — 1 regression" in next(iter(github.state.comments.values())).body


@pytest.mark.slow
def test_results__stored_run_that_claims_another_past_of_main__is_held_against_what_github_has(job, github) -> None:
    """A run record holds what was known of the baseline when it was made. Here a pull request's own step wrote that."""
    with agent() as running:
        for _ in range(2):
            job.push(running.url)
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        options = ("--output-dir", "elsewhere", "--baseline", str(job.workspace / "evals/results"), "--reruns", "6")
        assert gate(job.workspace, "run", "--agent-endpoint", running.url, *options).returncode == 1
    (record,) = (job.workspace / "elsewhere").glob("*/run.json")
    run = json.loads(record.read_text())
    (change,) = [one for one in run["comparison"]["changes"] if one["change"] == "regression"]
    change["change"] = "still_failing"
    change["baseline"] |= {"status": "failed", "passed": False}
    change["caseHistory"] |= {"counts": {"passes": 0, "failures": 20}, "newestFailed": True, "stability": "failing"}
    record.write_text(json.dumps(run))
    ended = job.pull_request(pull, "http://127.0.0.1:9", {"results": "elsewhere", "fail-on": "regressions"})
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log


def in_shards(job, url: str, count: int) -> None:
    """A run in so many shards, as a matrix leaves them: the results of each job in a folder of its own."""
    for part in range(1, count + 1):
        options = ("--shard", f"{part}/{count}", "--output-dir", f"parts/job-{part}", "--fail-on", "never")
        assert gate(job.workspace, "run", "--agent-endpoint", url, *options).returncode == 0


def test_results__folder_of_shards__is_one_run_with_one_comment(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        in_shards(job, running.url, 2)
    ended = job.pull_request(pull, "http://127.0.0.1:9", {"results": "parts", "fail-on": "regressions"})
    assert (ended.code, ended.outputs["total"], ended.outputs["regressions"]) == (1, "4", "1"), ended.log
    (comment,) = github.state.comments.values()
    assert "## ❌ Agent eval gate — 1 regression" in comment.body


@pytest.mark.parametrize("named", ["parts", "parts/job-1\nparts/job-3", "parts/job-1"])
def test_results__shard_is_missing__comment_names_it_and_nothing_is_green(job, github, named) -> None:
    with agent() as running:
        job.push(running.url)
        in_shards(job, running.url, 3)
    shutil.rmtree(job.workspace / "parts/job-2")
    ended = job.pull_request(github.state.add_pull(7), "http://127.0.0.1:9", {"results": named})
    assert (ended.code, ended.outputs["verdict"]) == (3, "inconclusive"), ended.log
    (comment,) = github.state.comments.values()
    missing = "hards 2 and 3 of 3 are missing" if named.endswith("job-1") else "hard 2 of 3 is missing"
    assert missing in comment.body


def test_results__one_shard_where_the_step_is_about_that_one__is_judged_by_itself(job, github) -> None:
    with agent() as running:
        in_shards(job, running.url, 2)
    inputs = {"results": "parts/job-1", "shard": "1/2", "fail-on": "failures"}
    assert job.pull_request(github.state.add_pull(7), "http://127.0.0.1:9", inputs).code == 0


def test_results__two_records_of_one_shard__are_an_error_that_names_both(job, github) -> None:
    with agent() as running:
        in_shards(job, running.url, 2)
    shutil.copytree(job.workspace / "parts/job-1", job.workspace / "parts/job-1-again")
    ended = job.pull_request(github.state.add_pull(7), "http://127.0.0.1:9", {"results": "parts"})
    name = next((job.workspace / "parts/job-1").glob("*/run.json")).parent.name[:8]
    assert ended.code == 2
    assert f"shard 1 of 2 is given 2 times: run {name}, run {name}" in ended.log


def test_results__that_are_not_there__are_an_error_that_says_so(job, github) -> None:
    ended = job.step("push", push_event(github), {"results": "nowhere"})
    assert ended.code == 2
    assert 'stored result "nowhere" not found' in ended.log


def test_results__latest_of_a_step_that_did_not_finish__is_inconclusive_and_says_where_to_look(job, github) -> None:
    ended = job.step("push", push_event(github), {"results": "latest"})
    assert ended.code == 3
    assert "found no result of an earlier step" in ended.log
    assert "the log of the step with `eval-gate check`" in ended.log


@pytest.fixture
def forged(job, github) -> Path:
    """A green result that a pull request adds to its results folder; the pull request is #7."""
    with agent() as running:
        job.push(running.url)
    results = job.workspace / "evals/results"
    run = json.loads(next(results.glob("*/run.json")).read_text())
    shutil.rmtree(results)
    folder = results / "forged"
    folder.mkdir(parents=True)
    now = datetime.now(UTC) + timedelta(minutes=5)  # within what clocks may differ by
    fresh = {"runId": "forged", "git": None, "producer": None, "timestamp": now.isoformat(timespec="seconds")}
    (folder / "run.json").write_text(json.dumps(run | fresh))
    (results / "latest.json").write_text(json.dumps({"runId": "forged", "path": "forged/run.json"}))
    github.state.add_pull(7)
    return folder


def commit(job) -> str:
    """Everything in the workspace, by real git; the commit."""
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=job.workspace, check=True)
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=job.workspace, check=True, capture_output=True, text=True)
    return found.stdout.strip()


def of_workspace(job, github) -> PullRequest:
    """The pull request, with the workspace's commit as its head."""
    pull = github.state.pulls[7]
    pull.head_sha = commit(job)
    github.state.add_commit(pull.head_sha, pull.base_sha)
    return pull


@pytest.mark.parametrize("more", [{}, {"base-agent-endpoint": "http://127.0.0.1:9"}])
def test_results__latest_that_the_pull_request_committed__is_no_result(job, github, forged, more) -> None:
    ended = job.pull_request(of_workspace(job, github), "http://127.0.0.1:9", {"results": "latest", **more})
    assert (ended.code, ended.outputs["verdict"]) == (3, "inconclusive"), ended.log
    assert "run forged is not from this job: it is committed in evals/results/forged" in ended.log
    assert "inconclusive" in next(iter(github.state.comments.values())).body


def test_results__committed_link_to_another_folder__is_no_result(job, github, forged) -> None:
    forged.rename(job.workspace / "fixtures")
    forged.symlink_to("../../fixtures")
    ended = job.pull_request(of_workspace(job, github), "http://127.0.0.1:9", {"results": "latest"})
    assert ended.code == 3, ended.log


@pytest.mark.parametrize("named", ["latest", "evals/results"])
def test_results__committed_beside_the_one_of_this_job__this_job_s_counts(job, github, forged, named) -> None:
    pull = of_workspace(job, github)
    with agent(fails_on(2)) as running:
        gate(job.workspace, "run", "--agent-endpoint", running.url, "--reruns", "6")
    (job.workspace / "evals/results/latest.json").unlink()
    ended = job.pull_request(pull, "http://127.0.0.1:9", {"results": named, "fail-on": "regressions"})
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log


def test_results__without_git__a_run_that_names_this_commit_counts_before_one_that_names_none(
    job, github, forged
) -> None:
    pull = github.state.pulls[7]
    with agent(fails_on(2)) as running:
        told = {"GITHUB_SHA": pull.head_sha, "GITHUB_REPOSITORY": "acme/bot"}
        gate(job.workspace, "run", "--agent-endpoint", running.url, "--reruns", "6", **told)
    (job.workspace / "evals/results/latest.json").unlink()
    ended = job.pull_request(pull, "http://127.0.0.1:9", {"results": "latest", "fail-on": "regressions"})
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log


def test_results__latest_is_of_another_run_or_commit__is_no_result(job, github) -> None:
    """As a cache of an earlier job leaves them."""
    with agent() as running:
        job.push(running.url)
    ended = job.pull_request(github.state.add_pull(7), "http://127.0.0.1:9", {"results": "latest"})
    assert ended.code == 3, ended.log
    assert "is not from this job: workflow run 101 made it" in ended.log


def by_hand(job, github, url: str, **other: str) -> None:
    """A step of this job before the gate's: the command line, in the environment that a runner gives it."""
    told = {"GITHUB_RUN_ID": str(github.current_run_id), "GITHUB_RUN_ATTEMPT": str(job.attempt), "GITHUB_JOB": "gate"}
    told |= {"GITHUB_SHA": github.state.pulls[7].merge_sha, "GITHUB_REPOSITORY": "acme/bot"}
    gate(job.workspace, "run", "--agent-endpoint", url, "--fail-on", "never", **(told | other))


def judge_latest(job, github, **inputs: str):
    return job.step("pull_request", pull_request_event(github, github.state.pulls[7]), {"results": "latest"} | inputs)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"GITHUB_RUN_ID": "99"}, "workflow run 99 made it"),
        ({"GITHUB_RUN_ATTEMPT": "2"}, "attempt 2 of this workflow run made it"),
        ({"GITHUB_JOB": "other"}, 'the job "other" made it'),
        ({}, ""),
    ],
)
def test_results__latest_is_of_the_same_commit_and_another_run_attempt_or_job__is_no_result(
    job, github, other, why
) -> None:
    """As a machine of one's own keeps them, where the step of this job that was to make one has broken."""
    pull = github.state.add_pull(7)
    job.begin_run(event="pull_request", head_branch=pull.head_ref, head_sha=pull.head_sha)
    with agent() as running:
        by_hand(job, github, running.url, **other)
    ended = judge_latest(job, github)
    assert (ended.code, ended.outputs["verdict"]) == ((3, "inconclusive") if why else (0, "passed")), ended.log
    assert ("is not from this job" in ended.log) is bool(why)
    assert why in ended.log
    assert "assuming that this job made it" not in ended.log


def test_results__baseline_is_the_run_itself__is_an_error(job, github) -> None:
    """As a folder of results does, in which an earlier step of the job wrote its own."""
    pull = github.state.add_pull(7)
    job.begin_run(event="pull_request", head_branch=pull.head_ref, head_sha=pull.head_sha)
    with agent(fails_on(2)) as running:
        by_hand(job, github, running.url)
    ended = judge_latest(job, github, baseline="evals/results")
    assert ended.code == 2, ended.log
    assert "cannot be its own baseline" in ended.log
    assert "cannot be its own baseline" in next(iter(github.state.comments.values())).body


def test_results__latest_in_a_later_attempt_whose_run_broke__is_no_result(job, github) -> None:
    pull = github.state.add_pull(7)
    job.begin_run(event="pull_request", head_branch=pull.head_ref, head_sha=pull.head_sha)
    with agent() as running:
        by_hand(job, github, running.url)
    assert judge_latest(job, github).code == 0
    job.begin_attempt()
    ended = judge_latest(job, github)
    assert ended.code == 3, ended.log
    assert "attempt 1 of this workflow run made it" in ended.log
    assert list(github.state.check_runs.values())[-1].fields["conclusion"] == "failure"


def test_results__latest_of_two_gates_in_a_job__the_second_one_s_run_broke__is_not_the_first_one_s(job, github) -> None:
    pull = github.state.add_pull(7)
    job.begin_run(event="pull_request", head_branch=pull.head_ref, head_sha=pull.head_sha)
    with agent() as running:
        by_hand(job, github, running.url)
    assert judge_latest(job, github, **{"comment-key": "one"}).code == 0
    ended = judge_latest(job, github, **{"comment-key": "two"})
    assert (ended.code, ended.outputs["verdict"]) == (3, "inconclusive"), ended.log
    assert 'the gate "one" published it' in ended.log


def test_results__latest_that_names_no_workflow_run__is_believed_and_the_log_says_so(job, github) -> None:
    github.state.add_pull(7)
    with agent() as running:
        gate(job.workspace, "run", "--agent-endpoint", running.url, "--fail-on", "never")
        gate(job.workspace, "run", "--agent-endpoint", running.url, "--fail-on", "never", GITHUB_SHA="main")
    ended = judge_latest(job, github)
    assert "assuming that this job made it" in ended.log


def promptfoo(folder: Path, name: str, *failing: int) -> str:
    """A results file of promptfoo in the workspace, with these tests failing."""
    document = json.loads((FILES / "promptfoo-output.json").read_text())
    pattern = document["results"]["results"][0]
    document["results"]["stats"] = {"successes": 6 - len(failing), "failures": len(failing)}
    document["results"]["results"] = [
        {
            **pattern,
            "metadata": {"testCaseId": f"case-{number}"},
            "vars": {"q": f"question {number}"},
            "success": number not in failing,
            "failureReason": int(number in failing),
            "response": {"output": "I cannot help." if number in failing else "Order 4711 is refunded."},
        }
        for number in range(6)
    ]
    (folder / name).write_text(json.dumps(document))
    return name


def test_results__of_another_tool__make_the_baseline_and_the_comment(job, github) -> None:
    for number in range(3):
        main = promptfoo(job.workspace, "main.json")
        assert job.step("push", push_event(github), {"results": main}).code == 0, number
    pull = github.state.add_pull(7)
    ended = job.pull_request(pull, "http://127.0.0.1:9", {"results": promptfoo(job.workspace, "out.json", 2)})
    assert (ended.code, ended.outputs["regressions"]) == (1, "1")
    assert "6 of 6 cases are in the baseline by metadata.testCaseId" in ended.log
    comment = next(iter(github.state.comments.values())).body
    assert "## ❌ Agent eval gate — 1 regression" in comment
    assert "case-2" in comment
    assert "- Order 4711 is refunded." in comment
    assert "+ I cannot help." in comment


@pytest.mark.parametrize("given", ["legs", "legs/*/out.json", "linux=legs/a/out.json\nwindows=legs/b"])
def test_results__legs_of_a_matrix__are_compared_with_themselves_in_one_comment(job, github, given) -> None:
    for leg in "ab":
        (job.workspace / "legs" / leg).mkdir(parents=True)
        promptfoo(job.workspace / "legs" / leg, "out.json", *([2] if leg == "a" else []))
    assert job.step("push", push_event(github), {"results": given, "fail-on": "regressions"}).code == 0
    promptfoo(job.workspace / "legs/b", "out.json", 2)
    ended = job.pull_request(github.state.add_pull(7), "http://127.0.0.1:9", {"results": given})
    assert (ended.code, ended.outputs["total"], ended.outputs["regressions"]) == (1, "12", "1"), ended.log
    (comment,) = github.state.comments.values()
    assert ("windows: " if "windows" in given else "b: ") in comment.body


def test_results__with_a_command_for_re_runs__run_nothing_in_the_action(job, github) -> None:
    (job.workspace / "eval-gate.yaml").write_text(f"rerunCommand: touch {job.workspace}/ran\n")
    job.step("push", push_event(github), {"results": promptfoo(job.workspace, "main.json")})
    pull = github.state.add_pull(7)
    ended = job.pull_request(pull, "http://127.0.0.1:9", {"results": promptfoo(job.workspace, "out.json", 2)})
    assert ended.code == 1
    assert "ignoring rerunCommand of the configuration file" in ended.log
    assert not (job.workspace / "ran").exists()


def test_results__of_a_tool_that_did_not_finish__are_inconclusive(job, github) -> None:
    pull = github.state.add_pull(7)
    file = job.workspace / promptfoo(job.workspace, "out.json")
    file.write_bytes(file.read_bytes()[:-2000])
    ended = job.pull_request(pull, "http://127.0.0.1:9", {"results": "out.json"})
    assert ended.code == 3
    assert "ends in the middle" in ended.log
    (comment,) = github.state.comments.values()
    assert "says nothing about your change" not in comment.body, "the change may have ended the tool"


def test_results__leg_of_a_matrix_is_missing__is_no_pass_and_no_baseline(job, github) -> None:
    given = {"results": "legs/*/out.json", "fail-on": "regressions"}
    for leg in "ab":
        (job.workspace / "legs" / leg).mkdir(parents=True)
        promptfoo(job.workspace / "legs" / leg, "out.json")
    assert job.step("push", push_event(github), given).code == 0
    (job.workspace / "legs/b/out.json").unlink()
    github.state.add_commit("a leg crashed", branch="main")
    job.begin_run(event="push")
    second = job.step("push", push_event(github), given)
    assert second.code == 3, second.log
    pull = github.state.add_pull(7)
    assert job.pull_request(pull, "http://127.0.0.1:9", given).code == 3
    (comment,) = github.state.comments.values()
    assert "the leg b has 0 of 6 cases of the baseline" in " ".join(comment.body.lower().split())
    promptfoo(job.workspace / "legs/b", "out.json", 2)
    ended = job.pull_request(pull, "http://127.0.0.1:9", given)
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log


def rerun_script(job, *failing: int) -> str:
    """A command of the team's own tool that asks these cases again; they fail as named here, all others pass."""
    again = promptfoo(job.workspace, "again.json", *failing)
    return f"cp {again} {{output}} && env > seen.txt"


def on_host(job, pull, *failing: int, **inputs: str):
    """The pull request's step on the machine of the job, with these cases failing in what the tool found."""
    given = {"results": promptfoo(job.workspace, "out.json", *failing), **inputs}
    job.give_to_runner()
    job.begin_run(event="pull_request", head_branch=pull.head_ref, head_sha=pull.head_sha, head_repo=pull.head_repo)
    event = pull_request_event(job.github, pull)
    return job.step("pull_request", event, given, command=("action", "--on-host"), API_KEY="a-key-of-the-step")


def test_results__on_the_machine_of_the_job__the_workflows_command_clears_a_flaky_case(job, github) -> None:
    for _ in range(3):
        job.begin_run(event="push")
        assert job.step("push", push_event(github), {"results": promptfoo(job.workspace, "main.json")}).code == 0
    ended = on_host(job, github.state.add_pull(7), 2, **{"rerun-command": rerun_script(job)})
    assert (ended.code, ended.outputs["regressions"], ended.outputs["flaky"]) == (0, "0", "1"), ended.log
    assert "no regressions, 1 inconclusive case" in next(iter(github.state.comments.values())).body
    seen = (job.workspace / "seen.txt").read_text()
    assert "PATH=" in seen
    for secret in ("INPUT_", "ACTIONS_", "GITHUB_", github.token, "a-key-of-the-step"):
        assert secret not in seen


def test_results__on_the_machine_of_the_job__a_case_that_fails_again_and_again_is_a_regression(job, github) -> None:
    for _ in range(3):
        job.begin_run(event="push")
        job.step("push", push_event(github), {"results": promptfoo(job.workspace, "main.json")})
    ended = on_host(job, github.state.add_pull(7), 2, **{"rerun-command": rerun_script(job, 2)})
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log
    assert "case-2" in next(iter(github.state.comments.values())).body


def test_results__on_the_machine_of_the_job__a_command_that_breaks_leaves_it_inconclusive(job, github) -> None:
    job.begin_run(event="push")
    job.step("push", push_event(github), {"results": promptfoo(job.workspace, "main.json")})
    ended = on_host(job, github.state.add_pull(7), 2, **{"rerun-command": "no-such-tool -o {output}"})
    assert ended.code == 3
    assert "returned no results: it exited with code 127 and wrote no results" in ended.summary
    assert "no-such-tool" in ended.summary


def test_results__on_the_machine_of_the_job__a_command_of_the_configuration_file_is_not_run(job, github) -> None:
    (job.workspace / "eval-gate.yaml").write_text(f"rerunCommand: touch {job.workspace}/ran\n")
    job.begin_run(event="push")
    job.step("push", push_event(github), {"results": promptfoo(job.workspace, "main.json")})
    ended = on_host(job, github.state.add_pull(7), 2)
    assert "set it as the input rerun-command" in ended.log
    assert not (job.workspace / "ran").exists()


def test_results__on_the_machine_of_the_job__the_command_gets_no_key_that_only_the_pull_request_passes(
    job, github
) -> None:
    """`passEnv` of the pull request's own configuration, for a command of the workflow."""
    job.begin_run(event="push")
    job.step("push", push_event(github), {"results": promptfoo(job.workspace, "main.json")})
    (job.workspace / "eval-gate.yaml").write_text("passEnv: [API_KEY]\n")
    ended = on_host(job, github.state.add_pull(7), 2, **{"rerun-command": rerun_script(job)})
    assert ended.code == 2
    assert "passEnv would give API_KEY to commands" in ended.log
    assert not (job.workspace / "seen.txt").exists()


def test_results__in_the_container__an_input_for_re_runs_is_a_mistake_that_names_the_way_out(job, github) -> None:
    given = {"results": promptfoo(job.workspace, "out.json"), "rerun-command": "npx promptfoo eval"}
    ended = job.step("push", push_event(github), given)
    assert ended.code == 2
    assert "use the action eval-gate/eval-gate/host" in ended.log


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has more rights than others")
def test_results__on_the_machine_of_the_job__root_in_a_folder_of_roots__runs_no_command(job, github) -> None:
    job.begin_run(event="push")
    job.step("push", push_event(github), {"results": promptfoo(job.workspace, "main.json")})
    given = {"results": promptfoo(job.workspace, "out.json", 2), "rerun-command": f"touch {job.workspace}/ran"}
    job.begin_run(event="push")
    job.workspace.chmod(0o700)
    ended = job.step("push", push_event(github), given, command=("action", "--on-host"))
    assert ended.code == 2
    assert "commands never run as root in a workflow" in ended.log
    assert not (job.workspace / "ran").exists()


# --- the base branch's agent, asked by a command


def broken_case(job, github) -> str:
    """Six green runs of main before this pull request; the command by which the tool confirms that case 2 fails."""
    for _ in range(6):
        job.begin_run(event="push")
        assert job.step("push", push_event(github), {"results": promptfoo(job.workspace, "main.json")}).code == 0
    return rerun_script(job, 2)


def base_script(job, *failing: int) -> str:
    """The same tool with the base branch's agent, which fails these; it leaves a mark where it ran."""
    return f"cp {promptfoo(job.workspace, 'base.json', *failing)} {{output}} && touch asked.txt"


def was_asked(job) -> bool:
    return (job.workspace / "asked.txt").exists()


@pytest.mark.slow
def test_base_agent__on_the_machine_of_the_job__what_the_base_branchs_agent_fails_too_is_cleared(job, github) -> None:
    rerun = broken_case(job, github)
    pull = github.state.add_pull(7)
    ended = on_host(job, pull, 2, **{"rerun-command": rerun})
    assert (ended.code, was_asked(job)) == (1, False), ended.log
    ended = on_host(job, pull, 2, **{"rerun-command": rerun, "base-agent-command": base_script(job, 2)})
    assert (ended.code, ended.outputs["regressions"], was_asked(job)) == (0, "0", True), ended.log
    assert "the base agent passed 0 of 2 in the same minutes" in next(iter(github.state.comments.values())).body


def test_base_agent__on_the_machine_of_the_job__what_the_base_branchs_agent_passes_stays_red(job, github) -> None:
    inputs = {"rerun-command": broken_case(job, github), "base-agent-command": base_script(job)}
    ended = on_host(job, github.state.add_pull(7), 2, **inputs)
    assert (ended.code, ended.outputs["regressions"], was_asked(job)) == (1, "1", True), ended.log


@pytest.mark.parametrize("on_main", [False, True])
@pytest.mark.slow
def test_base_agent__command_of_the_configuration_file__is_not_run_and_clears_nothing(job, github, on_main) -> None:
    rerun = broken_case(job, github)
    text = json.dumps({"baseAgentCommand": base_script(job, 2)})
    (job.workspace / "eval-gate.json").write_text(text)
    if on_main:
        github.state.files[github.state.branches["main"], "eval-gate.json"] = text.encode()
    ended = on_host(job, github.state.add_pull(7), 2, **{"rerun-command": rerun})
    assert (ended.code, was_asked(job)) == (1, False), ended.log
    told = "set it as the input base-agent-command" if on_main else "the pull request's choice is ignored"
    assert told in ended.log


def test_base_agent__in_the_container__the_command_is_not_run_and_the_way_out_is_named(job, github) -> None:
    broken_case(job, github)
    given = {"results": promptfoo(job.workspace, "out.json", 2), "base-agent-command": base_script(job, 2)}
    job.begin_run(event="pull_request")
    ended = job.step("pull_request", pull_request_event(github, github.state.add_pull(7)), given)
    assert (ended.code == 0, was_asked(job)) == (False, False), ended.log
    assert "run it with `eval-gate check` in an earlier step" in ended.log


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.slow
def test_base_agent__asked_in_a_step_before__is_believed_of_the_workflows_own_command_only(job, github, same) -> None:
    rerun, pull = broken_case(job, github), github.state.add_pull(7)
    asked = base_script(job, 2)
    out = promptfoo(job.workspace, "out.json", 2)
    said = ("--rerun-command", rerun, "--base-agent-command", asked, "--fail-on", "regressions", "--baseline", "latest")
    done = gate(job.workspace, "check", out, *said)
    assert done.returncode == 0, done.stdout + done.stderr
    given = {"results": "latest", "base-agent-command": asked if same else f"{asked} && true"}
    job.begin_run(event="pull_request", head_branch=pull.head_ref, head_sha=pull.head_sha, head_repo=pull.head_repo)
    ended = job.step("pull_request", pull_request_event(github, pull), given)
    assert (ended.code == 0) is same, ended.log
