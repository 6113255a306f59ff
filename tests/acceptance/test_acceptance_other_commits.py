"""A run that is judged elsewhere: relayed for a fork, read by `results:`, merged in a job (3 of what was wrong)."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from eval_gate.config.policy import DEFAULT_RERUNS
from tests.integration.action.test_action_workflow_run import relay
from tests.support.github import fake_github
from tests.support.program import gate
from tests.support.world import QUICK, ActionWorld, expect, words

EXAMPLE = Path(__file__).parents[2] / "examples" / "workflows" / "results-from-cli.yml"
RUNS = {
    "green": "PPPP",
    "dead": "FPPP",
    "not sure": "F(P)PPP",
    "crash": "CPPP",
    "all crash": "CCCC",
    "refused": "LPPP",
    "re-runs refused": "F(L)PPP",
    "drop": "F(P)F(P)F(P)F(P)",
}


@pytest.fixture(scope="module")
def branch(script, tmp_path_factory):
    with fake_github() as server:
        made = ActionWorld(tmp_path_factory.mktemp("branch"), server, script)
        made.main("PPPP*4")
        yield made


@pytest.fixture
def action(branch):
    """Four runs of main, made once: nothing here adds to them. Each test has its own pull requests and checkout."""
    shutil.rmtree(branch.job.workspace / "evals" / "results", ignore_errors=True)
    yield branch
    assert branch.github.violations == []


@pytest.fixture
def github(action):
    return action.github


# --- forks


@pytest.fixture
def forked(action):
    return action.pull(head_repo="mallory/bot", user="mallory")


@pytest.mark.parametrize("letters", RUNS.values(), ids=RUNS)
def test_relay__of_a_fork__publishes_what_the_job_exited_with(action, github, forked, letters) -> None:
    github.read_only = True
    first = action.here(letters, forked)
    github.read_only = False
    run = github.state.runs[github.current_run_id]
    run.status, run.conclusion = "completed", "success" if first.code == 0 else "failure"
    ended = relay(action.job, github, run)
    published = action.seen(ended, forked)
    assert ended.outputs["verdict"] == first.ended.outputs["verdict"], f"{first.text}\n=== relay ===\n{published.text}"
    assert ended.outputs["exit-code"] == str(first.code)
    assert ended.outputs["regressions"] == first.ended.outputs["regressions"]
    assert _headline(published.title) == _headline(first.title)
    assert published.check["conclusion"] == ("success" if first.code == 0 else "failure")
    assert published.gate == first.gate


def _headline(title: str) -> str:
    return title.lstrip("# ")


# --- results of the command line


def made_by_hand(action, letters: str, *options: str) -> None:
    """A step before the gate's."""
    action.script.begin(letters)
    given = ("run", "evals", "--agent-endpoint", action.script.url, *words(QUICK))
    gate(action.job.workspace, *given, *options)


def step_of_the_example(name: str) -> str:
    steps = yaml.safe_load(EXAMPLE.read_text())["jobs"]["evals"]["steps"]
    return next(step["run"] for step in steps if step.get("name") == name)


@pytest.mark.parametrize("letters", RUNS.values(), ids=RUNS)
def test_results__made_with_reruns_and_no_baseline__judged_as_a_run_of_the_action(action, letters) -> None:
    there = action.here(letters)
    made_by_hand(action, letters, "--reruns", str(DEFAULT_RERUNS), "--fail-on", "never")
    asked = len(action.script.asked)
    pull = action.pull()
    action.job.begin_run(event="pull_request", head_branch=pull.head_ref, head_sha=pull.head_sha)
    action.script.begin(letters)
    here = action.seen_step(pull, results="latest")
    assert action.script.asked == []
    assert asked
    assert (here.code, here.classes) == (there.code, there.classes), f"{there.text}\n=== results ===\n{here.text}"
    assert here.title == there.title


def test_results__of_the_example_workflow__its_run_has_reruns(action) -> None:
    """The workflow's own command line, word by word."""
    command = re.search(r"eval-gate (run .*)", step_of_the_example("Run the evals"))[1]
    options = command.replace("http://localhost:8080/chat", action.script.url).split()
    action.script.begin("FPPP")
    gate(action.job.workspace, *options)
    record = action.job.workspace / "evals/results"
    latest = json.loads((record / json.loads((record / "latest.json").read_text())["path"]).read_text())
    assert latest["reruns"] == DEFAULT_RERUNS
    pull = action.pull()
    action.job.begin_run(event="pull_request", head_branch=pull.head_ref, head_sha=pull.head_sha)
    seen = action.seen_step(pull, results="latest")
    expect(seen, 1, "1 regression", regression=[0])
    assert seen.change(0)["grounds"]["kind"] == "evidence"  # re-runs that say the same count like any others


def test_results__made_without_reruns__the_action_says_what_is_missing(action) -> None:
    made_by_hand(action, "FPPP", "--fail-on", "never")
    pull = action.pull()
    action.job.begin_run(event="pull_request", head_branch=pull.head_ref, head_sha=pull.head_sha)
    seen = action.seen_step(pull, results="latest")
    assert seen.code == 1, seen.text
    assert "this run had no re-runs" in seen.text
    assert "his run had no re-runs" in seen.report
    assert "--reruns" in seen.text or "reruns 0" in seen.text
