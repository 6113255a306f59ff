"""Files that describe MCP servers, such as `.mcp.json`.

One server is `{command, args, env, cwd}` or `{url}`; several are listed by name below `mcpServers` or `servers`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from eval_gate.errors import GateError, Problem, format_suggestion
from eval_gate.files.reading import read_limited
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import MCP_FILE_BYTES, MCP_SERVERS
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.sources.json import JsonPositions, parse_json
from eval_gate.text.sources.validation_errors import describe_value, format_field_path

_SERVER_KEYS: Final = ("mcpServers", "servers")
_READ_KEYS: Final = frozenset({"command", "args", "env", "cwd", "url", "type", "disabled"})
_IGNORED_KEYS: Final = frozenset({"alwaysAllow", "autoApprove", "description", "name", "timeout", "gallery", "version"})
"""What others' files say that changes nothing about the list of tools."""
_SERVER_FILE_HINT: Final = re.compile(rb'"(?:mcpServers|servers|command)"\s*:')
_VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_WORKSPACE_VARIABLE: Final = "workspaceFolder"

_Path = tuple[str | int, ...]


class McpServerEntry(FrozenStruct):
    """An MCP server as written in a file: a `command` to start, or a `url`."""

    name: str
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    cwd: str = "."
    url: str | None = None
    file: str = ""
    line: int | None = None

    def fill_variables(self, variables: Mapping[str, str], root: Path) -> McpServerEntry:
        """Replace `${NAME}` and `${NAME:-else}` from `variables`. Raises GateError for no value."""
        unset: dict[str, None] = {}

        def value(match: re.Match[str]) -> str:
            name, otherwise = match[1], match[2]
            if name == _WORKSPACE_VARIABLE:
                return str(root)
            replacement = variables.get(name) or otherwise
            if replacement is None:
                unset[name] = None
            return replacement or ""

        def fill(text: str) -> str:
            return _VARIABLE.sub(value, text)

        entry = replace(
            self,
            command=tuple(map(fill, self.command)),
            env=tuple((name, fill(text)) for name, text in self.env),
            cwd=fill(self.cwd),
            url=None if self.url is None else fill(self.url),
        )
        if unset:
            raise build_invalid_error(
                self.file,
                [Problem(f"the variable {name} is not passed to programs", self.file, self.line) for name in unset],
                "set it and add it to passEnv: programs get no other variables",
            )
        return entry


class McpServerFile(FrozenStruct):
    """The enabled servers of a file, with notices about ignored keys."""

    display_path: str
    servers: tuple[McpServerEntry, ...]
    notices: tuple[str, ...] = ()

    def select_servers(self, name: str | None) -> tuple[McpServerEntry, ...]:
        """Return the servers with this name, or all servers if `name` is None. Raises GateError if there is none."""
        servers = tuple(one for one in self.servers if name in {None, one.name})
        if servers:
            return servers
        names = [one.name for one in self.servers]
        text = "it has no server" if name is None else f'it has no server "{name[:80]}"{format_suggestion(name, names)}'
        raise build_invalid_error(
            self.display_path,
            [Problem(text, file=self.display_path)],
            f"write one of {', '.join(names) or 'none'} after the #",
        )


def read_server_file(file: Path, shown_as: str) -> McpServerFile | None:
    """Read the MCP servers of a JSON file; None if it is something else. Raises GateError with all problems."""
    try:
        data = read_limited(file, MCP_FILE_BYTES)
    except OSError:
        return None
    if len(data) > MCP_FILE_BYTES or _SERVER_FILE_HINT.search(data) is None:
        return None
    document, positions = parse_json(data, shown_as, halves=True)
    group = next(
        (key for key in _SERVER_KEYS if isinstance(document, dict) and isinstance(document.get(key), dict)), None
    )
    if not isinstance(document, dict):
        return None
    reader = _ServerReader(shown_as, positions)
    if group is not None:
        entries = document[group]
        assert isinstance(entries, dict)
        if len(entries) > MCP_SERVERS:
            reader.add_problem((group,), f"more than {MCP_SERVERS} servers")
        servers = [
            reader.read_server(name, entry, (group, name)) for name, entry in list(entries.items())[:MCP_SERVERS]
        ]
    elif isinstance(document.get("command"), str):
        servers = [reader.read_server(file.name, document, ())]
    else:
        return None
    if reader.problems:
        raise build_invalid_error(shown_as, reader.problems)
    return McpServerFile(shown_as, tuple(one for one in servers if one is not None), tuple(reader.notices))


def build_invalid_error(shown_as: str, problems: list[Problem], hint: str | None = None) -> GateError:
    """Build the error for a file of MCP servers that is not valid."""
    return GateError(
        "invalid-registry",
        f"{shown_as} describes no usable MCP server",
        hint or 'a server is {"command": "npx", "args": ["-y", "some-server"], "env": {}} or {"url": "https://…/mcp"}',
        problems=problems,
    )


class _ServerReader:
    """Collector of problems with the servers of one file."""

    def __init__(self, shown_as: str, positions: JsonPositions) -> None:
        self._shown_as = shown_as
        self._positions = positions
        self.problems: list[Problem] = []
        self.notices: list[str] = []

    def add_problem(self, path: _Path, message: str) -> None:
        line = self._positions.find_line(path)
        self.problems.append(Problem(message, file=self._shown_as, line=line, field=format_field_path(path)))

    def read_server(self, name: str, entry: JsonValue, path: _Path) -> McpServerEntry | None:
        """One server; None for one that is switched off or wrong."""
        if not isinstance(entry, dict):
            self.add_problem(path, f"expected a mapping with command or url, got {describe_value(entry)}")
            return None
        if entry.get("disabled") is True:
            return None
        for key in entry.keys() - _READ_KEYS - _IGNORED_KEYS:
            self.notices.append(f"{self._shown_as}: {format_field_path((*path, key))} is ignored")
        texts = {key: self._read_text(entry, key, path) for key in ("command", "url", "cwd")}
        command, url = texts["command"], texts["url"]
        if (command is None) == (url is None) and not self.problems:
            self.add_problem(path, "expected either command or url")
        args = entry.get("args", [])
        if not isinstance(args, list) or not all(isinstance(one, str) for one in args):
            self.add_problem((*path, "args"), "expected a list of text")
            args = []
        return McpServerEntry(
            name,
            () if command is None else (command, *(str(one) for one in args)),
            self._read_env(entry, path),
            texts["cwd"] or ".",
            url,
            self._shown_as,
            self._positions.find_line(path),
        )

    def _read_text(self, entry: Mapping[str, JsonValue], key: str, path: _Path) -> str | None:
        value = entry.get(key)
        if value is None or (isinstance(value, str) and value.strip()):
            return value if isinstance(value, str) else None
        self.add_problem((*path, key), f"expected a text, got {describe_value(value)}")
        return None

    def _read_env(self, entry: Mapping[str, JsonValue], path: _Path) -> tuple[tuple[str, str], ...]:
        env = entry.get("env", {})
        if not isinstance(env, dict) or not all(isinstance(value, str) for value in env.values()):
            self.add_problem((*path, "env"), "expected a mapping of variables to text")
            return ()
        return tuple((name, str(value)) for name, value in env.items())
