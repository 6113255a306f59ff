"""Tokens resolve as the contract says, in exactly its grammar."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.text.tokens import (
    TokenData,
    find_snapshot_tokens,
    find_tokens,
    find_unknown_tokens,
    resolve_members,
    resolve_tokens,
)

SEED = {
    "holdings": {"equities": [{"symbol": "AAPL", "shares": 150, "name": "Äpple"}]},
    "totals": {"portfolioValue": 125000, "rate": 178.50, "whole": 4.0, "tiny": 1e-7, "huge": 1e21, "none": None},
    "flags": {"on": True, "off": False, "empty": "", "zero": 0},
    "my-key": [["deep"]],
    "a.b": "dotted",
    "literal[0]": "written so",
}
DATA = TokenData(seed=SEED, snapshot={"prices": {"AAPL": {"current": 178.5}}})


@pytest.mark.contract("tokens.path", "tokens.sources")
@pytest.mark.parametrize(
    ("token", "text"),
    [
        ("{{seed:holdings.equities[0].symbol}}", "AAPL"),
        ("{{seed:holdings.equities[0].shares}}", "150"),
        ("{{seed:totals.portfolioValue}}", "125000"),
        ("{{snapshot:prices.AAPL.current}}", "178.5"),
        ("{{seed:my-key[0][0]}}", "deep"),
        ("{{seed:holdings.equities.0.symbol}}", "AAPL"),
        ("{{seed:literal[0]}}", "written so"),
    ],
)
def test_resolve__path__leads_to_the_value(token, text) -> None:
    assert resolve_tokens(token, DATA).text == text


@pytest.mark.contract("tokens.text")
@pytest.mark.parametrize(
    ("token", "text"),
    [
        ("{{seed:totals.rate}}", "178.5"),
        ("{{seed:totals.whole}}", "4"),
        ("{{seed:totals.tiny}}", "1e-7"),
        ("{{seed:totals.huge}}", "1e+21"),
        ("{{seed:flags.on}}", "true"),
        ("{{seed:flags.off}}", "false"),
        ("{{seed:flags.empty}}", ""),
        ("{{seed:flags.zero}}", "0"),
        ("{{seed:holdings.equities[0]}}", '{"symbol":"AAPL","shares":150,"name":"Äpple"}'),
        ("{{seed:my-key}}", '[["deep"]]'),
    ],
)
def test_resolve__value__is_text_as_javascript_makes_it(token, text) -> None:
    assert resolve_tokens(token, DATA).text == text


@pytest.mark.contract("tokens.unresolved")
@pytest.mark.parametrize(
    "path",
    [
        "seed:totals.none",
        "seed:missing",
        "seed:holdings.equities[1].symbol",
        "seed:holdings.equities[-1]",
        "seed:totals.portfolioValue.more",
        "seed:holdings.equities.length",
        "seed:holdings.equities[0].symbol[0]",
        "seed:",
        "seed:holdings..equities",
        "seed:holdings.equities.\u0660.symbol",
        "seed:holdings.equities.\u00b2",
        "seed:holdings.equities[\u0660]",
        "snapshot:prices.AAPL.missing",
    ],
)
def test_resolve__path_to_nowhere__is_unresolved(path) -> None:
    token = "{{" + path + "}}"
    resolved = resolve_tokens(token, DATA)
    assert (resolved.text, resolved.unresolved) == (None, (token,))


@pytest.mark.contract("tokens.snapshot.not-configured")
def test_resolve__source_not_configured__is_unresolved() -> None:
    assert resolve_tokens("{{snapshot:prices}}", TokenData(seed=SEED)).unresolved == ("{{snapshot:prices}}",)


@pytest.mark.contract("tokens.inside-text")
def test_resolve__several_tokens_in_one_text__all_replaced_or_the_whole_unresolved() -> None:
    assert resolve_tokens("$ {{seed:totals.whole}} of {{seed:flags.on}}!", DATA).text == "$ 4 of true!"
    mixed = resolve_tokens("{{seed:totals.whole}} {{seed:nope}} {{seed:neither}}", DATA)
    assert (mixed.text, mixed.unresolved) == (None, ("{{seed:nope}}", "{{seed:neither}}"))


@pytest.mark.contract("tokens.unknown-source")
def test_resolve__other_source__stays_literal_and_reads_no_environment(monkeypatch) -> None:
    monkeypatch.setenv("HOME", "/secret")
    assert resolve_tokens("{{env:HOME}} {{ seed:x}}", DATA).text == "{{env:HOME}} {{ seed:x}}"
    assert find_unknown_tokens("{{env:HOME}} {{seed:x}}") == ("{{env:HOME}}",)


def test_resolve_members__token_to_a_list__gives_its_members_texts() -> None:
    data = TokenData(seed={"list": ["a", 1.0, None]})
    assert resolve_members("{{seed:list}}", data) == ("a", "1", "null")
    assert resolve_members("x {{seed:list}}", data) is None
    assert resolve_members("{{seed:list[0]}}", data) is None


def test_find_tokens__text__lists_them_as_written() -> None:
    text = "{{seed:a}} {{snapshot:b.c}} {{other:d}} {{seed}}"
    assert find_tokens(text) == ("{{seed:a}}", "{{snapshot:b.c}}")
    assert find_snapshot_tokens(text) == ("{{snapshot:b.c}}",)


@given(st.text())
def test_resolve__any_text__never_fails(text) -> None:
    resolved = resolve_tokens(text, DATA)
    assert (resolved.text is None) == bool(resolved.unresolved)


@given(st.text().filter(lambda text: "{{" not in text))
def test_resolve__text_without_tokens__is_itself(text) -> None:
    assert resolve_tokens(text, DATA).text == text
