"""Model targets as people describe them: which provider, which model, with what.

Names and defaults: AgentV spec, "Provider Integration" and "Provider Retry Configuration", and what its users write.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, SecretStr, model_validator
from pydantic.alias_generators import to_camel

from eval_gate.targets.retry import RetryPolicy

API_VERSION: Final = "2024-10-01-preview"
GEMINI_MODEL: Final = "gemini-2.5-flash"
LITERAL_KEY: Final = "a key must not be written into a file: write ${{ NAME }} and set the variable NAME"
_REFERENCE: Final = re.compile(r"\s*\$\{\{\s*[A-Za-z_][A-Za-z0-9_]*\s*\}\}\s*")


class ModelProvider(StrEnum):
    """Who answers. `model` is every other provider pydantic-ai knows, named within the model: `groq:llama-3.3-70b`."""

    AZURE = "azure"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    OPENAI = "openai"
    OPENAI_COMPATIBLE = "openai-compatible"
    MODEL = "model"


PROVIDER_NAMES: Final[Mapping[str, ModelProvider]] = {
    **{provider.value: provider for provider in ModelProvider},
    "azure-openai": ModelProvider.AZURE,
    "google": ModelProvider.GEMINI,
    "google-gemini": ModelProvider.GEMINI,
}
"""Every name of a model provider, in lower case."""

OTHER_NAMES: Final[Mapping[str, str]] = {
    "resource": "endpoint",
    "resourceName": "endpoint",
    "deployment": "model",
    "deploymentName": "model",
    "variant": "model",
    "version": "apiVersion",
    "maxTokens": "maxOutputTokens",
    "retryInitialDelayMs": "initialDelayMs",
    "retryMaxDelayMs": "maxDelayMs",
    "retryBackoffFactor": "backoffFactor",
    "retryStatusCodes": "retryableStatusCodes",
}
"""Other names of settings, as AgentV's users write them, and ours."""

_OWNERS: Final[Mapping[str, frozenset[ModelProvider]]] = {
    "endpoint": frozenset({ModelProvider.AZURE}),
    "apiVersion": frozenset({ModelProvider.AZURE}),
    "baseUrl": frozenset(ModelProvider) - {ModelProvider.AZURE},
    "thinkingBudget": frozenset({ModelProvider.ANTHROPIC, ModelProvider.GEMINI}),
}

Text = Annotated[str, Field(min_length=1)]
ApiVersion = Annotated[Text, AfterValidator(lambda text: text.removeprefix("?").removeprefix("api-version="))]


def _show_other_names(schema: dict[str, JsonValue]) -> None:
    """Editors check files by the schema: it has to know every spelling. Only Gemini can do without a model."""
    properties = schema["properties"]
    assert isinstance(properties, dict)
    for other, ours in OTHER_NAMES.items():
        shape = properties[ours]
        assert isinstance(shape, dict)
        properties[other] = shape | {"description": f"The same as {ours}."}
    names: list[JsonValue] = [*sorted(PROVIDER_NAMES)]
    properties["provider"] = {"enum": names}
    schema["required"] = ["name", "provider"]


