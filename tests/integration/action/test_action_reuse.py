"""Results that the action reuses: of which runs, at which events, and what a person sees of it."""

from __future__ import annotations

import io
import json
import signal
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from tests.integration.action.test_action_workflow_run import relay
from tests.support.agents import Agent, Exchange, agent
from tests.support.answers import fails_on
from tests.support.git import commit_all
from tests.support.github import FakeGitHub, Fault, PullRequest, zipped
from tests.support.jobs import Ended, Job, pull_request_event, push_event, repository_facts

MEASURES = """\
measures:
  "evals/a.golden.json": ["agents/a/**", "prompts/**"]
  "evals/b.golden.json": ["agents/b/**"]
"""
COUNTS = {"a": 2, "b": 3}
"""Cases of each suite."""
NOTHING, EVERYTHING = "0", str(sum(COUNTS.values()))


@dataclass
class Team:
    """A repository with two suites that measure different files, and main's newest result."""

    job: Job
    github: FakeGitHub
    agent: Agent
    failing: set[int]
    """Cases of both suites that the agent fails."""
    inputs: dict[str, str] = field(default_factory=dict)

    def write(self, path: str, text: str) -> None:
        file = self.job.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def push(self) -> Ended:
        """A commit on main, and its run."""
        self.agent.requests.clear()
        self.github.state.add_commit(f"main {len(self.github.state.commits)}", branch="main")
        ended = self.job.push(self.agent.url, self.inputs)
        self.finish()
        return ended

    def finish(self) -> None:
        """End the run that is in progress, well."""
        self.github.current_run.status, self.github.current_run.conclusion = "completed", "success"

    def pull(self, *files: str, **facts) -> PullRequest:
        """A pull request of one commit that changes these files."""
        state = self.github.state
        state.add_commit("head 1", state.branches["main"], files=files)
        return state.add_pull(7, head_sha="head 1", **facts)

    def pull_of_b(self, **facts) -> PullRequest:
        """A pull request that changes the agent of the second suite."""
        self.write("agents/b/agent.py", "2")
        return self.pull("agents/b/agent.py", **facts)

    def push_to(self, pull: PullRequest, *files: str) -> None:
        """Another commit of a pull request, which changes these files."""
        state = self.github.state
        state.move_head(pull, state.add_commit(f"head {len(state.commits)}", pull.head_sha, files=files).sha)

    def run(self, pull: PullRequest, **variables: str) -> Ended:
        """The run of a pull request, which passes."""
        self.agent.requests.clear()
        ended = self.job.pull_request(pull, self.agent.url, self.inputs, **variables)
        self.finish()
        return ended

    def run_again(self, event_name: str, event: dict[str, object], **variables: str) -> Ended:
        """Another run of main's newest commit, or another attempt of a run."""
        self.agent.requests.clear()
        return self.job.step(event_name, event, {"agent-endpoint": self.agent.url} | self.inputs, **variables)

    @property
    def result(self) -> bytes:
        """The result that was stored last."""
        with zipfile.ZipFile(io.BytesIO(self.github.state.archives[-1].zip_bytes)) as packed:
            return packed.read("run.json")

    def seen(self, ended: Ended) -> tuple[int, str, int]:
        """Exit code, reused cases, and requests to the agent."""
        return ended.code, ended.outputs.get("reused", ""), len(self.agent.requests)


@pytest.fixture
def team(job, github) -> Iterator[Team]:
    (job.workspace / "evals" / "weather.golden.json").unlink()
    for name, count in COUNTS.items():
        job.write_suite(count, f"{name}.golden.json")
    failing = set[int]()

    async def respond(exchange: Exchange) -> None:
        await fails_on(*failing)(exchange)

    with agent(respond) as running:
        made = Team(job, github, running, failing)
        made.write("eval-gate.yaml", MEASURES)
        made.write("prompts/system.md", "Be kind.")
        for name in COUNTS:
            made.write(f"agents/{name}/agent.py", "1")
        assert made.seen(made.push()) == (0, NOTHING, 5)
        yield made


def test_reuse__pull_request_of_documents__asks_nothing_and_publishes_on_its_head(team, github) -> None:
    pull = team.pull("README.md")
    ended = team.run(pull)
    assert team.seen(ended) == (0, EVERYTHING, 0), ended.log
    (comment,) = github.state.comments.values()
    assert (comment.issue, "Reused 2 of 2 suites" in comment.body) == (7, True)
    check = list(github.state.check_runs.values())[-1]
    assert (check.fields["head_sha"], check.fields["conclusion"]) == (pull.head_sha, "success")
    assert "Reused 2 of 2 suites" in ended.log
    assert not github.requests("GET", "/actions/workflows/gate.yml/runs")


