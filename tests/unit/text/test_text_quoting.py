"""How a message repeats what somebody configured: whole or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.text.quoting import capitalize_first, describe_name, looks_like_key, quote_name, quote_value


@pytest.mark.parametrize("text", ["", "onn", "after-pas", "2026-13-01", "policy>0.7", "x" * 24])
def test_quoted__short__is_repeated(text) -> None:
    assert quote_value(text, prefix="text ") == f'text "{text}"'


@pytest.mark.parametrize("text", ["x" * 25, "sk-QwXaBcDZkEfGhIVjJkLm", "hunter2 hunter2 hunter2 hunter2"])
def test_quoted__long_or_like_a_key__is_described(text) -> None:
    assert quote_value(text, prefix="text ") == f"a text of {len(text)} characters"


@pytest.mark.parametrize(
    "name",
    [
        "evals/refunds-and-returns/late-orders.golden.json",
        "runs/3f786850e387550fdab836ed7e6dc881de23001b/run.json",
        "RefundsAndReturnsOfLateOrders",
        "OPENAI_API_KEY_OF_THE_STAGING_SERVER",
        "openai:gpt-4o-mini-2024-07-18",
        "must not be http://localhost:8000/chat",
    ],
)
def test_quoted_name__name_or_path__is_repeated(name) -> None:
    assert (quote_name(name), describe_name(name)) == (f'"{name}"', name)


@pytest.mark.parametrize(
    "key",
    [
        "sk-example-QwXaBcDZkEfGhIVjJkLmN99",
        "sk-QwXaBcDZkEfGhIVjJkLmN99pQrStUvWx0123456789AbCdEfGhIjKlMnO",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "SK-QWXABCDZKEFGHIVJJKLMN99PQRSTUVWX0123456789",
        "0123456789abcdef0123456789abcdef",
        "a" * 60,
        "folder/AIzaSyD4iE2xVSpkLLOXoyqT-KcqMvWxNpJ1234/x",
    ],
)
def test_quoted_name__key__is_described(key) -> None:
    assert looks_like_key(key)
    assert quote_name(key) == describe_name(key) == f"a text of {len(key)} characters"


@given(st.text(min_size=1, max_size=300))
def test_quoted__any_text__is_whole_or_not_there(text) -> None:
    for shown, most in ((quote_value(text), 24), (quote_name(text), 200)):
        assert (
            shown == f'"{text}"'
            if len(text) <= most and not looks_like_key(text)
            else text not in shown or len(text) < 3
        )


@pytest.mark.parametrize(
    "key", ["2f8c0b1e-7d53-4a96-b1c4-9e6a5d3f7081", "9f3b" * 10, "9F3B" * 10, "2f8c0b1e7d534a96b1c49e6a5d3f7081"]
)
def test_quoted_name__digits_of_a_key__are_repeated_only_where_a_commit_or_run_may_be_meant(key) -> None:
    assert key not in quote_name(key) + describe_name(key)
    assert quote_name("cafe-face" * 4) == '"' + "cafe-face" * 4 + '"'
    if key == key.lower():
        assert key in quote_name(key, or_digits=True) or "-" not in key


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("no case ran", "No case ran"),
        ("re-runs do not count", "Re-runs do not count"),
        ("main's newest run failed", "Main's newest run failed"),
        ("waived: 2", "Waived: 2"),
        ("minPassRate is not set", "minPassRate is not set"),
        ("fail_on is not set", "fail_on is not set"),
        ("gs-001 fails", "gs-001 fails"),
        ("evals/a.json cannot be read", "evals/a.json cannot be read"),
        ("eval-gate.yaml cannot be read", "eval-gate.yaml cannot be read"),
        ("eval-gate ended", "eval-gate ended"),
        ("`tone` fell", "`tone` fell"),
        ("3 of 4 pass", "3 of 4 pass"),
        ("", ""),
    ],
)
def test_capitalize_first__identifier__keeps_its_case(words, sentence) -> None:
    assert capitalize_first(words) == sentence
