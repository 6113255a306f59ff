"""Which variables a target gets in addition to those that every program gets."""

from __future__ import annotations

import json
from collections.abc import Mapping

from eval_gate.model.base import JsonValue
from eval_gate.process.environment import is_always_passed
from eval_gate.targets.build_context import SecretRequest
from eval_gate.targets.kinds import find_kind
from eval_gate.targets.target_list import ResolvedTarget
from eval_gate.text.urls import to_public_url


def find_secret_request(chosen: ResolvedTarget, environment: Mapping[str, str]) -> SecretRequest | None:
    """Find the variables that a target gets in addition to those that every program gets.

    Return None if there are none. The variables are those that its description refers to or passes on, and the key
    of a provider if the description has an address of its own.
    """
    settings = chosen.settings
    names = dict.fromkeys([*chosen.variables, *settings.list_passed_variables(environment)])
    variables = tuple(name for name in names if environment.get(name, "").strip() and not is_always_passed(name))
    if not variables:
        return None
    place = settings.place.open() if settings.place else None
    url = to_public_url(place) if place and "://" in place else place
    return SecretRequest(settings.name, chosen.entry, chosen.file, variables, chosen.redact(url) if url else None)


def has_same_access(one: Mapping[str, JsonValue], other: Mapping[str, JsonValue]) -> bool:
    """Whether two descriptions have their target given the same variables at the same place, for the same."""
    first, second = (json.dumps(_select_access_settings(entry), sort_keys=True) for entry in (one, other))
    return first == second


def _select_access_settings(entry: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    provider = entry.get("provider")
    kind = find_kind(provider) if isinstance(provider, str) else None
    return kind.settings.select_access_settings(entry) if kind else entry
