"""The base branch's agent as a separate target for suspects."""

from __future__ import annotations

from contextlib import AsyncExitStack

from eval_gate.config.settings import RecordingMode, RunConfig, TargetChoice
from eval_gate.errors import GateError
from eval_gate.model.setup import TargetIdentity
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.agent_address import ContainerProbe, parse_agent_address
from eval_gate.targets.base import Target
from eval_gate.targets.build_context import BuildContext
from eval_gate.targets.catalog import TargetCatalog
from eval_gate.targets.model.recording import Recording
from eval_gate.text.secret import SecretAddress


class BaseAgentTarget(FrozenStruct):
    """Base agent, its name in results, and notices about it."""

    target: Target
    name: str
    notices: tuple[str, ...] = ()


def build_base_agent_target(
    config: RunConfig,
    context: BuildContext,
    main: Target | None,
    eval_file: str,
    opened: AsyncExitStack | None = None,
) -> BaseAgentTarget | None:
    """Build the base agent's target from the configuration; None if none is configured.

    The target is not connected yet. `main` is the evaluated agent, or None if it is unknown. The base agent never
    responds from a recording: its present behavior counts. `opened` closes it if the run does not begin. Raises
    GateError if the agent is not described, is described twice, or is the evaluated agent, which would clear every
    regression that it causes.
    """
    choice = config.base_agent
    if choice.endpoint is None and choice.target is None:
        return None
    if choice.endpoint is not None and choice.target is not None:
        raise GateError(
            "conflicting-base-agents",
            "baseAgentEndpoint and baseAgentTarget are both set",
            "remove one of them",
        )
    made = replace(context, recording=Recording(RecordingMode.OFF))
    book = TargetCatalog(_build_choice(config.target, choice.endpoint, choice.target), made)
    if opened is not None:
        opened.push_async_callback(book.aclose)
    try:
        target = book.get_target(eval_file)
    except GateError as error:
        # another `--target` would be another agent that is evaluated
        error.hint = error.hint and error.hint.replace("--target with", "--base-agent-target with")
        raise
    said = target.identity
    notices = book.notices
    if main is not None:
        notices = (*_check_base_agent(said, main.identity, by_name=choice.endpoint is None), *notices)
    name = choice.display_name or ""
    if choice.target is not None:
        name = f"{said.name} ({', '.join(filter(None, (said.provider, said.identity, said.model)))})"
    return BaseAgentTarget(target, name, notices)


def describe_unused_base_agent(config: RunConfig) -> tuple[str, ...]:
    """Return a notice if the configured base agent is only for external results and not for these evals."""
    choice = config.base_agent
    if choice.command is None or choice.display_name is not None:
        return ()
    return (
        (
            "ignoring baseAgentCommand: it works only with results of another tool. For these evals, set "
            "baseAgentEndpoint or baseAgentTarget"
        ),
    )


def _check_base_agent(base: TargetIdentity, main: TargetIdentity, *, by_name: bool) -> tuple[str, ...]:
    """Check that the base agent is not the evaluated agent; give notice if only their paths tell them apart."""
    same, notices = by_name and base.name == main.name, tuple[str, ...]()
    if base.provider == main.provider == "http":
        one, other = parse_agent_address(base.identity), parse_agent_address(main.identity)
        same = same or one.is_same_agent(other, ContainerProbe())
        if one.is_same_host(other):
            notices = (f"the base agent has the same host and port as the evaluated agent: {base.identity}",)
    if same:
        raise GateError(
            "base-agent-is-target",
            f"the base agent is the evaluated agent itself: {base.name} ({base.identity})",
            "set baseAgentEndpoint or baseAgentTarget to the agent of the base branch, started in addition to this one "
            "(on the same machine: on another port)",
        )
    return notices


def _build_choice(main: TargetChoice, endpoint: SecretAddress[str] | None, name: str | None) -> TargetChoice:
    preset = main.protocol if endpoint is not None else None
    return TargetChoice(
        endpoint=endpoint,
        protocol=preset,
        name=name,
        targets=main.targets if name is not None else None,
        concurrency=main.concurrency,
        wait_for=main.wait_for,
        max_retries=main.max_retries,
        given=main.given.with_aliases(agentEndpoint="baseAgentEndpoint", target="baseAgentTarget"),
    )
