"""Runs the evals of this step, or reads the result that an earlier step made."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from eval_gate.action.inputs import INPUTS, PREFIX, Settings
from eval_gate.action.log import Log
from eval_gate.action.step import Step
from eval_gate.config.load import Hand, find_config, flag_of, from_text, load_config
from eval_gate.config.settings import RunConfig, Selection
from eval_gate.engine.preparing.prepare import prepare
from eval_gate.errors import ExitCode, GateError
from eval_gate.gate.confirming import Reruns
from eval_gate.gate.evidence.reruns import DEFAULT_CONFIRM
from eval_gate.gate.must_pass import with_idle_patterns
from eval_gate.github.checkout import checked_out
from eval_gate.model.result import GitFacts, RunResult
from eval_gate.reports.words.progress import CalmProgress
from eval_gate.results.read import read_run
from eval_gate.session.interruptible import execute
from eval_gate.targets.receiving import Doorkeeper

DEFAULTS: Final[Mapping[str, JsonValue]] = {"failOn": ["regressions"], "confirm": DEFAULT_CONFIRM}
"""What the action takes where nobody says otherwise, and the command line does not."""
_INPUT_NAMES = {one.key: one.name for one in INPUTS if one.key}
_PRIVATE = (PREFIX, "ACTIONS_", "GITHUB_TOKEN")
"""Variables that are the step's own: eval files and their commands have no business with them."""


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


@dataclass(frozen=True, slots=True)
class Asking:
    """What decides about the run from outside of it: which cases are run again, and who is given variables.

    None runs none again, and gives every target what it asks for.
    """

    reruns: Reruns | None = None
    doorkeeper: Doorkeeper | None = None
    recorded_by_baseline: bool = False
    """The recorded answers at hand, if any, came with the baseline."""


def get_result(
    step: Step, config: RunConfig, variables: Mapping[str, str], asking: Asking, log: Log
) -> tuple[RunResult, ExitCode | None]:
    """The run, not judged yet, and the exit code of the signal that ended it early, if one did."""
    settings = step.settings
    if settings.results:
        result = read_run(settings.results, Path(config.output_dir))
        if not result.suites:
            raise GateError("no-result", f"results: {settings.results} holds no case", "name a finished run")
        log.did(f"read the result of run {result.run_id} from {settings.results}")
        return with_idle_patterns(result, config.must_pass, strict=config.strict), None
    with log.commands.group("Evals"):
        return asyncio.run(_run(step, config, variables, asking, log))


def selection_of(settings: Settings) -> Selection:
    """Which cases the inputs choose."""
    return Selection(settings.cases, settings.tags, settings.tiers, settings.shard)


async def _run(
    step: Step, config: RunConfig, variables: Mapping[str, str], asking: Asking, log: Log
) -> tuple[RunResult, ExitCode | None]:
    environment = step.environment
    plan = await prepare(
        config,
        selection_of(step.settings),
        root=environment.workspace,
        environment={name: value for name, value in variables.items() if not name.startswith(_PRIVATE)},
        git=GitFacts(sha=_evaluated(step), ref=environment.ref or None, repository=environment.repository),
        doorkeeper=asking.doorkeeper,
        recorded_by_baseline=asking.recorded_by_baseline,
    )
    plan.redact.learn(token for token in (step.settings.token, environment.runtime_token) if token)
    if asking.reruns is not None:
        plan = plan.confirmed_by(asking.reruns, config.confirm)
    progress = CalmProgress(log.commands.say)
    try:
        return await execute(plan, Path(config.output_dir), progress)
    finally:
        progress.close()


def _evaluated(step: Step) -> str | None:
    """The commit in the workspace; of a pull request its head, although its test merge is what is checked out."""
    if step.plan.pull_number is None and (found := checked_out(step.environment.workspace)):
        return found
    return step.plan.head_sha or None
