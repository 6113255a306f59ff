"""Build models of all other providers that pydantic-ai knows."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from pkgutil import iter_modules
from typing import Any, Final

import httpx
from openai import AsyncOpenAI, OpenAIError
from pydantic_ai import providers
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider_class

from eval_gate.errors import PAGES, GateError, Problem, find_nearest
from eval_gate.targets.model.providers.models import (
    ProviderModel,
    build_request_settings,
    build_sampling_settings,
    can_use_schema,
    make_plain_request,
)
from eval_gate.targets.model.providers.provider_table import PROVIDER_NAMES
from eval_gate.targets.model.settings import Credentials, ModelSettings
from eval_gate.text.quoting import quote_name, quote_value
from eval_gate.text.urls import to_public_url

_ADDRESS_PARAMETERS: Final = ("base_url", "api_base", "azure_endpoint")


def build_other_model(settings: ModelSettings, access: Credentials, timeout_s: float) -> ProviderModel:
    """Build a model with the provider's own client. Raises GateError if it is unknown or not ready."""
    name, _ = settings.route
    if name.startswith("gateway/"):
        raise _build_unknown_error(settings)
    try:
        model = infer_model(settings.model, lambda _: _build_provider(name, access))
    except ValueError as error:
        raise _build_unknown_error(settings) from error
    except ImportError as error:
        raise GateError(
            "missing-provider-library",
            f"the library of {name} is not installed: {error}",
            "install it in the environment of eval-gate",
        ) from error
    except UserError as error:
        raise GateError(
            "invalid-targets",
            f"{name} cannot be used: {access.redact(str(error))}",
            f"correct the target {settings.name}",
        ) from error
    request = build_sampling_settings(settings)
    # set with a request, it costs OpenAI's library a copy of its client each time
    if "max_retries" not in model.unsupported_settings and not isinstance(getattr(model, "client", None), AsyncOpenAI):
        request["max_retries"] = 0
    if "timeout" not in model.unsupported_settings:
        request["timeout"] = timeout_s
    return ProviderModel(
        make_plain_request(model, request),
        _format_address(model),
        build_request_settings(settings),
        _make_closer(model),
        (httpx.HTTPError, OpenAIError),
        can_use_schema(model),
    )


def check_provider_known(settings: ModelSettings) -> None:
    """Check that pydantic-ai knows the provider, before its key is looked up. Raises GateError."""
    try:
        infer_provider_class(settings.route[0])
    except ValueError as error:
        raise _build_unknown_error(settings) from error
    except ImportError:  # it is known; building it reports the missing library
        return


def _build_unknown_error(settings: ModelSettings) -> GateError:
    name, model = settings.route
    reference = settings.find_reference("model")
    names = [module.name.replace("_", "-") for module in iter_modules(providers.__path__)]  # a module each
    meant = find_nearest(name, [*PROVIDER_NAMES, *names]) if reference is None else None
    near = f" (did you mean {quote_name(f'{meant}:{model}')}?)" if meant else ""
    message = f"unknown model provider {quote_value(name)}{near}"
    if reference is not None:
        message = f"unknown model provider in the value of {reference[:80]}"
    return GateError(
        "invalid-targets",
        message,
        f"{PAGES}/models.md lists the providers; a server of your own is openai-compatible, with a baseUrl",
        problems=[Problem(message, field="model")],
    )


def _build_provider(name: str, access: Credentials) -> Provider[Any]:
    """Build the provider with its key and address, which have the same parameter names in all providers."""
    provider_class = infer_provider_class(name)
    parameters = inspect.signature(provider_class.__init__).parameters
    key = access.sent_key
    options = {"api_key": key} if key and "api_key" in parameters else {}
    address = next((one for one in _ADDRESS_PARAMETERS if one in parameters), None)
    if access.base_url and address:
        options[address] = access.base_url
    provider: Provider[Any] = provider_class(**options)
    client = provider.client
    if isinstance(client, AsyncOpenAI):
        client.max_retries = 0
        if access.base_url:
            client.base_url = access.base_url
    elif access.base_url and not address:
        raise UserError(f"{name} does not support baseUrl")
    return provider


def _format_address(model: Model) -> str:
    try:
        return to_public_url(model.base_url or "").rstrip("/")
    except GateError:  # a cloud's region, a name
        return ""


def _make_closer(model: Model) -> Callable[[], Awaitable[None]]:
    async def close() -> None:
        # entered and left, as a provider closes nothing else
        async with model:
            pass

    return close
