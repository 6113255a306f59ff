"""The whole action without Docker, on the runner's shape: packages from the lock, then a pull request's story.

The first test of a session pays for the installation; that is what users wait for as well.
"""

from __future__ import annotations

import signal
import subprocess
import time

from tests.integration.action.test_action_results import promptfoo
from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.host import HostJob
from tests.support.jobs import pull_request_event, push_event


def test_host_action__agent_on_localhost__baseline_comment_artifacts_and_verdict(job: HostJob, github) -> None:
    """With a folder `eval_gate` and a `sitecustomize.py` in the checkout, which have no say."""
    (job.workspace / "eval_gate").mkdir()
    (job.workspace / "eval_gate" / "__main__.py").write_text("raise SystemExit('not ours')\n")
    (job.workspace / "sitecustomize.py").write_text("raise SystemExit('not ours')\n")
    with agent() as running:
        first = job.push(running.url, PYTHONPATH=str(job.workspace))
    assert (first.code, first.outputs["verdict"]) == (0, "passed"), first.log
    assert first.outputs["artifact-id"]
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    assert (ended.code, ended.outputs["regressions"], ended.outputs["exit-code"]) == (1, "1", "1"), ended.log
    assert "was set up" not in ended.log
    assert "## ❌ Agent eval gate — 1 regression" in next(iter(github.state.comments.values())).body
    assert (job.workspace / ended.outputs["report-path"]).is_file()
    assert f"::add-mask::{github.token}" in ended.log.splitlines()


def test_host_action__results_and_a_command_with_the_users_own_tool__clears_a_flaky_case(job: HostJob, github) -> None:
    for _ in range(3):
        job.begin_run(event="push")
        assert job.step("push", push_event(github), {"results": promptfoo(job.workspace, "main.json")}).code == 0
    promptfoo(job.workspace, "again.json")
    (job.workspace / "tool.mjs").write_text(
        "import fs from 'node:fs';\nfs.copyFileSync('again.json', process.argv[3]);\n"
        "fs.writeFileSync('seen.json', JSON.stringify([process.argv[2], process.env]));\n"
    )
    promptfoo(job.workspace, "out.json", 2)
    job.give_to_runner()
    given = {"results": "out.json", "rerun-command": "node tool.mjs {ids_regex} {output}"}
    ended = job.pull_request(github.state.add_pull(7), "", given)
    assert (ended.code, ended.outputs["regressions"], ended.outputs["flaky"]) == (0, "0", "1"), ended.log
    seen = (job.workspace / "seen.json").read_text()
    assert "case-2" in seen
    for secret in (github.token, "INPUT_", "ACTIONS_"):
        assert secret not in seen


def test_host_action__cancelled__what_was_done_is_written(job: HostJob, github) -> None:
    pull = github.state.add_pull(7)
    job.write_suite(400)
    with agent() as running:
        process = subprocess.Popen(
            job.words(),
            cwd=job.workspace,
            env=job.variables("pull_request", pull_request_event(github, pull), {"agent-endpoint": running.url}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        deadline = time.monotonic() + 240
        while len(running.requests) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    ended = job.ended(process.returncode, out)
    assert (ended.code, ended.outputs["exit-code"]) == (130, "130"), ended.log
    (check,) = github.state.check_runs.values()
    assert check.fields["conclusion"] == "cancelled"


def test_host_action__graders_that_need_node__work_where_the_image_has_none(job: HostJob, github) -> None:
    """What `eval-gate init` writes such a repository: the gate on the machine of the job."""
    (job.workspace / "evals" / "weather.golden.json").unlink()
    (job.workspace / "evals" / "a.eval.yaml").write_text(
        "description: d\nevalcases:\n"
        "  - id: a\n    outcome: it answers\n    input_messages: [{role: user, content: ask 0}]\n"
        "    execution:\n      evaluators:\n"
        "        - {name: grader, type: code_judge, script: [node, check.mjs]}\n"
    )
    (job.workspace / "evals" / "check.mjs").write_text("console.log(JSON.stringify({score: 1, hits: ['by node']}));\n")
    job.give_to_runner()
    with agent() as running:
        ended = job.push(running.url, {"fail-on": "failures"})
    assert (ended.code, ended.outputs["passed"]) == (0, "1"), ended.log
