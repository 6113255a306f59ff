"""Earlier runs of the same pull request whose results may be reused.

The workflow of a pull request makes their artifacts itself. One commit could forge a result and the next one remove
the forger, so that the final diff does not show it. Therefore, only documents may differ since the earlier run. GitHub
says what differs, which commit the run was for, and that no other test merge of this commit can have been evaluated:
a second pull request of the same branch, or an earlier base branch, could hold the forger instead.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import quote

from pydantic import AwareDatetime, Field

from eval_gate.action.step import Step
from eval_gate.action.step_log import StepLog
from eval_gate.errors import GateError
from eval_gate.github.artifacts.artifact_search import list_run_artifacts
from eval_gate.github.artifacts.baseline_finder import open_result_archive
from eval_gate.github.artifacts.download import MAX_ARCHIVE_BYTES, BadArchiveError
from eval_gate.github.client import PER_PAGE, ApiResponse
from eval_gate.github.commits import ACTIONS, MAX_CHANGED_FILES, PULLS, WorkflowRun, compare_commits
from eval_gate.github.failure import GitHubError
from eval_gate.model.result import RunResult
from eval_gate.model.reuse import EvaluatedState, is_document
from eval_gate.results.run_reader import read_archived_head, read_archived_run
from eval_gate.text.globs import covers_file

EVENT: Final = "pull_request"
"""The only event whose runs evaluate a test merge or the head of a pull request, and no input of a person."""
MAX_LISTED_RUNS: Final = 20
"""Runs of the branch that are listed, newest first."""
MAX_READ_RUNS: Final = 3
"""Runs whose artifacts are listed until one has a result."""
_UNFINISHED: Final = frozenset({None, "cancelled", "skipped", "stale"})
"""Conclusions that say nothing about the evaluated state."""
_PULLS_OF_BRANCH: Final = """
query($owner: String!, $name: String!, $number: Int!, $branch: String!) {
  repository(owner: $owner, name: $name) {
    pullRequests(headRefName: $branch, first: 100) { nodes { number isCrossRepository } }
    pullRequest(number: $number) {
      createdAt
      timelineItems(last: 1, itemTypes: [
        BASE_REF_CHANGED_EVENT, AUTOMATIC_BASE_CHANGE_SUCCEEDED_EVENT, HEAD_REF_FORCE_PUSHED_EVENT, REOPENED_EVENT
      ]) {
        nodes {
          ... on BaseRefChangedEvent { createdAt }
          ... on AutomaticBaseChangeSucceededEvent { createdAt }
          ... on HeadRefForcePushedEvent { createdAt }
          ... on ReopenedEvent { createdAt }
        }
      }
    }
  }
}
"""


class _Event(ApiResponse):
    created_at: AwareDatetime = Field(alias="createdAt")


class _Events(ApiResponse):
    nodes: tuple[_Event, ...]


class _PullHistory(_Event):
    events: _Events = Field(alias="timelineItems")


class _PullName(ApiResponse):
    number: int
    is_from_fork: bool = Field(alias="isCrossRepository")


class _PullNames(ApiResponse):
    nodes: tuple[_PullName, ...]


class _BranchHistory(ApiResponse):
    pull: _PullHistory = Field(alias="pullRequest")
    pulls: _PullNames = Field(alias="pullRequests")


def find_own_runs(step: Step, state: EvaluatedState, log: StepLog) -> tuple[RunResult, ...]:
    """Find the result of the newest earlier run of this pull request, if only documents differ since; at most one.

    `state` names what the suites measure, which is never a document. Without such a result, and if GitHub fails, the
    log says why. A pull request from a fork has none.
    """
    plan, environment = step.plan, step.environment
    if environment.event_name != EVENT or plan.from_fork or plan.pull_number is None or not environment.workflow_path:
        return ()
    try:
        result = _find_result(step, state)
    except GitHubError as error:
        result = str(error)
    if isinstance(result, str):
        log.record(f"no result of an earlier run of this pull request can be reused: {result}")
        return ()
    of_commit = f"run {result.run_id}, commit {(result.sha or '')[:7]}"
    log.record(f"an earlier run of this pull request can be reused: {of_commit}")
    return (result,)


def _find_result(step: Step, state: EvaluatedState) -> RunResult | str:
    """Find the result, or the reason why there is none. Raises GitHubError.

    The earlier commit must be the head or its parent: between others, a commit could come and go. A failed run of the
    same state makes a later one that passed a lucky one.
    """
    head, runs = step.plan.head_sha, _list_runs(step)
    parent = next((one.head_sha for one in runs if one.head_sha != head), None)
    refused = _find_difference(step, parent, state) if parent else "it is the first one"
    same = [one for one in runs if one.head_sha == head or (one.head_sha == parent and not refused)]
    finished_runs = [one for one in same if one.conclusion not in _UNFINISHED]
    if not finished_runs:
        return refused or "none has ended"
    since = _find_unmoved_since(step)
    if since is None:
        return f"{step.plan.head_branch} was the branch of another pull request too"
    for run in finished_runs:
        if run.conclusion != "success" or run.run_attempt > 1:
            return f"run {run.id} did not pass, or not at once"
    for run in finished_runs[:MAX_READ_RUNS]:
        if run.created_at is None or run.created_at <= since:
            return f"a branch of the pull request was changed after run {run.id}"
        result = _load_result(step, run)
        if result is not None:
            return result
    return f"run {finished_runs[0].id} has no usable result"


def _list_runs(step: Step) -> list[WorkflowRun]:
    """List the newest other runs of this workflow for pull requests of the head branch in the own repository."""
    environment, branch = step.environment, step.plan.head_branch or ""
    runs = step.client.get_page(
        "listing earlier runs of the pull request",
        f"/actions/workflows/{quote(PurePosixPath(environment.workflow_path).name)}/runs",
        WorkflowRun,
        permission=ACTIONS,
        query={"branch": branch, "event": EVENT, "exclude_pull_requests": "true", "per_page": MAX_LISTED_RUNS},
        key="workflow_runs",
    )
    return [
        one
        for one in runs
        if one.id != environment.run_id
        and (one.event, one.head_branch, one.workflow) == (EVENT, branch, environment.workflow_path)
        and one.is_from_own_repository
    ]


def _find_difference(step: Step, earlier: str, state: EvaluatedState) -> str:
    """Return why the head is not the earlier commit with other documents; empty if it is. Raises GitHubError."""
    between, short = compare_commits(step.client, earlier, step.plan.head_sha), earlier[:7]
    if between is None or {between.base_commit.sha, between.merge_base_commit.sha} != {earlier} or between.ahead_by > 1:
        return f"the head is not one commit after {short}"
    if len(between.files) >= MAX_CHANGED_FILES:
        return f"too many files differ from {short}"
    paths = [path for one in between.files for path in (one.filename, one.previous_filename) if path]
    changed = next((one for one in paths if not is_document(one) or _is_measured(one, state)), None)
    return f"{changed} differs from {short}" if changed else ""


def _is_measured(path: str, state: EvaluatedState) -> bool:
    """Whether a suite measures the file."""

    def covers(patterns: tuple[str, ...], sign: str) -> bool:
        own = (one.removeprefix(sign) for one in patterns if one.startswith("!") == bool(sign))
        return any(covers_file(one, path) for one in own)

    return any(covers(one.patterns, "") and not covers(one.patterns, "!") for one in state.suites)


def _find_unmoved_since(step: Step) -> datetime | None:
    """Find when the pull request got its base, or a head that no earlier one leads to. Raises GitHubError.

    None if the branch has or had another pull request: which of them a run is for, GitHub does not say.
    """
    number, branch = step.plan.pull_number, step.plan.head_branch
    history = step.client.query_repository(
        "reading the branches of the pull request",
        _PULLS_OF_BRANCH,
        _BranchHistory,
        {"number": number, "branch": branch},
        permission=PULLS,
    )
    if history is None or len(history.pulls.nodes) == PER_PAGE:
        return None
    if any(one.number != number and not one.is_from_fork for one in history.pulls.nodes):
        return None
    return max(one.created_at for one in (history.pull, *history.pull.events.nodes))


def _load_result(step: Step, run: WorkflowRun) -> RunResult | None:
    """Load the result of this gate that the run stored; None if it has no usable one. Raises GitHubError."""
    for artifact in list_run_artifacts(step.client, run.id):
        if artifact.name not in step.artifact_names or artifact.expired or artifact.size_in_bytes > MAX_ARCHIVE_BYTES:
            continue
        shown_as = f"artifact {artifact.id}"
        try:
            with open_result_archive(step.client, artifact, step.environment.temporary_folder) as archive:
                if _fits(read_archived_head(archive, shown_as), step, run):
                    return read_archived_run(archive, shown_as, compared=False)
        except (BadArchiveError, GateError):
            continue
    return None


def _fits(result: RunResult, step: Step, run: WorkflowRun) -> bool:
    """Whether a result says of itself that this run of this gate made it, for the run's commit."""
    maker = result.producer
    return result.sha == run.head_sha and maker is not None and (maker.gate, maker.run_id) == (step.key, run.id)
