"""Where tool definitions come from: a JSON file, TypeScript or JavaScript, or live MCP servers."""

from __future__ import annotations

import os
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Final, NamedTuple

from eval_gate.errors import GateError
from eval_gate.registry.base import Registry
from eval_gate.registry.typescript import SUFFIXES
from eval_gate.text.quoting import shown_name

if TYPE_CHECKING:
    from eval_gate.registry.mcp import ProgramSurroundings
    from eval_gate.registry.mcp_file import ServerFile

_BARRELS: Final = ("tools.exports.ts", "tools.exports.js", "tools.exports.mjs", "index.ts", "index.js", "index.mjs")


class FileKind(NamedTuple):
    """A kind of file that holds tool definitions."""

    suffixes: tuple[str, ...]
    words: str
    """What people are told it is."""
    load_at: str
    """What reads it, as `module:function` below this room: it takes the path, the path as written, and the root."""


FILES: tuple[FileKind, ...] = (
    FileKind((".json",), "a .json file", "json_file:load_json"),
    FileKind(SUFFIXES, "a .ts or .js file that exports the tools", "typescript.read:load_barrel"),
)
_SOURCES: Final = (
    f"{', '.join(one.words for one in FILES)}, a folder of *.tool.ts or *.tool.js files, "
    "the http(s) URL of an MCP server, or a file such as .mcp.json that says how MCP servers are started"
)


def servers_at(location: str, root: Path) -> tuple[ServerFile, str | None] | None:
    """The file of MCP servers that this location names, and which of them is meant; None for another source.

    `.mcp.json#weather` is the server `weather`. Raises GateError for what is wrong with the file.
    """
    shown, name = location, None
    if not (root / location).exists():
        shown, _, name = location.rpartition("#")
    path = root / shown
    if not shown or path.suffix.lower() != ".json" or not path.is_file():
        return None
    _refuse_link_out(path, shown, root)
    from eval_gate.registry.mcp_file import read_servers

    found = read_servers(path, shown)
    return None if found is None else (found, name)


async def load_registry(location: str, root: Path, given: ProgramSurroundings | None = None) -> Registry:
    """The registry at `location`: a path relative to `root` (the working directory), or a URL.

    `given` is what a program gets that has to be started for it.

    Raises GateError: the path does not exist or leads out of `root` by a link, the kind of file is not known, or the
    content is refused (each source says by which code).
    """
    scheme, separator, _ = location.partition("://")
    if separator:
        if scheme.lower() not in {"http", "https"}:
            raise GateError("unknown-registry", f"a tool registry cannot be read from {scheme}://", f"give {_SOURCES}")
        from eval_gate.registry.mcp import load_mcp

        return await load_mcp(location, mask=given.mask if given else None)
    servers = servers_at(location, root)
    if servers is not None:
        from eval_gate.registry.mcp import ProgramSurroundings, load_servers

        return await load_servers(*servers, root, given or ProgramSurroundings())
    return _load_path(location, root)


def _load_path(location: str, root: Path) -> Registry:
    path = root / location
    if not path.exists():
        raise GateError(
            "registry-not-found",
            f"the tool registry {shown_name(str(location))} does not exist",
            f"paths are relative to {root}; give {_SOURCES}",
        )
    _refuse_link_out(path, location, root)
    if path.is_dir():
        return _load_folder(path, location, root)
    kind = next((one for one in FILES if path.suffix.lower() in one.suffixes), None)
    if kind is None:
        what = f"{location} is no tool registry: unknown kind of file {path.suffix!r}"
        raise GateError("unknown-registry", what, f"give {_SOURCES}")
    found: Registry = resolve_name(f"{__package__}.{kind.load_at}")(path, location, root)
    return found


def _load_folder(folder: Path, location: str, root: Path) -> Registry:
    from eval_gate.registry.typescript.read import load_folder

    registry = load_folder(folder, root)
    if registry is not None:
        return registry
    found = next((name for name in _BARRELS if (folder / name).is_file()), None)
    barrel = f"the file that exports the tools: {(Path(location) / found).as_posix()}" if found else _SOURCES
    raise GateError("registry-empty", f"the folder {location} holds no *.tool.ts or *.tool.js file", f"give {barrel}")


def _refuse_link_out(path: Path, location: str, root: Path) -> None:
    """A location that is written as if it were inside of `root` must be there."""
    written = Path(os.path.normpath(path.absolute()))
    inside = written.is_relative_to(os.path.normpath(root.absolute()))
    if inside and not path.resolve().is_relative_to(root.resolve()):
        raise GateError(
            "registry-outside",
            f"the tool registry {location} is a link that leads out of {root}",
            "give the real path, or put the definitions into the repository",
        )
