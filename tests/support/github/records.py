"""The things in a repository, as plain data: a test may change any of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass
class PullRequest:
    """A pull request. `head_repo` is None where the fork was deleted; `head_owner` outlives it."""

    number: int
    head_sha: str
    head_ref: str
    head_repo: str | None
    base_ref: str
    base_sha: str
    state: Literal["open", "closed"] = "open"
    draft: bool = False
    user: str = "octocat"
    title: str = "A change"
    merge_commit_sha: str | None = None  # set and closed: it was merged
    created_at: str = "2026-01-01T00:00:00Z"
    head_owner: str = ""
    locked: bool = False  # its conversation
    merge_sha: str = ""  # its test merge, `refs/pull/N/merge`: the newest one that was made
    labels: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)  # that events have named, the newest last
    timeline: list[tuple[str, str]] = field(default_factory=list)  # what happened to it: GraphQL's type, and when

    def note_head(self) -> str:
        """Note the head that an event names, and return the one before it."""
        if self.heads[-1:] != [self.head_sha]:
            self.heads.append(self.head_sha)
        return self.heads[-2] if len(self.heads) > 1 else ""

    def __post_init__(self) -> None:
        self.head_owner = self.head_owner or (self.head_repo or self.user).split("/", maxsplit=1)[0]

    @property
    def merged(self) -> bool:
        return self.state == "closed" and self.merge_commit_sha is not None


@dataclass
class Comment:
    """A comment on a pull request."""

    id: int
    issue: int
    body: str
    author: str
    author_is_viewer: bool
    created_at: str
    updated_at: str
    minimized: str | None = None  # the classifier it was hidden with
    association: str = "NONE"  # what the author is to the repository, as GitHub says it
    edited_at: str | None = None
    editor: str | None = None  # who edited it last; may be None for an edited one too
    via_app: str | None = None  # the app that wrote it in the author's name

    @property
    def node_id(self) -> str:
        return f"IC_kwDOAAAQks{self.id:08x}"


@dataclass
class Issue:
    """An issue that is no pull request."""

    number: int
    title: str
    body: str
    author: str
    author_is_viewer: bool
    created_at: str
    updated_at: str
    state: Literal["open", "closed"] = "open"
    state_reason: str | None = None
    closed_at: str | None = None


@dataclass
class WorkflowRun:
    """A run of a workflow. A fork's run may well have the `head_branch` "main"."""

    id: int
    event: str
    path: str
    head_branch: str | None
    head_sha: str
    repository_id: int
    head_repository_id: int | None
    head_repository_full_name: str | None
    status: str
    conclusion: str | None
    created_at: str
    run_attempt: int = 1
    actor: str = "octocat"
    started_at: str | None = None
    """When its newest attempt began, where that is not the first."""


@dataclass
class Artifact:
    """An artifact of a run. `zip_bytes` are what a download gives, a zip or not."""

    id: int
    name: str
    run_id: int
    zip_bytes: bytes
    expired: bool
    created_at: str
    digest: str | None
    content_type: str = "application/zip"


@dataclass
class CheckRun:
    """A check run. `fields` are those that a client gave, without its annotations."""

    id: int
    fields: dict[str, Any]
    annotations: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Status:
    """A commit status."""

    id: int
    sha: str
    state: str
    context: str
    description: str | None
    target_url: str | None
    created_at: str
