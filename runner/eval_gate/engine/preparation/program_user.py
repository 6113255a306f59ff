"""Checks which user runs the programs of a run, before any program starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eval_gate.config.settings import RunConfig
from eval_gate.errors import GateError
from eval_gate.model.case import EvalSuite
from eval_gate.model.specs.evaluator import CodeAggregator, CodeJudge, Composite, EvaluatorSpec
from eval_gate.process.identity import NOBODY, find_identity, is_root_required
from eval_gate.process.run import CAN_RUN_PROGRAMS, UNSUPPORTED_SYSTEM

if TYPE_CHECKING:
    from eval_gate.targets.catalog import TargetCatalog  # 50 ms that results of other tools need nothing of


def check_programs(
    config: RunConfig, suites: Sequence[EvalSuite], book: TargetCatalog, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Check which user runs the programs of this run, and return notices for people.

    Raises GateError if programs cannot run on this system, or may not run as this user.
    """
    if not _can_start_programs(config, suites, book):
        return ()
    if not CAN_RUN_PROGRAMS:
        raise GateError(
            "unsupported-platform",
            UNSUPPORTED_SYSTEM,
            "use a runner with Linux or macOS, or an agent behind an address",
        )
    return check_command_user(environment)


def check_command_user(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Check which user runs commands, and return notices for people.

    Raises GateError if that would be root in a workflow. Outside of a workflow, commands may run as root: it is a
    person in a folder of their own that no other user may enter.
    """
    if find_identity(Path.cwd()) == NOBODY:
        why = "because this is root and the folder is root's"
        advice = "they may read it and not write there; give it to another user if they have to"
        return (f"commands run as nobody (user {NOBODY.uid}), {why}: {advice}",)
    if not is_root_required():
        return ()
    if environment.get("GITHUB_ACTIONS") == "true":
        raise GateError(
            "commands-as-root",
            "commands never run as root in a workflow, and nobody else may enter this workspace",
            "give the workspace to the user whom they should run as (chown), or let everybody read it (chmod o+rx)",
        )
    return ("commands run as root, because this is root and nobody else may enter this folder",)


def _can_start_programs(config: RunConfig, suites: Sequence[EvalSuite], book: TargetCatalog) -> bool:
    if book.starts_programs or (config.snapshot_command is not None and config.snapshot_enabled is not False):
        return True
    cases = (case for suite in suites for case in suite.cases if case.skip_reason is None)
    return any(_is_command_evaluator(spec) for case in cases for spec in case.evaluators)


def _is_command_evaluator(spec: EvaluatorSpec) -> bool:
    if isinstance(spec, Composite):
        return isinstance(spec.aggregator, CodeAggregator) or any(map(_is_command_evaluator, spec.members))
    return isinstance(spec, CodeJudge)