def push_twice(team: Team, *files: str) -> PullRequest:
    """The second suite's agent is changed and evaluated, and then each of these files is."""
    pull = team.pull_of_b()
    for file in files:
        assert team.run(pull).code == 0
        team.push_to(pull, file)
    return pull


def edit(team: Team, path: str) -> PullRequest:
    """A pull request that changes evals, the configuration or the workflow."""
    file = team.job.workspace / path
    text = file.read_text() if file.is_file() else "on: pull_request"
    team.write(path, text.replace("prompts/**", "prompts/*").replace("gs-000", "gs-100"))
    return team.pull(path)


def set_inputs(team: Team, **inputs: str) -> PullRequest:
    team.inputs = inputs
    return team.pull("README.md")


def lose_results(team: Team) -> PullRequest:
    for artifact in team.github.state.artifacts.values():
        artifact.expired = True
    return team.pull("README.md")


def fail_on_main(team: Team) -> PullRequest:
    team.failing.add(1)
    team.write("agents/b/agent.py", "2")
    assert team.push().code == 1
    team.failing.clear()
    return team.pull("README.md")


PULLS: dict[str, tuple[Callable[[Team], PullRequest], str, int]] = {
    "agent of one suite": (Team.pull_of_b, "2", 3),
    "two pushes of documents": (lambda team: push_twice(team, "docs/notes.md", "docs/more.md"), EVERYTHING, 0),
    "a push of something else": (lambda team: push_twice(team, "setup.cfg"), "2", 3),
    "Dependabot's": (lambda team: team.pull("README.md", user="dependabot[bot]"), EVERYTHING, 0),
    "turned off": (lambda team: set_inputs(team, set="reuse: false"), NOTHING, 5),
    "another baseline": (
        lambda team: set_inputs(team, baseline=str(next(team.job.workspace.glob("evals/results/*/run.json")).parent)),
        NOTHING,
        5,
    ),
    "main's result is gone": (lose_results, NOTHING, 5),
    "main did not pass": (fail_on_main, NOTHING, 5),
    "configuration": (lambda team: edit(team, "eval-gate.yaml"), NOTHING, 5),
    "evals": (lambda team: edit(team, "evals/a.golden.json"), NOTHING, 5),
    "workflow": (lambda team: edit(team, ".github/workflows/gate.yml"), NOTHING, 5),
}
"""Pull requests, the cases that their last run reuses, and its requests."""


@pytest.mark.parametrize("what", PULLS)
def test_reuse__pull_request__executes_what_it_can_have_changed(team, what) -> None:
    arrange, reused, requests = PULLS[what]
    ended = team.run(arrange(team))
    assert team.seen(ended) == (0, reused, requests), ended.log


def test_reuse__agent_gets_worse__is_a_regression_beside_reused_cases(team) -> None:
    team.failing.add(1)
    ended = team.run(team.pull_of_b())
    assert (ended.code, ended.outputs["reused"], ended.outputs["regressions"]) == (1, "2", "1"), ended.log


@pytest.mark.parametrize(("is_broken_there", "code"), [(True, 0), (False, 1)])
def test_reuse__base_agent_in_a_second_step__is_asked_about_what_was_executed(team, is_broken_there, code) -> None:
    team.failing.add(1)
    team.inputs = {"base-agent": "later"}
    pull = team.pull_of_b()
    first = team.run(pull)
    assert (first.outputs["reused"], first.outputs["needs-base-agent"]) == ("2", "true"), first.log
    with agent(fails_on(1) if is_broken_there else fails_on()) as base:
        team.inputs = {"base-agent-endpoint": base.url, "results": "latest"}
        event = pull_request_event(team.github, pull)
        ended = team.run_again("pull_request", event, GITHUB_ACTION="second")
    assert team.seen(ended) == (code, "2", 0), ended.log
    assert len(base.requests) > 0


@pytest.mark.parametrize("is_forged", [False, True])
def test_reuse__fork__its_relay_says_so_unless_it_is_claimed_in_vain(team, github, is_forged) -> None:
    pull = team.pull("README.md", head_repo="mallory/bot", user="mallory")
    github.read_only = True
    assert team.seen(team.run(pull)) == (0, EVERYTHING, 0)
    if is_forged:
        artifact, claimed = github.state.archives[-1], json.loads(team.result)
        for case in (case for suite in claimed["suites"] for case in suite["cases"]):
            case["fingerprint"] = "0" * 12
        artifact.zip_bytes, artifact.digest = zipped({"run.json": json.dumps(claimed).encode()}), None
    github.read_only = False
    ended = relay(team.job, github, github.current_run)
    assert (ended.code, ended.outputs["reused"]) == (0, NOTHING if is_forged else EVERYTHING), ended.log
    (comment,) = github.state.comments.values()
    assert ("Reused 2 of 2 suites" in comment.body) is not is_forged


