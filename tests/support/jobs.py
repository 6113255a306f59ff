"""A job of a workflow, as the runner starts our step in it: a workspace, an event, inputs, and what is left behind."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_gate.action.inputs import INPUTS
from eval_gate.config.settings import SETTINGS
from tests.support.agents import Exchange, agent
from tests.support.git import point_head
from tests.support.github import GATE, FakeGitHub, PullRequest, WorkflowRun
from tests.support.github.results_service import runtime_token
from tests.support.program import CLEAN, PROGRAM, run_program

RUNNER_ID = 1001


def with_inputs(given: Mapping[str, str]) -> dict[str, str]:
    """The variables of these inputs; a setting that has none is a line of `set`."""
    names = {one.name for one in INPUTS}
    keys = {row.input_name: row.key for row in SETTINGS.values() if row.input and row.input_name not in names}
    lines = [f"{keys[name]}: {value}" for name, value in given.items() if name in keys and value]
    own = {f"INPUT_{name.upper()}": value for name, value in given.items() if name not in keys}
    return own | ({"INPUT_SET": "\n".join(lines)} if lines else {})


@dataclass(frozen=True)
class Ended:
    """What a person sees of a step that has ended."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str

    @property
    def commands(self) -> list[str]:
        """The workflow commands that the runner would have carried out: none while they are stopped."""
        found, stopped = [], None
        for line in self.log.splitlines():
            if stopped is not None:
                stopped = None if line.strip() == f"::{stopped}::" else stopped
            elif match := re.fullmatch(r"\s*::stop-commands::(\w+)", line):
                stopped = match[1]
            elif re.match(r"\s*::|.*##\[", line):
                found.append(line)
        return found


