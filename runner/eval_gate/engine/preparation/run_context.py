"""Run context: environment, root, commit and other inputs that the configuration does not have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eval_gate.engine.preparation.project_tmp import ProjectTmp
from eval_gate.model.case import EvalSuite
from eval_gate.model.result import GitFacts
from eval_gate.struct import FrozenStruct, field
from eval_gate.targets.base import Target
from eval_gate.targets.build_context import SecretPolicy


class RunContext(FrozenStruct):
    """Inputs of a run that are not configuration. Later code reads no environment itself."""

    root: Path
    """Folder to which the paths of eval files, seeds, snapshots and registries are relative."""
    environment: Mapping[str, str]
    git: GitFacts | None = None
    resume: str | None = None
    secrets: tuple[str, ...] = ()
    """Secrets to mask, in addition to those that the run finds itself."""
    secret_policy: SecretPolicy | None = None
    """Decides which targets get which variables; None if all get all."""
    baseline_recording_digest: str | None = None
    """SHA-256 of the recording that came with the baseline; another one may be from anywhere."""
    baseline_folder: Path | None = None
    """Folder of the baseline's run, with its responses; None if it is not on this machine."""
    baseline_files: Mapping[str, int] = field(default_factory=dict)
    """The baseline's number of cases by eval file; empty until the baseline is available."""
    custom_target: Target | None = None
    """Target that no configuration describes, such as a function."""
    custom_suites: tuple[EvalSuite, ...] = ()
    """The suites of the run, in place of those in eval files; empty to read the eval files."""
    tmp: ProjectTmp = field(default_factory=ProjectTmp)
    """The folder that agents of Agent Evals suites work in, or in copies of."""
    measured_files: tuple[str, ...] = ()
    """Files that every suite with measures also measures, relative to the root: the workflow that starts the agent."""
    owns_process: bool = True
    """Whether the process serves only this run, which may then handle signals and tune it."""
