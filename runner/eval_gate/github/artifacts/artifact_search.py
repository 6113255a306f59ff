"""Search for artifacts by name, and the rules that say which may be a baseline.

The content of an artifact is no proof of its origin. GitHub is the source for its branch, its repository, its event
and its workflow: a baseline must come from reviewed code (docs/baselines.md explains each rule to users).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from datetime import UTC, datetime
from itertools import islice
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import quote

from pydantic import AwareDatetime

from eval_gate.github.background_calls import start_in_background
from eval_gate.github.client import PER_PAGE, ApiResponse, GitHubClient
from eval_gate.github.commits import ACTIONS, BaseCommit, WorkflowRun, iter_ancestors
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.model.result import Shard
from eval_gate.model.selection import CaseSelection
from eval_gate.struct import FrozenStruct, Struct, field, replace

MAX_LISTED_ARTIFACTS: Final = 300
MAX_RUNS: Final = 20
"""Runs of the branch that are asked one by one where others fill the list by name."""
MAX_RUNS_LISTED: Final = 300
"""Runs of the branch among which the nearest are chosen then."""
MAX_OTHER_RUNS: Final = 10
"""Runs whose artifacts of any name are listed, where none of this gate's names has a result."""
MAX_RUNS_OF_WORKFLOW: Final = 2
"""Maximum of these for one workflow: the newest may not have stored its result."""
TRUSTED_EVENTS: Final = frozenset({"push", "schedule", "workflow_dispatch"})
"""Events that run what is on the branch, never what a pull request proposes."""
MERGE_GROUP: Final = "merge_group"
"""The event that runs what the branch becomes next, or never: its result counts where the branch had that commit."""


OTHER_EVENTS: Final = frozenset({"create", "release", "deployment", "deployment_status", "repository_dispatch"})
"""Events that make no baselines, although they run what is on the branch."""


class ArtifactRun(ApiResponse):
    """Workflow run that an artifact belongs to."""

    id: int
    repository_id: int
    head_repository_id: int | None = None
    """None where the fork was deleted."""
    head_branch: str | None = None
    head_sha: str


class Artifact(ApiResponse):
    """Artifact as GitHub lists it."""

    id: int
    name: str
    expired: bool
    created_at: AwareDatetime | None = None
    digest: str | None = None
    size_in_bytes: int = 0
    workflow_run: ArtifactRun | None = None


class BaselineCriteria(FrozenStruct):
    """Criteria of a baseline: which artifacts may be one, and which commit it must be nearest to."""

    names: tuple[str, ...]
    """What it may be called; where a run has several of them, the later name first."""
    branch: str
    workflows: tuple[str, ...]
    """Paths or file names of workflow files; empty for any."""
    base: BaseCommit
    """The commit that it must be nearest to."""
    own_run_id: int
    exact_commit_branch: str | None = None
    """Only results of the very commit will do, be they of a run on this branch; None takes those before it too."""
    evaluated_commit: str | None = None
    """The commit that is evaluated here: a result of its own serves only where the gate passed. None for any result."""
    shard: Shard | None = None
    """The part of the cases that is run here; None for all of them."""
    chosen_cases: tuple[CaseSelection, ...] = ()
    """What is chosen here: a result of the same choice, or of more, will do. Empty where no case is left out."""
    gate: str | None = None
    """The key of the gate that may have made it; None for any."""
    gates: frozenset[str] = frozenset()
    """The keys of this gate in all workflows that count: of a run's results the one of such a gate is taken."""

    @property
    def name(self) -> str:
        """The first of its names, by which messages speak of it."""
        return self.names[0]

    @property
    def near_commit(self) -> str | None:
        """The commit that it must be nearest to, where that is known; None for any."""
        return self.base.commit

    @property
    def branches(self) -> frozenset[str]:
        """The branches whose runs count."""
        return frozenset({self.branch, self.exact_commit_branch or self.branch})


EXPIRED: Final = "expired"
"""Why an artifact cannot be used that GitHub keeps no longer."""


