"""This step of this job: everything that does not change any more once it is planned."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from runner.action.inputs import DEFAULT_ARTIFACT, Settings
from runner.action.plan import Plan
from runner.config.load import CONFIG_NAMES
from runner.github.client import Client
from runner.github.environment import WorkflowEnvironment
from runner.text.escape import comment_key


@dataclass(frozen=True, slots=True)
class Step:
    """Environment, settings, plan, and the connection to GitHub."""

    environment: WorkflowEnvironment
    settings: Settings
    plan: Plan
    client: Client

    @property
    def name(self) -> str | None:
        """What people call this gate where a repository has several; None for the only one."""
        settings = self.settings
        if settings.comment_key:
            return settings.comment_key
        if settings.config:
            return _name_of(settings.config)
        return settings.artifact_name if settings.artifact_name != DEFAULT_ARTIFACT else None

    @property
    def key(self) -> str:
        """What tells this gate's comment from others: workflow file, job, configuration, artifact."""
        settings = self.settings
        if settings.comment_key:
            return comment_key(settings.comment_key)
        parts = [
            PurePosixPath(self.environment.workflow_path).name,
            self.environment.job,
            (_name_of(settings.config) or "") if settings.config else "",
            settings.artifact_name if settings.artifact_name != DEFAULT_ARTIFACT else "",
        ]
        return comment_key(".".join(part for part in parts if part))


def _name_of(config: str) -> str | None:
    """`support` of `evals/support.yaml` and of `support/eval-gate.yaml`."""
    path = PurePosixPath(config)
    return path.stem if path.name not in CONFIG_NAMES else path.parent.name or None
