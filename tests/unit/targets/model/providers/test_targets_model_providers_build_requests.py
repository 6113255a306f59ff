"""What each provider is sent: path, headers and body, over a real connection."""

from __future__ import annotations

import asyncio
import gc
import re
import subprocess
import sys
from collections.abc import Sequence

import pytest

from eval_gate.errors import GateError
from eval_gate.model.conversation import Message, ToolCall, ToolSpec
from eval_gate.targets.base import TargetError
from eval_gate.targets.model.build import build_chat
from eval_gate.targets.model.chat import ModelTurn
from eval_gate.targets.model.settings import ModelSettings
from tests.support.model_server import (
    Answer,
    anthropic_answer,
    gemini_answer,
    model_server,
    openai_answer,
)

# the libraries of the vendors take seconds to load
pytestmark = [pytest.mark.slow, pytest.mark.contract("provider.azure", "provider.anthropic", "provider.gemini")]

KEY = "sk-very-secret"
ANSWERS = {
    "openai": openai_answer,
    "openai-compatible": openai_answer,
    "azure": openai_answer,
    "anthropic": anthropic_answer,
    "gemini": gemini_answer,
    "model": openai_answer,
}
MODELS = {
    "openai": "gpt-4o",
    "openai-compatible": "qwen3",
    "azure": "my-deployment",
    "anthropic": "claude-sonnet-5",
    "gemini": "gemini-2.5-flash",
    "model": "together:meta/llama-3",
}
SYSTEM = Message(role="system", content="Be brief.")
USER = Message(role="user", content='Weather in Rome? "é" 日本')
WEATHER = ToolSpec(
    name="get_weather",
    description="Weather of a city",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string", "minLength": 1}, "days": {"type": "integer", "default": 1}},
        "required": ["city"],
    },
)
ANYTHING = ToolSpec(name="note")
CALLS = Message(
    role="assistant",
    content="One moment.",
    tool_calls=(
        ToolCall(name="get_weather", params={"city": "Rome"}, id="call_a"),
        ToolCall(name="note", params={}, id="call_b"),
    ),
)
RESULTS = (
    Message(role="tool", content={"degrees": 21}, tool_call_id="call_a"),
    Message(role="tool", content="error: no stub for note", tool_call_id="call_b"),
)


def described(provider: str, url: str | None, **more) -> ModelSettings:
    raw = {"name": "t", "provider": provider, "apiKey": KEY, "model": MODELS[provider]}
    if url is not None:
        raw["endpoint" if provider == "azure" else "baseUrl"] = url
    return ModelSettings.model_validate(raw | more)


def ask(
    settings: ModelSettings,
    messages: Sequence[Message] = (SYSTEM, USER),
    tools: Sequence[ToolSpec] = (),
    environment: dict[str, str] | None = None,
    times: int = 1,
) -> ModelTurn:
    async def main() -> ModelTurn:
        chat = build_chat(settings, environment or {}, timeout_s=10)
        try:
            for _ in range(times - 1):
                await chat.ask(messages, tools)
            return await chat.ask(messages, tools)
        finally:
            await chat.aclose()

    return asyncio.run(main())


def sent(provider: str, messages: Sequence[Message] = (SYSTEM, USER), tools: Sequence[ToolSpec] = (), **more):
    """The one request of a question."""
    with model_server(ANSWERS[provider]()) as server:
        ask(described(provider, server.url, **more), messages, tools)
        return server.asked


# -- OpenAI and Azure -------------------------------------------------------------------------------------------------


def test_openai__path_header_and_body() -> None:
    asked = sent("openai", temperature=0, maxOutputTokens=50)
    assert asked.line == "POST /chat/completions"
    assert asked.query == {}
    assert asked.header("authorization") == f"Bearer {KEY}"
    assert asked.body == {
        "model": "gpt-4o",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": 'Weather in Rome? "é" 日本'},
        ],
        "stream": False,
        "temperature": 0,
        "max_tokens": 50,
    }


def test_openai__nothing_set__nothing_sent() -> None:
    assert set(sent("openai").body) == {"model", "messages", "stream"}


