"""What earlier pushes of this pull request saw: sought in its own runs' artifacts, and never in a fork's."""

from __future__ import annotations

from eval_gate.action.log import Log
from eval_gate.action.plan import BaselineKind, Mode, Plan
from eval_gate.action.step import Step
from eval_gate.config.settings import RunConfig
from eval_gate.github.artifacts.pushes import WatchedChange, remembered
from eval_gate.github.failure import GitHubError
from eval_gate.reports.words.numbers import count
from eval_gate.results.pushes import Pushes


def earlier_pushes(step: Step, config: RunConfig, log: Log) -> Pushes | None:
    """The pushes before this one, perhaps none; None where this is no pull request that may remember any.

    What cannot be had is said and costs nothing: the run is judged by itself, as it would be without.
    """
    plan, environment = step.plan, step.environment
    if not (step.settings.remember_pushes and config.policy.confirm and _remembers(plan)):
        return None
    assert plan.pull_number is not None
    change = WatchedChange(
        plan.pull_number,
        plan.head_branch or "",
        environment.event_name,
        environment.workflow_path,
        step.artifact_names,
        step.key,
        environment.run_id,
    )
    if not change.workflow:
        return Pushes(pull_request=change.number, gate=change.gate)
    try:
        found = remembered(step.client, change, environment.temporary)
    except GitHubError as error:
        log.missed(f"what earlier pushes of this pull request saw is not known: {error}")
        return Pushes(pull_request=change.number, gate=change.gate)
    for note in found.notes:
        log.missed(f"what an earlier push of this pull request saw is not known: {note}")
    if found.run_id is not None:
        pushes = count(len(found.pushes.ledger.runs), "earlier push", "earlier pushes")
        log.did(f"{pushes} of this pull request may count too, by run {found.run_id}")
    return found.pushes


def _remembers(plan: Plan) -> bool:
    """Whether it is an open pull request of a branch of this repository, and is compared with anything."""
    of_a_branch = plan.pull_number is not None and plan.head_branch is not None and not plan.from_fork
    return plan.mode is Mode.GATE and of_a_branch and plan.baseline.kind is not BaselineKind.NONE
