"""Settings that have more than one name: each is read under every name, and two names must not disagree."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import JsonValue
from pydantic.alias_generators import to_camel


def canonical(raw: Mapping[str, JsonValue], other_names: Mapping[str, str]) -> dict[str, JsonValue]:
    """The settings in camelCase under our names, also those that older files have below `settings`.

    Raises ValueError when a setting is given twice with different values.
    """
    nested = raw.get("settings")
    flat = [(key, value) for key, value in raw.items() if key != "settings" or not isinstance(nested, dict)]
    if isinstance(nested, dict):
        flat += nested.items()
    found: dict[str, JsonValue] = {}
    for key, value in flat:
        camel = to_camel(key) if "_" in key else key
        name = other_names.get(camel, camel)
        if name in found and found[name] != value:
            raise ValueError(f"{name} is given twice, under different names and with different values")
        found[name] = value
    return found


def shown(other_names: Mapping[str, str], providers: tuple[str, ...]) -> Callable[[dict[str, JsonValue]], None]:
    """Completes a JSON Schema, for editors: every name of a setting, every name of the provider, what is required."""

    def complete(schema: dict[str, JsonValue]) -> None:
        properties = schema["properties"]
        assert isinstance(properties, dict)
        for other, ours in other_names.items():
            shape = properties[ours]
            assert isinstance(shape, dict)
            properties[other] = shape | {"description": f"The same as {ours}."}
        names: list[JsonValue] = [*providers]
        properties["provider"] = {"enum": names}
        schema["required"] = ["name", "provider"]

    return complete