def test_openai__tools_calls_and_results() -> None:
    body = sent("openai", (SYSTEM, USER, CALLS, *RESULTS), (WEATHER, ANYTHING)).body
    assert body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "get_weather",
                "description": "Weather of a city",
                "parameters": WEATHER.parameters,
            },
        },
        {
            "type": "function",
            "function": {
                "name": "note",
                "description": "",
                "parameters": {"type": "object", "properties": {}, "additionalProperties": True},
            },
        },
    ]
    assert body["messages"][2:] == [
        {
            "role": "assistant",
            "content": "One moment.",
            "tool_calls": [
                {
                    "id": "call_a",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": '{"city":"Rome"}'},
                },
                {"id": "call_b", "type": "function", "function": {"name": "note", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_a", "content": '{"degrees":21}'},
        {"role": "tool", "tool_call_id": "call_b", "content": "error: no stub for note"},
    ]


def test_azure__path_header_version_and_body() -> None:
    asked = sent("azure", temperature=0.5, maxOutputTokens=50)
    assert asked.line == "POST /openai/deployments/my-deployment/chat/completions"
    assert asked.query == {"api-version": "2024-10-01-preview"}
    assert asked.header("api-key") == KEY
    assert asked.header("authorization") is None
    body = asked.body
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("my-deployment", 0.5, 50)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


@pytest.mark.parametrize("ending", ["/", "/openai", "/openai/"])
def test_azure__an_endpoint_that_says_more__leads_to_the_same(ending) -> None:
    with model_server(openai_answer()) as server:
        ask(described("azure", server.url + ending, version="api-version=2025-01-01"))
        assert server.asked.line == "POST /openai/deployments/my-deployment/chat/completions"
        assert server.asked.query == {"api-version": "2025-01-01"}


def test_azure__the_newer_interface__has_no_version() -> None:
    with model_server(openai_answer()) as server:
        ask(described("azure", server.url + "/openai/v1/"))
        assert server.asked.line == "POST /openai/v1/chat/completions"
        assert server.asked.query == {}
        assert server.asked.header("authorization") == f"Bearer {KEY}"


REFUSES_OLD = {
    "error": {
        "message": "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead.",
        "type": "invalid_request_error",
        "param": "max_tokens",
        "code": "unsupported_parameter",
    }
}
REFUSES_NEW = {
    "error": {
        "message": "Unrecognized request argument supplied: max_completion_tokens",
        "type": "invalid_request_error",
        "param": None,
        "code": None,
    }
}
TOO_LARGE = {
    "error": {
        "message": "max_tokens is too large: 9999999. This model supports at most 16384 completion tokens.",
        "type": "invalid_request_error",
        "param": "max_tokens",
        "code": "invalid_value",
    }
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "refusal", "names"),
    [
        ("my-deployment", REFUSES_OLD, ["max_tokens", "max_completion_tokens", "max_completion_tokens"]),
        ("o4-mini", REFUSES_NEW, ["max_completion_tokens", "max_tokens", "max_tokens"]),
    ],
)
def test_limit__the_name_is_refused__the_other_is_sent_and_remembered(model, refusal, names) -> None:
    with model_server(Answer(refusal, 400), openai_answer()) as server:
        ask(described("azure", server.url, model=model, maxOutputTokens=50), times=2)
        limits = [[name for name in asked.body if name.startswith("max_")] for asked in server.requests]
    assert limits == [[name] for name in names]


@pytest.mark.parametrize("more", [{"maxOutputTokens": 9_999_999}, {}])
@pytest.mark.parametrize("refusal", [TOO_LARGE, {"error": {"message": "Unsupported value", "param": "n"}}])
def test_limit__something_else_is_wrong__is_not_asked_again(more, refusal) -> None:
    with model_server(Answer(refusal, 400)) as server:
        with pytest.raises(TargetError):
            ask(described("azure", server.url, **more))
        assert len(server.requests) == 1


@pytest.mark.parametrize("provider", ["openai", "azure"])
@pytest.mark.parametrize("model", ["o4-mini", "gpt-5-mini"])
def test_reasoning_model__has_the_newer_limit_and_no_temperature(provider, model) -> None:
    body = sent(provider, model=model, temperature=0, maxOutputTokens=50).body
    assert body["max_completion_tokens"] == 50
    assert "max_tokens" not in body
    assert "temperature" not in body


# -- Anthropic --------------------------------------------------------------------------------------------------------


def test_anthropic__path_headers_and_body() -> None:
    asked = sent("anthropic", model="claude-haiku-4-5", temperature=0, maxOutputTokens=50)
    assert asked.line == "POST /v1/messages"
    assert asked.header("x-api-key") == KEY
    assert asked.header("authorization") is None
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", asked.header("anthropic-version") or "")
    body = asked.body
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("claude-haiku-4-5", 0, 50)
    assert body["system"] == "Be brief."
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": 'Weather in Rome? "é" 日本'}]}]
    assert not body.get("stream")


@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-sonnet-5", "claude-of-tomorrow"])
def test_anthropic__no_limit_set__one_is_sent_and_nothing_is_streamed(model) -> None:
    body = sent("anthropic", model=model).body
    assert 4_096 <= body["max_tokens"] <= 21_333
    assert not body.get("stream")


def test_anthropic__a_large_limit__is_not_streamed_either() -> None:
    body = sent("anthropic", model="claude-haiku-4-5", maxOutputTokens=60_000).body
    assert body["max_tokens"] == 60_000
    assert not body.get("stream")


def test_anthropic__thinking__adds_its_budget_and_drops_the_temperature() -> None:
    body = sent("anthropic", model="claude-haiku-4-5", temperature=0, maxOutputTokens=50, thinkingBudget=2_000).body
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2_000}
    assert body["max_tokens"] == 2_050
    assert "temperature" not in body


def test_anthropic__thinking_of_none__is_not_sent() -> None:
    body = sent("anthropic", model="claude-haiku-4-5", temperature=0, thinkingBudget=0).body
    assert "thinking" not in body
    assert body["temperature"] == 0


def test_anthropic__a_model_that_has_no_budget__is_refused_at_once() -> None:
    with pytest.raises(GateError) as caught:
        build_chat(described("anthropic", None, model="claude-opus-5", thinkingBudget=2_000), {}, timeout_s=1)
    assert caught.value.code == "invalid-targets"
    assert "thinkingBudget" in caught.value.message


def test_anthropic__tools_calls_and_results__results_are_one_message() -> None:
    body = sent("anthropic", (SYSTEM, USER, CALLS, *RESULTS), (WEATHER, ANYTHING)).body
    assert body["tools"] == [
        {"name": "get_weather", "description": "Weather of a city", "input_schema": WEATHER.parameters},
        {
            "name": "note",
            "description": "",
            "input_schema": {"type": "object", "properties": {}, "additionalProperties": True},
        },
    ]
    assert body["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "One moment."},
                {"type": "tool_use", "id": "call_a", "name": "get_weather", "input": {"city": "Rome"}},
                {"type": "tool_use", "id": "call_b", "name": "note", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "call_a",
                    "content": [{"type": "text", "text": '{"degrees":21}'}],
                    "is_error": False,
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "call_b",
                    "content": [{"type": "text", "text": "error: no stub for note"}],
                    "is_error": False,
                },
            ],
        },
    ]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
