"""What whoever starts a run brings along beside its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eval_gate.engine.preparing.project_tmp import ProjectTmp
from eval_gate.model.result import GitFacts
from eval_gate.struct import FrozenStruct, field
from eval_gate.targets.base import Target
from eval_gate.targets.variables import Doorkeeper


class RunContext(FrozenStruct):
    """Nothing of it is looked up from here on."""

    root: Path
    """What the paths of eval files, seeds, snapshots and registries are relative to."""
    environment: Mapping[str, str]
    """The variables that the run may see."""
    git: GitFacts | None = None
    resume: str | None = None
    """Id of the run that is gone on with."""
    secrets: tuple[str, ...] = ()
    """Texts that nobody may see, beside those that the run finds by itself."""
    doorkeeper: Doorkeeper | None = None
    """Decides which targets are given variables; None where all are."""
    recorded_by_baseline: str | None = None
    """The sha256 of recorded answers that came with the baseline; others somebody may have written here."""
    baseline_folder: Path | None = None
    """The folder of the run that is the baseline, where it is on this machine: with the responses that it used."""
    answerer: Target | None = None
    """Who answers, where that is nobody whom a configuration could describe, such as a function."""
    tmp: ProjectTmp = field(default_factory=ProjectTmp)
    """The folder that agents of Agent Evals suites work in, or in copies of."""
    owns_process: bool = True
    """Whether nothing else happens in this process: a run may then take its signals and tune it."""
