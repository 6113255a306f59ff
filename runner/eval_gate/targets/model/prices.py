"""What a model's answer costs, by the price list that genai-prices brings along; nothing is downloaded."""

from __future__ import annotations

from typing import Final

from eval_gate.model.limits import MAX_COST_USD, in_range
from eval_gate.model.usage import Usage

_THEIR_NAMES: Final = {
    "azure-responses": "azure",
    "bedrock": "aws",
    "bedrock-mantle": "aws",
    "gemini": "google",
    "google-cloud": "google",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "xai": "x-ai",
}
_UNPRICED: Final = frozenset({"openai-compatible", "litellm", "ollama", "vllm"})
"""Servers of one's own: the list takes `openai-compatible` for OpenAI."""


def price(provider: str, model: str, usage: Usage) -> float | None:
    """US dollars for these tokens, or None when the price or the tokens are not known: never 0 for what is unknown.

    `usage` knows nothing of caches: tokens read from one are counted at the full price, so this is an upper bound.
    """
    if usage.input_tokens is None or usage.output_tokens is None or provider in _UNPRICED:
        return None
    import genai_prices

    try:
        counted = genai_prices.Usage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
        found = genai_prices.calc_price(counted, model, provider_id=_THEIR_NAMES.get(provider, provider))
    except (LookupError, ValueError):  # a model or a provider the list does not have, a count that is none
        return None
    # the list has models without any price, which it adds up to 0
    return in_range(float(found.total_price), MAX_COST_USD) if found.total_price else None
