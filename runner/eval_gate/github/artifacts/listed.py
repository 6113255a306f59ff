"""Artifacts by name, and which of them may serve as a baseline.

An artifact says nothing about itself that could be believed. Whether it came from the default branch, from this
repository's own code, from an event that runs reviewed code, and from the workflow that makes baselines, is asked of
GitHub (docs/baselines.md explains each rule to users).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import UTC, datetime
from itertools import islice
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import quote

from pydantic import AwareDatetime

from eval_gate.github.client import ApiAnswer, Client
from eval_gate.github.commits import ACTIONS, RunFacts, ancestors, workflow_run
from eval_gate.github.side_by_side import begin
from eval_gate.model.result import Shard
from eval_gate.struct import FrozenStruct, Struct, field

MAX_LISTED: Final = 300
MAX_RUNS: Final = 20
"""Runs of the branch that are asked one by one where the list by name led nowhere."""
TRUSTED_EVENTS: Final = frozenset({"push", "schedule", "workflow_dispatch"})
"""Events that run what is on the branch, never what a pull request proposes."""


class ArtifactRun(ApiAnswer):
    """The run an artifact belongs to."""

    id: int
    repository_id: int
    head_repository_id: int | None = None
    """None where the fork was deleted."""
    head_branch: str | None = None
    head_sha: str


class Artifact(ApiAnswer):
    """One artifact as GitHub lists it."""

    id: int
    name: str
    expired: bool
    created_at: AwareDatetime | None = None
    digest: str | None = None
    workflow_run: ArtifactRun | None = None


class BaselineSearch(FrozenStruct):
    """Which artifacts may be a baseline, and to which commit the nearest is sought."""

    names: tuple[str, ...]
    """What it may be called; where a run has several of them, the later name first."""
    branch: str
    workflows: tuple[str, ...]
    """Paths or file names of workflow files; empty for any."""
    near: str | None
    """The commit; None for none, or for where another one left the branch."""
    own_run_id: int
    fork_point_of: str | None = None
    """That other commit."""
    shard: Shard | None = None
    """The part of the cases that is run here; None for all of them."""
    gate: str | None = None
    """The key of the gate that may have made it; None for any."""

    @property
    def name(self) -> str:
        """The first of its names, by which messages speak of it."""
        return self.names[0]


class Trail(Struct):
    """What was seen and not taken, for the sentence that says so."""

    seen: set[int] = field(default_factory=set)
    rejected: dict[int, str] = field(default_factory=dict)
    more: bool = False
    """There are more than were looked at."""

    def reject(self, artifact: Artifact, why: str) -> None:
        """Note that an artifact cannot be used, and why."""
        self.seen.add(artifact.id)
        self.rejected[artifact.id] = why

    def __str__(self) -> str:
        """`seen 3: 2 expired, 1 from a fork`; empty when all was well."""
        if not self.rejected:
            return ""
        reasons = Counter(self.rejected.values())
        return f"seen {len(self.seen)}: " + ", ".join(f"{count} {why}" for why, count in reasons.items())


Lists = list[Future[list[Artifact]]]
"""The artifacts of each name, on their way."""


def begin_listing(client: Client, wanted: BaselineSearch) -> Lists:
    """Have the artifacts of every name listed, newest first, all at the same time."""

    def of_name(name: str) -> Future[list[Artifact]]:
        return begin(lambda: list(islice(_listed(client, name), MAX_LISTED)), f"listing the artifacts {name}")

    return [of_name(name) for name in reversed(wanted.names)]


def candidates(client: Client, wanted: BaselineSearch, trail: Trail, lists: Lists) -> Iterator[Artifact]:
    """Artifacts that may be trusted as far as the list tells, nearest to `wanted.near` first.

    The commit's own, then those of the commits before it, nearest first, then the rest, newest first.
    """
    listed = []
    for coming in lists:
        found = coming.result()
        trail.more = trail.more or len(found) == MAX_LISTED
        listed += found
    listed.sort(key=_made, reverse=True)
    yield from _nearest_first(client, [one for one in listed if _usable(one, wanted, trail)], wanted)


def of_newest_runs(client: Client, wanted: BaselineSearch, trail: Trail) -> Iterator[Artifact]:
    """The same, asked of the wanted workflows' newest runs on the branch, where others crowd the list by name."""
    found = [one for one in _by_runs(client, wanted) if one.id not in trail.rejected and _usable(one, wanted, trail)]
    yield from _nearest_first(client, found, wanted)


