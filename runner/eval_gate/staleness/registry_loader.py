"""Load a tool registry from a file, a folder, a URL or MCP servers."""

from __future__ import annotations

import os
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Final, NamedTuple

from eval_gate.errors import GateError
from eval_gate.staleness.tool_registry import ToolRegistry
from eval_gate.staleness.typescript import SUFFIXES
from eval_gate.text.quoting import describe_name

if TYPE_CHECKING:
    from eval_gate.staleness.mcp_server_file import McpServerFile
    from eval_gate.staleness.mcp_servers import ProgramEnvironment

_BARREL_NAMES: Final = (
    "tools.exports.ts",
    "tools.exports.js",
    "tools.exports.mjs",
    "index.ts",
    "index.js",
    "index.mjs",
)


class FileKind(NamedTuple):
    """A kind of file that can hold tool definitions, with the function that loads it."""

    suffixes: tuple[str, ...]
    description: str
    """Its name in messages."""
    loader: str
    """What reads it, as `module:function` below this room: it takes the path, the path as written, and the root."""


FILE_KINDS: tuple[FileKind, ...] = (
    FileKind((".json",), "a .json file", "json_registry:load_json"),
    FileKind(SUFFIXES, "a .ts or .js file that exports the tools", "typescript.registry_reader:load_barrel"),
)
_SOURCES_HINT: Final = (
    f"{', '.join(one.description for one in FILE_KINDS)}, a folder of *.tool.ts or *.tool.js files, "
    "the http(s) URL of an MCP server, or a file such as .mcp.json that describes MCP servers"
)


def find_server_file(location: str, root: Path) -> tuple[McpServerFile, str | None] | None:
    """Find the MCP server file that a location names, and the name of the server in it.

    `.mcp.json#weather` is the server `weather`; without a name all servers are meant. Returns None for any other
    source. Raises GateError for problems in the file.
    """
    shown_as, name = location, None
    if not (root / location).exists():
        shown_as, _, name = location.rpartition("#")
    path = root / shown_as
    if not shown_as or path.suffix.lower() != ".json" or not path.is_file():
        return None
    _refuse_outside_link(path, shown_as, root)
    from eval_gate.staleness.mcp_server_file import read_server_file

    server_file = read_server_file(path, shown_as)
    return None if server_file is None else (server_file, name)


async def load_registry(location: str, root: Path, program_env: ProgramEnvironment | None = None) -> ToolRegistry:
    """Load the registry at `location`: a path relative to `root` (the working directory), or a URL.

    `program_env` is the environment for a program that has to be started to load the registry.

    Raises GateError if the path does not exist or leads out of `root` by a link, the kind of file is unknown, or
    the content is rejected (each source defines its own code).
    """
    scheme, separator, _ = location.partition("://")
    if separator:
        if scheme.lower() not in {"http", "https"}:
            raise GateError(
                "unknown-registry-format", f"a tool registry cannot be read from {scheme}://", f"use {_SOURCES_HINT}"
            )
        from eval_gate.staleness.mcp_servers import load_mcp_server

        return await load_mcp_server(location, mask=program_env.mask if program_env else None)
    servers = find_server_file(location, root)
    if servers is not None:
        from eval_gate.staleness.mcp_servers import ProgramEnvironment, load_server_file

        return await load_server_file(*servers, root, program_env or ProgramEnvironment())
    path = root / location
    if not path.exists():
        raise GateError(
            "registry-not-found",
            f"the tool registry {describe_name(str(location))} does not exist",
            f"paths are relative to {root}; use {_SOURCES_HINT}",
        )
    _refuse_outside_link(path, location, root)
    if path.is_dir():
        return _load_folder(path, location, root)
    kind = next((one for one in FILE_KINDS if path.suffix.lower() in one.suffixes), None)
    if kind is None:
        what = f"{location} is not a tool registry: unknown kind of file {path.suffix!r}"
        raise GateError("unknown-registry-format", what, f"use {_SOURCES_HINT}")
    registry: ToolRegistry = resolve_name(f"{__package__}.{kind.loader}")(path, location, root)
    return registry


def _load_folder(folder: Path, location: str, root: Path) -> ToolRegistry:
    from eval_gate.staleness.typescript.registry_reader import load_folder

    registry = load_folder(folder, root)
    if registry is not None:
        return registry
    index = next((name for name in _BARREL_NAMES if (folder / name).is_file()), None)
    barrel = f"the file that exports the tools: {(Path(location) / index).as_posix()}" if index else _SOURCES_HINT
    raise GateError("registry-empty", f"the folder {location} contains no *.tool.ts or *.tool.js file", f"use {barrel}")


def _refuse_outside_link(path: Path, location: str, root: Path) -> None:
    plain_path = Path(os.path.normpath(path.absolute()))
    inside = plain_path.is_relative_to(os.path.normpath(root.absolute()))
    if inside and not path.resolve().is_relative_to(root.resolve()):
        raise GateError(
            "registry-outside-working-directory",
            f"the tool registry {location} is a link to a file outside of {root}",
            "use the real path, or put the definitions into the repository",
        )
