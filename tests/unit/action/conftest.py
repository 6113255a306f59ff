"""A GitHub, and a step of a job in it, planned from an event as the action plans it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from eval_gate.action.inputs import read_inputs
from eval_gate.action.step import Step
from eval_gate.action.step_log import StepLog
from eval_gate.action.step_plan import PlanFacts, make_step_plan
from eval_gate.github.client import GitHubClient
from eval_gate.github.event import WorkflowEvent, read_event
from eval_gate.github.workflow_commands import WorkflowCommands
from eval_gate.github.workflow_environment import WorkflowEnvironment, read_workflow_environment
from eval_gate.text.secret import Secret
from tests.support.github import GATE, FakeGitHub, fake_github
from tests.support.jobs import merge_variables, repository_facts, with_inputs


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with fake_github() as server:
        yield server
        assert server.violations == []
        assert server.faults.unused == []


@pytest.fixture
def client(github: FakeGitHub) -> Iterator[GitHubClient]:
    opened = GitHubClient(github.base, Secret(github.token), github.state.full_name, sleep=lambda _: None)
    yield opened
    opened.close()


@dataclass
class Desk:
    """Where a step is made: `desk.step("push", {...}, {"comment": "never"})`."""

    github: FakeGitHub
    client: GitHubClient
    folder: Path
    stream: io.StringIO = field(default_factory=io.StringIO)

    def __post_init__(self) -> None:
        self.log = StepLog(WorkflowCommands(self.stream))
        for name in ("output", "summary"):
            (self.folder / name).touch()
        for name in ("workspace", "temp"):
            (self.folder / name).mkdir()

    def environment(self, event_name: str, **more: str) -> WorkflowEnvironment:
        variables = self.github.environment(
            GITHUB_SERVER_URL="https://github.com",
            GITHUB_EVENT_NAME=event_name,
            GITHUB_EVENT_PATH=str(self.folder / "event.json"),
            GITHUB_OUTPUT=str(self.folder / "output"),
            GITHUB_STEP_SUMMARY=str(self.folder / "summary"),
            GITHUB_WORKSPACE=str(self.folder / "workspace"),
            GITHUB_WORKFLOW_REF=f"acme/bot/{GATE}@refs/heads/main",
            GITHUB_JOB="gate",
            GITHUB_ACTOR="octocat",
            GITHUB_SHA=self.github.state.branches["main"],
            GITHUB_REF="refs/heads/main",
            RUNNER_TEMP=str(self.folder / "temp"),
        )
        return read_workflow_environment(variables | more)

    def event(self, name: str, data: Mapping[str, object]) -> WorkflowEvent:
        file = self.folder / "event.json"
        file.write_text(json.dumps({"repository": repository_facts(self.github)} | dict(data)))
        return read_event(name, file)

    def step(
        self,
        event_name: str,
        data: Mapping[str, object],
        inputs: Mapping[str, str] | None = None,
        known: Mapping[str, object] | None = None,
        **variables: str,
    ) -> Step:
        given = {"github-token": self.github.token} | dict(inputs or {})
        settings = read_inputs(with_inputs(given))
        environment = self.environment(event_name, **(merge_variables(self.github, data) | variables))
        facts = PlanFacts(**{"default_branch": "main", **(known or {})})
        plan = make_step_plan(environment, self.event(event_name, data), settings, facts)
        return Step(environment, settings, plan, self.client)

    @property
    def said(self) -> str:
        return self.stream.getvalue()


@pytest.fixture
def desk(github: FakeGitHub, client: GitHubClient, tmp_path: Path) -> Desk:
    return Desk(github, client, tmp_path)
