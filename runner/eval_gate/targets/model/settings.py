"""Settings of a model target, and the key and address that they or the variables of its provider name.

Names and defaults: AgentV spec, "Provider Integration" and "Provider Retry Configuration", and what its users write.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from pydantic import AfterValidator, Field, JsonValue, ValidationInfo, field_validator

from eval_gate.errors import GateError, Problem
from eval_gate.targets.model.providers.provider_table import (
    API_VERSION,
    PROVIDER_NAMES,
    PROVIDERS,
    ModelProvider,
    ProviderRow,
    build_other_row,
)
from eval_gate.targets.settings import (
    AGENT_SETTING,
    RETRIES,
    NotSecret,
    Place,
    TargetSettings,
    Text,
    normalize_names,
)
from eval_gate.text.redaction import Redactor
from eval_gate.text.secret import Secret, SecretAddress
from eval_gate.text.urls import to_public_url

_NON_ACCESS_SETTINGS: Final = frozenset(
    {
        *("model", "temperature", "maxOutputTokens", "thinkingBudget", "systemPromptPath", "judgeTarget", "userTarget"),
        *("structuredOutput", "measures"),
        *("workers", "providerBatching", "maxRetries", "initialDelayMs", "maxDelayMs", "backoffFactor"),
        "retryableStatusCodes",
    }
)
"""Settings for the content and number of requests, which do not affect where the key goes."""
_RESOURCE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")

Key = Annotated[str, Field(min_length=1, json_schema_extra={"format": "password", "writeOnly": True})]
ApiVersion = Annotated[
    Text, NotSecret("it is a date"), AfterValidator(lambda text: text.removeprefix("?").removeprefix("api-version="))
]


class ModelSettings(TargetSettings):
    """Settings of a model target. Keys can also be written in snake_case, and many have aliases."""

    other_names: ClassVar[Mapping[str, str]] = {
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
    keys: ClassVar[frozenset[str]] = frozenset({"apiKey"})
    refers_within_texts: ClassVar[bool] = True

    provider: ModelProvider
    model: Annotated[Text, AGENT_SETTING, NotSecret("every record has the model's name")] = Field(
        description="Model or deployment; for the provider `model`: `provider:name`."
    )
    endpoint: SecretAddress[Text] | None = Field(default=None, description="URL, host or name of the Azure resource.")
    base_url: SecretAddress[Text] | None = Field(
        default=None, description="URL of the provider's API, by default the provider's own.", validate_default=True
    )
    api_key: Secret[Key] | None = Field(default=None, description="API key as ${{ NAME }}, never as a literal value.")
    api_version: ApiVersion | None = Field(default=None, description=f"API version of Azure; {API_VERSION} by default.")
    temperature: Annotated[float | None, AGENT_SETTING] = Field(default=None, ge=0, le=2)
    max_output_tokens: Annotated[int | None, AGENT_SETTING] = Field(default=None, gt=0)
    structured_output: bool = Field(
        default=True, description="For a judge: whether the provider enforces the JSON schema of a verdict."
    )
    thinking_budget: Annotated[int | None, AGENT_SETTING] = Field(
        default=None, ge=-1, description="Maximum thinking tokens: 0 for none, -1 for Gemini's own choice."
    )
    system_prompt_path: Annotated[Place | None, AGENT_SETTING] = None
    max_retries: Annotated[int, RETRIES] = Field(default=3, ge=0, le=20)
    initial_delay_ms: Annotated[float, RETRIES] = Field(default=1000, ge=0)
    max_delay_ms: Annotated[float, RETRIES] = Field(default=60_000, ge=0)
    backoff_factor: Annotated[float, RETRIES] = Field(default=2, ge=1)
    retryable_status_codes: Annotated[frozenset[int], RETRIES] = frozenset({408, 429, 500, 502, 503, 504, 529})

    @property
    def route(self) -> tuple[str, str]:
        """Our name for the provider and the model's name there: `("groq", "llama-3.3-70b")`, `("azure", "gpt-4o")`."""
        if self.provider is ModelProvider.MODEL:
            provider, _, model = self.model.partition(":")
            return provider, model
        return self.provider.value, self.model

    @property
    def provider_row(self) -> ProviderRow:
        """What is known of its provider."""
        return build_other_row(self.route[0]) if self.provider is ModelProvider.MODEL else PROVIDERS[self.provider]

    @property
    def place(self) -> SecretAddress[str] | None:
        """The provider's address, where it is another than the provider's own."""
        return self.base_url or self.endpoint

    def find_environment_addresses(self, environment: Mapping[str, str]) -> Mapping[str, JsonValue]:
        """Find the address in the provider's own variable, by setting, if the description has none."""
        variable = self.provider_row.address_variable
        address = environment.get(variable) if variable and not self.place else None
        return {"endpoint" if "endpoint" in self.provider_row.settings else "baseUrl": address} if address else {}

    def list_passed_variables(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """List the vendor's key variable if the description has an address but no key."""
        if not self.place or self.api_key is not None:
            return ()
        return tuple(name for name in self.provider_row.key_variables if environment.get(name))[:1]

    @classmethod
    def complete_values(cls, values: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Replace the provider, also that of `model: provider:name`, by its canonical name, and add its defaults."""
        provider_name, model = values.get("provider"), values.get("model")
        provider = PROVIDER_NAMES.get(provider_name.strip().casefold()) if isinstance(provider_name, str) else None
        if provider is ModelProvider.MODEL and isinstance(model, str):
            prefix, _, rest = model.partition(":")
            own = PROVIDER_NAMES.get(prefix.casefold())
            if rest and own not in {None, ModelProvider.MODEL}:
                provider, values = own, values | {"model": rest}
        return values if provider is None else {**PROVIDERS[provider].defaults, **values, "provider": provider.value}

    @classmethod
    def select_access_settings(cls, entry: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        """Select the settings that decide which address and key are used."""
        normalized = normalize_names(entry, cls.other_names)
        if normalized.duplicates:
            return entry
        values = cls.complete_values(normalized.values)
        # there the provider is a part of the model's name
        harmless = (
            _NON_ACCESS_SETTINGS - {"model"} if values.get("provider") == ModelProvider.MODEL else _NON_ACCESS_SETTINGS
        )
        return {name: value for name, value in values.items() if name not in harmless}

    @field_validator("endpoint", "base_url", "api_version", "thinking_budget")
    @classmethod
    def _check_provider_setting(cls, value: object, info: ValidationInfo) -> object:
        provider = info.data.get("provider")
        if provider is None:
            return value
        row = PROVIDERS[provider]
        if value is not None and info.field_name not in row.settings:
            raise ValueError(f"is not a setting of {provider.value}")
        if info.field_name == "thinking_budget" and value == -1 and not row.open_budget:
            raise ValueError("only gemini supports -1")
        if info.field_name == "base_url" and value is None and provider is ModelProvider.OPENAI_COMPATIBLE:
            raise ValueError(f"is missing: {provider.value} is your own server")
        return value

    @field_validator("model")
    @classmethod
    def _check_model_name(cls, model: str, info: ValidationInfo) -> str:
        if info.data.get("provider") is ModelProvider.MODEL and not all(model.partition(":")):
            raise ValueError("is not of the form provider:name, such as groq:llama-3.3-70b-versatile")
        return model


@dataclass(frozen=True, slots=True)
class Credentials:
    """Key and address of a provider. `base_url` None leaves the address to pydantic-ai."""

    api_key: Secret[str] | None
    base_url: str | None

    @property
    def sent_key(self) -> str | None:
        """The key, for the library that sends it."""
        return None if self.api_key is None else self.api_key.open()

    @property
    def redact(self) -> Redactor:
        """Masks the key."""
        return Redactor(filter(None, [self.sent_key]))


def resolve_credentials(settings: ModelSettings, environment: Mapping[str, str]) -> Credentials:
    """Find key and address in the settings or else in the vendor's own variables. Raises GateError."""
    return Credentials(_find_api_key(settings, environment), _find_base_url(settings, environment))


def _find_api_key(settings: ModelSettings, environment: Mapping[str, str]) -> Secret[str] | None:
    row = settings.provider_row
    sources = [("apiKey", settings.api_key.open())] if settings.api_key else []
    sources += [(name, environment[name]) for name in row.key_variables if environment.get(name)]
    for source, value in sources:
        key = value.strip()
        if key and not (key.isascii() and key.isprintable()):
            # would end up in an error of the HTTP library, in a form that masking does not find
            raise GateError(
                "invalid-api-key",
                f"the key from {source} contains characters that no key has",
                "check it for line breaks",
            )
        if key:
            return Secret(key)
    elsewhere = settings.base_url or environment.get(row.address_variable or "")
    if row.keyless or (row.keyless_elsewhere and elsewhere):
        return None
    variables = row.key_variables
    raise GateError(
        "missing-api-key",
        f"no key for {settings.route[0]}: neither {' nor '.join(variables)} nor the target's apiKey is set",
        f"set {variables[-1]} from a secret, or write apiKey: ${{{{ NAME }}}} for the target {settings.name}",
    )


def _find_base_url(settings: ModelSettings, environment: Mapping[str, str]) -> str | None:
    """Find the address of the provider without a slash at its end; the default address is returned unchanged."""
    row = settings.provider_row
    if settings.place:
        key = "endpoint" if settings.endpoint else "baseUrl"
        try:
            return _normalize_url(settings.place.open(), key, row)
        except GateError as error:
            error.problems = (Problem(error.message.removeprefix(f"{key}: "), field=key),)
            raise
    variable = row.address_variable
    if variable and environment.get(variable):
        return _normalize_url(environment[variable], variable, row)
    if row.needs_address:
        raise GateError(
            "missing-endpoint",
            f"the target {settings.name} does not name an Azure resource: neither endpoint nor {variable} is set",
            "set the target's endpoint to the resource's URL or name",
        )
    return row.default_address


def _normalize_url(url: str, source: str, row: ProviderRow) -> str:
    """Normalize a URL without a slash at its end, and refuse one that may contain a secret."""
    url = url.strip()
    if row.address_of_name and _RESOURCE_NAME.fullmatch(url):
        url = f"https://{url}" if "." in url else row.address_of_name.format(url)
    try:
        plain = to_public_url(url) == url
    except GateError as error:
        raise GateError(error.code, f"{source}: {error.message}", error.hint) from error
    if not plain:
        raise GateError(
            "invalid-url", f"{source}: the URL has credentials, a query or a fragment", "put the key into apiKey"
        )
    return url.rstrip("/")