def test_anthropic__the_address__may_have_its_version_or_not(ending) -> None:
    with model_server(anthropic_answer()) as server:
        ask(described("anthropic", server.url + ending))
        assert server.asked.line == "POST /v1/messages"


# -- Gemini -----------------------------------------------------------------------------------------------------------


def test_gemini__path_header_and_body() -> None:
    asked = sent("gemini", temperature=0, maxOutputTokens=50)
    assert asked.line == "POST /v1beta/models/gemini-2.5-flash:generateContent"
    assert asked.query == {}
    assert asked.header("x-goog-api-key") == KEY
    body = asked.body
    assert [part["text"] for part in body["systemInstruction"]["parts"]] == ["Be brief."]
    assert body["contents"] == [{"role": "user", "parts": [{"text": 'Weather in Rome? "é" 日本'}]}]
    assert body["generationConfig"]["temperature"] == 0
    assert body["generationConfig"]["maxOutputTokens"] == 50


@pytest.mark.parametrize(("budget", "shown"), [(1_024, True), (-1, True), (0, False)])
def test_gemini__thinking__is_sent_and_asked_for(budget, shown) -> None:
    config = sent("gemini", thinkingBudget=budget).body["generationConfig"]["thinkingConfig"]
    assert config == {"thinking_budget": budget, "include_thoughts": shown}


