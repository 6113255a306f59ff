"""Environment of a workflow job, from the runner's variables (docs.github.com, "Variables reference")."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eval_gate.errors import GateError
from eval_gate.github.commits import RepositoryName
from eval_gate.struct import FrozenStruct
from eval_gate.text.secret import Secret

MAX_DIGITS = 18
"""Maximum digits of a number of GitHub's."""
_NEEDED = ("GITHUB_REPOSITORY", "GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH", "GITHUB_API_URL", "GITHUB_RUN_ID")


class WorkflowEnvironment(FrozenStruct):
    """Environment of one job of a workflow run. Paths are those inside the container."""

    workspace: Path
    event_name: str
    event_path: Path
    api_url: str
    server_url: str
    repository: str
    repository_id: int | None
    """Its id, which a rename does not change; None where the runner does not tell it."""
    run_id: int
    run_attempt: int
    workflow_ref: str
    """For example `owner/name/.github/workflows/evals.yml@refs/heads/main`."""
    job: str
    step: str
    """The step's id, or what the runner calls it: `__owner_action`, and the second of them `__owner_action_2`."""
    runner: str
    sha: str
    ref: str
    actor: str
    output_file: Path | None
    summary_file: Path | None
    temporary_folder: Path | None
    runtime_token: Secret[str] | None
    results_url: str | None
    """Address of the artifact service; None where there is none."""
    retention_days: int | None
    is_emulated: bool = False
    """Whether act runs the workflow, GitHub's emulation on one's own machine: whatever it stores, it calls a zip."""

    def is_own_repository(self, other: RepositoryName | None) -> bool:
        """Whether this is the repository of the workflow: by id, because a re-run has the names of before a rename.

        None is a deleted fork. By name only where an id is unknown.
        """
        if other is None:
            return False
        if self.repository_id is not None and other.id is not None:
            return other.id == self.repository_id
        return other.full_name == self.repository

    @property
    def workflow_path(self) -> str:
        """`.github/workflows/evals.yml`; empty when unknown."""
        path = self.workflow_ref.partition("@")[0]
        return path.removeprefix(f"{self.repository}/")

    @property
    def run_url(self) -> str:
        """The page of this run."""
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run_id}/attempts/{self.run_attempt}"

    @property
    def is_github_cloud(self) -> bool:
        """Whether this is github.com or a ghe.com tenant; Enterprise Server has no artifact service."""
        host = self.server_url.rpartition("/")[2].partition(":")[0].lower()
        return host == "github.com" or host.endswith((".ghe.com", ".localhost"))


def read_workflow_environment(variables: Mapping[str, str]) -> WorkflowEnvironment:
    """Read it from the runner's variables. Raises GateError `not-in-a-workflow` if required ones are missing."""
    unset_names = [name for name in _NEEDED if not variables.get(name)]
    if unset_names:
        raise GateError(
            "not-in-a-workflow",
            f"this command runs only in a GitHub workflow: {', '.join(unset_names)} is not set",
            "use `eval-gate run` on your own machine; in other CI systems, publish with `--to`",
        )
    return WorkflowEnvironment(
        workspace=Path(variables.get("GITHUB_WORKSPACE") or Path.cwd()),
        event_name=variables["GITHUB_EVENT_NAME"],
        event_path=Path(variables["GITHUB_EVENT_PATH"]),
        api_url=variables["GITHUB_API_URL"],
        server_url=(variables.get("GITHUB_SERVER_URL") or "https://github.com").rstrip("/"),
        repository=variables["GITHUB_REPOSITORY"],
        repository_id=_read_number(variables, "GITHUB_REPOSITORY_ID"),
        run_id=_read_number(variables, "GITHUB_RUN_ID") or 0,
        run_attempt=_read_number(variables, "GITHUB_RUN_ATTEMPT") or 1,
        workflow_ref=variables.get("GITHUB_WORKFLOW_REF", ""),
        job=variables.get("GITHUB_JOB", ""),
        step=variables.get("GITHUB_ACTION", ""),
        runner=variables.get("RUNNER_NAME", ""),
        sha=variables.get("GITHUB_SHA", ""),
        ref=variables.get("GITHUB_REF", ""),
        actor=variables.get("GITHUB_ACTOR", ""),
        output_file=_read_path(variables, "GITHUB_OUTPUT"),
        summary_file=_read_path(variables, "GITHUB_STEP_SUMMARY"),
        temporary_folder=_read_path(variables, "RUNNER_TEMP"),
        runtime_token=Secret(runtime) if (runtime := variables.get("ACTIONS_RUNTIME_TOKEN")) else None,
        results_url=variables.get("ACTIONS_RESULTS_URL") or None,
        retention_days=_read_number(variables, "GITHUB_RETENTION_DAYS"),
        is_emulated=variables.get("ACT", "").lower() == "true",
    )


def _read_path(variables: Mapping[str, str], name: str) -> Path | None:
    return Path(variables[name]) if variables.get(name) else None


def _read_number(variables: Mapping[str, str], name: str) -> int | None:
    text = variables.get(name, "")
    return int(text) if text.isdecimal() and len(text) <= MAX_DIGITS else None