@pytest.mark.parametrize(("measures", "cases"), [("prompts/**", EVERYTHING), ("prompts/*.txt", NOTHING)])
def test_reuse__policy_from_base__compares_what_is_measured_all_the_same(team, github, measures, cases) -> None:
    github.state.files[github.state.branches["main"], "eval-gate.yaml"] = MEASURES.encode()
    team.write("prompts/more.txt", "")
    assert team.push().code == 0
    github.state.files[github.state.branches["main"], "eval-gate.yaml"] = MEASURES.encode()
    team.inputs = {"policy-from": "base"}
    team.write("eval-gate.yaml", MEASURES.replace("prompts/**", measures))
    ended = team.run(team.pull("eval-gate.yaml"))
    assert (ended.code, ended.outputs["reused"]) == (0, cases), ended.log


@pytest.mark.parametrize("event_name", ["schedule", "workflow_dispatch", "repository_dispatch"])
def test_reuse__event_that_is_no_change__runs_everything(team, event_name) -> None:
    team.github.state.add_commit(commit_all(team.job.workspace), branch="main")
    team.job.begin_run(event=event_name, head_branch="main")
    ended = team.run_again(event_name, push_event(team.github))
    assert team.seen(ended) == (0, NOTHING, 5), ended.log
    assert "Nothing was reused" in ended.log


def test_reuse__another_attempt__runs_everything(team, github) -> None:
    pull = team.pull("README.md")
    team.run(pull)
    team.job.begin_attempt()
    ended = team.run_again("pull_request", pull_request_event(github, pull))
    assert team.seen(ended) == (0, NOTHING, 5), ended.log
    assert "this is a re-run attempt" in ended.log


def test_reuse__push_to_main__reuses_what_main_has(team) -> None:
    ended = team.push()
    assert team.seen(ended) == (0, EVERYTHING, 0), ended.log
    team.write("agents/a/agent.py", "2")
    assert team.seen(team.push()) == (0, "3", 2)


def test_reuse__merge_queue__reuses_what_main_has(team, github) -> None:
    base = github.state.branches["main"]
    ref = f"gh-readonly-queue/main/pr-7-{base}"
    head = github.state.add_commit("group", base, branch=ref).sha
    group = {"head_sha": head, "head_ref": f"refs/heads/{ref}", "base_sha": base, "base_ref": "refs/heads/main"}
    event = {"action": "checks_requested", "merge_group": group, "repository": repository_facts(github)}
    team.job.begin_run(event="merge_group", head_branch=ref, head_sha=head)
    ended = team.run_again("merge_group", event, GITHUB_SHA=head, GITHUB_REF=f"refs/heads/{ref}")
    assert team.seen(ended) == (0, EVERYTHING, 0), ended.log


def test_reuse__checkout_in_a_folder__its_workflow_is_measured(team) -> None:
    team.write("repo/.git/HEAD", "ref: refs/heads/main")
    team.write("repo/.github/workflows/gate.yml", "on: pull_request")
    assert team.push().code == 0
    assert team.seen(team.run(team.pull("README.md"))) == (0, EVERYTHING, 0)
    team.write("repo/.github/workflows/gate.yml", "on: pull_request # and another start command")
    assert team.seen(team.run(team.github.state.pulls[7])) == (0, NOTHING, 5)


def test_reuse__no_measures__nothing_is_said_and_the_baseline_comes_while_cases_run(team, github) -> None:
    (team.job.workspace / "eval-gate.yaml").unlink()
    team.push()
    ended = team.run(team.pull("README.md"))
    assert team.seen(ended) == (0, NOTHING, 5), ended.log
    assert "eused" not in ended.log
    (comment,) = github.state.comments.values()
    assert "eused" not in comment.body + ended.summary


def test_reuse__everything_reused_in_two_runs_of_one_commit__the_newer_one_is_shown(team, github) -> None:
    pull = team.pull("README.md")
    first, second = team.run(pull), team.run(pull)
    assert [one.outputs["reused"] for one in (first, second)] == [EVERYTHING, EVERYTHING]
    (comment,) = github.state.comments.values()
    assert f"/actions/runs/{github.current_run_id}/" in comment.body


@pytest.mark.slow
def test_reuse__ended_while_github_is_waited_for__ends_at_once(team, github) -> None:
    pull = push_twice(team, "README.md")
    github.faults.add("GET", "/actions/workflows/gate.yml/runs", Fault.hang())
    team.job.begin_run(event="pull_request", head_branch=pull.head_ref, head_sha=pull.head_sha)
    team.agent.requests.clear()
    process = team.job.start("pull_request", pull_request_event(github, pull), {"agent-endpoint": team.agent.url})
    until = time.monotonic() + 60
    while github.faults.unused and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=15)
    assert (process.returncode, team.agent.requests) == (130, []), out