class SearchTrail(Struct):
    """Artifacts that a search has seen and rejected, with the reasons."""

    seen_ids: set[int] = field(default_factory=set)
    rejection_reasons: dict[int, str] = field(default_factory=dict)
    has_searched_runs: bool = False
    """The runs of the branch were asked, not only the list by name."""
    has_more: bool = False
    """More were listed than were looked at: that none can be used is not known."""

    @property
    def has_expired(self) -> bool:
        """Whether an artifact that was seen would still do if it had been kept for longer."""
        return EXPIRED in self.rejection_reasons.values()

    def reject_artifact(self, artifact: Artifact, why: str) -> None:
        """Note that an artifact cannot be used, and why."""
        self.seen_ids.add(artifact.id)
        self.rejection_reasons[artifact.id] = why

    def __str__(self) -> str:
        """`seen 3: 2 expired, 1 from a fork`; empty when all was well."""
        if not self.rejection_reasons:
            return ""
        reasons = Counter(self.rejection_reasons.values())
        return f"seen {len(self.seen_ids)}: " + ", ".join(f"{count} {why}" for why, count in reasons.items())


PendingLists = list[Future[list[Artifact]]]
"""The artifacts of each name, on their way."""


def start_listing(client: GitHubClient, criteria: BaselineCriteria) -> PendingLists:
    """Have the artifacts of every name listed, newest first, all at the same time."""

    def of_name(name: str) -> Future[list[Artifact]]:
        doing, query = f"listing the artifacts {name}", {"name": name}
        artifacts = client.iter_items(
            doing, "/actions/artifacts", Artifact, permission=ACTIONS, query=query, key="artifacts"
        )
        return start_in_background(lambda: list(islice(artifacts, MAX_LISTED_ARTIFACTS)), doing)

    return [of_name(name) for name in reversed(criteria.names)]


def list_usable(criteria: BaselineCriteria, lists: PendingLists) -> list[Artifact]:
    """List the artifacts that nothing in the listing disqualifies."""
    return [one for coming in lists for one in coming.result() if _is_usable(one, criteria, SearchTrail())]


def iter_candidates(
    client: GitHubClient, criteria: BaselineCriteria, trail: SearchTrail, lists: PendingLists
) -> Iterator[Artifact]:
    """Yield usable artifacts: the commit's own, then of earlier commits, nearest first, then the rest, newest first.

    If other artifacts fill a list by name, the runs of the commit are read too, and then the branch's newest runs.
    """
    listings = [coming.result() for coming in lists]
    listed = sorted((one for listing in listings for one in listing), key=_get_creation_time, reverse=True)
    usable = [one for one in listed if _is_usable(one, criteria, trail)]
    if all(len(listing) < MAX_LISTED_ARTIFACTS for listing in listings):
        yield from _iter_nearest(client, usable, criteria)
        return
    trail.has_searched_runs = True
    runs = _BaselineRuns(client, criteria, trail)
    own = [one for one in usable if _get_sha(one) == criteria.near_commit]
    yield from own
    if criteria.near_commit:  # the caller found none of the others usable
        yield from runs.iter_artifacts(runs.iter_commit_runs(criteria.near_commit))
    if criteria.exact_commit_branch:
        return
    yield from _iter_nearest(client, [one for one in usable if one not in own], criteria, runs)


def iter_newest_run_artifacts(
    client: GitHubClient, criteria: BaselineCriteria, trail: SearchTrail
) -> Iterator[Artifact]:
    """Yield candidates from the newest runs of the wanted workflows on the branch: others crowd the list by name."""
    trail.has_searched_runs = True
    runs = _BaselineRuns(client, criteria, trail)
    if criteria.exact_commit_branch:
        yield from runs.iter_artifacts(runs.iter_commit_runs(criteria.near_commit) if criteria.near_commit else ())
    else:
        yield from _iter_nearest(client, [], criteria, runs)


