"""Configuration of a step: inputs, then variables, then the configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from eval_gate.action.inputs import StepSettings, format_input_name
from eval_gate.config.loader import FlagSource, find_config, load_config, parse_setting_text
from eval_gate.config.settings import SETTINGS, RunConfig
from eval_gate.files.file_paths import format_path

ACTION_DEFAULTS: Final = {row.key: row.in_action for row in SETTINGS.values() if row.in_action is not None}
"""Defaults of settings in the action that differ from those of the command line."""


def load_step_config(settings: StepSettings, variables: Mapping[str, str], workspace: Path) -> RunConfig:
    """Load the configuration of the step: inputs, then variables, then the file.

    Raises GateError with every problem. Output files must lie in the workspace: elsewhere they would be lost with the
    container, or a pull request could write outside of its workspace.
    """
    file = workspace / settings.config if settings.config else find_config(workspace)
    return load_config_from(settings, variables, file, format_path(file, workspace) if file else None)


def load_config_from(
    settings: StepSettings, variables: Mapping[str, str], file: Path | None, shown_as: str | None = None
) -> RunConfig:
    """Load the configuration of the step with this file in place of the workspace's. None stands for no file."""
    flags = {key: parse_setting_text(SETTINGS[key], text) for key, text in settings.flags.items()}
    return load_config(
        flags,
        variables,
        file,
        shown_as=shown_as,
        defaults=ACTION_DEFAULTS,
        flag_source=FlagSource(lambda row: format_input_name(row.key), allows_any_path=False),
    )
