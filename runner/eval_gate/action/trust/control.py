"""Who the base branch's agent is: the word of that branch and of the workflow, never of the pull request's files alone.

What it fails is not held against a change. A pull request that could name it would name one that fails whatever the
change breaks.
"""

from __future__ import annotations

from collections.abc import Mapping

from eval_gate.action.configuration import config_of
from eval_gate.action.log import Log
from eval_gate.action.plan import Mode
from eval_gate.action.step import Step
from eval_gate.action.trust.base import base_config, trusted_branch
from eval_gate.action.trust.variables import BaseDescriptions
from eval_gate.config.settings import ControlChoice, RunConfig
from eval_gate.errors import GateError
from eval_gate.github.failure import GitHubError
from eval_gate.model.base import JsonValue
from eval_gate.model.result import RunResult
from eval_gate.struct import replace
from eval_gate.targets.listing import read_targets
from eval_gate.text.quoting import shown_name

_NOBODY = ControlChoice()


def trusted_control(step: Step, config: RunConfig, variables: Mapping[str, str], log: Log) -> ControlChoice:
    """Whom this step may ask as the base branch's agent; nobody where the pull request alone says who that is.

    GitHub is asked only where a configuration file names one. Where it does not answer nobody is asked: that clears
    nothing.
    """
    branch, choice = step.plan.base_branch, config.control
    if branch is None or step.plan.mode is Mode.RELAY or choice == _NOBODY:
        return choice
    # word by word: a pull request may add an address to the command that the workflow names
    if choice != config_of(step.settings, variables, None).control:
        try:
            branch = trusted_branch(step) or branch
            choice = base_config(step, variables, branch)[0].control
        except (GitHubError, GateError) as error:
            log.commands.warning(
                f"the base branch's agent is not asked: who it is could not be read from {branch}: {error}"
            )
            return _NOBODY
        if choice != config.control:
            log.did(f"{branch} names {_words(choice)} as its agent; what the pull request names counts for nothing")
    if choice.target is not None and not _described_alike(step, config, choice.target, variables, log):
        said = f"{branch} does not describe {shown_name(choice.target)} as the pull request does, in `targets`"
        log.commands.warning(f"the base branch's agent is not asked: {said}")
        return _NOBODY
    return choice


def with_believed_control(run: RunResult, choice: ControlChoice) -> RunResult:
    """A result that was made elsewhere, without what another agent said in place of the base branch's."""
    if run.control is None:
        return run
    by_name = choice.target is not None and run.control.target.name == choice.target
    by_address = choice.endpoint is not None and run.control.target.identity == choice.named
    by_command = choice.command is not None and run.control.target.identity == choice.named_command
    if by_name or by_address or by_command:
        return run
    said = (
        "what the base branch's agent said is not counted: this step names "
        f"{_words(choice)}, and the result asked {run.control.target.identity[:300]}"
    )
    return replace(run, control=None, warnings=(*run.warnings, said))


def _words(choice: ControlChoice) -> str:
    return (choice.named or choice.named_command or "nobody")[:300]


def _described_alike(step: Step, config: RunConfig, name: str, variables: Mapping[str, str], log: Log) -> bool:
    """Whether the base branch has the same to say of this target, to the letter."""
    source = config.target.targets
    if source is None:
        return False  # which list counts depends on where the eval files lie, which are the pull request's
    there = BaseDescriptions(step, variables, log)
    try:
        ours = _named(read_targets(source, step.environment.workspace).entries, name)
        theirs = _named(there.entries(source if isinstance(source, str) else None), name)
    except GateError:
        return False
    return bool(ours) and ours == theirs


def _named(entries: tuple[Mapping[str, JsonValue], ...], name: str) -> list[Mapping[str, JsonValue]]:
    return [entry for entry in entries if entry.get("name") == name]
