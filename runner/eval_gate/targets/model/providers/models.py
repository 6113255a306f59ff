"""Build the pydantic-ai models of known providers, each without its own retries.

A note of the received data accompanies the connections of a chat, because the libraries do not keep an unusual
response.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import httpx2
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, create_async_httpx2_client
from pydantic_ai.settings import ModelSettings as RequestSettings

from eval_gate.errors import GateError, Problem
from eval_gate.struct import FrozenStruct
from eval_gate.targets.isolation import get_isolation_headers, is_isolated
from eval_gate.targets.model.providers.provider_table import API_VERSION, OPENAI_URL
from eval_gate.targets.model.settings import Credentials, ModelSettings
from eval_gate.text.untrusted.http_response import read_bounded_response

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from pydantic_ai.providers import Provider


NO_KEY: Final = "none"
"""Placeholder key for servers that need none, because OpenAI's library requires one."""
_ANTHROPIC_OUTPUT: Final = 16_384
_LEGACY_ANTHROPIC_OUTPUT: Final = 4_096
_MAX_UNSTREAMED_TOKENS: Final = 21_333
"""Tokens that Anthropic's library expects within ten minutes; it requires streaming for more."""
_IGNORED_WARNINGS: Final[tuple[tuple[str, type[Warning]], ...]] = (
    ("Sampling parameters", UserWarning),
    ("The model '", DeprecationWarning),
    ("Using Claude with", UserWarning),
    ("Unexpected non-string value", UserWarning),
    ("Failed to extract usage", UserWarning),
    (".* is not a valid ", UserWarning),
)
"""Warnings of the libraries at every request that only matter to programmers: an unsupported parameter that is omitted,
a deprecated model, or an unexpected or newer response."""
_LIMIT_NAMES: Final = {False: "max_tokens", True: "max_completion_tokens"}
_UNSUPPORTED_WORDS: Final = re.compile(r"unsupported|not supported|unrecognized|not permitted|unexpected|unknown|extra")
_SCHEMA_WORDS: Final = re.compile(
    r"response[ _]?(format|schema|mime|json)|output[ _]?(config|format)|json[ _]?(schema|mode)|structured[ _]output|"
    r"text\.format|grammar|guided",
    re.IGNORECASE,
)
MAX_CONNECT_S: Final = 10.0
_responses: ContextVar[list[httpx2.Response] | None] = ContextVar("_noted", default=None)


SingleRequest: TypeAlias = Callable[[list[ModelMessage], ModelRequestParameters], Awaitable[ModelResponse]]
"""Sends one request to a model, without repeating it. Raises the errors of pydantic-ai and of the vendor's library."""


class ProviderModel(FrozenStruct):
    """Model of a provider, ready for requests.

    `settings` are the settings that determine its responses, as JSON values; `failures` are additional exceptions of
    the vendor's library.
    """

    request: SingleRequest
    address: str
    settings: dict[str, object]
    close: Callable[[], Awaitable[object]]
    failures: tuple[type[Exception], ...] = ()
    takes_schema: bool = False
    """Whether the provider can enforce a JSON Schema, as far as this is known before a request."""


ModelBuilder: TypeAlias = Callable[[ModelSettings, Credentials, float], ProviderModel]
"""Builder in a provider's row: it makes a model whose requests take at most this many seconds."""


def build_model(settings: ModelSettings, access: Credentials, timeout_s: float) -> ProviderModel:
    """Build the model of a provider with its own connection pool. Raises GateError for unsupported settings."""
    for message, category in _IGNORED_WARNINGS:
        warnings.filterwarnings("ignore", message=message, category=category)
    build: ModelBuilder = resolve_name(f"{__package__}.{settings.provider_row.build}")
    return build(settings, access, timeout_s)


def build_request_settings(settings: ModelSettings) -> dict[str, object]:
    """Build the settings that are sent with every request."""
    values = settings.model_dump(by_alias=True, include={"temperature", "max_output_tokens", "thinking_budget"})
    return {name: value for name, value in values.items() if value is not None}


def build_sampling_settings(settings: ModelSettings) -> RequestSettings:
    """Temperature and limit as pydantic-ai takes them."""
    request = RequestSettings()
    if settings.temperature is not None:
        request["temperature"] = settings.temperature
    if settings.max_output_tokens is not None:
        request["max_tokens"] = settings.max_output_tokens
    return request


def make_plain_request(model: Model, settings: RequestSettings) -> SingleRequest:
    """Make a request to a model with fixed settings."""
    return lambda messages, parameters: model.request(messages, settings, parameters)


