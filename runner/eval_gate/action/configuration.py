"""The configuration of a step, and which cases its inputs choose."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from eval_gate.action.inputs import INPUTS, Settings
from eval_gate.config.load import Hand, find_config, flag_of, from_text, load_config
from eval_gate.config.settings import RunConfig, Selection
from eval_gate.gate.evidence.reruns import DEFAULT_CONFIRM

DEFAULTS: Final[Mapping[str, JsonValue]] = {"failOn": ["regressions"], "confirm": DEFAULT_CONFIRM}
"""What the action takes where nobody says otherwise, and the command line does not."""
_INPUT_NAMES = {one.key: one.name for one in INPUTS if one.key}


def read_config(settings: Settings, variables: Mapping[str, str], workspace: Path) -> RunConfig:
    """The configuration: inputs, then variables, then the file. Raises GateError with every problem.

    Whoever wrote them, files go to the workspace and nowhere else: all else would be lost with the container, or be a
    pull request's hand in ours.
    """
    return config_of(settings, variables, workspace / settings.config if settings.config else find_config(workspace))


def config_of(
    settings: Settings, variables: Mapping[str, str], file: Path | None, shown_as: str | None = None
) -> RunConfig:
    """The same with this file; None is no file."""
    flags = {key: from_text(key, text) for key, text in settings.flags.items()}
    return load_config(
        flags,
        variables,
        file,
        shown_as=shown_as,
        defaults=DEFAULTS,
        hand=Hand(lambda key: _INPUT_NAMES.get(key) or flag_of(key), anywhere=False),
    )


def selection_of(settings: Settings) -> Selection:
    """Which cases the inputs choose."""
    return Selection(settings.cases, settings.tags, settings.tiers, settings.shard)
