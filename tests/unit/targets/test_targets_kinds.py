"""The table of kinds: every row leads to what it names, and the schema for editors knows them all."""

import inspect
from functools import cache

import jsonschema
import pytest

from eval_gate.targets.kinds import KINDS, build_json_schema, find_kind, list_providers
from eval_gate.targets.model.providers.provider_table import PROVIDERS


@cache
def for_editors() -> jsonschema.Draft202012Validator:
    """What an editor checks a targets file with: making it takes longer than checking."""
    return jsonschema.Draft202012Validator(build_json_schema())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.providers[0])
def test_kind__every_row__leads_to_settings_that_know_its_providers(kind) -> None:
    shown = kind.settings.model_json_schema()["properties"]["provider"]
    known = shown.get("enum") or [shown.get("const")] if "$ref" not in shown else list(PROVIDERS)
    assert set(kind.providers) == set(known)
    assert set(kind.other_names.values()) <= set(kind.providers)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.providers[0])
def test_kind__every_row__leads_to_what_builds_it_from_its_own_settings(kind) -> None:
    from pkgutil import resolve_name

    for place in filter(None, (kind.build_at, kind.client_at)):
        build = resolve_name(f"eval_gate.targets.{place}")
        assert list(inspect.signature(build).parameters) == ["settings", "choice", "context"]
        assert inspect.signature(build).parameters["settings"].annotation == kind.settings.__name__


@pytest.mark.slow  # the libraries of the vendors take seconds to load
@pytest.mark.parametrize("provider", PROVIDERS)
def test_provider__every_row__leads_to_what_makes_a_model_of_it(provider) -> None:
    from pkgutil import resolve_name

    build = resolve_name(f"eval_gate.targets.model.providers.{PROVIDERS[provider].build}")
    assert list(inspect.signature(build).parameters) == ["settings", "access", "timeout_s"]


def test_providers__no_word__means_two_kinds() -> None:
    assert len(list_providers()) == len(set(list_providers()))
    assert all(find_kind(word) is not None for word in list_providers())


@pytest.mark.parametrize(
    "target",
    [
        {"name": "a", "url": "http://x/", "healthcheck": "http://x/health"},
        {"name": "a", "url": "http://x/", "healthcheck": {"url": "http://x/health"}},
        {"name": "a", "provider": "mock", "responses": {"a": "text", "b": {"response": "whole"}}},
        {"name": "a", "provider": "cli", "command": "x", "healthcheck": {"type": "command", "commandTemplate": "y"}},
        {"name": "a", "provider": "codex-cli", "arguments": "-x"},
        {"name": "a", "provider": "codex", "timeout_seconds": 5, "logFormat": "json"},
        {"name": "a", "provider": "cli", "command": "x", "healthcheck": {"type": "command", "command_template": "y"}},
        {"name": "a", "provider": "vscode-insiders"},
        {"name": "a", "provider": "google", "maxTokens": 5},
    ],
    ids=lambda target: target.get("provider", "http"),
)
def test_schema__for_editors__fits_one_of_each(target) -> None:
    for_editors().validate({"targets": [target]})


@pytest.mark.parametrize(
    "target",
    [
        {"name": "a", "url": "http://x/", "healthcheck": {"url": "http://x/", "cwd": "of a command"}},
        {"name": "a", "provider": "cli", "command": "x", "healthcheck": {"url": "http://x/"}},
        {"name": "a"},
        {"name": "a", "provider": "nobody"},
        {"name": "a", "provider": "codex", "timeout_seconds": "long"},
        {"name": "a", "provider": "codex", "timeout_second": 5},
    ],
    ids=["command's in http", "http's in a command", "no url", "no provider", "wrong value", "misspelt"],
)
def test_schema__for_editors__refuses_what_is_read_by_no_kind(target) -> None:
    with pytest.raises(jsonschema.ValidationError):
        for_editors().validate({"targets": [target]})
