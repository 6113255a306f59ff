"""A secret is a type: nothing that shows it shows what it holds."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel, ValidationError

from eval_gate.config.loader import load_config
from eval_gate.github.artifacts.artifact_service import ArtifactService
from eval_gate.targets.model.settings import Credentials
from eval_gate.targets.target_list import parse_targets
from eval_gate.text.secret import Secret, SecretAddress
from tests.support.canaries import KEY, shown_in


class Holder(BaseModel):
    key: Secret[str]
    body: Secret[dict[str, str]] = Secret({})
    place: SecretAddress[str] | None = None


HELD = Holder.model_validate({"key": KEY, "body": {"a": KEY}, "place": f"http://u:{KEY}@h/p?k={KEY}#{KEY}"})


@pytest.mark.parametrize("value", [Secret(KEY), Secret({"a": KEY}), HELD.key, HELD.body])
def test_secret__shown_in_any_way__is_masked(value) -> None:
    ways = [str(value), repr(value), f"{value}", f"{value!r}", format(value, ""), "%s" % value, "{}".format(value)]  # noqa: UP031, UP032
    assert set(ways) == {"***"}
    assert f"{value:>5}" == "  ***"
    assert str([value]) == "[***]"


def test_secret__in_json__is_masked() -> None:
    shown = json.loads(HELD.model_dump_json())
    assert shown == {"key": "***", "body": "***", "place": "http://***@h/p?***"}
    assert shown_in([("", repr(HELD)), ("", str(HELD.model_dump()))]) == []
    with pytest.raises(TypeError) as caught:
        json.dumps({"a": Secret(KEY)})
    assert KEY not in str(caught.value)


def test_secret__opened__is_what_was_given() -> None:
    assert (HELD.key.open(), HELD.body.open()) == (KEY, {"a": KEY})
    assert HELD.place is not None
    assert HELD.place.open() == f"http://u:{KEY}@h/p?k={KEY}#{KEY}"
    assert Holder(key=HELD.key) == Holder(key=Secret(KEY))


def test_secret__compared__by_what_it_holds() -> None:
    assert Secret(KEY) == Secret(KEY) == SecretAddress(KEY)
    assert Secret(KEY) != Secret(KEY[:-1])
    assert len({Secret(KEY), Secret(KEY), Secret("other")}) == 2
    assert hash(Secret({"a": 1, "b": 2})) == hash(Secret({"b": 2, "a": 1}))
    assert (bool(Secret("")), bool(Secret({})), bool(Secret("x"))) == (False, False, True)


def test_secret__wrong_type__the_error_of_a_description_shows_none_of_it() -> None:
    described = type(parse_targets("t.yaml", b"[{name: a, url: 'http://h/'}]").resolve_target(None, {}).settings)
    with pytest.raises(ValidationError) as caught:
        described.model_validate({"name": "a", "url": "http://h/", "headers": KEY, "workers": KEY, "method": KEY})
    assert caught.value.error_count() == 3
    assert shown_in([("", str(caught.value)), ("", repr(caught.value))]) == []


TARGETS = [
    {
        "url": "http://u:${{ KEY }}@h/p?k=${{ KEY }}",
        "headers": {"a": "Bearer ${{ KEY }}"},
        "query": {"k": "${{ KEY }}", "m": "{{message}}"},
        "requestTemplate": {"a": ["${{ KEY }}", "{{message}}"]},
        "messageTemplate": {"a": "${{ KEY }}"},
        "requestFields": {"a": "${{ KEY }}"},
        "healthcheck": {"url": "http://h/?k=${{ KEY }}"},
        "poll": {"url": "/x?k=${{ KEY }}", "requestTemplate": {"k": "${{ KEY }}"}},
    },
    {"url": "http://h/", "form": {"a": "${{ KEY }}", "m": "{{message}}"}},
    {"provider": "openai", "model": "m", "apiKey": "${{ KEY }}", "baseUrl": "http://h/?k=${{ KEY }}"},
    {"provider": "azure", "model": "m", "apiKey": "${{ KEY }}", "endpoint": "http://u:${{ KEY }}@h/"},
    {"provider": "cli", "commandTemplate": "x", "env": {"A": "${{ KEY }}"}},
    {"provider": "codex", "env": {"A": "${{ KEY }}"}},
    {"provider": "vscode", "env": {"A": "${{ KEY }}"}},
]


@pytest.mark.parametrize("target", TARGETS, ids=",".join)
def test_settings__made_of_a_reference__show_none_of_it(target) -> None:
    chosen = parse_targets("t.yaml", json.dumps([{"name": "a", **target}]).encode()).resolve_target(None, {"KEY": KEY})
    settings = chosen.settings
    shown = [repr(settings), str(settings), f"{settings}", settings.model_dump_json(), str(settings.model_dump())]
    assert shown_in([("", text) for text in (*shown, repr(chosen.redact))]) == []


def test_configuration__addresses__show_no_user_and_no_query() -> None:
    address = f"http://u:{KEY}@h/p?k={KEY}"
    flags = {"agentEndpoint": address, "baseAgentEndpoint": address, "baseUrl": address}
    config = load_config(flags, {}, None)
    assert repr(config).count("http://***@h/p?***") == len(flags)
    assert shown_in([("", repr(config))]) == []
    assert config.target.endpoint is not None
    assert config.target.endpoint.open() == address


def test_tokens_and_keys__of_providers_and_of_github__are_secrets() -> None:
    held = [Credentials(Secret(KEY), None), ArtifactService("http://h", Secret(KEY))]
    assert shown_in([("", repr(one)) for one in held]) == []
