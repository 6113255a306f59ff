"""How model targets are described: names in every spelling, defaults, and keys that are never literal."""

import pytest
from pydantic import ValidationError

from eval_gate.errors import GateError
from eval_gate.targets.kinds import is_model_provider
from eval_gate.targets.model.providers.provider_table import API_VERSION, ModelProvider
from eval_gate.targets.model.settings import ModelSettings, resolve_credentials
from eval_gate.targets.retry import build_retry_policy
from eval_gate.targets.target_list import read_targets
from eval_gate.targets.variables import LITERAL_KEY_PROBLEM

pytestmark = pytest.mark.contract("retry.configured")

KEY = "sk-very-secret"
COMPATIBLE = "openai-compatible"


def described(provider: str = "openai", **more) -> ModelSettings:
    return ModelSettings.model_validate({"name": "t", "provider": provider, "model": "m"} | more)


def said(provider: str = "openai", **more) -> str:
    with pytest.raises(ValidationError) as caught:
        described(provider, **more)
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in caught.value.errors())


@pytest.mark.parametrize(
    ("written", "provider"),
    [
        ("azure", ModelProvider.AZURE),
        ("azure-openai", ModelProvider.AZURE),
        ("Azure", ModelProvider.AZURE),
        ("anthropic", ModelProvider.ANTHROPIC),
        ("gemini", ModelProvider.GEMINI),
        ("google", ModelProvider.GEMINI),
        ("google-gemini", ModelProvider.GEMINI),
        ("GOOGLE", ModelProvider.GEMINI),
        ("openai", ModelProvider.OPENAI),
    ],
)
def test_provider__every_name__means_one(written, provider) -> None:
    assert described(written).provider is provider
    assert is_model_provider(written)


@pytest.mark.parametrize("name", ["http", "cli", "mock", "", "codex"])
def test_provider__others__are_not_ours(name) -> None:
    assert not is_model_provider(name)


def test_provider__unknown__is_refused_with_the_list() -> None:
    assert "'azure'" in said("azur")


@pytest.mark.parametrize(
    ("written", "route"),
    [
        ("groq:llama-3.3-70b", ("groq", "llama-3.3-70b")),
        ("bedrock:anthropic.claude-v2:1", ("bedrock", "anthropic.claude-v2:1")),
        ("openai:gpt-4o", ("openai", "gpt-4o")),
        ("google:gemini-3", ("gemini", "gemini-3")),
        ("azure:my-deployment", ("azure", "my-deployment")),
    ],
)
def test_route__provider_and_name_within_the_model__are_found(written, route) -> None:
    assert described("model", model=written).route == route


@pytest.mark.parametrize("model", ["gpt-4o", ":gpt-4o", "openai:", ":"])
def test_route__a_model_without_its_provider__is_refused(model) -> None:
    assert "provider:name" in said("model", model=model)


@pytest.mark.parametrize(
    ("provider", "raw", "field", "value"),
    [
        ("azure", {"endpoint": "acme"}, "endpoint", "acme"),
        ("azure", {"resource": "acme"}, "endpoint", "acme"),
        ("azure", {"resourceName": "acme"}, "endpoint", "acme"),
        ("azure", {"resource_name": "acme"}, "endpoint", "acme"),
        ("azure", {"deployment": "d"}, "model", "d"),
        ("azure", {"deploymentName": "d"}, "model", "d"),
        ("azure", {"deployment_name": "d"}, "model", "d"),
        ("anthropic", {"variant": "v"}, "model", "v"),
        ("azure", {"version": "2025-01-01"}, "api_version", "2025-01-01"),
        ("azure", {"apiVersion": "2025-01-01"}, "api_version", "2025-01-01"),
        ("azure", {"api_version": "api-version=2025-01-01"}, "api_version", "2025-01-01"),
        ("azure", {"version": "?api-version=2025-01-01"}, "api_version", "2025-01-01"),
        ("azure", {}, "api_version", API_VERSION),
        ("openai", {}, "api_version", None),
        ("openai", {"temperature": 0}, "temperature", 0.0),
        ("openai", {"temperature": "0.5"}, "temperature", 0.5),
        ("openai", {"maxOutputTokens": 5}, "max_output_tokens", 5),
        ("openai", {"max_output_tokens": 5}, "max_output_tokens", 5),
        ("openai", {"maxTokens": 5}, "max_output_tokens", 5),
        ("openai", {"max_tokens": 5}, "max_output_tokens", 5),
        ("anthropic", {"thinkingBudget": 5}, "thinking_budget", 5),
        ("anthropic", {"thinking_budget": 5}, "thinking_budget", 5),
        ("gemini", {"thinkingBudget": -1}, "thinking_budget", -1),
        ("openai", {"baseUrl": "http://h"}, "base_url", "http://h"),
        ("openai", {"base_url": "http://h"}, "base_url", "http://h"),
        ("openai", {"systemPromptPath": "p.md"}, "system_prompt_path", "p.md"),
        ("openai", {"workers": 4}, "workers", 4),
        ("openai", {"judge_target": "j"}, "judge_target", "j"),
        ("openai", {"judgeTarget": "j"}, "judge_target", "j"),
        ("openai", {"provider_batching": True}, "provider_batching", True),
        ("openai", {"settings": {"temperature": 1, "maxTokens": 5}}, "temperature", 1.0),
    ],
)
def test_setting__in_each_spelling__is_one(provider, raw, field, value) -> None:
    without = {} if "model" in field else {"model": "m"}
    settings = ModelSettings.model_validate({"name": "t", "provider": provider} | without | raw)
    assert getattr(settings, field) == value


