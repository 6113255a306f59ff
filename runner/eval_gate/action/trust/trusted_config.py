"""Policy, judge comparisons and base agent that count for a pull request: its own or those of the base branch.

If a pull request must not choose its own policy, as from a fork, the policy comes from the configuration file on the
base branch. Cases and target stay those of the pull request. Inputs and variables of the workflow take precedence over
any configuration file.

A pull request only proposes judge comparisons: the file on the base branch counts. The base agent always comes from the
base branch or the workflow: its failures clear a change, so a pull request could name an agent that always fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from eval_gate.action.inputs import TrustedSide
from eval_gate.action.step import Step
from eval_gate.action.step_config import load_config_from
from eval_gate.action.step_log import StepLog
from eval_gate.action.step_plan import StepMode
from eval_gate.action.trust.base_branch import describe_branch, find_trusted_branch, load_base_config
from eval_gate.action.trust.pull_request_secrets import BaseBranchTargets
from eval_gate.config.settings import BaseAgentChoice, RunConfig
from eval_gate.errors import GateError
from eval_gate.gate.judge_agreement import (
    JUDGES_PATH,
    JudgeComparisons,
    JudgeLookup,
    parse_comparisons,
    read_judge_agreements,
)
from eval_gate.gate.policy_changes import find_policy_changes
from eval_gate.github.commits import fetch_file
from eval_gate.github.failure import GitHubError, build_unavailable_error
from eval_gate.model.base import JsonValue
from eval_gate.model.policy import EvaluationSetup
from eval_gate.model.result import RunResult
from eval_gate.model.setup_change import SetupChange
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.target_list import read_targets
from eval_gate.text.quoting import describe_name

_NO_BASE_AGENT = BaseAgentChoice()


class TrustedConfig(FrozenStruct):
    """Configuration with the rules that count. `unused_rules`: differing rules of the pull request."""

    config: RunConfig
    unused_rules: tuple[SetupChange, ...] = ()


def load_trusted_config(step: Step, config: RunConfig, variables: Mapping[str, str], log: StepLog) -> TrustedConfig:
    """Load the configuration whose policy this step applies.

    GitHub is read only if the base branch's policy counts. Raises GateError if that policy is unavailable or
    invalid: another policy is not a substitute for it.
    """
    branch = step.plan.rules_branch
    if branch is None or (step.settings.policy_from is TrustedSide.HEAD and not step.plan.from_fork):
        base_agent = choose_base_agent(step, config, variables, log)
        ruled = replace(config, base_agent=base_agent)
        return TrustedConfig(ruled, () if base_agent == config.base_agent else _compare_rules(ruled, config))
    try:
        branch = find_trusted_branch(step) or branch
        base, name = load_base_config(step, variables, branch)
    except GitHubError as error:
        raise build_unavailable_error(f"the policy of {branch} could not be read: {error}") from error
    which = describe_branch(step, branch)
    log.record(f"policy of {which}: {name or 'the defaults, because it has no configuration file'}")
    results = replace(config.results, scores=base.results.scores)
    base_agent = choose_base_agent(step, replace(config, base_agent=base.base_agent), variables, log)
    limits = config.limits
    if limits.passes or base.limits.passes:  # the number of passes says little without that of the trials
        limits = replace(limits, trials=base.limits.trials, passes=base.limits.passes)
    ruled = replace(config, policy=base.policy, limits=limits, results=results)
    ruled = replace(ruled, base_agent=base_agent, trace_url=base.trace_url)
    # a relay has no files of the pull request at hand, so nothing is known of its own rules
    unused = () if step.plan.mode is StepMode.RELAY else _compare_rules(ruled, config)
    return TrustedConfig(ruled, unused)


def _compare_rules(base: RunConfig, own: RunConfig) -> tuple[SetupChange, ...]:
    base_policy, own_policy = (
        config.policy.build_run_policy(
            EvaluationSetup(
                reruns=config.policy.max_reruns,
                trials=(config if config.limits.passes else own).limits.trials,
                passes=config.limits.passes,
                scores=tuple(map(str, config.results.scores)),
                base_agent=config.base_agent.display_name or config.base_agent.command_name,
            )
        )
        for config in (base, own)
    )
    return find_policy_changes(base_policy, own_policy)


def build_comparison_lookup(step: Step) -> JudgeLookup:
    """Build the lookup, which calls GitHub only if an LLM judge scored. Raises GateError for an invalid own file.

    If the base branch's file is unavailable, the comparisons are unknown and report why; the verdict stays the same.
    """
    plan = step.plan
    own = () if plan.mode is StepMode.RELAY else read_judge_agreements(step.environment.workspace)
    if plan.base_branch is None:
        return lambda: JudgeComparisons(own)

    @cache
    def ask() -> JudgeComparisons:
        try:
            branch = find_trusted_branch(step) or ""
            data = fetch_file(step.client, JUDGES_PATH, branch)
            entries = parse_comparisons(data, shown_as=f"{JUDGES_PATH} on {branch}") if data else ()
        except (GitHubError, GateError) as error:
            return JudgeComparisons(trouble=str(error))
        return JudgeComparisons(entries, proposed_entries=own)

    return ask


def choose_base_agent(step: Step, config: RunConfig, variables: Mapping[str, str], log: StepLog) -> BaseAgentChoice:
    """Choose the base agent that this step may run; none if only the pull request defines it.

    GitHub is called only if a configuration file names one. If that fails, no base agent runs, and no case is cleared.
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
            log.record(f"{branch} names {_format_choice(choice)}; the pull request's choice is ignored")
    if choice.target is not None and not _has_same_description(step, config, choice.target, variables, log):
        reason = (
            f"`targets` on {branch} does not define {describe_name(choice.target)} in the same way as the pull request"
        )
        log.commands.write_warning(f"the base agent does not run: {reason}")
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
    warning = (
        "the base agent of the result is ignored: this step names "
        f"{_format_choice(choice)}, but the result used {run.base_agent.target.identity[:300]}"
    )
    return replace(run, base_agent=None, warnings=(*run.warnings, warning))


def _format_choice(choice: BaseAgentChoice) -> str:
    name = choice.display_name or choice.command_name
    return f"{name[:300]} as the base agent" if name else "no base agent"


def _has_same_description(step: Step, config: RunConfig, name: str, variables: Mapping[str, str], log: StepLog) -> bool:
    """Whether the base branch has the same to say of this target, to the letter."""
    source = config.target.targets
    if source is None:
        return False  # which list counts depends on where the eval files lie, which are the pull request's
    base_targets = BaseBranchTargets(step, variables, log)
    try:
        ours = _list_entries_named(read_targets(source, step.environment.workspace).entries, name)
        theirs = _list_entries_named(base_targets.get_entries(source if isinstance(source, str) else None), name)
    except GateError:
        return False
    return bool(ours) and ours == theirs


def _list_entries_named(entries: tuple[Mapping[str, JsonValue], ...], name: str) -> list[Mapping[str, JsonValue]]:
    return [entry for entry in entries if entry.get("name") == name]
