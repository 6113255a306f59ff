"""Files that say how MCP servers are started: which they are, and what is wrong with them."""

import json
from pathlib import Path

import pytest

from eval_gate.errors import GateError
from eval_gate.staleness.mcp_server_file import McpServerEntry
from eval_gate.staleness.registry_loader import find_server_file


def write(root: Path, document: object) -> str:
    (root / "mcp.json").write_text(json.dumps(document, indent=1))
    return "mcp.json"


@pytest.mark.parametrize("group", ["mcpServers", "servers"])
def test_servers_at__file_of_an_editor__has_its_servers(tmp_path, group) -> None:
    entries = {
        "a": {"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"A": "1"}, "autoApprove": []},
        "b": {"url": "http://x/mcp"},
        "c": {"command": "off", "disabled": True},
    }
    found = find_server_file(write(tmp_path, {group: entries, "inputs": []}), tmp_path)
    assert found is not None
    assert [(one.name, one.command, one.env, one.url, one.line) for one in found[0].servers] == [
        ("a", ("npx", "-y", "x"), (("A", "1"),), None, 3),
        ("b", (), (), "http://x/mcp", 15),
    ]
    assert found[0].notices == ()


@pytest.mark.parametrize(
    "document", [[{"name": "command", "description": '"command": x'}], {"tools": []}, {"servers": ["a"]}, "servers"]
)
def test_servers_at__other_definitions__are_none(tmp_path, document) -> None:
    assert find_server_file(write(tmp_path, document), tmp_path) is None


def test_servers_at__addresses_folders_and_other_files__are_none(tmp_path) -> None:
    (tmp_path / "tools").mkdir()
    for location in ("http://x/mcp", "tools", "none.json", "a.ts", "none.json#a", "#a"):
        assert find_server_file(location, tmp_path) is None


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"command": 1}, "mcp.json:4: mcpServers.a.command: expected a text, got"),
        ({}, "mcp.json:3: mcpServers.a: expected either command or url"),
        ({"command": "x", "url": "http://x"}, "expected either command or url"),
        ({"command": "x", "args": "y"}, "mcpServers.a.args: expected a list of text"),
        ({"command": "x", "args": [1]}, "mcpServers.a.args: expected a list of text"),
        ({"command": "x", "env": {"A": 1}}, "mcpServers.a.env: expected a mapping of variables to text"),
        ("x", "mcpServers.a: expected a mapping with command or url"),
    ],
)
def test_servers_at__mistake__is_named_with_its_place(tmp_path, entry, said) -> None:
    with pytest.raises(GateError) as caught:
        find_server_file(write(tmp_path, {"mcpServers": {"a": entry}}), tmp_path)
    assert caught.value.code == "invalid-registry"
    assert said in str(caught.value.problems[0])


def test_servers_at__key_that_matters_and_is_not_read__is_a_notice(tmp_path) -> None:
    found = find_server_file(write(tmp_path, {"mcpServers": {"a": {"url": "http://x", "headers": {}}}}), tmp_path)
    assert found is not None
    assert found[0].notices == ("mcp.json: mcpServers.a.headers is ignored",)


def test_servers_at__too_many__is_refused(tmp_path) -> None:
    with pytest.raises(GateError) as caught:
        find_server_file(write(tmp_path, {"mcpServers": {f"s{n}": {"command": "x"} for n in range(21)}}), tmp_path)
    assert "more than 20 servers" in str(caught.value.problems[0])


def test_filled__folder_and_variables__are_put_in(tmp_path) -> None:
    entry = McpServerEntry("a", ("${env:TOOL}", "${workspaceFolder}/x", "${NONE:-}", "$HOME"), (("A", "${TOOL}"),))
    made = entry.fill_variables({"TOOL": "t"}, tmp_path)
    assert made.command == ("t", f"{tmp_path}/x", "", "$HOME")
    assert made.env == (("A", "t"),)
