"""The configuration as the branch has it that a pull request is merged into."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from eval_gate.action.configuration import config_of
from eval_gate.action.step import Step
from eval_gate.config.load import CONFIG_NAMES
from eval_gate.config.settings import RunConfig
from eval_gate.github.commits import file_at


def base_config(step: Step, variables: Mapping[str, str], branch: str) -> tuple[RunConfig, str | None]:
    """The configuration with the base branch's file in place of the workspace's, and the name of that file.

    Raises GitHubError, and GateError for a file that is not valid.
    """
    for name in (step.settings.config,) if step.settings.config else CONFIG_NAMES:
        data = file_at(step.client, name, branch)
        if data is not None:
            with TemporaryDirectory(dir=step.environment.temporary) as folder:
                file = Path(folder) / PurePosixPath(name).name
                file.write_bytes(data)
                return config_of(step.settings, variables, file, shown_as=f"{name} on {branch}"), name
    return config_of(step.settings, variables, None), None
