"""Variables that lead the providers' own libraries to a proxy, which can then record and replay their calls."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import urlsplit

from eval_gate.targets.model.providers.provider_table import PROVIDERS, ProviderRow

EXECUTION_HEADER: Final = "x-eval-gate-execution"
"""Header by which an HTTP agent gets the id of the execution, and passes it on to the proxy."""
EXECUTION_VARIABLE: Final = "EVAL_GATE_EXECUTION"
PROXY_VARIABLE: Final = "EVAL_GATE_MODEL_PROXY"
GATE_PATH: Final = "/eval-gate"
"""Path of the requests by which the gate controls the proxy."""
REPLACED_VARIABLE: Final = "_EVAL_GATE_REPLACED"
"""Variable with the values that other variables had before, as JSON."""
PLACEHOLDER_KEY: Final = "no-key-in-a-replay"
PROXIED: Final[Mapping[str, ProviderRow]] = {
    provider.value: row for provider, row in PROVIDERS.items() if row.address_variable
}
"""Providers by their name in a path of the proxy: those whose libraries read an address from a variable."""


def get_base_path(name: str) -> str:
    """Return the path of a provider at the proxy, such as `/openai/v1`."""
    return f"/{name}{urlsplit(PROXIED[name].default_address or '').path}"


def build_execution_variables(address: str, execution_id: str, replayed: Collection[str]) -> dict[str, str]:
    """Build the variables of a program that is asked in one execution.

    `replayed` are the providers that are replayed only: the program gets no key of them.
    """
    base = f"{address}{GATE_PATH}/executions/{execution_id}"
    addresses = {row.address_variable or "": f"{base}{get_base_path(name)}" for name, row in PROXIED.items()}
    keys = {PROXIED[name].key_variables[0]: PLACEHOLDER_KEY for name in replayed if name in PROXIED}
    return {**addresses, **keys, EXECUTION_VARIABLE: execution_id}


def build_environment(
    environment: Mapping[str, str], address: str, recorded: Collection[str], *, without_keys: bool
) -> dict[str, str]:
    """Build the environment of a command whose model calls go through the proxy at `address`.

    `recorded` are the providers in the recording. `without_keys`: keys become placeholders, so that a call that
    bypasses the proxy fails. A provider that has no usual address is replaced only where it is set or recorded.
    """
    changes = {PROXY_VARIABLE: address}
    for name, row in PROXIED.items():
        variable = row.address_variable or ""
        if row.default_address or name in recorded or variable in environment:
            changes[variable] = f"{address}{get_base_path(name)}"
        keys = [key for key in row.key_variables if key in environment] or [*row.key_variables[:1]] * (name in recorded)
        changes |= dict.fromkeys(keys if without_keys else (), PLACEHOLDER_KEY)
    own = environment.get("no_proxy") or environment.get("NO_PROXY")
    changes |= dict.fromkeys(("no_proxy", "NO_PROXY"), ",".join(filter(None, (own, urlsplit(address).hostname))))
    replaced = {name: environment.get(name) for name in changes if name != PROXY_VARIABLE}
    return {**environment, **changes, REPLACED_VARIABLE: json.dumps(replaced)}


def restore_environment(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Undo `build_environment` for what Eval Gate itself calls: LLM judges are no part of the agent."""
    if REPLACED_VARIABLE not in environment:
        return environment
    replaced = json.loads(environment[REPLACED_VARIABLE])
    remaining = {
        name: value for name, value in environment.items() if name not in replaced and name != REPLACED_VARIABLE
    }
    return remaining | {name: value for name, value in replaced.items() if value is not None}
