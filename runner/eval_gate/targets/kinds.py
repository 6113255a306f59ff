"""The providers there are, and what describes a target of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from pydantic import JsonValue, TypeAdapter

from eval_gate.targets.http.settings import HttpSettings
from eval_gate.targets.model.settings import PROVIDER_NAMES, ModelSettings, is_model_provider

if TYPE_CHECKING:
    from eval_gate.targets.codex.settings import CodexSettings
    from eval_gate.targets.command.settings import CliSettings
    from eval_gate.targets.mock import MockSettings
    from eval_gate.targets.vscode.settings import VscodeSettings

    Description: TypeAlias = HttpSettings | MockSettings | ModelSettings | CliSettings | CodexSettings | VscodeSettings
    """What a target may be described as."""


def _mock() -> type[Description]:
    from eval_gate.targets.mock import MockSettings

    return MockSettings


def _cli() -> type[Description]:
    from eval_gate.targets.command.settings import CliSettings

    return CliSettings


def _codex() -> type[Description]:
    from eval_gate.targets.codex.settings import CodexSettings

    return CodexSettings


def _vscode() -> type[Description]:
    from eval_gate.targets.vscode.settings import VscodeSettings

    return VscodeSettings


CODEX: Final = frozenset({"codex", "codex-cli"})
VSCODE: Final = frozenset({"vscode", "vscode-insiders"})
_KINDS: Final[dict[str, Callable[[], type[Description]]]] = {
    "http": lambda: HttpSettings,
    "mock": _mock,
    "cli": _cli,
    **dict.fromkeys(sorted(CODEX), _codex),
    **dict.fromkeys(sorted(VSCODE), _vscode),
}
"""Providers that are no models. Each is imported when a target asks for it."""

PROVIDERS: Final = (*_KINDS, *PROVIDER_NAMES)
"""Every word that `provider` may be."""


def kind_of_provider(provider: str) -> type[Description] | None:
    """What describes a target of this provider; None for a provider there is not."""
    kind = _KINDS.get(provider)
    if kind is not None:
        return kind()
    return ModelSettings if is_model_provider(provider) else None


def json_schema() -> dict[str, JsonValue]:
    """The JSON Schema of a targets file."""
    kinds = (HttpSettings, ModelSettings, _mock(), _cli(), _codex(), _vscode())
    schemas: list[JsonValue] = []
    definitions: dict[str, JsonValue] = {}
    for kind in kinds:
        schema = TypeAdapter(kind).json_schema()
        definitions |= schema.pop("$defs", {})
        schemas.append(schema)
    return {
        "title": "Eval Gate targets",
        "type": "object",
        "required": ["targets"],
        "properties": {"targets": {"type": "array", "items": {"anyOf": schemas}}},
        "$defs": definitions,
    }