def test_model__of_gemini__has_a_default_and_others_have_none() -> None:
    assert ModelSettings.model_validate({"name": "t", "provider": "google"}).model == "gemini-2.5-flash"
    for provider in ("azure", "anthropic", "openai", "model"):
        with pytest.raises(ValidationError, match="model"):
            ModelSettings.model_validate({"name": "t", "provider": provider})


@pytest.mark.parametrize(
    ("provider", "raw", "words"),
    [
        ("openai", {"endpoint": "acme"}, "endpoint: Value error, is not a setting of openai"),
        ("azure", {"baseUrl": "http://h"}, "baseUrl: Value error, is not a setting of azure"),
        ("openai", {"version": "1"}, "apiVersion: Value error, is not a setting of openai"),
        ("openai", {"thinkingBudget": 5}, "thinkingBudget: Value error, is not a setting of openai"),
        (
            "openai",
            {"thinkingBudget": 5, "version": "1"},
            "is not a setting of openai; thinkingBudget: Value error, is no",
        ),
        ("anthropic", {"thinkingBudget": -1}, "thinkingBudget: Value error, only gemini supports -1"),
        (COMPATIBLE, {}, "is missing: openai-compatible is your own server"),
        ("azure", {"deployment": "d"}, "model is set twice"),
        ("openai", {"maxTokens": 5, "max_output_tokens": 6}, "maxOutputTokens is set twice"),
        ("openai", {"temperatur": 1}, "temperatur: Extra inputs"),
        ("openai", {"temperature": 3}, "temperature: "),
        ("openai", {"temperature": float("nan")}, "temperature: "),
        ("openai", {"maxRetries": -1}, "maxRetries: "),
        ("openai", {"initialDelayMs": float("inf")}, "initialDelayMs: "),
        ("openai", {"maxOutputTokens": 0}, "maxOutputTokens: "),
        ("openai", {"apiKey": ""}, "apiKey: "),
        ("openai", {"model": ""}, "model: "),
        ("openai", {"workers": 0}, "workers: "),
        ("openai", {"settings": 5}, "settings: Extra inputs"),
    ],
)
def test_setting__that_does_not_fit__is_refused_by_its_name(provider, raw, words) -> None:
    assert words in said(provider, **raw)


def test_setting__twice_with_one_value__is_fine() -> None:
    assert described("azure", deployment="m").model == "m"


def test_retry__unless_said_otherwise__is_as_specified() -> None:
    policy = build_retry_policy(described())
    assert (policy.max_retries, policy.initial_delay_ms, policy.backoff_factor) == (3, 1_000, 2)
    assert policy.max_delay_ms == 60_000
    assert policy.retryable_status_codes == {408, 429, 500, 502, 503, 504, 529}


