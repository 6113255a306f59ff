"""What commands about stored runs read of the configuration: where runs are, and little else."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from pydantic import JsonValue

from eval_gate.cli.terminal.console import say
from eval_gate.config.load import find_config, load_part
from eval_gate.config.settings import SETTINGS, RunConfig
from eval_gate.reports.words.problems import problem_lines


def results_folder(given: str | None, *references: str) -> Path:
    """Where ids of runs are looked up: in what was given, else where the configuration has results written.

    The configuration is not read where all `references` lead to what is there: then nothing is looked up. Raises
    GateError for one that does not say where.
    """
    if given or (references and all(map(os.path.exists, references))):
        return Path(given or str(SETTINGS["outputDir"].default))
    return Path(part_of_settings(("outputDir",), {}).output_dir)


def part_of_settings(keys: Collection[str], flags: Mapping[str, JsonValue]) -> RunConfig:
    """The configuration with these keys of it, which is all that is asked for. Raises GateError where one is wrong.

    What was run is run: that the configuration would not do for another run is said, and keeps nobody from looking.
    """
    config, problems = load_part(keys, flags, os.environ, find_config(Path.cwd()))
    for line in problem_lines(problems):
        say(f"warning: {line}")
    if problems:
        counts = "count" if len(keys) > 1 else "counts"
        say(f"warning: of this configuration only {', '.join(keys)} {counts} here; `eval-gate run` refuses it as it is")
    return config
