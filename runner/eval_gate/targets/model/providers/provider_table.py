"""Table of the providers of models, readable without importing their libraries."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from eval_gate.struct import FrozenStruct, field
from eval_gate.text.escape import to_variable_word

API_VERSION: Final = "2024-10-01-preview"
OPENAI_URL: Final = "https://api.openai.com/v1"


class ModelProvider(StrEnum):
    """Provider of a model. `model` means any other provider of pydantic-ai, as in `groq:llama-3.3-70b`."""

    AZURE = "azure"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    OPENAI = "openai"
    OPENAI_COMPATIBLE = "openai-compatible"
    MODEL = "model"


class ProviderRow(FrozenStruct):
    """One provider. `build` names its builder as `module:name` in this package.

    `settings` are those that not every provider has. The key is the first of `key_variables` that is set. The address
    is the target's own setting, else `address_variable`, else `default_address`; None leaves it to the provider's
    library. A plain host name is inserted into `address_of_name`.
    """

    build: str
    other_names: tuple[str, ...] = ()
    settings: frozenset[str] = frozenset({"base_url"})
    defaults: Mapping[str, str] = field(default_factory=dict)
    key_variables: tuple[str, ...] = ()
    keyless: bool = False
    """Whether it can work without a key, such as a local server or a cloud with its own credentials."""
    keyless_elsewhere: bool = False
    """Whether other servers use its protocol, possibly without a key."""
    address_variable: str | None = None
    default_address: str | None = None
    address_of_name: str | None = None
    needs_address: bool = False
    open_budget: bool = False
    """Whether it supports a thinkingBudget of -1, which lets the model decide."""


PROVIDERS: Final[Mapping[ModelProvider, ProviderRow]] = {
    ModelProvider.AZURE: ProviderRow(
        "models:build_azure",
        other_names=("azure-openai",),
        settings=frozenset({"endpoint", "api_version"}),
        defaults={"apiVersion": API_VERSION},
        key_variables=("AZURE_OPENAI_API_KEY",),
        address_variable="AZURE_OPENAI_ENDPOINT",
        address_of_name="https://{}.openai.azure.com",
        needs_address=True,
    ),
    ModelProvider.ANTHROPIC: ProviderRow(
        "models:build_anthropic",
        settings=frozenset({"base_url", "thinking_budget"}),
        key_variables=("ANTHROPIC_API_KEY",),
        address_variable="ANTHROPIC_BASE_URL",
        default_address="https://api.anthropic.com",
    ),
    ModelProvider.GEMINI: ProviderRow(
        "models:build_gemini",
        other_names=("google", "google-gemini"),
        settings=frozenset({"base_url", "thinking_budget"}),
        defaults={"model": "gemini-2.5-flash"},
        key_variables=("GOOGLE_API_KEY", "GEMINI_API_KEY"),  # in the order of Google's own library
        address_variable="GOOGLE_GEMINI_BASE_URL",
        default_address="https://generativelanguage.googleapis.com",
        open_budget=True,
    ),
    ModelProvider.OPENAI: ProviderRow(
        "models:build_openai",
        key_variables=("OPENAI_API_KEY",),
        keyless_elsewhere=True,
        address_variable="OPENAI_BASE_URL",
        default_address=OPENAI_URL,
    ),
    # a key for OpenAI goes to no other server
    ModelProvider.OPENAI_COMPATIBLE: ProviderRow("models:build_openai", keyless=True),
    ModelProvider.MODEL: ProviderRow("other_providers:build_other_model"),
}

PROVIDER_NAMES: Final[Mapping[str, ModelProvider]] = {
    name: provider for provider, row in PROVIDERS.items() for name in (provider.value, *row.other_names)
}
"""Every name of a provider, in lower case."""

_UNUSUAL_KEY_VARIABLES: Final = {
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


def build_other_row(name: str) -> ProviderRow:
    """Build the row of a provider that only pydantic-ai knows: the names of its variables follow from its name."""
    variable = to_variable_word(name)
    return ProviderRow(
        PROVIDERS[ModelProvider.MODEL].build,
        key_variables=_UNUSUAL_KEY_VARIABLES.get(name, (f"{variable}_API_KEY",)),
        keyless=name in _KEYLESS,
        address_variable=f"{variable}_BASE_URL",
    )
