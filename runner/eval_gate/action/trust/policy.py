"""By whose rules a pull request is judged, and whose word about judges counts: its own, or the base branch's.

A pull request's files are its author's. Where they are not to say by what they are judged, always so for forks, the
rules come from the configuration file as it is on the base branch. Only the rules, and who the
base branch's agent is, which always is that branch's word: what is run, and against what, stays what the pull request
says. Inputs and variables stand in the workflow, which a configuration file never wins over.

About judges a pull request only proposes: the file on the base branch counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from eval_gate.action.inputs import ReportedSide
from eval_gate.action.log import Log
from eval_gate.action.plan import Mode
from eval_gate.action.step import Step
from eval_gate.action.trust.base import base_config, trusted_branch, words_of
from eval_gate.action.trust.control import trusted_control
from eval_gate.config.settings import RunConfig
from eval_gate.errors import GateError
from eval_gate.gate.judge_comparisons import PATH, AskComparisons, Comparisons, parse_comparisons, read_comparisons
from eval_gate.gate.loosening import changed_rules
from eval_gate.github.commits import file_at
from eval_gate.github.failure import GitHubError, unavailable
from eval_gate.model.policy import Measuring
from eval_gate.model.yardstick import Difference
from eval_gate.struct import FrozenStruct, replace


class Ruled(FrozenStruct):
    """The configuration with the rules that count. `unused`: what the pull request's own would have been otherwise."""

    config: RunConfig
    unused: tuple[Difference, ...] = ()


def ruled_by(step: Step, config: RunConfig, variables: Mapping[str, str], log: Log) -> Ruled:
    """The configuration as this step judges by it. Asks GitHub only where the base branch's rules count.

    Raises GateError where these cannot be had or are not valid: another policy is no substitute for them.
    """
    branch = step.plan.rules_branch
    if branch is None or (step.settings.policy_from is ReportedSide.HEAD and not step.plan.from_fork):
        control = trusted_control(step, config, variables, log)
        ruled = replace(config, control=control)
        return Ruled(ruled, () if control == config.control else _differences(ruled, config))
    try:
        branch = trusted_branch(step) or branch
        base, name = base_config(step, variables, branch)
    except GitHubError as error:
        raise unavailable(f"the rules of {branch} could not be read: {error}") from error
    which = words_of(step, branch)
    log.did(f"judged by the rules of {which}: {name or 'it has no configuration file, so those are the defaults'}")
    results = replace(config.results, scores=base.results.scores)
    control = trusted_control(step, replace(config, control=base.control), variables, log)
    ruled = replace(config, policy=base.policy, results=results, control=control)
    # a relay has no files of the pull request at hand, so nothing is known of its own rules
    unused = () if step.plan.mode is Mode.RELAY else _differences(ruled, config)
    return Ruled(ruled, unused)


def _differences(base: RunConfig, own: RunConfig) -> tuple[Difference, ...]:
    then, now = (
        config.policy.recorded(
            Measuring(
                confirm=config.policy.most_reruns,
                trials=own.limits.trials,
                scores=tuple(map(str, config.results.scores)),
                control=config.control.named or config.control.named_command,
            )
        )
        for config in (base, own)
    )
    return changed_rules(then, now)


def comparisons_of(step: Step) -> AskComparisons:
    """Who looks it up, of GitHub only where a judge graded. Raises GateError for a file in the workspace that is wrong.

    Where the base branch's cannot be had, nothing is known, and that is said: it turns no verdict.
    """
    plan = step.plan
    own = () if plan.mode is Mode.RELAY else read_comparisons(step.environment.workspace)
    if plan.base_branch is None:
        return lambda: Comparisons(own)

    @cache
    def ask() -> Comparisons:
        try:
            branch = trusted_branch(step) or ""
            data = file_at(step.client, PATH, branch)
            known = parse_comparisons(data, shown_as=f"{PATH} on {branch}") if data else ()
        except (GitHubError, GateError) as error:
            return Comparisons(trouble=str(error))
        return Comparisons(known, proposed=own)

    return ask
