"""Report context of a workflow step: names, URLs and the origin of the baseline."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from eval_gate.action.baseline_lookup import BaselineOrigin
from eval_gate.action.baseline_refresh import find_baseline_workflow
from eval_gate.action.inputs import StepSettings
from eval_gate.action.step import Step
from eval_gate.config.settings import SETTINGS
from eval_gate.github.checkout import find_checkout, find_origin_repository, find_submodule
from eval_gate.model.comparison import ReasonCode
from eval_gate.model.result import RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.rerun_command import build_rerun_command
from eval_gate.results.baseline import NoBaseline

REPRODUCED_SETTINGS = (
    "target",
    "targets",
    "provider",
    "model",
    "baseUrl",
    "systemPromptPath",
    "judge",
    "simulatedUser",
    "seedManifestPath",
    "snapshotPath",
    "toolRegistryPath",
    "trials",
    "passes",
)
"""Settings of the step that change what a case is asked and held against."""


def build_workflow_context(
    step: Step, variables: Mapping[str, str], origin: BaselineOrigin | None = None, run: RunResult | None = None
) -> ReportContext:
    """Build the report context of this step. `origin` is None as long as no baseline was looked up."""
    environment, plan = step.environment, step.plan
    base = f"{environment.server_url}/{environment.repository}"
    workflow = find_baseline_workflow(step)
    baseline = origin.baseline if origin else None
    checkouts, repositories = _list_checkouts(step, run) if run else ((), ())
    rerun = build_rerun_command(_build_arguments(step.settings), run) if run else None
    return ReportContext(
        name=step.name,
        comment_key=step.publication.maker.gate,
        checkouts=checkouts,
        other_repositories=repositories,
        server_url=environment.server_url,
        repository=environment.repository,
        head_sha=plan.head_sha or None,
        base_branch=plan.base_branch,
        # a relay has it from the result
        workspace_sha=plan.workspace_sha or (run.git.workspace_sha if run and run.git else None),
        is_believed=plan.is_unverified,
        baseline_branch=plan.baseline.branch or None,
        run_url=environment.run_url,
        baseline_run_url=origin.run_url if origin else None,
        workflow_url=f"{base}/actions/workflows/{quote(workflow, safe='')}" if workflow else None,
        errors_doc_url=_build_errors_url(variables, environment.server_url),
        no_baseline_reason=baseline.reason if isinstance(baseline, NoBaseline) else None,
        no_baseline_heading=_describe_absence(baseline) if isinstance(baseline, NoBaseline) else "no baseline yet",
        rerun_command=rerun.command if rerun else None,
        rerun_omitted_count=rerun.omitted_count if rerun else 0,
        max_baseline_age_days=step.settings.max_baseline_age_days,
        max_baseline_commits=step.settings.max_baseline_commits,
        can_waive_by_comment=plan.pull_number is not None,
        waive_label=step.settings.waive_label,
        waive_requires_sha=plan.from_fork,
    )


def _list_checkouts(step: Step, run: RunResult) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """List the checkouts below the root with evaluated eval files, and those of other repositories and submodules."""
    root, own = Path(os.path.realpath(step.environment.workspace)), step.environment.repository.lower()
    files = [suite.eval_file for suite in run.suites if suite.eval_file]
    checkouts = {one for file in files if (one := find_checkout(root, file)) is not None and one != root}
    other_checkouts = {one for one in checkouts if find_origin_repository(one) not in {None, own}}
    modules = {one for file in files if (one := find_submodule(root, file)) is not None}

    def list_paths(folders: set[Path]) -> tuple[str, ...]:
        return tuple(sorted(one.relative_to(root).as_posix() for one in folders))

    return list_paths(checkouts - other_checkouts), list_paths(other_checkouts | modules)


def _describe_absence(baseline: NoBaseline) -> str:
    """Describe why there is no baseline: not requested, not available, expired, or none yet."""
    if not baseline.is_requested:
        return "not compared"
    if baseline.code == ReasonCode.BRANCH_RENAMED:
        return "no baseline yet under the branch's new name: run the workflow on it"
    if baseline.heading:
        return baseline.heading
    if baseline.expired:
        return "baseline expired"
    return "baseline not available" if baseline.unavailable else "no baseline yet"


def _build_arguments(settings: StepSettings) -> list[str]:
    """Build the arguments of the same run on a local machine, where the agent has another address."""
    arguments = ["run"]
    arguments += settings.flags["evals"].replace(",", " ").split() if "evals" in settings.flags else []
    arguments += ["--config", settings.config] if settings.config else []
    for key in REPRODUCED_SETTINGS:
        arguments += [SETTINGS[key].flag, settings.flags[key]] if key in settings.flags else []
    arguments += ["--agent-endpoint", "URL"] if "agentEndpoint" in settings.flags else []
    return arguments


def _build_errors_url(variables: Mapping[str, str], server_url: str) -> str | None:
    """Build the URL of the errors page in the repository that the action came from, unless it is the workspace."""
    repository, ref = variables.get("GITHUB_ACTION_REPOSITORY"), variables.get("GITHUB_ACTION_REF")
    return f"{server_url}/{repository}/blob/{ref}/docs/errors.md" if repository and ref else None
