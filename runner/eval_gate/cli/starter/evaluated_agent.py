"""Determine the agent to evaluate: from the command line, the configuration, or the default address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from pydantic import JsonValue

from eval_gate.cli.starter.described_target import DEFAULT_ENDPOINT, DescribedAgent, check_url
from eval_gate.cli.starter.folder_contents import FoundEvals
from eval_gate.config.settings import RunConfig
from eval_gate.errors import GateError
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.agent_address import HOST_NAME, LOCAL_NAMES
from eval_gate.targets.build import find_flag_target
from eval_gate.targets.build_context import MissingRequirements
from eval_gate.targets.model.providers.provider_table import PROVIDERS, ModelProvider
from eval_gate.targets.model.settings import ModelSettings
from eval_gate.targets.target_list import ResolvedTarget, find_targets_file
from eval_gate.targets.variables import VariableResolver
from eval_gate.text.escape import to_variable_word

TARGETS: Final = "targets.yaml"
AGENT_EVALS: Final = "agent-evals"


class AgentPlace(StrEnum):
    """Where the evaluated agent runs, as far as a workflow has to know."""

    AGENT_HERE = "agent-here"
    """An agent on the same machine: the workflow has to start it."""
    AGENT_ELSEWHERE = "agent-elsewhere"
    MODEL = "model"
    SUITES = "suites"
    """The agents that Agent Evals suites bring with them."""
    DESCRIBED = "described"
    """Targets of a list."""


class EvaluatedAgent(FrozenStruct):
    """The evaluated agent. `secrets` and `variables` are environment names; `targets` is a path."""

    kind: AgentPlace
    endpoint: str | None = None
    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    """Where the model is served, if that is not its provider's own address."""
    secrets: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    targets: str | None = None
    preset: str | None = None
    """The protocol of the agent at the endpoint, if it is not Eval Gate's own."""
    entry: Mapping[str, JsonValue] | None = None
    """The target for a list, if address and protocol do not describe it completely."""
    function: str | None = None
    """The Python function that is the agent, as module:name."""
    start: str | None = None

    @property
    def address(self) -> SplitResult:
        """The endpoint in parts."""
        return urlsplit(self.endpoint or "")


def find_evaluated_agent(
    config: RunConfig,
    evals: FoundEvals,
    example: str,
    folder: Path,
    repository: Path | None,
    described: DescribedAgent | None = None,
) -> EvaluatedAgent:
    """Find the target of this configuration and these evals; `example` is the format of the example to write.

    `described` is the agent of the command line. Raises GateError for conflicting settings, and for an invalid URL,
    protocol or model.
    """
    if described is not None and described.entry is not None:
        return _build_described_agent(described.entry)
    target = config.target
    chosen = find_flag_target(target)
    if target.function is not None:
        return EvaluatedAgent(AgentPlace.DESCRIBED, function=target.function)
    if chosen is not None and isinstance(chosen.settings, ModelSettings):
        _check_provider(chosen, chosen.settings)
        provider, row = chosen.settings.route[0], chosen.settings.provider_row
        # of several variables for a key, the one named after the provider
        mine = [name for name in row.key_variables if to_variable_word(provider) in name] or row.key_variables
        base_url = None if target.base_url is None else target.base_url.open()
        if base_url is not None:
            check_url(base_url, "the model's URL")
        elsewhere = row.address_variable if row.needs_address and base_url is None else None
        return EvaluatedAgent(
            AgentPlace.MODEL,
            provider=target.provider,
            model=target.model,
            base_url=base_url,
            secrets=tuple(mine[:1]),
            variables=(elsewhere,) if elsewhere else (),
        )
    if target.endpoint is not None:
        return _build_endpoint_agent(target.endpoint.open(), target.protocol)
    if target.name is not None or target.targets is not None:
        return EvaluatedAgent(AgentPlace.DESCRIBED, targets=target.targets if isinstance(target.targets, str) else None)
    if (evals.formats or {example}) == {AGENT_EVALS}:
        return EvaluatedAgent(AgentPlace.SUITES, secrets=PROVIDERS[ModelProvider.OPENAI].key_variables)
    listed = find_target_list(evals.files, folder, repository or folder)
    if listed:
        return EvaluatedAgent(AgentPlace.DESCRIBED, targets=listed)
    return _build_endpoint_agent(DEFAULT_ENDPOINT, None)


def _build_described_agent(entry: Mapping[str, JsonValue]) -> EvaluatedAgent:
    """Build the agent that a target describes, without a list if its address and protocol suffice."""
    url, preset = entry.get("url"), entry.get("agentProtocol")
    references = VariableResolver({}, partial=True)
    references(dict(entry))
    names = tuple(dict.fromkeys(one.variable for one in references.unset))
    if url is None:
        return EvaluatedAgent(AgentPlace.DESCRIBED, secrets=names, targets=TARGETS, entry=entry)
    agent = _build_endpoint_agent(str(url), preset)
    if entry.keys() <= {"name", "provider", "url", "agentProtocol"}:
        return agent
    return replace(agent, secrets=names, targets=TARGETS, entry=entry)


def _check_provider(chosen: ResolvedTarget, model: ModelSettings) -> None:
    """Check that the provider of the model exists, if the library that knows all providers is installed."""
    from eval_gate.targets.model.build import check_provider

    try:
        check_provider(model)
    except GateError as error:
        if MissingRequirements.is_missing_requirement(error):
            return
        error.problems = chosen.locate_problems(error)
        raise


def _build_endpoint_agent(endpoint: str, preset: JsonValue) -> EvaluatedAgent:
    check_url(endpoint, "the agent's URL")
    is_here = urlsplit(endpoint).hostname in {*LOCAL_NAMES, HOST_NAME}
    kind = AgentPlace.AGENT_HERE if is_here else AgentPlace.AGENT_ELSEWHERE
    return EvaluatedAgent(kind, endpoint, preset=None if preset is None else str(preset))


def find_target_list(files: Sequence[str], folder: Path, repository: Path) -> str | None:
    """Find the target list for these evals, or for the folder if there are no evals yet; None if there is none."""
    for place in dict.fromkeys((folder / file).parent for file in files) or (folder,):
        path = find_targets_file(place, repository, folder)
        if path is not None:
            return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.as_posix()
    return None
