"""Where a model target's key and address come from: its settings, or else the vendor's own variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from eval_gate.errors import GateError
from eval_gate.targets.model.settings import ModelProvider, ModelSettings
from eval_gate.text.escape import variable_word
from eval_gate.text.redact import Redactor
from eval_gate.text.urls import public_url

OPENAI_URL: Final = "https://api.openai.com/v1"
_RESOURCE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")
_KEY_VARIABLES: Final[Mapping[ModelProvider, tuple[str, ...]]] = {
    ModelProvider.AZURE: ("AZURE_OPENAI_API_KEY",),
    ModelProvider.ANTHROPIC: ("ANTHROPIC_API_KEY",),
    ModelProvider.GEMINI: ("GOOGLE_API_KEY", "GEMINI_API_KEY"),  # in the order of Google's own library
    ModelProvider.OPENAI: ("OPENAI_API_KEY",),
    ModelProvider.OPENAI_COMPATIBLE: (),  # a key for OpenAI is nobody else's business
}
_ADDRESSES: Final[Mapping[ModelProvider, tuple[str, str]]] = {
    ModelProvider.ANTHROPIC: ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    ModelProvider.GEMINI: ("GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com"),
    ModelProvider.OPENAI: ("OPENAI_BASE_URL", OPENAI_URL),
}
_ODD_KEY_VARIABLES: Final = {
    "alibaba": ("ALIBABA_API_KEY", "DASHSCOPE_API_KEY"),
    "bedrock": ("AWS_BEARER_TOKEN_BEDROCK",),
    "bedrock-mantle": ("AWS_BEARER_TOKEN_BEDROCK",),
    "cohere": ("CO_API_KEY",),
    "heroku": ("HEROKU_INFERENCE_KEY",),
    "huggingface": ("HF_TOKEN",),
    "openai-chat": ("OPENAI_API_KEY",),
    "openai-responses": ("OPENAI_API_KEY",),
    "vercel": ("VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"),
}
_KEYLESS: Final = frozenset({"bedrock", "bedrock-mantle", "google-cloud", "litellm", "ollama", "vllm"})
"""Providers that can do without a key: local servers, and clouds with credentials of their own."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """How to reach a provider. `base_url` None leaves the address to pydantic-ai, for the provider `model` only."""

    api_key: str | None = field(repr=False)
    base_url: str | None

    @property
    def redact(self) -> Redactor:
        """Masks the key."""
        return Redactor([self.api_key] if self.api_key else [])


def credentials(settings: ModelSettings, environment: Mapping[str, str]) -> Credentials:
    """Key and address, from the settings or else from the vendor's own variables.

    Raises GateError: `no-api-key`, `invalid-api-key`, `no-endpoint`, `invalid-url`.
    """
    return Credentials(_api_key(settings, environment), _base_url(settings, environment))


def key_variable(settings: ModelSettings, environment: Mapping[str, str]) -> str | None:
    """The variable that the key is taken from because the settings name none, if it is."""
    if settings.api_key is not None:
        return None
    return next((name for name in _variables(settings) if environment.get(name)), None)


def _variables(settings: ModelSettings) -> tuple[str, ...]:
    """Where the vendor's own libraries look for a key."""
    variables = _KEY_VARIABLES.get(settings.provider)
    if variables is None:
        provider, _ = settings.route
        return _ODD_KEY_VARIABLES.get(provider, (f"{variable_word(provider)}_API_KEY",))
    return variables


def _api_key(settings: ModelSettings, environment: Mapping[str, str]) -> str | None:
    provider, _ = settings.route
    variables = _variables(settings)
    sources = [("apiKey", settings.api_key.get_secret_value())] if settings.api_key else []
    sources += [(name, environment[name]) for name in variables if environment.get(name)]
    for source, value in sources:
        key = value.strip()
        if key and not (key.isascii() and key.isprintable()):
            # would end up in an error of the HTTP library, in a form that masking does not find
            raise GateError(
                "invalid-api-key", f"the key from {source} holds characters that no key has", "look for line breaks"
            )
        if key:
            return key
    if not variables or provider in _KEYLESS or _own_server(settings, environment):
        return None
    raise GateError(
        "no-api-key",
        f"there is no key for {provider}: neither {' nor '.join(variables)} nor the target's apiKey is set",
        f"set {variables[-1]} from a secret, or write apiKey: ${{{{ NAME }}}} for the target {settings.name}",
    )


def _own_server(settings: ModelSettings, environment: Mapping[str, str]) -> bool:
    """Whether OpenAI's protocol is spoken with somebody else, who may not ask for a key."""
    return settings.provider is ModelProvider.OPENAI and bool(settings.base_url or environment.get("OPENAI_BASE_URL"))


def _base_url(settings: ModelSettings, environment: Mapping[str, str]) -> str | None:
    if settings.provider is ModelProvider.AZURE:
        return _azure_url(settings, environment)
    if settings.provider in _ADDRESSES:
        variable, default = _ADDRESSES[settings.provider]
    else:
        variable, default = f"{variable_word(settings.route[0])}_BASE_URL", ""
    if settings.base_url:
        return _checked(settings.base_url, "baseUrl")
    if settings.provider is not ModelProvider.OPENAI_COMPATIBLE and environment.get(variable):
        return _checked(environment[variable], variable)
    return default or None


def _azure_url(settings: ModelSettings, environment: Mapping[str, str]) -> str:
    source, given = "endpoint", settings.endpoint
    if given is None:
        source, given = "AZURE_OPENAI_ENDPOINT", environment.get("AZURE_OPENAI_ENDPOINT") or None
    if given is None:
        raise GateError(
            "no-endpoint",
            f"the target {settings.name} does not say which Azure resource: neither endpoint nor "
            "AZURE_OPENAI_ENDPOINT is set",
            "set the target's endpoint to the resource's URL or name",
        )
    if _RESOURCE.fullmatch(given):
        given = f"https://{given}" if "." in given else f"https://{given}.openai.azure.com"
    return _checked(given, source)


def _checked(url: str, source: str) -> str:
    """The URL without a slash at its end. Raises GateError for what is none, and for one that may hold a secret."""
    url = url.strip()
    try:
        plain = public_url(url) == url
    except GateError as error:
        raise GateError(error.code, f"{source}: {error.message}", error.hint) from error
    if not plain:
        raise GateError(
            "invalid-url", f"{source}: the URL has credentials, a query or a fragment", "keys belong into apiKey"
        )
    return url.rstrip("/")