class OpenAIRequest:
    """Request in the protocol of OpenAI, which has two names for the token limit.

    Reasoning models reject the older name, and other servers the newer one. The first request finds out which one
    works.
    """

    def __init__(self, name: str, provider: Provider[AsyncOpenAI], settings: RequestSettings, *, newer: bool) -> None:
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.profiles.openai import OpenAIModelProfile

        self._models = {
            choice: OpenAIChatModel(
                name, provider=provider, profile=OpenAIModelProfile(openai_chat_supports_max_completion_tokens=choice)
            )
            for choice in (False, True)
        }
        self._settings = settings
        self._newer = newer
        self.takes_schema = can_use_schema(self._models[newer])

    async def __call__(self, messages: list[ModelMessage], parameters: ModelRequestParameters) -> ModelResponse:
        """Send a request, and once more with the other name of the token limit if this one is refused."""
        newer = self._newer
        try:
            return await self._models[newer].request(messages, self._settings, parameters)
        except ModelHTTPError as error:
            if "max_tokens" not in self._settings or not _is_parameter_refused(error, _LIMIT_NAMES[newer]):
                raise
        self._newer = not newer
        return await self._models[not newer].request(messages, self._settings, parameters)


def _is_parameter_refused(error: ModelHTTPError, parameter: str) -> bool:
    """Whether a parameter's name is what is wrong with a request, not its value."""
    body = str(error.body).lower()
    return error.status_code in {400, 422} and parameter in body and _UNSUPPORTED_WORDS.search(body) is not None


def is_schema_refused(error: ModelHTTPError) -> bool:
    """Whether a request was refused that asks for replies of a schema, in words about that.

    Each provider has words of its own, for the parameter, the model and the schema; the same question without it is
    always allowed, so it is enough that they are spoken of.
    """
    return error.status_code in {400, 404, 422, 501} and _SCHEMA_WORDS.search(str(error.body)) is not None


def can_use_schema(model: Model) -> bool:
    """Whether pydantic-ai knows of a way to hold this model's text to a JSON Schema."""
    return bool(model.profile.get("supports_json_schema_output", False))


def build_openai(settings: ModelSettings, access: Credentials, timeout_s: float) -> ProviderModel:
    """OpenAI, and every server that speaks its protocol."""
    from openai import AsyncOpenAI, OpenAIError
    from pydantic_ai.providers.openai import OpenAIProvider

    assert access.base_url is not None
    pool = build_connection_pool(timeout_s)
    client = AsyncOpenAI(
        base_url=access.base_url,
        api_key=access.sent_key or NO_KEY,
        max_retries=0,
        timeout=pool.timeout,
        http_client=pool,
    )
    provider = OpenAIProvider(openai_client=client)
    newer = access.base_url == OPENAI_URL or _is_reasoning_model(provider, settings.model)
    request = OpenAIRequest(settings.model, provider, build_sampling_settings(settings), newer=newer)
    return ProviderModel(
        request, access.base_url, build_request_settings(settings), pool.aclose, (OpenAIError,), request.takes_schema
    )


def build_azure(settings: ModelSettings, access: Credentials, timeout_s: float) -> ProviderModel:
    """Build the model of a deployment of Azure OpenAI."""
    from openai import OpenAIError
    from pydantic_ai.providers.azure import AzureProvider

    assert access.base_url is not None
    endpoint = access.base_url.removesuffix("/openai")
    # Azure's newer interface, .../openai/v1, has no versions
    version = None if endpoint.endswith("/v1") else settings.api_version or API_VERSION
    pool = build_connection_pool(timeout_s)
    provider = AzureProvider(azure_endpoint=endpoint, api_version=version, api_key=access.sent_key, http_client=pool)
    provider.client.max_retries = 0
    provider.client.timeout = pool.timeout
    newer = _is_reasoning_model(provider, settings.model)
    request = OpenAIRequest(settings.model, provider, build_sampling_settings(settings), newer=newer)
    sent_settings = build_request_settings(settings) | ({"apiVersion": version} if version else {})
    return ProviderModel(request, access.base_url, sent_settings, pool.aclose, (OpenAIError,), request.takes_schema)


def _is_reasoning_model(provider: Provider[AsyncOpenAI], model: str) -> bool:
    """Whether a model is by its name one that reasons: the o-series, GPT-5 and later."""
    profile = provider.model_profile(model) or {}
    return bool(profile.get("openai_supports_reasoning", False))