def _nearest_first(client: Client, usable: list[Artifact], wanted: BaselineSearch) -> Iterator[Artifact]:
    by_commit: dict[str, list[Artifact]] = defaultdict(list)
    for one in usable:
        assert one.workflow_run is not None
        by_commit[one.workflow_run.head_sha].append(one)
    if wanted.near:
        yield from by_commit.pop(wanted.near, ())
        for sha in ancestors(client, wanted.near) if by_commit else ():
            yield from by_commit.pop(sha, ())
            if not by_commit:
                return
    yield from sorted((one for group in by_commit.values() for one in group), key=_made, reverse=True)


def trusted(client: Client, artifact: Artifact, wanted: BaselineSearch, trail: Trail) -> RunFacts | None:
    """The artifact's run, where it is one that makes baselines."""
    assert artifact.workflow_run is not None
    run = workflow_run(client, artifact.workflow_run.id)
    if not run.of_this_repository:
        trail.reject(artifact, "from a fork")
    elif run.event not in TRUSTED_EVENTS:
        trail.reject(artifact, f"from a run of {run.event}")
    elif not is_workflow(run.workflow, wanted.workflows):
        trail.reject(artifact, f"of another workflow ({run.workflow})")
    else:
        return run
    return None


def is_workflow(path: str, wanted: tuple[str, ...]) -> bool:
    """Whether a workflow's path is one of those wanted, each a path or a file name."""
    return not wanted or any(path == one or PurePosixPath(path).name == one for one in wanted)


def artifacts_of_run(client: Client, run_id: int, *names: str) -> tuple[Artifact, ...]:
    """The artifacts of these names of one run, the newest first: of a later attempt before those of an earlier one."""
    doing = f"listing the artifacts of run {run_id}"
    path = f"/actions/runs/{run_id}/artifacts"

    def of_name(name: str) -> Future[tuple[Artifact, ...]]:
        query = {"name": name}
        return begin(
            lambda: client.page(doing, path, Artifact, permission=ACTIONS, query=query, key="artifacts"), doing
        )

    lists = [of_name(name) for name in names]
    return tuple(sorted((one for coming in lists for one in coming.result()), key=_made, reverse=True))


def names_of_run(client: Client, run_id: int) -> frozenset[str]:
    """What the artifacts of one run are called; of very many the newest hundred."""
    doing = f"listing the artifacts of run {run_id}"
    path = f"/actions/runs/{run_id}/artifacts"
    return frozenset(one.name for one in client.page(doing, path, Artifact, permission=ACTIONS, key="artifacts"))


def _listed(client: Client, name: str) -> Iterator[Artifact]:
    """The artifacts of this name, newest first."""
    doing = f"listing the artifacts {name}"
    query = {"name": name}
    return client.pages(doing, "/actions/artifacts", Artifact, permission=ACTIONS, query=query, key="artifacts")


def _by_runs(client: Client, wanted: BaselineSearch) -> Iterator[Artifact]:
    """The artifacts of the newest runs on the branch: in a busy repository pull requests fill the list by name."""
    for workflow in wanted.workflows:
        path = f"/actions/workflows/{quote(PurePosixPath(workflow).name)}/runs"
        query = {"branch": wanted.branch, "exclude_pull_requests": "true"}
        runs = client.pages(
            f"listing the runs of {workflow}", path, RunFacts, permission=ACTIONS, query=query, key="workflow_runs"
        )
        trusted_runs = (run for run in runs if run.event in TRUSTED_EVENTS and run.of_this_repository)
        for run in islice(trusted_runs, MAX_RUNS):
            yield from artifacts_of_run(client, run.id, *reversed(wanted.names))


def _usable(artifact: Artifact, wanted: BaselineSearch, trail: Trail) -> bool:
    """Whether the list says nothing against it. What belongs to other branches is not worth a word."""
    run = artifact.workflow_run
    if run is None or run.head_branch != wanted.branch or run.id == wanted.own_run_id:
        return False
    trail.seen.add(artifact.id)
    if run.head_repository_id != run.repository_id:
        trail.reject(artifact, "from a fork")
        return False
    if artifact.expired:
        trail.reject(artifact, "expired")
        return False
    return True


def _made(artifact: Artifact) -> datetime:
    return artifact.created_at or datetime.min.replace(tzinfo=UTC)
