"""Settings for commands on stored runs, mainly the results folder."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from pydantic import JsonValue

from eval_gate.cli.terminal.console import print_progress
from eval_gate.config.loader import find_config, load_partial_config
from eval_gate.config.settings import SETTINGS, RunConfig
from eval_gate.reports.wording.problems import render_problems


def find_results_folder(folder: str | None, *references: str) -> Path:
    """Find the folder of runs: `folder`, or the results folder of the configuration.

    The configuration is not read if all `references` are existing paths, because then no id has to be found. Raises
    GateError for a configuration with an invalid results folder.
    """
    if folder or (references and all(map(os.path.exists, references))):
        return Path(folder or str(SETTINGS["outputDir"].default))
    return Path(load_settings_part(("outputDir",), {}).output_dir)


def load_settings_part(keys: Collection[str], flags: Mapping[str, JsonValue]) -> RunConfig:
    """Load only the settings `keys` of the configuration.

    Raises GateError if one of these is wrong. Other problems are printed as warnings: a finished run stays readable
    with a configuration that is invalid for a new run.
    """
    config, problems = load_partial_config(keys, flags, os.environ, find_config(Path.cwd()))
    for line in render_problems(problems):
        print_progress(f"warning: {line}")
    if problems:
        print_progress(
            f"warning: this command uses only {', '.join(keys)} of this configuration; `eval-gate run` rejects it"
        )
    return config