def build_anthropic(settings: ModelSettings, access: Credentials, timeout_s: float) -> ProviderModel:
    """Anthropic, or a gateway that speaks its protocol."""
    from anthropic import AnthropicError, AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
    from pydantic_ai.providers.anthropic import AnthropicProvider

    assert access.base_url is not None
    key = access.sent_key
    assert key is not None
    pool = build_connection_pool(timeout_s)
    client = AsyncAnthropic(
        # the library adds /v1 itself, other vendors' libraries want it there
        base_url=access.base_url.removesuffix("/v1"),
        api_key=access.sent_key,
        default_headers={"X-Api-Key": key},
        max_retries=0,
        timeout=pool.timeout,
        http_client=pool,
    )
    # the library would send it as a bearer token, which gateways take for something else than a key
    client.api_key = None
    model = AnthropicModel(settings.model, provider=AnthropicProvider(anthropic_client=client))
    request = AnthropicModelSettings()
    if settings.temperature is not None and not settings.thinking_budget:
        request["temperature"] = settings.temperature
    budget = settings.thinking_budget or 0
    if model.profile.get("anthropic_rejects_max_tokens_beyond_context_window", False):
        limit = _LEGACY_ANTHROPIC_OUTPUT
    else:
        limit = min(model.profile.get("anthropic_max_output_tokens") or _ANTHROPIC_OUTPUT, _MAX_UNSTREAMED_TOKENS)
    request["max_tokens"] = (settings.max_output_tokens or limit) + budget
    if budget:
        if model.profile.get("anthropic_disallows_budget_thinking", False):
            message = f"{settings.model} does not support thinkingBudget: it chooses the amount itself"
            raise GateError(
                "invalid-targets",
                message,
                f"remove thinkingBudget from the target {settings.name}",
                problems=[Problem(message, field="thinkingBudget")],
            )
        request["anthropic_thinking"] = {"type": "enabled", "budget_tokens": budget}
    plain = make_plain_request(model, request)
    return ProviderModel(
        plain, access.base_url, build_request_settings(settings), pool.aclose, (AnthropicError,), can_use_schema(model)
    )


def build_gemini(settings: ModelSettings, access: Credentials, timeout_s: float) -> ProviderModel:
    """Gemini by its own interface."""
    from google.genai.errors import APIError
    from google.genai.types import HttpRetryOptions
    from pydantic_ai.models.google import GoogleModel, GoogleModelSettings
    from pydantic_ai.providers.google import GoogleProvider

    assert access.base_url is not None
    pool = build_connection_pool(timeout_s)
    provider = GoogleProvider(
        api_key=access.sent_key,
        # the library adds the version itself
        base_url=re.sub(r"/v1(beta|alpha)?$", "", access.base_url),
        http_client=pool,
        retry_options=HttpRetryOptions(attempts=1),
    )
    request = cast("GoogleModelSettings", build_sampling_settings(settings))  # all keys of both are optional
    if settings.thinking_budget is not None:
        request["google_thinking_config"] = {
            "thinking_budget": settings.thinking_budget,
            "include_thoughts": settings.thinking_budget != 0,
        }
    model = GoogleModel(settings.model, provider=provider)
    plain = make_plain_request(model, request)
    return ProviderModel(
        plain, access.base_url, build_request_settings(settings), pool.aclose, (APIError,), can_use_schema(model)
    )


def build_connection_pool(timeout_s: float) -> httpx2.AsyncClient:
    """Build an HTTP client without a limit for the wait for a connection, because the chat limits the request."""
    return _ModelConnections(httpx2.Timeout(timeout_s, connect=min(timeout_s, MAX_CONNECT_S), pool=None))


class _ModelConnections(httpx2.AsyncClient):
    """HTTP client that sends requests of isolated executions over connections that nothing else uses."""

    def __init__(self, timeout: httpx2.Timeout) -> None:
        self._pool = _add_response_hooks(create_async_httpx2_client(timeout=timeout))
        self._single_use: httpx2.AsyncClient | None = None
        super().__init__(timeout=timeout, headers=self._pool.headers, transport=httpx2.AsyncBaseTransport())

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request over a new connection in an isolated execution, else over the pool."""
        if not is_isolated():
            return await self._pool.send(request, **options)
        if self._single_use is None:
            limits = httpx2.Limits(max_keepalive_connections=0)
            self._single_use = _add_response_hooks(create_async_httpx2_client(timeout=self.timeout, limits=limits))
        request.headers.update(get_isolation_headers())
        return await self._single_use.send(request, **options)

    async def aclose(self) -> None:
        for client in (self._pool, self._single_use):
            if client is not None:
                await client.aclose()


def _add_response_hooks(client: httpx2.AsyncClient) -> httpx2.AsyncClient:
    client.event_hooks["response"] += [read_bounded_response, _record_response]
    return client


@contextmanager
def collect_responses() -> Iterator[list[httpx2.Response]]:
    """Collect the HTTP responses that this task receives inside this context, from every pool."""
    answers: list[httpx2.Response] = []
    token = _responses.set(answers)
    try:
        yield answers
    finally:
        _responses.reset(token)


async def _record_response(response: httpx2.Response) -> None:
    answers = _responses.get()
    if answers is not None:
        answers.append(response)