def test_gemini__tools_calls_and_results__results_are_one_message() -> None:
    body = sent("gemini", (SYSTEM, USER, CALLS, *RESULTS), (WEATHER, ANYTHING)).body
    declared = body["tools"][0]["functionDeclarations"]
    assert [(one["name"], one["description"]) for one in declared] == [
        ("get_weather", "Weather of a city"),
        ("note", ""),
    ]
    assert declared[0]["parameters_json_schema"] == WEATHER.parameters
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": "AUTO"}}
    _, model, results = body["contents"]
    assert model["role"] == "model"
    assert model["parts"][0] == {"text": "One moment."}
    assert [part["functionCall"] for part in model["parts"][1:]] == [
        {"id": "call_a", "name": "get_weather", "args": {"city": "Rome"}},
        {"id": "call_b", "name": "note", "args": {}},
    ]
    assert results["role"] == "user"
    assert [part["functionResponse"] for part in results["parts"]] == [
        {"id": "call_a", "name": "get_weather", "response": {"degrees": 21}},
        {"id": "call_b", "name": "note", "response": {"return_value": "error: no stub for note"}},
    ]


@pytest.mark.parametrize("ending", ["", "/", "/v1beta", "/v1"])
def test_gemini__the_address__may_have_its_version_or_not(ending) -> None:
    with model_server(gemini_answer()) as server:
        ask(described("gemini", server.url + ending))
        assert server.asked.line == "POST /v1beta/models/gemini-2.5-flash:generateContent"


# -- other providers --------------------------------------------------------------------------------------------------


def test_compatible__without_a_key__is_asked_without_anybodys() -> None:
    with model_server(openai_answer()) as server:
        settings = described("openai-compatible", server.url, apiKey=None)
        ask(settings, environment={"OPENAI_API_KEY": "sk-of-openai", "OPENAI_BASE_URL": "http://127.0.0.1:9"})
        assert server.asked.header("authorization") == "Bearer none"
        assert server.asked.body["model"] == "qwen3"


def test_model__a_provider_of_pydantic_ai__is_asked_with_its_own_variable() -> None:
    with model_server(openai_answer()) as server:
        turn = ask(
            described("model", server.url, apiKey=None, temperature=0.5, maxOutputTokens=50),
            environment={"TOGETHER_API_KEY": "together-key"},
        )
        assert server.asked.line == "POST /chat/completions"
        assert server.asked.header("authorization") == "Bearer together-key"
        assert server.asked.body["model"] == "meta/llama-3"
        assert server.asked.body["temperature"] == 0.5
    assert turn.text == "Hello."


def test_model__a_local_server__needs_no_key() -> None:
    with model_server(openai_answer()) as server:
        ask(described("model", server.url, model="vllm:qwen3", apiKey=None))
        assert server.asked.body["model"] == "qwen3"


def test_model__one_of_ours_within__is_ours() -> None:
    with model_server(anthropic_answer()) as server:
        ask(described("model", server.url, model="anthropic:claude-haiku-4-5"))
        assert server.asked.header("x-api-key") == KEY


@pytest.mark.parametrize(
    ("model", "code", "said"),
    [
        ("nobody:gpt", "invalid-targets", '"nobody"'),
        ("groq:llama", "missing-provider-library", "groq"),
        ("gateway/openai:gpt", "invalid-targets", '"gateway/openai"'),
        ("huggingface:llama", "missing-provider-library", "huggingface"),
    ],
)
def test_model__that_cannot_be_had__is_refused_before_anything_is_asked(model, code, said) -> None:
    with pytest.raises(GateError) as caught:
        build_chat(described("model", "http://127.0.0.1:9", model=model), {}, timeout_s=1)
    assert caught.value.code == code
    assert said in caught.value.message


# -- all of them ------------------------------------------------------------------------------------------------------

VENDORS = {
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
    "azure": ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"),
}


@pytest.mark.parametrize("provider", VENDORS)
def test_variables__of_the_vendor__are_honoured_and_only_those_passed_in(provider, monkeypatch) -> None:
    key, address = VENDORS[provider]
    for name in (*sum(VENDORS.values(), ()), "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/from-the-process")
    with model_server(ANSWERS[provider]()) as server:
        settings = described(provider, None, apiKey=None)
        ask(settings, environment={key: "key-of-vendor", address: server.url})
        headers = [server.asked.header(name) for name in ("authorization", "x-api-key", "x-goog-api-key", "api-key")]
    assert [header for header in headers if header] in (["Bearer key-of-vendor"], ["key-of-vendor"])


@pytest.mark.parametrize("provider", ANSWERS)
def test_connection__questions_one_after_the_other__share_one(provider) -> None:
    with model_server(ANSWERS[provider]()) as server:
        ask(described(provider, server.url), times=3)
        assert (len(server.requests), server.connections) == (3, 1)


