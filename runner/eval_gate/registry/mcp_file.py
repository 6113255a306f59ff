"""MCP servers as people describe them for editors and agents: `.mcp.json` and the like, read and checked.

One server is `{command, args, env, cwd}` or `{url}`; several stand by name below `mcpServers` or `servers`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from eval_gate.errors import GateError, Problem, did_you_mean
from eval_gate.files.reading import read_up_to
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import MCP_FILE_BYTES, MCP_SERVERS
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.sources.json import JsonPositions, parse_json
from eval_gate.text.sources.shape import field_path, kind_of

_GROUPS: Final = ("mcpServers", "servers")
_READ: Final = frozenset({"command", "args", "env", "cwd", "url", "type", "disabled"})
_SAYS_NOTHING: Final = frozenset({"alwaysAllow", "autoApprove", "description", "name", "timeout", "gallery", "version"})
"""What others' files say that changes nothing about the list of tools."""
_LOOKS_LIKE_ONE: Final = re.compile(rb'"(?:mcpServers|servers|command)"\s*:')
_VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_WORKSPACE: Final = "workspaceFolder"

_Path = tuple[str | int, ...]


class ServerEntry(FrozenStruct):
    """One server, as it is written: a program that is started (`command`), or an address (`url`)."""

    name: str
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    cwd: str = "."
    url: str | None = None
    file: str = ""
    line: int | None = None

    def filled(self, given: Mapping[str, str], root: Path) -> ServerEntry:
        """The same with `${NAME}` and `${NAME:-else}` replaced by variables that programs are given.

        Raises GateError for one that is not given.
        """
        missing: dict[str, None] = {}

        def value(match: re.Match[str]) -> str:
            name, otherwise = match[1], match[2]
            if name == _WORKSPACE:
                return str(root)
            found = given.get(name) or otherwise
            if found is None:
                missing[name] = None
            return found or ""

        def fill(text: str) -> str:
            return _VARIABLE.sub(value, text)

        made = replace(
            self,
            command=tuple(map(fill, self.command)),
            env=tuple((name, fill(text)) for name, text in self.env),
            cwd=fill(self.cwd),
            url=None if self.url is None else fill(self.url),
        )
        if missing:
            raise invalid(
                self.file,
                [Problem(f"programs are not given the variable {name}", self.file, self.line) for name in missing],
                "set it, and name it in passEnv: programs get no other variables",
            )
        return made


class ServerFile(FrozenStruct):
    """The servers of a file that are not switched off, and what of it is not read."""

    shown: str
    servers: tuple[ServerEntry, ...]
    notices: tuple[str, ...] = ()

    def only(self, name: str | None) -> tuple[ServerEntry, ...]:
        """The server of this name; all of them for None. Raises GateError where there is none."""
        found = tuple(one for one in self.servers if name in {None, one.name})
        if found:
            return found
        names = [one.name for one in self.servers]
        said = "it has no server" if name is None else f'it has no server "{name[:80]}"{did_you_mean(name, names)}'
        raise invalid(self.shown, [Problem(said, file=self.shown)], f"one of {', '.join(names) or 'none'} after the #")


def read_servers(file: Path, shown: str) -> ServerFile | None:
    """The servers of a JSON file; None for a file of something else. Raises GateError with all that is wrong."""
    try:
        data = read_up_to(file, MCP_FILE_BYTES)
    except OSError:
        return None
    if len(data) > MCP_FILE_BYTES or _LOOKS_LIKE_ONE.search(data) is None:
        return None
    document, positions = parse_json(data, shown, halves=True)
    group = next((key for key in _GROUPS if isinstance(document, dict) and isinstance(document.get(key), dict)), None)
    if not isinstance(document, dict):
        return None
    reader = _Reader(shown, positions)
    if group is not None:
        entries = document[group]
        assert isinstance(entries, dict)
        if len(entries) > MCP_SERVERS:
            reader.problem((group,), f"more than {MCP_SERVERS} servers")
        servers = [reader.server(name, entry, (group, name)) for name, entry in list(entries.items())[:MCP_SERVERS]]
    elif isinstance(document.get("command"), str):
        servers = [reader.server(file.name, document, ())]
    else:
        return None
    if reader.problems:
        raise invalid(shown, reader.problems)
    return ServerFile(shown, tuple(one for one in servers if one is not None), tuple(reader.notices))


def invalid(shown: str, problems: list[Problem], hint: str | None = None) -> GateError:
    """What is wrong with a file of servers."""
    return GateError(
        "invalid-registry",
        f"{shown} describes no MCP server that can be asked",
        hint or 'a server is {"command": "npx", "args": ["-y", "some-server"], "env": {}} or {"url": "https://…/mcp"}',
        problems=problems,
    )


class _Reader:
    """Collects what is wrong with the servers of one file."""

    def __init__(self, shown: str, positions: JsonPositions) -> None:
        self._shown = shown
        self._positions = positions
        self.problems: list[Problem] = []
        self.notices: list[str] = []

    def problem(self, path: _Path, said: str) -> None:
        """Note what is wrong at this path."""
        line = self._positions.line(path)
        self.problems.append(Problem(said, file=self._shown, line=line, field=field_path(path)))

    def server(self, name: str, entry: JsonValue, path: _Path) -> ServerEntry | None:
        """One server; None for one that is switched off or wrong."""
        if not isinstance(entry, dict):
            self.problem(path, f"expected a mapping with command or url, got {kind_of(entry)}")
            return None
        if entry.get("disabled") is True:
            return None
        for key in entry.keys() - _READ - _SAYS_NOTHING:
            self.notices.append(f"{self._shown}: {field_path((*path, key))} is not read")
        texts = {key: self._text(entry, key, path) for key in ("command", "url", "cwd")}
        command, url = texts["command"], texts["url"]
        if (command is None) == (url is None) and not self.problems:
            self.problem(path, "expected either command or url")
        args = entry.get("args", [])
        if not isinstance(args, list) or not all(isinstance(one, str) for one in args):
            self.problem((*path, "args"), "expected a list of texts")
            args = []
        return ServerEntry(
            name,
            () if command is None else (command, *(str(one) for one in args)),
            self._env(entry, path),
            texts["cwd"] or ".",
            url,
            self._shown,
            self._positions.line(path),
        )

    def _text(self, entry: Mapping[str, JsonValue], key: str, path: _Path) -> str | None:
        value = entry.get(key)
        if value is None or (isinstance(value, str) and value.strip()):
            return value if isinstance(value, str) else None
        self.problem((*path, key), f"expected a text, got {kind_of(value)}")
        return None

    def _env(self, entry: Mapping[str, JsonValue], path: _Path) -> tuple[tuple[str, str], ...]:
        env = entry.get("env", {})
        if not isinstance(env, dict) or not all(isinstance(value, str) for value in env.values()):
            self.problem((*path, "env"), "expected variables and their texts")
            return ()
        return tuple((name, str(value)) for name, value in env.items())
