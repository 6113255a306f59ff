"""Table of all kinds of targets, and everything known of a kind outside of its package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final

from pydantic import JsonValue, TypeAdapter

from eval_gate.config.settings import TargetChoice
from eval_gate.errors import find_nearest
from eval_gate.struct import FrozenStruct, field
from eval_gate.targets.model.providers.provider_table import PROVIDER_NAMES, ModelProvider
from eval_gate.targets.settings import TargetSettings, apply_style, list_names_at
from eval_gate.text.quoting import quote_name

if TYPE_CHECKING:
    from eval_gate.targets.base import Target
    from eval_gate.targets.build_context import BuildContext
    from eval_gate.targets.model.model_client import ModelClient


class TargetKind(FrozenStruct):
    """One kind of target. Its parts are named as `module:name` and imported on first use.

    `settings_at` is its `TargetSettings`; `build_at` and `client_at` take those, a TargetChoice and a BuildContext.
    """

    providers: tuple[str, ...]
    """Names of the kind in `provider`, in lower case."""
    settings_at: str
    build_at: str
    other_names: Mapping[str, str] = field(default_factory=dict)
    """Alternative names in `provider`, and the names above that they mean."""
    client_at: str | None = None
    """Builder of a client, for kinds that are models: they can score as a judge, and be named `provider:name`."""
    chatty: bool = False
    """Whether its responses are rarely pure JSON, which a judge's verdict has to be."""

    @property
    def is_model(self) -> bool:
        """Whether it is a model, and not something that may use one."""
        return self.client_at is not None

    @property
    def settings(self) -> type[TargetSettings]:
        """Class of the settings of this kind."""
        settings: type[TargetSettings] = _import_part(self.settings_at)
        return settings

    @property
    def display_name(self) -> str:
        """The name of the kind in messages: its first provider, where it is not one of many models."""
        return "model" if self.is_model else self.providers[0]

    def list_names_at(self, path: Sequence[str | int]) -> tuple[str, ...]:
        """List the settings that a target of this kind may have at `path`, in camelCase and under every name."""
        return (*list_names_at(self.settings, path), *(() if path else self.settings.other_names))

    def build_target(self, settings: TargetSettings, choice: TargetChoice, context: BuildContext) -> Target:
        """Build a target of this kind, not yet connected. Raises GateError if its settings are wrong."""
        target: Target = _import_part(self.build_at)(settings, choice, context)
        return target

    def build_client(self, settings: TargetSettings, choice: TargetChoice, context: BuildContext) -> ModelClient:
        """Build a client of the model to grade with, not yet connected. Raises GateError if its settings are wrong."""
        assert self.client_at is not None
        client: ModelClient = _import_part(self.client_at)(settings, choice, context)
        return client


KINDS: tuple[TargetKind, ...] = (
    TargetKind(("http",), "http.settings:HttpSettings", "http.target:build"),
    TargetKind(("mock",), "mock:MockSettings", "mock:build"),
    TargetKind(("cli",), "command.settings:CliSettings", "command.target:build"),
    TargetKind(("python",), "function:FunctionSettings", "function:build"),
    TargetKind(
        ("codex",),
        "command.codex:CodexSettings",
        "command.codex:build",
        other_names={"codex-cli": "codex"},
        chatty=True,
    ),
    TargetKind(("vscode", "vscode-insiders"), "vscode.target:VscodeSettings", "vscode.target:build", chatty=True),
    TargetKind(
        tuple(ModelProvider),
        "model.settings:ModelSettings",
        "model.build:build",
        other_names={name: provider.value for name, provider in PROVIDER_NAMES.items() if name != provider},
        client_at="model.build:build_client",
    ),
)
DEFAULT_PROVIDER: Final = "http"
"""Provider of a description that names none."""


def _import_part(place: str) -> Any:
    return resolve_name(f"{__package__}.{place}")


def list_providers() -> tuple[str, ...]:
    """Every word that `provider` may be."""
    return tuple(word for kind in KINDS for word in (*kind.providers, *kind.other_names))


def find_kind(provider: str) -> TargetKind | None:
    """Find the kind of target for a provider."""
    word = provider.strip().lower()
    return next((kind for kind in KINDS if word in kind.providers or word in kind.other_names), None)


def is_model_provider(provider: str) -> bool:
    """Whether this word for a provider is one of models."""
    kind = find_kind(provider)
    return kind is not None and kind.is_model


def suggest_model(name: str) -> str:
    """` (did you mean "openai:gpt-4"?)` for a `provider:model` whose provider is misspelt; else nothing."""
    provider, colon, model = name.partition(":")
    meant = find_nearest(provider, PROVIDER_NAMES) if colon and model and find_kind(provider) is None else None
    return f" (did you mean {quote_name(f'{meant}:{model}')}?)" if meant else ""


def build_json_schema() -> dict[str, JsonValue]:
    """Build the JSON Schema of a targets file."""
    schemas: list[JsonValue] = []
    definitions: dict[str, Any] = {}
    for kind in KINDS:
        schema = TypeAdapter(kind.settings).json_schema()
        definitions |= schema.pop("$defs", {})
        schema["properties"]["provider"] = {"enum": sorted((*kind.providers, *kind.other_names))}
        if DEFAULT_PROVIDER not in kind.providers:
            schema["required"] = list(dict.fromkeys(("name", "provider", *schema["required"])))
        schemas.append(schema)
        _allow_snake_case(schema, f"#/properties/targets/items/anyOf/{len(schemas) - 1}")
    for name, definition in definitions.items():
        _allow_snake_case(definition, f"#/$defs/{name}")
    return {
        "title": "Eval Gate targets",
        "type": "object",
        "required": ["targets"],
        "properties": {"targets": {"type": "array", "items": {"anyOf": schemas}}},
        "$defs": definitions,
    }


def _allow_snake_case(schema: dict[str, Any], place: str) -> None:
    """Let its settings be written in snake_case too, by patterns: editors take these, and offer one name for each."""
    names = [name for name in schema.get("properties", ()) if name != name.lower()]
    if names and schema["additionalProperties"] is False:
        shapes = {f"^{apply_style(name, '_')}$": {"$ref": f"{place}/properties/{name}"} for name in names}
        schema["patternProperties"] = shapes
