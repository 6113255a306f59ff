"""The configuration of a step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from eval_gate.action.inputs import Settings, input_of
from eval_gate.config.load import GivenBy, find_config, from_text, load_config
from eval_gate.config.settings import SETTINGS, RunConfig
from eval_gate.files.place import shown_as

DEFAULTS: Final = {row.key: row.in_action for row in SETTINGS.values() if row.in_action is not None}
"""What the action takes where nobody says otherwise, and the command line does not."""


def read_config(settings: Settings, variables: Mapping[str, str], workspace: Path) -> RunConfig:
    """The configuration: inputs, then variables, then the file. Raises GateError with every problem.

    Whoever wrote them, files go to the workspace and nowhere else: all else would be lost with the container, or be a
    pull request's hand in ours.
    """
    file = workspace / settings.config if settings.config else find_config(workspace)
    return config_of(settings, variables, file, shown_as(file, workspace) if file else None)


def config_of(
    settings: Settings, variables: Mapping[str, str], file: Path | None, shown_as: str | None = None
) -> RunConfig:
    """The same with this file; None is no file."""
    flags = {key: from_text(SETTINGS[key], text) for key, text in settings.flags.items()}
    return load_config(
        flags,
        variables,
        file,
        shown_as=shown_as,
        defaults=DEFAULTS,
        hand=GivenBy(lambda row: input_of(row.key), anywhere=False),
    )
