"""The set-up of a target: every setting is in its fingerprint unless its field says why not, and no secret is shown."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from eval_gate.model.setup import compare_settings
from eval_gate.targets.kinds import KINDS, TargetKind
from eval_gate.targets.settings import TargetSettings, find_no_effect
from eval_gate.targets.setup import TargetSetup, compute_setup
from eval_gate.targets.target_list import parse_targets

LEAST: dict[str, dict[str, Any]] = {
    "http": {"url": "http://agent.test/chat"},
    "cli": {"commandTemplate": "agent {PROMPT}"},
    "python": {"function": "my_agent:answer"},
    "azure": {"endpoint": "desk", "model": "gpt-4o"},
}
"""What a description of these kinds needs at least, by the first word for the provider."""
SECRET = "sk-1234567890abcdef1234567890abcdef"


def described(**settings: Any) -> TargetSettings:
    listed = parse_targets("targets.yaml", yaml.safe_dump({"targets": [{"name": "a", **settings}]}).encode())
    return listed.resolve_target(
        "a", {"KEY": SECRET, "AGENT": f"http://me:{SECRET}@agent.test/chat?key={SECRET}"}
    ).settings


def setup(settings: TargetSettings, **environment: str) -> TargetSetup:
    return compute_setup(settings, environment, lambda text: text)


def values(settings: TargetSettings, **environment: str) -> dict[str, str]:
    return {one.name: one.value for one in setup(settings, **environment).settings}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.providers[0])
def test_setup__every_setting_of_every_kind__is_in_it_or_says_why_not(kind: TargetKind) -> None:
    """One by itself; also those that somebody adds tomorrow."""
    first = f"{kind.providers[0]}"
    plain = described(provider=first, **LEAST.get(first, {}))
    left_out = {}
    for name, field in kind.settings.model_fields.items():
        if name == "provider":  # another one is another target, and said so
            continue
        other = plain.model_copy(update={name: SecretStr("x") if name == "api_key" else "another value"})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the value is of none of the types that are declared
            changed = setup(other).fingerprint != setup(plain).fingerprint
        if not changed:
            mark = find_no_effect(field)
            left_out[name] = mark.reason if mark else ""
    assert all(left_out.values()), left_out
    assert len(left_out) <= 17


def test_setup__what_is_shown__names_the_setting_its_value_and_its_default() -> None:
    found = setup(described(provider="http", url="http://agent.test", responsePath=["hint", "response"])).settings
    assert [(one.name, one.value, one.default) for one in found if one.name == "responsePath"] == [
        ("responsePath", "hint, response", "response")
    ]


@pytest.mark.parametrize(
    "written",
    [
        {"headers": {"x-mode": "fast"}},
        {"method": "POST", "agentProtocol": "eval-gate", "responsePath": "response", "responseFormat": "json"},
        {"modelPath": "answered.by"},
        {"responsePath": ["response"]},
    ],
)
def test_setup__same_request_written_otherwise__is_the_same(written) -> None:
    plain: dict[str, Any] = {"provider": "http", "url": "http://agent.test", "headers": {"X-Mode": "fast"}}
    assert setup(described(**plain | written)).fingerprint == setup(described(**plain)).fingerprint


def test_setup__empty_value_that_is_not_the_default__is_named() -> None:
    assert values(described(provider="mock", trace=[]))["trace"] == "[]"


WRITTEN_OUT: list[tuple[str, dict[str, Any]]] = [
    ("eval-gate", {"responsePath": "response"}),
    ("eval-gate", {"responsePath": ["response"]}),
    ("openai-chat", {"form": None}),
]


@pytest.mark.parametrize(("preset", "written"), WRITTEN_OUT)
def test_setup__default_that_is_written_out__is_no_change(preset, written) -> None:
    plain = {"provider": "http", "url": "http://x.test", "agentProtocol": preset}
    assert setup(described(**plain, **written)) == setup(described(**plain))


def test_setup__secrets__are_in_it_by_the_names_of_their_variables() -> None:
    headers = {"X-Mode": "fast", "Authorization": "Bearer ${{ KEY }}", "X-Api-Key": SECRET}
    found = values(described(provider="http", url="${{ AGENT }}", headers=headers, query={"token": "${{ KEY }}"}))
    assert SECRET not in str(found)
    assert "fast" in found["headers"]
    assert "Bearer ${{ KEY }}" in found["headers"]
    assert found["query"] == '{"token":"${{ KEY }}"}'
    assert found["url"].startswith("${{ AGENT }} #")
    other = values(described(provider="http", url="http://agent.test/chat", query={"token": "${{ AGENT }}"}))
    assert other["query"] != found["query"]


def test_setup__address__counts_by_its_public_part_behind_a_variable_and_by_its_query_in_a_list() -> None:
    here, there = (
        parse_targets("t.yaml", b"targets: [{name: a, provider: http, url: '${{ AGENT }}'}]").resolve_target(
            "a", {"AGENT": f"https://{host}.test/chat"}
        )
        for host in ("here", "there")
    )
    assert values(here.settings) != values(there.settings)
    plain, asked = (described(provider="http", url=f"http://agent.test/chat{query}") for query in ("", "?mode=mock"))
    assert setup(plain).fingerprint != setup(asked).fingerprint
    assert "mock" not in str(values(asked))


@pytest.mark.parametrize(("one", "other"), [("?mode=a", "?mode=b"), ("", "?mode=a"), ("?m=${{ KEY }}", "?m=${{ X }}")])
def test_setup__query_of_an_address_in_a_list__is_how_it_is_asked_and_not_where(one: str, other: str) -> None:
    then, now = (
        parse_targets("t.yaml", f"targets: [{{name: a, provider: http, url: 'http://h.test/chat{query}'}}]".encode())
        .resolve_target("a", {"KEY": SECRET, "X": SECRET})
        .settings
        for query in (one, other)
    )
    (changed,) = compare_settings(setup(then).settings, setup(now).settings)
    assert (changed.name, changed.role) == ("query", None)


def test_setup__address_of_the_providers_own_variable__is_in_it() -> None:
    model = described(provider="openai", model="gpt-4o")
    assert "baseUrl" not in values(model)
    assert values(model, OPENAI_BASE_URL="http://other.test/v1")["baseUrl"] == "http://other.test/v1"
    assert setup(model).fingerprint != setup(model, OPENAI_BASE_URL="http://other.test/v1").fingerprint


def test_setup__name_of_the_target__is_no_part_of_it() -> None:
    listed = parse_targets("t", b"targets: [{name: a, url: 'http://x.test'}, {name: b, url: 'http://x.test'}]")
    assert len({setup(listed.resolve_target(name, {}).settings).fingerprint for name in "ab"}) == 1


@given(st.dictionaries(st.sampled_from(["headers", "query", "requestFields"]), st.text(max_size=300), min_size=1))
def test_setup__value_of_any_length__is_shown_bounded_in_one_line(given_values: dict[str, str]) -> None:
    settings = described(provider="http", url="http://x.test", requestFields=given_values)
    shown = values(settings)["requestFields"]
    assert len(shown) <= 105
    assert shown.isprintable()


def test_setup__commands_of_a_program__are_known_beside_it() -> None:
    check = {"type": "command", "commandTemplate": "python3 ready.py"}
    found = setup(described(provider="cli", commandTemplate="python3 judge.py {PROMPT}", cwd="..", healthcheck=check))
    assert found.programs is not None
    assert (found.programs.healthcheck, found.programs.cwd) == ("python3 ready.py", "..")
    assert "python3 judge.py {PROMPT}" in found.programs.command
    assert setup(described(provider="http", url="http://x.test")).programs is None
