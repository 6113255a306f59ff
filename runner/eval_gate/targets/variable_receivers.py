"""Who is given variables of the environment: a target as it was described, for whoever decides whether it may be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from pydantic import JsonValue

from eval_gate.process.environment import is_plain
from eval_gate.struct import FrozenStruct
from eval_gate.targets.kinds import kind_of
from eval_gate.text.secret import Secret
from eval_gate.text.urls import public_url

if TYPE_CHECKING:
    from eval_gate.targets.listing import Chosen


class Receiver(FrozenStruct):
    """A target that would be given `variables`. `file` is the list that describes it; None where it was given.

    `place` is the address it has by its description, without what nobody may see.
    """

    name: str
    entry: Secret[Mapping[str, JsonValue]]
    file: str | None
    variables: tuple[str, ...]
    place: str | None


class Doorkeeper(Protocol):
    """Decides which targets are given variables."""

    def __call__(self, receiver: Receiver) -> None:
        """Raises GateError where it must not be given them."""
        ...


def receiver_of(chosen: Chosen, environment: Mapping[str, str]) -> Receiver | None:
    """What the target would be given beside what every program gets; None for nothing.

    That is what its description refers to or has passed on, and a provider's key where it names an address of its own.
    """
    settings = chosen.settings
    names = [*chosen.variables, *settings.passed_variables(environment)]
    given = dict.fromkeys(name for name in names if environment.get(name, "").strip() and not is_plain(name))
    if not given:
        return None
    place = settings.place.open() if settings.place else None
    shown = public_url(place) if place and "://" in place else place
    return Receiver(settings.name, chosen.entry, chosen.file, tuple(given), chosen.redact(shown) if shown else None)


def alike(one: Mapping[str, JsonValue], other: Mapping[str, JsonValue]) -> bool:
    """Whether two descriptions have their target given the same variables at the same place, for the same."""
    first, second = (json.dumps(_deciding(entry), sort_keys=True) for entry in (one, other))
    return first == second


def _deciding(entry: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    provider = entry.get("provider")
    kind = kind_of(provider) if isinstance(provider, str) else None
    return kind.settings.deciding(entry) if kind else entry