class ModelSettings(BaseModel):
    """One model target. Every key may also be written in snake_case, and as `OTHER_NAMES` says."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=False,
        validate_by_alias=True,
        allow_inf_nan=False,
        json_schema_extra=_show_other_names,
    )

    name: Text
    provider: ModelProvider
    model: Text = Field(description="The model or deployment; for the provider `model`: `provider:name`.")
    endpoint: Text | None = Field(None, description="Azure: the resource's URL, host or name.")
    base_url: Text | None = Field(None, description="Where the provider's API is, if not at the provider.")
    api_key: SecretStr | None = Field(None, min_length=1, description="Never literal: ${{ NAME }}.")
    api_version: ApiVersion | None = Field(None, description=f"Azure; {API_VERSION} unless given.")
    temperature: float | None = Field(None, ge=0, le=2)
    max_output_tokens: int | None = Field(None, gt=0)
    thinking_budget: int | None = Field(None, ge=-1, description="Tokens; 0 is none, -1 as Gemini likes.")
    system_prompt_path: Text | None = None
    workers: int | None = Field(None, ge=1, le=1000)
    judge_target: Text | None = None
    provider_batching: bool = False
    max_retries: int = Field(3, ge=0, le=20)
    initial_delay_ms: float = Field(1000, ge=0)
    max_delay_ms: float = Field(60_000, ge=0)
    backoff_factor: float = Field(2, ge=1)
    retryable_status_codes: frozenset[int] = frozenset({408, 429, 500, 502, 503, 504, 529})

    @model_validator(mode="before")
    @classmethod
    def _one_spelling(cls, data: object) -> object:
        return canonical(data) if isinstance(data, dict) else data

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        given = {alias for alias in _OWNERS if getattr(self, _field_name(alias)) is not None}
        wrong = sorted(alias for alias in given if self.provider not in _OWNERS[alias])
        problems = [f"{alias} is no setting of {self.provider.value}" for alias in wrong]
        if self.provider is ModelProvider.OPENAI_COMPATIBLE and self.base_url is None:
            problems.append("baseUrl is missing: openai-compatible is a server of your own")
        if self.provider is ModelProvider.MODEL and not all(self.model.partition(":")):
            problems.append("model is not of the form provider:name, such as groq:llama-3.3-70b-versatile")
        if self.thinking_budget == -1 and self.provider is not ModelProvider.GEMINI:
            problems.append("thinkingBudget -1 is known to gemini only")
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def route(self) -> tuple[str, str]:
        """Our name for the provider and the model's name there: `("groq", "llama-3.3-70b")`, `("azure", "gpt-4o")`."""
        if self.provider is ModelProvider.MODEL:
            provider, _, model = self.model.partition(":")
            return provider, model
        return self.provider.value, self.model


def canonical(raw: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The settings under our names, the provider's name as we call it, defaults of the provider filled in.

    Raises ValueError for a setting that is given twice with different values.
    """
    found: dict[str, JsonValue] = {}
    for key, value in _flat(raw):
        name = OTHER_NAMES.get(_camel(key), _camel(key))
        if name in found and found[name] != value:
            raise ValueError(f"{name} is given twice, under different names and with different values")
        found[name] = value
    _settle_provider(found)
    if found.get("provider") == ModelProvider.GEMINI:
        found.setdefault("model", GEMINI_MODEL)
    if found.get("provider") == ModelProvider.AZURE:
        found.setdefault("apiVersion", API_VERSION)
    return found


def _settle_provider(found: dict[str, JsonValue]) -> None:
    """Replace other names of a provider, also where `provider: model` names one of ours within the model."""
    named, model = found.get("provider"), found.get("model")
    if isinstance(named, str):
        found["provider"] = PROVIDER_NAMES.get(named.casefold(), named)
    if found.get("provider") == ModelProvider.MODEL and isinstance(model, str):
        prefix, _, rest = model.partition(":")
        own = PROVIDER_NAMES.get(prefix.casefold())
        if rest and own not in {None, ModelProvider.MODEL}:
            found["provider"], found["model"] = own, rest


def literal_keys(raw: Mapping[str, JsonValue]) -> list[str]:
    """The settings, as they were written, that hold a key itself instead of `${{ NAME }}`: see `LITERAL_KEY`.

    To be asked before variables are replaced.
    """
    return [
        key
        for key, value in _flat(raw)
        if _camel(key) == "apiKey"
        and value not in (None, "")
        and not (isinstance(value, str) and _REFERENCE.fullmatch(value))
    ]


def is_model_provider(name: object) -> bool:
    """Whether a target's `provider` is one of those described here."""
    return isinstance(name, str) and name.casefold() in PROVIDER_NAMES


def retry_policy(settings: ModelSettings, max_retries: int | None = None) -> RetryPolicy:
    """When a request is repeated; `max_retries` from the command line wins."""
    own = settings.model_dump(include=set(RetryPolicy.model_fields))
    return RetryPolicy(**own | ({} if max_retries is None else {"max_retries": max_retries}))


def _flat(raw: Mapping[str, JsonValue]) -> list[tuple[str, JsonValue]]:
    """All settings; older files have them below `settings`."""
    nested = raw.get("settings")
    if not isinstance(nested, dict):
        return [*raw.items()]
    return [*((key, value) for key, value in raw.items() if key != "settings"), *nested.items()]


def _camel(key: str) -> str:
    return to_camel(key) if "_" in key else key


def _field_name(alias: str) -> str:
    return re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", alias)
