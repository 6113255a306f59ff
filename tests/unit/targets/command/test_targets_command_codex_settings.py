"""How Codex targets are described: names, other names, refusals."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from eval_gate.targets.command.codex import CodexSettings
from eval_gate.targets.target_list import read_targets


def settings(**described) -> CodexSettings:
    return CodexSettings.model_validate({"name": "coder", **described})


def test_codex_settings__nothing_said__has_the_defaults() -> None:
    found = settings(provider="codex")
    assert (found.executable, found.args, found.log_format) == ("codex", (), "summary")
    assert found.timeout_seconds is None


@pytest.mark.parametrize("key", ["executable", "command", "binary"])
def test_codex_settings__every_name_of_the_executable__is_known(key) -> None:
    assert settings(**{key: "./bin/codex"}).executable == "./bin/codex"


@pytest.mark.contract("agentv.provider-integration.codex-cli-provider")
def test_codex_settings__older_files__have_settings_below_settings() -> None:
    assert settings(settings={"executable": "my-codex", "timeout_seconds": 5}).executable == "my-codex"


@pytest.mark.parametrize("key", ["timeoutSeconds", "timeout_seconds"])
def test_codex_settings__both_spellings__are_read(key) -> None:
    assert settings(**{key: 30}).timeout_seconds == 30


@pytest.mark.parametrize(
    ("given", "args"),
    [
        (["--model", "o 4"], ("--model", "o 4")),
        ("--model 'o 4' -c a=b", ("--model", "o 4", "-c", "a=b")),
        ("", ()),
    ],
)
@pytest.mark.parametrize("key", ["args", "arguments"])
def test_codex_settings__arguments__are_a_list_or_one_text(key, given, args) -> None:
    assert settings(**{key: given}).args == args


@pytest.mark.parametrize("provider", ["codex", "codex-cli", "Codex"])
def test_codex_settings__every_name_of_the_provider__is_one(provider, tmp_path) -> None:
    chosen = read_targets([{"name": "coder", "provider": provider}], tmp_path).resolve_target(None, {})
    assert (type(chosen.settings), chosen.settings.provider) == (CodexSettings, "codex")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"executable": "a", "command": "b"}, "executable is set twice"),
        ({"args": "--model 'o"}, "cannot be split into arguments: no closing quotation"),
        ({"args": ["a\0b"]}, "NUL"),
        ({"env": {"A=B": "x"}}, "pattern"),
        ({"executabel": "codex"}, "Extra inputs"),
        ({"timeoutSeconds": 0}, "greater than 0"),
        ({"logFormat": "xml"}, "'summary' or 'json'"),
        ({"provider": "vscode"}, "'codex'"),
    ],
)
def test_codex_settings__what_is_wrong__is_refused(wrong, words) -> None:
    with pytest.raises(ValidationError, match=words):
        settings(**wrong)


def test_codex_settings__two_names_that_agree__are_one_setting() -> None:
    assert settings(executable="a", binary="a").executable == "a"


def test_codex_settings__schema_for_editors__knows_every_name() -> None:
    schema = TypeAdapter(CodexSettings).json_schema()
    assert {"executable", "command", "binary", "args", "arguments", "timeoutSeconds"} <= set(schema["properties"])
    assert {"type": "string"} in schema["properties"]["args"]["anyOf"]
    assert schema["required"] == ["name"]
