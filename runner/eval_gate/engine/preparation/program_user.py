"""Checks which user runs the programs of a run, before any program starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eval_gate.config.settings import RunConfig
from eval_gate.errors import GateError
from eval_gate.model.case import EvalCase, EvalSuite
from eval_gate.model.specs.evaluator import CodeAggregator, CodeJudge, Composite, EvaluatorSpec
from eval_gate.process.identity import UNPRIVILEGED, find_identity, is_root_required
from eval_gate.process.run import CAN_RUN_PROGRAMS, UNSUPPORTED_SYSTEM

if TYPE_CHECKING:
    from eval_gate.targets.catalog import TargetCatalog  # 50 ms that results of other tools need nothing of


def check_programs(
    config: RunConfig, suites: Sequence[EvalSuite], catalog: TargetCatalog, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Check which user runs the programs of this run, and return notices for people.

    Raises GateError if programs cannot run on this system, or may not run as this user.
    """
    if not _can_start_programs(config, suites, catalog):
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
    if find_identity(Path.cwd()) == UNPRIVILEGED:
        why = "because eval-gate runs as root and root owns the folder"
        advice = "they can read the folder but not write to it; to allow that, give it to another user (chown)"
        return (f"commands run as user nobody ({UNPRIVILEGED.uid}), {why}: {advice}",)
    if not is_root_required():
        return ()
    if environment.get("GITHUB_ACTIONS") == "true":
        raise GateError(
            "commands-as-root",
            "commands never run as root in a workflow, and no other user can enter this workspace",
            "give the workspace to the user that commands should run as (chown), or let all users read it (chmod o+rx)",
        )
    return ("commands run as root, because eval-gate runs as root and no other user can enter this folder",)


def _can_start_programs(config: RunConfig, suites: Sequence[EvalSuite], catalog: TargetCatalog) -> bool:
    if catalog.starts_programs or (config.snapshot_command is not None and config.snapshot_enabled is not False):
        return True
    cases = (case for suite in suites for case in suite.cases if case.skip_reason is None)
    return any(map(has_commands, cases))


def has_commands(case: EvalCase) -> bool:
    """Whether an evaluator or a hook of the case is a command."""
    return any(hook.command for _, hook in case.hooks.list_hooks()) or any(
        map(_is_command_evaluator, case.all_evaluators)
    )


def _is_command_evaluator(spec: EvaluatorSpec) -> bool:
    if isinstance(spec, Composite):
        return isinstance(spec.aggregator, CodeAggregator) or any(map(_is_command_evaluator, spec.members))
    return isinstance(spec, CodeJudge)
