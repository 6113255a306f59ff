"""How VS Code targets are described: names, other names, refusals."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from eval_gate.targets.vscode.target import VscodeSettings


def settings(**described) -> VscodeSettings:
    return VscodeSettings.model_validate({"name": "editor", **described})


@pytest.mark.parametrize(
    ("provider", "command", "subagents"),
    [
        ("vscode", "code", "~/.subagent/vscode-agents"),
        ("vscode-insiders", "code-insiders", "~/.subagent/vscode-insiders-agents"),
    ],
)
def test_vscode_settings__nothing_said__has_the_defaults(provider, command, subagents) -> None:
    found = settings(provider=provider)
    assert (found.command, found.subagents, found.wait, found.dry_run) == (command, subagents, True, False)
    assert found.timeout_seconds == 600


@pytest.mark.parametrize("key", ["vscodeCmd", "vscode_cmd", "command"])
def test_vscode_settings__every_name_of_the_command__is_known(key) -> None:
    assert settings(**{key: "codium"}).command == "codium"


def test_vscode_settings__both_spellings__are_read() -> None:
    found = settings(subagent_root="a", workspaceTemplate="b", dryRun=True, provider_batching=True)
    assert (found.subagents, found.workspace_template) == ("a", "b")
    assert (found.dry_run, found.provider_batching) == (True, True)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"vscode_cmd": "a", "command": "b"}, "vscodeCmd is set twice"),
        ({"wait": False}, "without a response"),
        ({"timeout_seconds": 0}, "greater than 0"),
        ({"subagentroot": "a"}, "Extra inputs"),
        ({"provider": "codex"}, "'vscode' or 'vscode-insiders'"),
        ({"workers": 0}, "greater than or equal to 1"),
    ],
)
def test_vscode_settings__what_is_wrong__is_refused(wrong, words) -> None:
    with pytest.raises(ValidationError, match=words):
        settings(**wrong)


def test_vscode_settings__schema_for_editors__knows_every_name() -> None:
    schema = TypeAdapter(VscodeSettings).json_schema()
    assert {"vscodeCmd", "command", "subagentRoot", "dryRun"} <= set(schema["properties"])