@pytest.mark.parametrize(
    "names",
    [
        ("maxRetries", "initialDelayMs", "maxDelayMs", "backoffFactor", "retryableStatusCodes"),
        ("max_retries", "initial_delay_ms", "max_delay_ms", "backoff_factor", "retryable_status_codes"),
        ("maxRetries", "retryInitialDelayMs", "retryMaxDelayMs", "retryBackoffFactor", "retryStatusCodes"),
        ("max_retries", "retry_initial_delay_ms", "retry_max_delay_ms", "retry_backoff_factor", "retry_status_codes"),
    ],
)
def test_retry__both_families_of_names__are_taken(names) -> None:
    policy = build_retry_policy(described(**dict(zip(names, (1, 5, 50, 3, [500]), strict=True))))
    assert (policy.max_retries, policy.initial_delay_ms, policy.max_delay_ms, policy.backoff_factor) == (1, 5, 50, 3)
    assert policy.retryable_status_codes == {500}
    assert build_retry_policy(described(maxRetries=1), 0).max_retries == 0


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"apiKey": "sk-abc"}, "apiKey"),
        ({"api_key": "sk-abc"}, "api_key"),
        ({"apiKey": "Bearer ${{ KEY }}"}, "apiKey"),
        ({"apiKey": "${{ KEY }}x"}, "apiKey"),
        ({"apiKey": "$KEY"}, "apiKey"),
        ({"apiKey": 12345}, "apiKey"),
        ({"apiKey": ["sk"]}, "apiKey"),
        ({"settings": {"api_key": "sk-abc"}}, "api_key"),
        ({"apiKey": "${{ KEY }}"}, None),
        ({"apiKey": " ${{KEY}} "}, None),
        ({"apiKey": None}, None),
    ],
)
def test_key__that_is_literal__is_refused_by_the_name_it_was_written_under(tmp_path, raw, expected) -> None:
    listed = read_targets([{"name": "t", "provider": "openai", "model": "m"} | raw], tmp_path)
    if expected is None:
        assert listed.resolve_target(None, {"KEY": KEY}).settings.name == "t"
        return
    with pytest.raises(GateError) as caught:
        listed.resolve_target(None, {"KEY": KEY})
    assert (caught.value.problems[0].field, caught.value.problems[0].message) == (
        f"targets[t].{expected}",
        LITERAL_KEY_PROBLEM,
    )
    assert "sk" not in str(caught.value.problems[0].field)


def test_key__is_never_shown() -> None:
    settings = described(apiKey=KEY)
    access = resolve_credentials(settings, {})
    assert access.api_key == KEY
    assert KEY not in repr(settings) + str(settings) + settings.model_dump_json() + repr(access)
    assert access.redact(f"Bearer {KEY}.") == "Bearer ***."


@pytest.mark.parametrize(
    ("provider", "environment", "expected"),
    [
        ("openai", {"OPENAI_API_KEY": "of-vendor"}, "of-vendor"),
        ("anthropic", {"ANTHROPIC_API_KEY": "of-vendor"}, "of-vendor"),
        ("gemini", {"GEMINI_API_KEY": "of-vendor"}, "of-vendor"),
        ("gemini", {"GOOGLE_API_KEY": "of-vendor"}, "of-vendor"),
        ("gemini", {"GOOGLE_API_KEY": "of-vendor", "GEMINI_API_KEY": "other"}, "of-vendor"),
        ("gemini", {"GOOGLE_API_KEY": "", "GEMINI_API_KEY": "of-vendor"}, "of-vendor"),
        ("azure", {"AZURE_OPENAI_API_KEY": "of-vendor"}, "of-vendor"),
        ("openai", {"OPENAI_API_KEY": " of-vendor\n"}, "of-vendor"),
    ],
)
def test_key__without_a_setting__is_the_vendors_variable(provider, environment, expected) -> None:
    more = {"endpoint": "acme"} if provider == "azure" else {}
    access = resolve_credentials(described(provider, **more), environment)
    assert access.api_key == expected
    assert access.redact("the of-vendor key") == "the *** key"
    assert resolve_credentials(described(provider, apiKey=KEY, **more), environment).api_key == KEY


@pytest.mark.parametrize(
    ("provider", "model", "variable"),
    [
        ("openai", "m", "OPENAI_API_KEY"),
        ("anthropic", "m", "ANTHROPIC_API_KEY"),
        ("gemini", "m", "GEMINI_API_KEY"),
        ("azure", "m", "AZURE_OPENAI_API_KEY"),
        ("model", "groq:m", "GROQ_API_KEY"),
        ("model", "cohere:m", "CO_API_KEY"),
    ],
)
def test_key__missing__is_an_error_that_names_variable_and_setting(provider, model, variable) -> None:
    more = {"endpoint": "acme"} if provider == "azure" else {}
    with pytest.raises(GateError) as caught:
        resolve_credentials(described(provider, model=model, **more), {"OPENAI_API_KEY": "", variable: " "})
    error = caught.value
    assert error.code == "missing-api-key"
    assert variable in error.message
    assert "apiKey" in error.message
    assert "${{ NAME }}" in (error.hint or "")