@pytest.mark.slow
@pytest.mark.parametrize("provider", ANSWERS)
def test_close__leaves_nothing_open(provider) -> None:
    # an open socket or transport is a warning when it is collected, and warnings are errors
    with model_server(ANSWERS[provider]()) as server:
        ask(described(provider, server.url))
        gc.collect()

    async def unused() -> None:
        chat = build_chat(described(provider, "http://127.0.0.1:9"), {}, timeout_s=1)
        await chat.aclose()
        await chat.aclose()

    asyncio.run(unused())
    gc.collect()


def test_parallel__questions_at_once__all_get_their_own_answer() -> None:
    async def main() -> list[ModelTurn]:
        chat = build_chat(described("openai", server.url), {}, timeout_s=10)
        questions = [[Message(role="user", content=str(number))] for number in range(50)]
        turns = await asyncio.gather(*(chat.ask(question) for question in questions))
        await chat.aclose()
        return turns

    with model_server(openai_answer()) as server:
        assert len(asyncio.run(main())) == 50
        assert sorted(int(asked.body["messages"][0]["content"]) for asked in server.requests) == list(range(50))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("provider", "more", "address", "deciding"),
    [
        ("openai", {}, "https://api.openai.com/v1", {}),
        ("openai", {"temperature": 0, "maxOutputTokens": 5}, None, {"temperature": 0.0, "maxOutputTokens": 5}),
        ("anthropic", {"thinkingBudget": 7}, "https://api.anthropic.com", {"thinkingBudget": 7}),
        ("gemini", {}, "https://generativelanguage.googleapis.com", {}),
        (
            "azure",
            {"endpoint": "acme"},
            "https://acme.openai.azure.com",
            {"apiVersion": "2024-10-01-preview"},
        ),
        ("azure", {"endpoint": "https://acme.openai.azure.com/openai/v1"}, None, {}),
        ("model", {}, None, {}),
    ],
)
def test_chat__says_what_it_is(provider, more, address, deciding) -> None:
    if provider == "anthropic":
        more = more | {"model": "claude-haiku-4-5"}
    settings = described(provider, None, **more)
    chat = build_chat(settings, {}, timeout_s=1)
    assert (chat.provider, chat.model) == settings.route
    assert chat.settings == deciding
    if address is not None:
        assert chat.address == address
    assert KEY not in repr(settings) + repr(chat.settings) + chat.address
    asyncio.run(chat.aclose())


def test_history__messages_without_ids__are_paired_by_name_and_order() -> None:
    calls = Message(
        role="assistant",
        tool_calls=(ToolCall(name="a"), ToolCall(name="b"), ToolCall(name="a", params={"n": 2})),
    )
    results = [
        Message(role="tool", name="b", content="of b"),
        Message(role="tool", name="a", content="of the first a"),
        Message(role="tool", content=None),
    ]
    messages = sent("openai", (USER, calls, *results)).body["messages"]
    assert [call["id"] for call in messages[1]["tool_calls"]] == ["call_1_0", "call_1_1", "call_1_2"]
    assert [message["tool_call_id"] for message in messages[2:]] == ["call_1_1", "call_1_0", "call_1_2"]


@pytest.mark.parametrize("provider", ANSWERS)
def test_history__odd_messages__never_break_us(provider) -> None:
    odd = (
        Message(role="user", content=["a", {"b": None}]),
        Message(role="assistant", content=""),
        Message(role="tool", content="of nobody", tool_call_id="call_x"),
        Message(role="system", content="later"),
        Message(role="user", content=""),
        Message(role="user", content="\ud800 half"),
    )
    with model_server(ANSWERS[provider]()) as server:
        for messages in (odd, (), odd[:1]):
            try:
                ask(described(provider, server.url), messages)
            except TargetError as error:
                assert error.message.isprintable()
    assert server is not None


@pytest.mark.slow
def test_imports__a_run_without_model_targets__loads_no_provider() -> None:
    code = (
        "import sys, eval_gate.cli.main, eval_gate.targets.build;"
        "import eval_gate.targets.model.settings, eval_gate.targets.model.build;"
        "import eval_gate.targets.model.model_client;"
        "heavy = {'pydantic_ai', 'openai', 'anthropic', 'google.genai', 'genai_prices', 'httpx2'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
