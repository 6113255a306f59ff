"""Variables that lead the providers' own libraries to a proxy, which can then record and replay their calls."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import urlsplit

from eval_gate.targets.model.providers.provider_table import PROVIDERS, ProviderRow

EXECUTION_HEADER: Final = "x-eval-gate-execution"
"""Header by which an HTTP agent gets the id of the execution, and passes it on to the proxy."""
PROXY_VARIABLE: Final = "EVAL_GATE_MODEL_PROXY"
GATE_PATH: Final = "/eval-gate"
"""Path of the requests by which the gate controls the proxy."""
REPLACED_VARIABLE: Final = "_EVAL_GATE_REPLACED"
"""Variable with the values that other variables had before, as JSON."""
PLACEHOLDER_KEY: Final = "no-key-in-a-replay"
PROXIED: Final[Mapping[str, ProviderRow]] = {
    provider.value: row for provider, row in PROVIDERS.items() if row.address_variable and row.default_address
}
"""Providers by their name in a path of the proxy: those whose libraries read another address from a variable."""
ADDRESS_HINT: Final = "let the agent call its models at the addresses in " + ", ".join(
    f"`{row.address_variable}`" for row in PROXIED.values()
)


def get_base_path(name: str) -> str:
    """Return the path of a provider at the proxy, such as `/openai/v1`."""
    return f"/{name}{urlsplit(PROXIED[name].default_address or '').path}"


def build_variables(
    address: str, recorded: Collection[str], environment: Mapping[str, str], *, without_keys: bool
) -> dict[str, str]:
    """Build the variables that lead a program with this environment to the proxy at `address`.

    `without_keys`: the keys that it has, and one of each `recorded` provider, are placeholders, so that a call which
    bypasses the proxy fails.
    """
    variables = {row.address_variable or "": f"{address}{get_base_path(name)}" for name, row in PROXIED.items()}
    for name, row in PROXIED.items() if without_keys else ():
        keys = [key for key in row.key_variables if key in environment] or [*row.key_variables[:1]] * (name in recorded)
        variables |= dict.fromkeys(keys, PLACEHOLDER_KEY)
    return variables


def build_environment(
    environment: Mapping[str, str], address: str, recorded: Collection[str], *, without_keys: bool
) -> dict[str, str]:
    """Build the environment of a command whose model calls go through the proxy, as `build_variables` says."""
    hosts = environment.get("no_proxy") or environment.get("NO_PROXY")
    hosts = ",".join(filter(None, (hosts, urlsplit(address).hostname)))
    changes = build_variables(address, recorded, environment, without_keys=without_keys)
    changes |= {"no_proxy": hosts, "NO_PROXY": hosts}
    replaced = json.dumps({name: environment.get(name) for name in changes})
    return {**environment, **changes, PROXY_VARIABLE: address, REPLACED_VARIABLE: replaced}


def restore_environment(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Undo `build_environment` for what Eval Gate itself calls: LLM judges are no part of the agent."""
    if REPLACED_VARIABLE not in environment:
        return environment
    replaced = json.loads(environment[REPLACED_VARIABLE])
    remaining = {
        name: value for name, value in environment.items() if name not in replaced and name != REPLACED_VARIABLE
    }
    return remaining | {name: value for name, value in replaced.items() if value is not None}
