"""The event that started the workflow, as far as we use it (docs.github.com, "Webhook events and payloads")."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from eval_gate.errors import GateError
from eval_gate.model import limits

MAX_EVENT_BYTES: Final = limits.EVENT_BYTES
_QUEUE: Final = re.compile(r"/pr-(\d+)-[0-9a-f]{40}$")
"""The end of a merge queue's branch: `gh-readonly-queue/<base, maybe with slashes>/pr-<number>-<sha>`."""
_QUEUED: Final = re.compile(r"(?:refs/heads/)?gh-readonly-queue/(.+)/pr-\d+-[0-9a-f]{40}")


def branch_of_queue(ref: str) -> str | None:
    """The branch whose merge queue made a branch; None for every other branch."""
    match = _QUEUED.fullmatch(ref)
    return match[1] if match else None


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Repository(_Part):
    """A repository by name."""

    id: int | None = None
    full_name: str
    default_branch: str | None = None


class Owner(_Part):
    """Somebody by login."""

    login: str


class Head(_Part):
    """One side of a pull request. `repo` is None when the fork was deleted."""

    sha: str
    ref: str
    repo: Repository | None = None


class PullRequestPayload(_Part):
    """A pull request as its event tells it."""

    number: int
    state: str = "open"
    head: Head
    base: Head
    user: Owner | None = None


class MergeGroup(_Part):
    """What a merge queue wants checked. A group may hold several pull requests; only the last is named."""

    head_sha: str
    head_ref: str
    base_sha: str
    base_ref: str = ""

    @property
    def base_branch(self) -> str:
        """The branch that it is merged into; empty where nobody tells."""
        return self.base_ref.removeprefix("refs/heads/") or branch_of_queue(self.head_ref) or ""

    @property
    def pull_number(self) -> int | None:
        """The last pull request of the group."""
        match = _QUEUE.search(self.head_ref)
        return int(match[1]) if match else None


class WorkflowRunPayload(_Part):
    """The run that started a `workflow_run` workflow. Its list of pull requests is empty for forks: not used."""

    id: int
    event: str
    path: str = ""
    conclusion: str | None = None
    head_sha: str
    run_attempt: int | None = None
    head_repository: Repository | None = None
    actor: Owner | None = None


class Event(_Part):
    """An event. The parts that belong to other kinds of events are None."""

    name: str
    action: str | None = None
    repository: Repository | None = None
    pull_request: PullRequestPayload | None = None
    merge_group: MergeGroup | None = None
    workflow_run: WorkflowRunPayload | None = None
    inputs: dict[str, JsonValue] | None = None
    sender: Owner | None = None


def read_event(name: str, file: Path) -> Event:
    """Raises GateError `bad-event` for a file that is none."""
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_EVENT_BYTES)
        return Event.model_validate({**json.loads(data), "name": name})
    except (OSError, ValueError, TypeError, RecursionError) as error:
        what = f"{error.error_count()} fields are wrong" if isinstance(error, ValidationError) else str(error)
        raise GateError(
            "bad-event", f"the event file {file} cannot be used: {what[:300]}", "run inside a GitHub workflow"
        ) from error