def _iter_nearest(
    client: GitHubClient, usable: list[Artifact], criteria: BaselineCriteria, runs: _BaselineRuns | None = None
) -> Iterator[Artifact]:
    """Yield the artifacts, and with `runs` those of the branch's newest runs, nearest first, each once."""
    by_commit: dict[str, list[Artifact]] = defaultdict(list)
    for one in usable:
        by_commit[_get_sha(one)].append(one)
    runs_by_commit: dict[str, list[WorkflowRun]] = defaultdict(list)
    for run in runs.iter_branch_runs() if runs else ():
        runs_by_commit[run.head_sha].append(run)
    if criteria.near_commit:
        yield from by_commit.pop(criteria.near_commit, ())
        if criteria.exact_commit_branch:
            return
        for sha in iter_ancestors(client, criteria.near_commit) if by_commit or runs_by_commit else ():
            yield from by_commit.pop(sha, ())
            if runs:
                yield from runs.iter_artifacts(runs_by_commit.pop(sha, ()))
            if not by_commit and not runs_by_commit:
                return
    # the branch's others, newest first: without merge groups, because they may never be merged
    rest = [one for group in by_commit.values() for one in group if _get_branch(one) == criteria.branch]
    yield from sorted(rest, key=_get_creation_time, reverse=True)
    if runs:
        yield from runs.iter_artifacts([run for group in runs_by_commit.values() for run in group])


class _BaselineRuns:
    """Workflow runs that produce baselines, requested from GitHub if the artifact list by name has none."""

    def __init__(self, client: GitHubClient, criteria: BaselineCriteria, trail: SearchTrail) -> None:
        self._client, self._criteria, self._trail = client, criteria, trail
        self._checked_runs: set[int] = set()

    def iter_commit_runs(self, sha: str) -> Iterator[WorkflowRun]:
        for branch in sorted(self._criteria.branches):
            yield from self._iter_trusted(self._iter_workflow_runs("", branch, head_sha=sha))

    def iter_branch_runs(self, limit: int = MAX_RUNS_LISTED) -> Iterator[WorkflowRun]:
        """Yield the newest trusted runs of the branch, newest first, at most `limit` of each workflow."""
        for workflow in self._criteria.workflows or ("",):
            runs = list(islice(self._iter_workflow_runs(workflow, self._criteria.branch), limit))
            self._trail.has_more = self._trail.has_more or len(runs) == limit
            yield from self._iter_trusted(runs)

    def iter_artifacts(self, runs: Iterable[WorkflowRun]) -> Iterator[Artifact]:
        """Yield the artifacts of the runs that may be a baseline. At most `MAX_RUNS` runs are queried in all."""
        for run in runs:
            if run.id in self._checked_runs:
                continue
            if len(self._checked_runs) == MAX_RUNS:
                self._trail.has_more = True
                return
            self._checked_runs.add(run.id)
            for one in list_run_artifacts(self._client, run.id, *reversed(self._criteria.names)):
                if one.id not in self._trail.rejection_reasons and _is_usable(one, self._criteria, self._trail):
                    yield one

    def _iter_trusted(self, runs: Iterable[WorkflowRun]) -> Iterator[WorkflowRun]:
        return (
            run for run in runs if not find_distrust_reason(run, self._criteria) and run.id != self._criteria.own_run_id
        )

    def _iter_workflow_runs(self, workflow: str, branch: str, **further: str) -> Iterator[WorkflowRun]:
        """Yield the runs of one workflow on the branch, or of all workflows if `workflow` is empty."""
        query = {**further, "branch": branch, "exclude_pull_requests": "true"}
        segment = f"/workflows/{quote(PurePosixPath(workflow).name)}" if workflow else ""
        doing = f"listing the runs of {workflow or self._criteria.branch}"[:120]
        path = f"/actions{segment}/runs"
        try:
            yield from self._client.iter_items(
                doing, path, WorkflowRun, permission=ACTIONS, query=query, key="workflow_runs"
            )
        except GitHubError as error:
            if error.kind is not FailureKind.NOT_FOUND or not workflow:
                raise
            remedy = "check the spelling in `baseline-workflow`"
            detail = f"workflow {workflow} not found"[:200]
            raise GitHubError(error.kind, doing, detail, remedy=remedy) from error


def _get_sha(artifact: Artifact) -> str:
    assert artifact.workflow_run is not None
    return artifact.workflow_run.head_sha


def _get_branch(artifact: Artifact) -> str | None:
    assert artifact.workflow_run is not None
    return artifact.workflow_run.head_branch


def find_distrust_reason(run: WorkflowRun, criteria: BaselineCriteria) -> str:
    """Return why a run makes no baselines, as the trail words it; empty if it does."""
    if not run.is_from_own_repository:
        return "from a fork"
    if run.event not in TRUSTED_EVENTS and not (
        run.event == MERGE_GROUP and is_queue_branch(run.head_branch, criteria)
    ):
        return f"from a run of {run.event}"
    if not is_wanted_workflow(run.workflow, criteria.workflows):
        return f"of another workflow ({run.workflow})"
    return ""


