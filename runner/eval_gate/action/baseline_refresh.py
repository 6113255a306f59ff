"""Refresh of a missing or stale baseline: a run of the workflow on the baseline's branch."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import quote

from eval_gate.action.base_commit import choose_baseline_branch
from eval_gate.action.baseline_lookup import BaselineOrigin
from eval_gate.action.step import Step
from eval_gate.action.step_log import StepLog
from eval_gate.action.step_plan import BaselineKind
from eval_gate.action.workflow_gates import get_mapping, iter_steps, map_triggers, parse_workflow
from eval_gate.gate.waivers.waive_command import REFRESH_COMMAND
from eval_gate.github.commits import fetch_file
from eval_gate.github.failure import GitHubError
from eval_gate.model.result import RunResult
from eval_gate.reports.context import BaselineRefresh, ReportContext
from eval_gate.reports.run_statistics import has_no_comparable_case
from eval_gate.reports.view.tables import is_baseline_stale
from eval_gate.results.baseline import NoBaseline

_WORKFLOWS: Final = ".github/workflows"
WRITE_ACTIONS: Final = "actions: write"
COMMENT_WORKFLOW: Final = "refresh-baseline.yml"
"""The workflow that carries out the command of a comment, under the name by which pull requests offer it."""


def find_baseline_workflow(step: Step) -> str:
    """Return the name of the workflow file whose run on the branch makes a new baseline; empty where it is unknown."""
    names = step.settings.baseline_workflows
    return PurePosixPath(names[0] if names else step.plan.baseline.workflow or step.environment.workflow_path).name


def find_baseline_refresh(
    step: Step, origin: BaselineOrigin, run: RunResult, context: ReportContext, log: StepLog
) -> BaselineRefresh | None:
    """Find how to make a new baseline, if one would compare more than the current one.

    Only then, the workflow file is fetched from the branch. Return None if a new run of the branch would change
    nothing, or if the branch has no such workflow.
    """
    choice, workflow = step.plan.baseline, find_baseline_workflow(step)
    if choice.kind is not BaselineKind.ARTIFACT or step.plan.is_on_baseline_branch or not (choice.branch and workflow):
        return None
    if not _would_help(origin, run, context):
        return None
    try:
        data = fetch_file(step.client, f"{_WORKFLOWS}/{workflow}", choice.branch)
    except GitHubError as error:
        log.record(f"cannot check how {workflow} is started: {error}")
        return BaselineRefresh(None)
    if data is None:
        return None
    if not can_dispatch(data):
        return BaselineRefresh(None)
    return BaselineRefresh(format_dispatch(workflow, choice.branch), _find_comment_command(step, workflow, log))


def _find_comment_command(step: Step, workflow: str, log: StepLog) -> str | None:
    """Find the comment command that does the same; None if no workflow of the default branch runs it."""
    plan = step.plan
    if plan.pull_number is None:
        return None
    try:
        data = fetch_file(step.client, f"{_WORKFLOWS}/{COMMENT_WORKFLOW}", plan.default_branch)
    except GitHubError as error:
        log.record(f"cannot check whether comments can refresh the baseline: {error}")
        return None
    if data is None or "issue_comment" not in map_triggers(parse_workflow(data)):
        return None
    started = set[tuple[str, str]]()
    for _, _, one in iter_steps(parse_workflow(data)):
        inputs = {name: value for name, value in get_mapping(one, "with").items() if isinstance(value, str)}
        first = inputs.get("baseline-workflow", "").replace("\n", ",").partition(",")[0].strip()
        branch = choose_baseline_branch(inputs.get("baseline-branch"), plan.default_branch, None)
        started.add((PurePosixPath(first).name, branch))
    return REFRESH_COMMAND if (workflow, plan.baseline.branch) in started else None


def format_dispatch(workflow: str, branch: str) -> str:
    """Format the command that runs the workflow on the branch."""
    return shlex.join(["gh", "workflow", "run", workflow, "--ref", branch])


def find_dispatch_problem(step: Step, workflow: str) -> str | None:
    """Return why the workflow cannot be started on the baseline's branch, or None if it can. Raises GitHubError."""
    branch = step.plan.baseline.branch
    data = fetch_file(step.client, f"{_WORKFLOWS}/{workflow}", branch)
    if data is None:
        return f"`{branch}` has no workflow `{workflow}`"
    if can_dispatch(data):
        return None
    return f"`{workflow}` on `{branch}` has no trigger `workflow_dispatch`, or it has a required input"


def dispatch_baseline_workflow(step: Step, workflow: str) -> None:
    """Start the workflow on the branch by its full ref: a tag may have the same name. Raises GitHubError."""
    branch = step.plan.baseline.branch
    path = f"/actions/workflows/{quote(workflow, safe='')}/dispatches"
    step.client.post_once(
        f"starting {workflow} on {branch}"[:120], path, {"ref": f"refs/heads/{branch}"}, permission=WRITE_ACTIONS
    )


def _would_help(origin: BaselineOrigin, run: RunResult, context: ReportContext) -> bool:
    if isinstance(origin.baseline, NoBaseline):
        return origin.baseline.refreshable
    if run.comparison is None:
        return False
    baseline = run.comparison.baseline
    # a baseline of the branch's newest commit has the newest evals already
    return is_baseline_stale(baseline, context) or (has_no_comparable_case(run) and baseline.commits_behind != 0)


def can_dispatch(data: bytes) -> bool:
    """Whether a workflow file can be started by hand without a value for any of its inputs."""
    triggers = map_triggers(parse_workflow(data))
    inputs = get_mapping(triggers.get("workflow_dispatch"), "inputs")
    return "workflow_dispatch" in triggers and not any(map(_needs_value, inputs.values()))


def _needs_value(facts: object) -> bool:
    return isinstance(facts, dict) and str(facts.get("required")).lower() == "true" and "default" not in facts
