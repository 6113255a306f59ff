"""What an answer costs: known prices only, and nothing is downloaded for it."""

import pytest

from eval_gate.model.usage import Usage
from eval_gate.targets.model.model_client import estimate_price

MILLION = Usage(input_tokens=1_000_000, output_tokens=1_000_000)


@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        ("openai", "gpt-4o-2024-08-06", 12.5),
        ("openai", "gpt-4o", 12.5),
        ("azure", "gpt-4o", 12.5),
        ("anthropic", "claude-haiku-4-5", 6.0),
        ("gemini", "gemini-2.5-flash", 2.8),
        ("groq", "llama-3.3-70b-versatile", 1.38),
    ],
)
def test_price__a_model_on_the_list__is_told_in_dollars(provider, model, expected) -> None:
    assert estimate_price(provider, model, MILLION) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "smollm2-135m"),
        ("azure", "my-deployment"),
        ("openai-compatible", "gpt-4o"),
        ("ollama", "gpt-4o"),
        ("nobody", "gpt-4o"),
        ("", ""),
        ("cerebras", "qwen-3-coder-480b"),  # on the list, without a price
    ],
)
def test_price__not_known__is_none_and_never_0(provider, model) -> None:
    assert estimate_price(provider, model, MILLION) is None


@pytest.mark.parametrize(
    "usage",
    [
        Usage(),
        Usage(input_tokens=5),
        Usage(output_tokens=5),
        Usage(input_tokens=-5, output_tokens=5),
        Usage(input_tokens=0, output_tokens=0),
    ],
)
def test_price__tokens_not_known__is_none(usage) -> None:
    assert estimate_price("openai", "gpt-4o", usage) is None
