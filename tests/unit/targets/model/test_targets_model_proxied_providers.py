"""Variables that lead an agent to the proxy of its model calls, and back."""

from __future__ import annotations

import pytest

from eval_gate.targets.model.proxied_providers import (
    PLACEHOLDER_KEY,
    PROXY_VARIABLE,
    build_environment,
    restore_environment,
)

PROXY = "http://127.0.0.1:8799"
ADDRESSES = {
    "OPENAI_BASE_URL": f"{PROXY}/openai/v1",
    "ANTHROPIC_BASE_URL": f"{PROXY}/anthropic",
    "GOOGLE_GEMINI_BASE_URL": f"{PROXY}/gemini",
}


def test_build_environment__addresses_of_the_vendors__are_those_of_the_proxy() -> None:
    built = build_environment({"A": "1"}, PROXY, (), without_keys=True)
    assert {name: built[name] for name in ADDRESSES} == ADDRESSES
    assert (built[PROXY_VARIABLE], built["A"], built["no_proxy"]) == (PROXY, "1", "127.0.0.1")
    assert not any(name.endswith("_API_KEY") for name in built)


@pytest.mark.parametrize(
    ("own", "recorded", "without_keys", "keys"),
    [
        ({}, ("openai", "gemini"), True, {"OPENAI_API_KEY": PLACEHOLDER_KEY, "GOOGLE_API_KEY": PLACEHOLDER_KEY}),
        ({"GEMINI_API_KEY": "real"}, ("gemini",), True, {"GEMINI_API_KEY": PLACEHOLDER_KEY}),
        ({"ANTHROPIC_API_KEY": "real"}, ("openai",), False, {"ANTHROPIC_API_KEY": "real"}),
        ({"ANTHROPIC_API_KEY": "real"}, (), True, {"ANTHROPIC_API_KEY": PLACEHOLDER_KEY}),
    ],
)
def test_build_environment__keys__are_placeholders_where_nothing_may_go_live(own, recorded, without_keys, keys) -> None:
    built = build_environment(own, PROXY, recorded, without_keys=without_keys)
    assert {name: value for name, value in built.items() if name.endswith("_API_KEY")} == keys


def test_restore_environment__of_a_command__is_what_it_was_but_for_the_proxy() -> None:
    own = {"OPENAI_BASE_URL": "http://mine/v1", "OPENAI_API_KEY": "real", "NO_PROXY": "a.example", "A": "1"}
    built = build_environment(own, PROXY, ("openai", "gemini"), without_keys=True)
    assert built["no_proxy"] == "a.example,127.0.0.1"
    assert restore_environment(built) == {**own, PROXY_VARIABLE: PROXY}
    assert restore_environment(own) is own
