"""Webhook event that started the workflow, as far as it is used (docs.github.com)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from pydantic import Field, JsonValue, ValidationError

from eval_gate.errors import GateError
from eval_gate.github.client import ApiResponse
from eval_gate.github.commits import PullRequest, RepositoryName
from eval_gate.model import limits

MAX_EVENT_BYTES: Final = limits.EVENT_BYTES
_QUEUE: Final = re.compile(r"/pr-(\d+)-[0-9a-f]{40}$")
"""The end of a merge queue's branch: `gh-readonly-queue/<base, maybe with slashes>/pr-<number>-<sha>`."""
_QUEUED: Final = re.compile(r"(?:refs/heads/)?gh-readonly-queue/(.+)/pr-\d+-[0-9a-f]{40}")


def find_queue_target(ref: str) -> str | None:
    """Return the target branch of the merge queue that made this branch, or None for any other branch."""
    match = _QUEUED.fullmatch(ref)
    return match[1] if match else None


class UserPayload(ApiResponse):
    """Account in an event payload."""

    login: str


class MergeGroupPayload(ApiResponse):
    """Merge group to check. It may hold several pull requests; only the last one is named."""

    head_sha: str
    head_ref: str
    base_sha: str
    base_ref: str = ""

    @property
    def base_branch(self) -> str:
        """The branch that it is merged into; empty if unknown."""
        return self.base_ref.removeprefix("refs/heads/") or find_queue_target(self.head_ref) or ""

    @property
    def pull_number(self) -> int | None:
        """The last pull request of the group."""
        match = _QUEUE.search(self.head_ref)
        return int(match[1]) if match else None


class WorkflowRunPayload(ApiResponse):
    """Workflow run of a `workflow_run` event. Its list of pull requests is empty for forks, so not used."""

    id: int
    event: str
    path: str = ""
    conclusion: str | None = None
    head_sha: str
    run_attempt: int | None = None
    head_repository: RepositoryName | None = None
    actor: UserPayload | None = None


class IssuePayload(ApiResponse):
    """Issue or pull request that a comment is on."""

    number: int
    pull_request: dict[str, JsonValue] | None = None
    """None for an issue that is no pull request."""


class CommentPayload(ApiResponse):
    """Comment of an event, as it was when the event was made."""

    id: int
    body: str | None = None


class WorkflowEvent(ApiResponse):
    """Event of a workflow. Parts that belong to other kinds of events are None."""

    name: str
    action: str | None = None
    previous_head: str = Field(default="", alias="before")
    """The head before a push to a pull request; empty for other actions."""
    repository: RepositoryName | None = None
    pull_request: PullRequest | None = None
    merge_group: MergeGroupPayload | None = None
    workflow_run: WorkflowRunPayload | None = None
    issue: IssuePayload | None = None
    comment: CommentPayload | None = None
    inputs: dict[str, JsonValue] | None = None
    sender: UserPayload | None = None


def read_event(name: str, file: Path) -> WorkflowEvent:
    """Read the event from its file. Raises GateError `invalid-event` if the file cannot be used."""
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_EVENT_BYTES)
        return WorkflowEvent.model_validate({**json.loads(data), "name": name})
    except (OSError, ValueError, TypeError, RecursionError) as error:
        what = f"{error.error_count()} fields are invalid" if isinstance(error, ValidationError) else str(error)
        raise GateError(
            "invalid-event", f"the event file {file} cannot be used: {what[:300]}", "run inside a GitHub workflow"
        ) from error