class Job:
    """One repository's checkout, in which steps are run."""

    def __init__(self, folder: Path, github: FakeGitHub) -> None:
        self.github = github
        self.folder = folder
        self.workspace = folder / "workspace"
        (self.workspace / "evals").mkdir(parents=True)
        self._runs = 100
        self._jobs = 0
        self.attempt = 1
        self.leg = ""

    def give_to_runner(self) -> None:
        """The workspace as on a hosted runner, where an ordinary user owns it: only root can do that, and needs it."""
        if os.geteuid() == 0:
            for path in (self.workspace, *self.workspace.rglob("*")):
                os.chown(path, RUNNER_ID, RUNNER_ID)
            for folder in self.workspace.parents[:-2]:
                folder.chmod(0o755)

    def check_out(self, commit: str) -> None:
        """The workspace as actions/checkout leaves it: HEAD names the commit."""
        git = self.workspace / ".git"
        git.mkdir(exist_ok=True)
        point_head(git, commit)

    def write_suite(self, count: int = 4, name: str = "weather.golden.json") -> None:
        """Cases that ask `ask 0`, `ask 1`, … and want `ok` in the answer."""
        cases = [
            {"id": f"gs-{number:03}", "input": {"message": f"ask {number}"}, "expect": {"responseContains": ["ok"]}}
            for number in range(count)
        ]
        text = json.dumps(cases, indent=1)
        (self.workspace / "evals" / name).write_text(text)

    def begin_run(self, **facts) -> WorkflowRun:
        """A new run of the workflow, of which the next steps are part."""
        self._runs += 1
        self.github.current_run_id = self._runs
        self.github.results.uploads.clear()  # a name is taken within its run only
        self.attempt = 1
        self.begin_job()
        return self.github.state.add_run(self._runs, status="in_progress", **facts)

    def pick_up(self, run: WorkflowRun) -> None:
        """Begin a run that GitHub has made by itself, such as one that was started by hand."""
        self._runs = self.github.current_run_id = run.id
        self.github.results.uploads.clear()
        self.attempt = 1
        self.begin_job()
        run.status = "in_progress"

    def begin_job(self, leg: str = "") -> None:
        """Another job of this run: a leg of a matrix, or a call of a reusable workflow. Its job id is the same."""
        self._jobs += 1
        self.leg = leg or f"job-{self._jobs}"
        job = f"{self.leg}-in-attempt-{self.attempt}"
        self.github.runtime_token = runtime_token(run=f"backend-of-{self._runs}", job=job)

    def begin_attempt(self, leg: str = "") -> None:
        """The run again, all of it or what failed: names stay taken, the jobs get other names."""
        self.attempt += 1
        self.github.current_run.run_attempt = self.attempt
        self.github.current_run.started_at = self.github.state.now()
        self.begin_job(leg)

    def begin_attempt_of(self, run_id: int) -> None:
        """An earlier run again, whatever has run since."""
        self.github.current_run_id = self._runs = run_id
        self.github.results.uploads.clear()
        self.attempt = self.github.current_run.run_attempt
        self.begin_attempt()

    def run_python(
        self, code: str, event_name: str, event: Mapping[str, object], inputs: Mapping[str, str], **variables: str
    ) -> Ended:
        """Run a program of the test's own in place of our step, such as one that breaks ours and starts it then."""
        merged = self._environment(event_name, event, inputs) | variables
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=self.workspace,
            env=merged,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        return self.ended(done.returncode, done.stdout)

    def step(
        self,
        event_name: str,
        event: Mapping[str, object],
        inputs: Mapping[str, str] | None = None,
        *,
        command: tuple[str, ...] = ("action",),
        timeout: float = 60,
        **variables: str,
    ) -> Ended:
        """Run our step to its end."""
        environment = self._environment(event_name, event, inputs or {}) | variables
        done = run_program(command, self.workspace, environment, together=True, timeout=timeout)
        return self.ended(done.returncode, done.stdout)

    def start(
        self,
        event_name: str,
        event: Mapping[str, object],
        inputs: Mapping[str, str] | None = None,
        *,
        command: tuple[str, ...] = ("action",),
        **variables: str,
    ) -> subprocess.Popen[str]:
        """Start our step."""
        return subprocess.Popen(
            [*PROGRAM, *command],
            cwd=self.workspace,
            env=self._environment(event_name, event, inputs or {}) | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _environment(self, event_name: str, event: Mapping[str, object], inputs: Mapping[str, str]) -> dict[str, str]:
        """The runner's environment, and the files that it names."""
        for name in ("event.json", "output", "summary"):
            (self.folder / name).unlink(missing_ok=True)
        (self.folder / "event.json").write_text(json.dumps(event))
        for name in ("output", "summary"):
            (self.folder / name).touch()
        (self.folder / "temp").mkdir(exist_ok=True)
        given = {"github-token": self.github.token, **inputs}
        return {
            **CLEAN,
            **self.github.environment(),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_EVENT_NAME": event_name,
            "GITHUB_EVENT_PATH": str(self.folder / "event.json"),
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_WORKFLOW_REF": f"{self.github.state.full_name}/{GATE}@refs/heads/main",
            "GITHUB_JOB": "gate",
            "GITHUB_ACTOR": "octocat",
            "GITHUB_RUN_ATTEMPT": str(self.attempt),
            "GITHUB_ACTION": "__acme_eval-gate",
            "RUNNER_NAME": f"runner of {self.leg}, attempt {self.attempt}",
            "GITHUB_RETENTION_DAYS": "90",
            "GITHUB_SHA": self.github.state.branches[self.github.state.default_branch],
            "GITHUB_REF": "refs/heads/main",
            "RUNNER_TEMP": str(self.folder / "temp"),
            **merge_variables(self.github, event),
            **with_inputs(given),
        }

    def ended(self, code: int, log: str) -> Ended:
        """What the step left."""
        outputs = read_outputs((self.folder / "output").read_text())
        return Ended(code, log, outputs, (self.folder / "summary").read_text())

    def push(self, url: str, inputs: Mapping[str, str] | None = None, **variables: str) -> Ended:
        """A push to the default branch: its run stores a baseline."""
        self.begin_run(event="push")
        return self.step("push", push_event(self.github), {"agent-endpoint": url, **(inputs or {})}, **variables)

    def pull_request(
        self, pull: PullRequest, url: str, inputs: Mapping[str, str] | None = None, **variables: str
    ) -> Ended:
        """A pull request's run."""
        self.begin_run(
            event="pull_request",
            head_branch=pull.head_ref,
            head_sha=pull.head_sha,
            head_repo=pull.head_repo,
            actor=variables.get("GITHUB_ACTOR", "octocat"),
        )
        given = {"agent-endpoint": url, **(inputs or {})}
        return self.step("pull_request", pull_request_event(self.github, pull), given, **variables)

    def cancelled(self, pull: PullRequest, number: int, *, timeout: float = 120) -> Ended:
        """A pull request's run of fifty cases, to which this signal is sent after the third."""
        self.write_suite(50)

        async def slow(exchange: Exchange) -> None:
            await asyncio.sleep(0.2)
            exchange.answer({"response": "ok", "toolCalls": []})

        with agent(slow) as running:
            event = pull_request_event(self.github, pull)
            process = self.start("pull_request", event, {"agent-endpoint": running.url})
            until = time.monotonic() + 60
            while len(running.requests) < 3 and time.monotonic() < until:
                time.sleep(0.02)
            process.send_signal(number)
            out, _ = process.communicate(timeout=timeout)
        return self.ended(process.returncode, out)


def read_outputs(text: str) -> dict[str, str]:
    """The file of outputs as the runner reads it. Raises ValueError for what it would refuse."""
    found, lines = {}, iter(text.splitlines())
    for line in lines:
        name, arrow, delimiter = line.partition("<<")
        if not arrow:
            raise ValueError(f"Invalid format {line!r}")
        value = []
        for part in lines:
            if part == delimiter:
                break
            value.append(part)
        else:
            raise ValueError(f"Matching delimiter not found {delimiter!r}")
        found[name] = "\n".join(value)
    return found


def merge_variables(github: FakeGitHub, event: Mapping[str, Any]) -> dict[str, str]:
    """What is checked out at an event about a pull request: its test merge. Of other events nothing."""
    about = event.get("pull_request") or {}
    pull = github.state.pulls.get(about.get("number", 0))
    return {"GITHUB_SHA": pull.merge_sha, "GITHUB_REF": f"refs/pull/{pull.number}/merge"} if pull else {}


def repository_facts(github: FakeGitHub) -> dict[str, object]:
    state = github.state
    return {"id": state.id, "full_name": state.full_name, "default_branch": state.default_branch}


def push_event(github: FakeGitHub) -> dict[str, object]:
    branch = github.state.default_branch
    tip = github.state.branches[branch]
    return {
        "ref": f"refs/heads/{branch}",
        "before": "0" * 40,
        "after": tip,
        "repository": repository_facts(github),
        "sender": {"login": "octocat"},
    }


def pull_request_event(github: FakeGitHub, pull: PullRequest, action: str = "synchronize") -> dict[str, object]:
    repo = {"id": github.state.repository_id(pull.head_repo), "full_name": pull.head_repo} if pull.head_repo else None
    return {
        "action": action,
        "before": pull.note_head() if action == "synchronize" else "",
        "number": pull.number,
        "pull_request": {
            "number": pull.number,
            "state": pull.state,
            "draft": pull.draft,
            "head": {"sha": pull.head_sha, "ref": pull.head_ref, "repo": repo},
            "base": {"sha": pull.base_sha, "ref": pull.base_ref, "repo": repository_facts(github)},
            "user": {"login": pull.user},
        },
        "repository": repository_facts(github),
        "sender": {"login": pull.user},
    }
