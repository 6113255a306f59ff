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

from pydantic import AwareDatetime, JsonValue

from eval_gate.action.step import Step
from eval_gate.action.step_log import StepLog
from eval_gate.config.measures import names_file
from eval_gate.errors import GateError
from eval_gate.github.artifacts.artifact_search import list_run_artifacts
from eval_gate.github.artifacts.baseline_finder import open_result_archive
from eval_gate.github.artifacts.download import MAX_ARCHIVE_BYTES, BadArchiveError
from eval_gate.github.client import PER_PAGE, ApiResponse, Query
from eval_gate.github.commits import ACTIONS, MAX_CHANGED_FILES, PULLS, WorkflowRun, compare_commits
from eval_gate.github.failure import GitHubError
from eval_gate.model.result import RunResult
from eval_gate.model.reuse import EvaluatedState, is_document
from eval_gate.results.run_reader import read_archived_head, read_archived_run
from eval_gate.text.quoting import describe_name

EVENT: Final = "pull_request"
"""The only event whose runs evaluate a test merge or the head of a pull request, and no input of a person."""
_UNFINISHED: Final = frozenset({None, "cancelled", "skipped", "stale"})
"""Conclusions that say nothing about the evaluated state."""
_QUERY: Final = """
query($owner: String!, $name: String!, $number: Int!, $branch: String!) { repository(owner: $owner, name: $name) {
  pulls: pullRequests(headRefName: $branch, first: 100) { nodes { number is_from_fork: isCrossRepository } }
  pull: pullRequest(number: $number) {
    created_at: createdAt
    moves: timelineItems(last: 1, itemTypes: [
      BASE_REF_CHANGED_EVENT, AUTOMATIC_BASE_CHANGE_SUCCEEDED_EVENT, HEAD_REF_FORCE_PUSHED_EVENT, REOPENED_EVENT
    ]) {
      nodes {
        ... on BaseRefChangedEvent { created_at: createdAt }
        ... on AutomaticBaseChangeSucceededEvent { created_at: createdAt }
        ... on HeadRefForcePushedEvent { created_at: createdAt }
        ... on ReopenedEvent { created_at: createdAt }
      }
    }
  }
} }"""


class _PullName(ApiResponse):
    number: int
    is_from_fork: bool


class _Pull(ApiResponse):
    created_at: AwareDatetime
    moves: dict[str, tuple[dict[str, AwareDatetime], ...]]


class _BranchHistory(ApiResponse):
    pulls: dict[str, tuple[_PullName, ...]]
    pull: _Pull


def find_own_runs(step: Step, state: EvaluatedState, log: StepLog) -> tuple[RunResult, ...]:
    """Find the result of the newest earlier run of this pull request, if only documents differ since; at most one.

    What `state` measures is no document. If there is none, or GitHub fails, the log says so. A fork has none.
    """
    plan, environment = step.plan, step.environment
    if environment.event_name != EVENT or plan.from_fork or plan.pull_number is None or not environment.workflow_path:
        return ()
    try:
        result = _find_result(step, state)
    except GitHubError as error:
        result = str(error)
    if not isinstance(result, str):
        return (result,)
    log.record(f"no result of an earlier run of this pull request can be reused: {result}")
    return ()


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
    if failed := [one.id for one in finished_runs if one.conclusion != "success" or one.run_attempt > 1]:
        return f"run {failed[0]} did not pass, or not at once"
    since = _find_last_move(step)
    if since is None:
        return f"{step.plan.head_branch} was the branch of another pull request too"
    run = finished_runs[0]
    if run.created_at is None or run.created_at <= since:
        return f"a branch of the pull request was changed after run {run.id}"
    return _load_result(step, run) or f"run {run.id} has no usable result"


def _list_runs(step: Step) -> list[WorkflowRun]:
    """List the newest other runs of this workflow for pull requests of the head branch in the own repository."""
    environment, branch = step.environment, step.plan.head_branch or ""
    path = f"/actions/workflows/{quote(PurePosixPath(environment.workflow_path).name)}/runs"
    query: Query = {"branch": branch, "event": EVENT, "exclude_pull_requests": "true", "per_page": 20}
    doing = "listing earlier runs of the pull request"
    runs = step.client.get_page(doing, path, WorkflowRun, permission=ACTIONS, query=query, key="workflow_runs")
    same = EVENT, branch, environment.workflow_path, True
    return [
        one
        for one in runs
        if (one.event, one.head_branch, one.workflow, one.is_from_own_repository) == same
        and one.id != environment.run_id
    ]


def _find_difference(step: Step, earlier: str, state: EvaluatedState) -> str:
    """Return why the head is not the earlier commit with other documents; empty if it is. Raises GitHubError."""
    between, short = compare_commits(step.client, earlier, step.plan.head_sha), earlier[:7]
    if between is None or {between.base_commit.sha, between.merge_base_commit.sha} != {earlier} or between.ahead_by > 1:
        return f"the head is not one commit after {short}"
    if not 0 < len(between.files) < MAX_CHANGED_FILES:
        return f"GitHub does not list all that differs from {short}"
    paths = [path for one in between.files for path in (one.filename, one.previous_filename) if path]
    patterns = [suite.patterns for suite in state.suites]
    mutable_paths = (path for path in paths if not is_document(path) or any(names_file(one, path) for one in patterns))
    changed = next(mutable_paths, None)
    return f"{describe_name(changed)} differs from {short}" if changed else ""


def _find_last_move(step: Step) -> datetime | None:
    """Find when the pull request got its base, or a head that no earlier one leads to. Raises GitHubError.

    None if the branch has or had another pull request: which of them a run is for, GitHub does not say.
    """
    number, doing = step.plan.pull_number, "reading the branches of the pull request"
    variables: dict[str, JsonValue] = {"number": number, "branch": step.plan.head_branch}
    history = step.client.query_repository(doing, _QUERY, _BranchHistory, variables, permission=PULLS)
    pulls = history.pulls.get("nodes", ()) if history else ()
    if history is None or len(pulls) == PER_PAGE or [one.number for one in pulls if not one.is_from_fork] != [number]:
        return None
    moments = (moment for move in history.pull.moves.get("nodes", ()) for moment in move.values())
    return max([history.pull.created_at, *moments])


def _load_result(step: Step, run: WorkflowRun) -> RunResult | None:
    """Load the result of this gate that the run stored; None if it has no usable one. Raises GitHubError."""
    for artifact in list_run_artifacts(step.client, run.id):
        if artifact.name not in step.artifact_names or artifact.expired or artifact.size_in_bytes > MAX_ARCHIVE_BYTES:
            continue
        shown_as = f"artifact {artifact.id}"
        try:
            with open_result_archive(step.client, artifact, step.environment.temporary_folder) as archive:
                head = read_archived_head(archive, shown_as)
                maker = head.producer and (head.producer.gate, head.producer.run_id)
                if head.sha == run.head_sha and maker == (step.key, run.id):
                    return read_archived_run(archive, shown_as, compared=False)
        except (BadArchiveError, GateError):
            continue
    return None
