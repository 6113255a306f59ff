"""What providers answer, read into turns: text, calls, thinking, tokens, and why it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from eval_gate.model.conversation import Message, ToolCall
from eval_gate.model.usage import Usage
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

pytestmark = pytest.mark.slow  # the libraries of the vendors take seconds to load

ANSWERS = {"openai": openai_answer, "azure": openai_answer, "anthropic": anthropic_answer, "gemini": gemini_answer}
MODELS = {"openai": "gpt-4o", "azure": "gpt-4o", "anthropic": "claude-haiku-4-5", "gemini": "gemini-2.5-flash"}
USER = Message(role="user", content="hi")
CALLS = (("call_a", "get_weather", {"city": "Rome", "days": [1, 2]}), ("call_b", "get_weather", {"city": "Łódź"}))


def described(provider: str, url: str, **more) -> ModelSettings:
    raw = {"name": "t", "provider": provider, "apiKey": "sk-very-secret", "model": MODELS[provider]}
    raw["endpoint" if provider == "azure" else "baseUrl"] = url
    return ModelSettings.model_validate(raw | more)


def turn(provider: str, answer: dict | Answer, **more) -> ModelTurn:
    async def main() -> ModelTurn:
        chat = build_chat(described(provider, server.url, **more), {}, timeout_s=10)
        try:
            return await chat.ask([USER])
        finally:
            await chat.aclose()

    with model_server(answer) as server:
        return asyncio.run(main())


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "gpt-4o-2024-08-06"),
        ("azure", "gpt-4o-2024-08-06"),
        ("anthropic", "claude-sonnet-5-20260217"),
        ("gemini", "gemini-2.5-flash"),
    ],
)
def test_text__is_a_turn_with_tokens_and_the_model_as_answered(provider, model) -> None:
    assert turn(provider, ANSWERS[provider]("Sunny ☀.")) == ModelTurn(
        text="Sunny ☀.", usage=Usage(input_tokens=19, output_tokens=10), model=model, finish="stop"
    )


@pytest.mark.parametrize("provider", ANSWERS)
@pytest.mark.parametrize("text", [None, "One moment."])
def test_calls__parallel__come_in_order_with_ids_and_arguments(provider, text) -> None:
    found = turn(provider, ANSWERS[provider](text, CALLS))
    assert found.text == (text or "")
    assert found.tool_calls == tuple(ToolCall(id=id_, name=name, params=given) for id_, name, given in CALLS)
    assert found.finish == "tool_call"


@pytest.mark.parametrize(
    "given",
    [
        "",
        "{",
        "null",
        "[1]",
        '"text"',
        "5",
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a":' * 300 + "1" + "}" * 300,
        "[" * 5_000,
        '{"a": ' + "9" * 5_000 + "}",
    ],
    ids=range(11),
)
def test_calls__arguments_that_are_no_object__count_as_none(given) -> None:
    found = turn("openai", openai_answer(None, [("call_a", "get_weather", given)]))
    assert found.tool_calls == (ToolCall(id="call_a", name="get_weather", params={}),)


def test_calls__half_a_surrogate_pair__is_replaced() -> None:
    found = turn("openai", openai_answer("a\ud800", [("call_a", "get\ud800", '{"city": "\\ud83d", "\\udc00": 1}')]))
    assert found.text == "a\ufffd"
    assert found.tool_calls[0].name == "get\ufffd"
    assert found.tool_calls[0].params == {"city": "\ufffd", "\ufffd": 1}


@pytest.mark.parametrize(
    ("provider", "usage", "expected"),
    [
        # OpenAI counts what it read from its cache and what the model thought among the others
        (
            "openai",
            {
                "prompt_tokens": 2_006,
                "completion_tokens": 300,
                "total_tokens": 2_306,
                "prompt_tokens_details": {"cached_tokens": 1_920},
                "completion_tokens_details": {"reasoning_tokens": 256},
            },
            Usage(input_tokens=2_006, output_tokens=300),
        ),
        # Anthropic counts caches apart
        (
            "anthropic",
            {
                "input_tokens": 21,
                "cache_creation_input_tokens": 188,
                "cache_read_input_tokens": 1_000,
                "output_tokens": 393,
            },
            Usage(input_tokens=1_209, output_tokens=393),
        ),
        # Gemini counts thinking apart, and what it read from its cache among the prompt
        (
            "gemini",
            {
                "promptTokenCount": 100,
                "cachedContentTokenCount": 60,
                "candidatesTokenCount": 10,
                "thoughtsTokenCount": 90,
                "totalTokenCount": 200,
            },
            Usage(input_tokens=100, output_tokens=100),
        ),
        ("openai", None, None),
        ("gemini", None, None),
        ("gemini", {}, None),
        ("openai", {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, None),
    ],
)
def test_usage__is_what_is_paid_for_or_unknown(provider, usage, expected) -> None:
    assert turn(provider, ANSWERS[provider](usage=usage)).usage == expected


@pytest.mark.parametrize(
    ("provider", "raw", "expected"),
    [
        ("openai", "stop", "stop"),
        ("openai", "length", "length"),
        ("openai", "content_filter", "content_filter"),
        ("openai", None, "stop"),
        ("anthropic", "end_turn", "stop"),
        ("anthropic", "stop_sequence", "stop"),
        ("anthropic", "max_tokens", "length"),
        ("anthropic", "refusal", "content_filter"),
        ("gemini", "STOP", "stop"),
        ("gemini", "MAX_TOKENS", "length"),
        ("gemini", "SAFETY", "content_filter"),
        ("gemini", "RECITATION", "content_filter"),
        ("gemini", "MALFORMED_FUNCTION_CALL", "error"),
        ("gemini", "A_REASON_OF_TOMORROW", None),
    ],
)
@pytest.mark.parametrize("text", ["Hel", None])
def test_finish__is_told_in_common_words_with_and_without_text(provider, raw, expected, text) -> None:
    found = turn(provider, ANSWERS[provider](text, finish=raw))
    assert (found.text, found.finish) == (text or "", expected)


def test_filter__azure_refuses_the_prompt__is_a_turn_not_an_error() -> None:
    body = {
        "error": {
            "message": "The response was filtered due to the prompt triggering Azure OpenAI's content policy.",
            "type": None,
            "param": "prompt",
            "code": "content_filter",
            "status": 400,
            "innererror": {
                "code": "ResponsibleAIPolicyViolation",
                "content_filter_result": {
                    "hate": {"filtered": True, "severity": "high"},
                    "violence": {"filtered": False, "severity": "safe"},
                },
            },
        }
    }
    found = turn("azure", Answer(body, 400))
    assert (found.text, found.finish, found.usage) == ("", "content_filter", None)


def test_filter__openai_refuses__is_a_turn() -> None:
    found = turn("openai", openai_answer(None, message={"refusal": "I can't help with that."}))
    assert (found.text, found.finish) == ("", "content_filter")


def test_filter__gemini_blocks_the_prompt__is_a_turn() -> None:
    body = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 7, "totalTokenCount": 7},
        "modelVersion": "gemini-2.5-flash",
    }
    found = turn("gemini", body)
    assert (found.text, found.finish) == ("", "content_filter")
    assert found.usage == Usage(input_tokens=7, output_tokens=0)


def test_empty__a_model_that_says_nothing__is_a_turn_without_text() -> None:
    for provider, answer in ANSWERS.items():
        found = turn(provider, answer(None))
        assert (found.text, found.tool_calls, found.finish) == ("", (), "stop")


def test_thinking__is_kept_apart_from_the_text() -> None:
    found = turn("anthropic", anthropic_answer("Sunny.", thinking="Rome is warm."), thinkingBudget=2_000)
    assert (found.text, found.thinking) == ("Sunny.", "Rome is warm.")
    found = turn("gemini", gemini_answer("Sunny.", thinking="Rome is warm."), thinkingBudget=-1)
    assert (found.text, found.thinking) == ("Sunny.", "Rome is warm.")
    found = turn("openai", openai_answer("Sunny.", message={"reasoning_content": "Rome is warm."}))
    assert (found.text, found.thinking) == ("Sunny.", "Rome is warm.")


def dialogue(provider: str, answers: Sequence[dict], **more):
    """A question, the calls of the answer, their results, a second question: both turns, and the second request."""

    async def main():
        chat = build_chat(described(provider, server.url, **more), {}, timeout_s=10)
        try:
            first = await chat.ask([USER])
            messages = [
                USER,
                Message(role="assistant", content=first.text, tool_calls=first.tool_calls),
                *(Message(role="tool", content="ok", tool_call_id=call.id) for call in first.tool_calls),
            ]
            return first, await chat.ask(messages)
        finally:
            await chat.aclose()

    with model_server(*answers) as server:
        first, second = asyncio.run(main())
        return first, second, server.requests[1].body


def test_dialogue__anthropic_thought_before_it_called__gets_its_thoughts_back_signed() -> None:
    answers = [anthropic_answer("Wait.", CALLS, thinking="Rome is warm."), anthropic_answer()]
    _, _, body = dialogue("anthropic", answers, thinkingBudget=2_000)
    assert body["messages"][1]["content"][0] == {
        "type": "thinking",
        "thinking": "Rome is warm.",
        "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h",
    }
    assert [block["type"] for block in body["messages"][1]["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert [block["tool_use_id"] for block in body["messages"][2]["content"]] == ["call_a", "call_b"]


def test_dialogue__gemini_signed_its_call__gets_the_signature_back() -> None:
    answers = [gemini_answer(None, CALLS, signature="c2lnbmVk"), gemini_answer()]
    _, _, body = dialogue("gemini", answers)
    assert body["contents"][1]["parts"][0]["thoughtSignature"] == "c2lnbmVk"


def test_dialogue__calls_without_ids__get_ones_that_are_the_same_next_time() -> None:
    calls = [("", name, given) for _, name, given in CALLS]
    answers = [gemini_answer(None, calls), gemini_answer()]
    first, _, body = dialogue("gemini", answers)
    again, _, same = dialogue("gemini", answers)
    ids = [call.id for call in first.tool_calls]
    assert len(set(ids)) == 2
    assert ids == [call.id for call in again.tool_calls]
    assert body == same
    assert [part["functionResponse"]["id"] for part in body["contents"][2]["parts"]] == ids


def test_dialogue__another_answer_to_the_same_question__is_not_taken_for_the_first() -> None:
    async def main():
        chat = build_chat(described("anthropic", server.url, thinkingBudget=2_000), {}, timeout_s=10)
        await chat.ask([USER])
        other = Message(role="assistant", tool_calls=(ToolCall(id="call_z", name="get_weather"),))
        await chat.ask([USER, other, Message(role="tool", content="ok", tool_call_id="call_z")])
        await chat.aclose()

    with model_server(anthropic_answer(None, CALLS, thinking="Rome is warm."), anthropic_answer()) as server:
        asyncio.run(main())
        assert server.requests[1].body["messages"][1]["content"] == [
            {"type": "tool_use", "id": "call_z", "name": "get_weather", "input": {}}
        ]


def test_memory__of_thoughts__is_bounded(monkeypatch) -> None:
    from eval_gate.targets.model.providers import chat as provider_messages

    monkeypatch.setattr(provider_messages, "MAX_REMEMBERED", 2)

    async def main() -> int:
        chat = build_chat(described("anthropic", server.url), {}, timeout_s=10)
        for number in range(5):
            await chat.ask([Message(role="user", content=str(number))])
        await chat.aclose()
        return len(chat._transcript._remembered)

    with model_server(anthropic_answer(None, CALLS, thinking="Hm.")) as server:
        assert asyncio.run(main()) == 2