@pytest.mark.parametrize("key", ["two\nlines", "schlüssel", "zero\u200bwidth", "nul\x00"])
def test_key__with_characters_no_key_has__is_refused_without_showing_it(key) -> None:
    with pytest.raises(GateError) as caught:
        resolve_credentials(described(), {"OPENAI_API_KEY": key})
    assert caught.value.code == "invalid-api-key"
    assert "OPENAI_API_KEY" in caught.value.message
    assert key not in caught.value.message


def test_key__for_a_server_of_ones_own__may_be_missing() -> None:
    assert resolve_credentials(described("openai", baseUrl="http://127.0.0.1:8080/v1"), {}).api_key is None
    assert resolve_credentials(described("openai"), {"OPENAI_BASE_URL": "http://127.0.0.1:8080/v1"}).api_key is None
    assert resolve_credentials(described("model", model="ollama:m"), {}).api_key is None
    other = resolve_credentials(described(COMPATIBLE, baseUrl="http://h/v1"), {"OPENAI_API_KEY": "of-openai"})
    assert other.api_key is None


@pytest.mark.parametrize(
    ("provider", "more", "environment", "expected"),
    [
        ("openai", {}, {}, "https://api.openai.com/v1"),
        ("openai", {}, {"OPENAI_BASE_URL": "http://h:1/v1/"}, "http://h:1/v1"),
        ("openai", {"baseUrl": "http://h:2/v1"}, {"OPENAI_BASE_URL": "http://h:1"}, "http://h:2/v1"),
        ("anthropic", {}, {}, "https://api.anthropic.com"),
        ("anthropic", {}, {"ANTHROPIC_BASE_URL": "http://h:1"}, "http://h:1"),
        ("gemini", {}, {"GOOGLE_GEMINI_BASE_URL": "http://h:1"}, "http://h:1"),
        (COMPATIBLE, {"baseUrl": "http://h:1"}, {"OPENAI_BASE_URL": "http://h:2"}, "http://h:1"),
        ("azure", {"endpoint": "acme"}, {}, "https://acme.openai.azure.com"),
        ("azure", {"endpoint": "acme.openai.azure.com"}, {}, "https://acme.openai.azure.com"),
        ("azure", {"endpoint": "https://acme.openai.azure.com/"}, {}, "https://acme.openai.azure.com"),
        ("azure", {}, {"AZURE_OPENAI_ENDPOINT": "https://acme.openai.azure.com"}, "https://acme.openai.azure.com"),
        ("model", {"model": "groq:m"}, {}, None),
        ("model", {"model": "ollama:m"}, {"OLLAMA_BASE_URL": "http://h:1/v1"}, "http://h:1/v1"),
    ],
)
def test_address__from_setting_variable_or_vendor(provider, more, environment, expected) -> None:
    assert resolve_credentials(described(provider, apiKey=KEY, **more), environment).base_url == expected


def test_address__of_azure_missing__is_an_error_that_names_both() -> None:
    with pytest.raises(GateError) as caught:
        resolve_credentials(described("azure", apiKey=KEY), {})
    assert caught.value.code == "missing-endpoint"
    assert "endpoint" in caught.value.message
    assert "AZURE_OPENAI_ENDPOINT" in caught.value.message


@pytest.mark.parametrize(
    "url", ["http://user:pass@h/v1", "http://h/v1?api-key=1", "http://h/#x", "ftp://h", "h/v1", "http://", "${{ X }}"]
)
@pytest.mark.parametrize("provider", ["openai", "azure"])
def test_address__that_is_none_or_holds_a_secret__is_refused_without_showing_it(provider, url) -> None:
    setting = "endpoint" if provider == "azure" else "baseUrl"
    with pytest.raises(GateError) as caught:
        resolve_credentials(described(provider, apiKey=KEY, **{setting: url}), {})
    assert caught.value.code == "invalid-url"
    assert setting in caught.value.message
    assert "pass" not in caught.value.message


def test_schema__names_all_settings_in_camel_case() -> None:
    schema = ModelSettings.model_json_schema()
    properties = schema["properties"]
    assert {"deploymentName", "resource", "maxTokens", "retryStatusCodes"} <= set(properties)
    assert properties["maxTokens"]["anyOf"] == properties["maxOutputTokens"]["anyOf"]
    assert schema["required"] == ["name", "provider"]
    assert {"provider", "model", "apiKey", "baseUrl", "thinkingBudget", "retryableStatusCodes"} <= set(properties)
    assert not [name for name in properties if "_" in name]