def is_queue_branch(branch: str | None, criteria: BaselineCriteria) -> bool:
    """Whether a branch is one that the merge queue of the wanted branch made: its head may become that branch's."""
    return branch is not None and branch.startswith(f"gh-readonly-queue/{criteria.branch}/pr-")


def is_wanted_workflow(path: str, workflows: tuple[str, ...]) -> bool:
    """Whether a workflow's path is one of those wanted, each a path or a file name."""
    return not workflows or any(path == one or PurePosixPath(path).name == one for one in workflows)


def iter_other_artifacts(client: GitHubClient, criteria: BaselineCriteria) -> Iterator[tuple[Artifact, WorkflowRun]]:
    """Yield the artifacts under other names of runs that could make baselines, those of the wanted workflows first.

    Only runs of the base and of commits before it count. Of each workflow and name the newest is enough.
    """
    near = criteria.near_commit
    base = frozenset(iter_ancestors(client, near, MAX_RUNS_LISTED)) if near else None
    by_workflow: dict[str, list[WorkflowRun]] = defaultdict(list)
    for run in _BaselineRuns(client, replace(criteria, workflows=()), SearchTrail()).iter_branch_runs(PER_PAGE):
        if base is None or run.head_sha in base:
            by_workflow[run.workflow].append(run)
    wanted_first = sorted(by_workflow, key=lambda path: not is_wanted_workflow(path, criteria.workflows))
    runs = [run for path in wanted_first for run in by_workflow[path][:MAX_RUNS_OF_WORKFLOW]]
    seen_names: set[tuple[str, str]] = set()
    for run in runs[:MAX_OTHER_RUNS]:
        for one in list_run_artifacts(client, run.id):
            if one.name not in criteria.names and (run.workflow, one.name) not in seen_names and not one.expired:
                seen_names.add((run.workflow, one.name))
                yield one, run


def list_run_artifacts(client: GitHubClient, run_id: int, *names: str) -> tuple[Artifact, ...]:
    """List the artifacts of one run, of any name without `names`: later attempts and newer ones first."""
    doing = f"listing the artifacts of run {run_id}"
    path = f"/actions/runs/{run_id}/artifacts"

    def of_name(query: dict[str, str]) -> Future[tuple[Artifact, ...]]:
        return start_in_background(
            lambda: client.get_page(doing, path, Artifact, permission=ACTIONS, query=query, key="artifacts"), doing
        )

    lists = [of_name(query) for query in [{"name": name} for name in names] or [{}]]
    return tuple(sorted((one for coming in lists for one in coming.result()), key=_get_creation_time, reverse=True))


def has_newer_run(client: GitHubClient, workflow: str, branch: str, run_id: int) -> bool:
    """Whether a newer run of this workflow on the branch has completed, among the newest. Raises GitHubError."""
    path = f"/actions/workflows/{quote(PurePosixPath(workflow).name)}/runs"
    query = {"branch": branch, "status": "completed", "exclude_pull_requests": "true"}
    doing = f"looking for newer runs of {branch}"[:120]
    runs = client.get_page(doing, path, WorkflowRun, permission=ACTIONS, query=query, key="workflow_runs")
    return any(one.id > run_id and one.is_from_own_repository and one.event in TRUSTED_EVENTS for one in runs)


def _is_usable(artifact: Artifact, criteria: BaselineCriteria, trail: SearchTrail) -> bool:
    """Whether the list says nothing against it. What belongs to other branches is not worth a word."""
    run = artifact.workflow_run
    if run is None or run.id == criteria.own_run_id:
        return False
    if is_queue_branch(run.head_branch, criteria):
        return not artifact.expired and run.head_repository_id == run.repository_id
    if run.head_branch not in criteria.branches:
        return False
    trail.seen_ids.add(artifact.id)
    if run.head_repository_id != run.repository_id:
        trail.reject_artifact(artifact, "from a fork")
        return False
    if artifact.expired:
        trail.reject_artifact(artifact, EXPIRED)
        return False
    return True


def _get_creation_time(artifact: Artifact) -> datetime:
    return artifact.created_at or datetime.min.replace(tzinfo=UTC)
