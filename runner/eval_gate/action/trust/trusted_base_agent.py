"""Trust in the base agent: named by the base branch or the workflow, never by the change alone.

What it fails is not held against a change. A pull request that could name it would name one that fails whatever the
change breaks.
"""

from __future__ import annotations

from collections.abc import Mapping

from eval_gate.action.step import Step
from eval_gate.action.step_config import load_config_from
from eval_gate.action.step_log import StepLog
from eval_gate.action.step_plan import StepMode
from eval_gate.action.trust.base_branch import find_trusted_branch, load_base_config
from eval_gate.action.trust.pull_request_secrets import BaseBranchTargets
from eval_gate.config.settings import BaseAgentChoice, RunConfig
from eval_gate.errors import GateError
from eval_gate.github.failure import GitHubError
from eval_gate.model.base import JsonValue
from eval_gate.model.result import RunResult
from eval_gate.struct import replace
from eval_gate.targets.target_list import read_targets
from eval_gate.text.quoting import describe_name

_NO_BASE_AGENT = BaseAgentChoice()


def choose_base_agent(step: Step, config: RunConfig, variables: Mapping[str, str], log: StepLog) -> BaseAgentChoice:
    """Whom this step may ask as the base branch's agent; nobody where the pull request alone says who that is.

    GitHub is asked only where a configuration file names one. Where it does not answer nobody is asked: that clears
    nothing.
    """
    branch, choice = step.plan.base_branch, config.base_agent
    if branch is None or step.plan.mode is StepMode.RELAY or choice == _NO_BASE_AGENT:
        return choice
    # word by word: a pull request may add an address to the command that the workflow names
    if choice != load_config_from(step.settings, variables, None).base_agent:
        try:
            branch = find_trusted_branch(step) or branch
            choice = load_base_config(step, variables, branch)[0].base_agent
        except (GitHubError, GateError) as error:
            log.commands.write_warning(
                f"the base agent does not run: its definition could not be read from {branch}: {error}"
            )
            return _NO_BASE_AGENT
        if choice != config.base_agent:
            log.record(
                f"{branch} names {_format_choice(choice)} as the base agent; the pull request's choice is ignored"
            )
    if choice.target is not None and not _has_same_description(step, config, choice.target, variables, log):
        said = (
            f"`targets` on {branch} does not define {describe_name(choice.target)} in the same way as the pull request"
        )
        log.commands.write_warning(f"the base agent does not run: {said}")
        return _NO_BASE_AGENT
    return choice


def drop_untrusted_base_agent(run: RunResult, choice: BaseAgentChoice) -> RunResult:
    """Drop the results of a base agent that this step does not name, with a warning in the run result."""
    if run.base_agent is None:
        return run
    by_name = choice.target is not None and run.base_agent.target.name == choice.target
    by_address = choice.endpoint is not None and run.base_agent.target.identity == choice.display_name
    by_command = choice.command is not None and run.base_agent.target.identity == choice.command_name
    if by_name or by_address or by_command:
        return run
    said = (
        "the base agent of the result is ignored: this step names "
        f"{_format_choice(choice)}, but the result used {run.base_agent.target.identity[:300]}"
    )
    return replace(run, base_agent=None, warnings=(*run.warnings, said))


def _format_choice(choice: BaseAgentChoice) -> str:
    return (choice.display_name or choice.command_name or "nobody")[:300]


def _has_same_description(step: Step, config: RunConfig, name: str, variables: Mapping[str, str], log: StepLog) -> bool:
    """Whether the base branch has the same to say of this target, to the letter."""
    source = config.target.targets
    if source is None:
        return False  # which list counts depends on where the eval files lie, which are the pull request's
    there = BaseBranchTargets(step, variables, log)
    try:
        ours = _list_entries_named(read_targets(source, step.environment.workspace).entries, name)
        theirs = _list_entries_named(there.get_entries(source if isinstance(source, str) else None), name)
    except GateError:
        return False
    return bool(ours) and ours == theirs


def _list_entries_named(entries: tuple[Mapping[str, JsonValue], ...], name: str) -> list[Mapping[str, JsonValue]]:
    return [entry for entry in entries if entry.get("name") == name]
