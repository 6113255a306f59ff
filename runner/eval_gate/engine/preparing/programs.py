"""Whether a run starts programs, and as whom where we are root: said once, or refused, before anything is started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eval_gate.config.settings import RunConfig
from eval_gate.errors import GateError
from eval_gate.model.case import EvalSuite
from eval_gate.model.specs.evaluator import CodeAggregator, CodeJudge, Composite, EvaluatorSpec
from eval_gate.process.identity import NOBODY, identity_for, only_root_fits
from eval_gate.process.run import CAN_RUN, NOT_HERE

if TYPE_CHECKING:
    from eval_gate.targets.lookup import TargetBook  # 50 ms that results of other tools need nothing of


def who_runs(
    config: RunConfig, suites: Sequence[EvalSuite], book: TargetBook, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """What is worth a line about the user of this run's programs. Raises GateError where there can be none."""
    if not _starts_programs(config, suites, book):
        return ()
    if not CAN_RUN:
        raise GateError("no-commands-here", NOT_HERE, "use a runner with Linux or macOS, or an agent behind an address")
    return as_whom(environment)


def as_whom(environment: Mapping[str, str]) -> tuple[str, ...]:
    """What is worth a line about the user as whom commands run.

    Raises GateError where that would be root in a workflow. Outside of one it is a person who is root in a folder of
    their own: who else could work there?
    """
    if identity_for(Path.cwd()) == NOBODY:
        why = "because this is root and the folder is root's"
        advice = "they may read it and not write there; give it to another user if they have to"
        return (f"commands run as nobody (user {NOBODY.uid}), {why}: {advice}",)
    if not only_root_fits():
        return ()
    if environment.get("GITHUB_ACTIONS") == "true":
        raise GateError(
            "commands-as-root",
            "commands never run as root in a workflow, and nobody else may enter this workspace",
            "give the workspace to the user whom they should run as (chown), or let everybody read it (chmod o+rx)",
        )
    return ("commands run as root, because this is root and nobody else may enter this folder",)


def _starts_programs(config: RunConfig, suites: Sequence[EvalSuite], book: TargetBook) -> bool:
    if book.starts_programs or (config.snapshot_command is not None and config.snapshot_enabled is not False):
        return True
    cases = (case for suite in suites for case in suite.cases if case.skip_reason is None)
    return any(_is_command(spec) for case in cases for spec in case.evaluators)


def _is_command(spec: EvaluatorSpec) -> bool:
    if isinstance(spec, Composite):
        return isinstance(spec.aggregator, CodeAggregator) or any(map(_is_command, spec.members))
    return isinstance(spec, CodeJudge)
