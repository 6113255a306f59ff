"""Tool definitions in a JSON file: a plain list, an MCP tools/list result, or OpenAI and Anthropic tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from eval_gate.errors import GateError, Problem
from eval_gate.files.reading import read_up_to
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import FINDINGS, REGISTRY_BYTES, REGISTRY_VALUES
from eval_gate.registry.base import SCHEMA_KEYS, Registry, ToolDefinition, parameters_schema
from eval_gate.struct import Struct, field
from eval_gate.text.sources.json import JsonPositions, parse_json
from eval_gate.text.sources.shape import field_path, kind_of

_Path = tuple[str | int, ...]
_SHAPES: Final = (
    "a list of tools, {tools: [...]}, or the result of an MCP tools/list; a tool is {name, description, version, "
    "parameters} or {type: function, function: {...}}"
)


def load_json(file: Path, shown: str, _root: Path) -> Registry:
    """The tools of a JSON file; `shown` is the file as the user wrote it.

    Raises GateError with every problem of the file: not JSON, another shape, a tool without a name, a name twice.
    """
    document, positions = parse_json(_read(file, shown), shown, halves=True, values=REGISTRY_VALUES)
    reader = _Reader(shown, positions)
    entries, path = _entries(document)
    if isinstance(entries, list):
        for index, entry in enumerate(entries):
            reader.tool(entry, (*path, index))
    else:
        reader.problem(path, f"expected {_SHAPES}, got {kind_of(entries)}")
    if reader.problems:
        raise _invalid(shown, reader.problems)
    return Registry(
        source=shown,
        tools=tuple(reader.tools.values()),
        unresolved=tuple(reader.unnamed),
        notices=tuple(f"{shown}: {name} has no definition here and is only counted" for name in reader.unnamed),
    )


def _invalid(shown: str, problems: Sequence[Problem]) -> GateError:
    return GateError(
        "invalid-registry",
        f"{shown} is not a valid tool registry",
        "correct the file, or leave out --tool-registry: then staleness is not checked",
        problems=problems,
    )


def _read(file: Path, shown: str) -> bytes:
    try:
        data = read_up_to(file, REGISTRY_BYTES, made=True)
    except OSError as error:
        raise GateError("registry-unreadable", f"{shown} cannot be read: {error.strerror}") from error
    if len(data) > REGISTRY_BYTES:
        said = f"{shown} is larger than {REGISTRY_BYTES:,} bytes"
        raise GateError("registry-unreadable", said, "give the definitions of the tools, and nothing else")
    return data


def _entries(document: JsonValue) -> tuple[JsonValue, _Path]:
    """What should be the list of tools, and where it stands."""
    path: _Path = ()
    for key in ("result", "tools"):
        if isinstance(document, dict) and key in document:
            document, path = document[key], (*path, key)
    return document, path


def meta_version(meta: JsonValue) -> str | None:
    """The version in a tool's `_meta`, as `version` or with a prefix such as `example.com/version`."""
    if not isinstance(meta, dict):
        return None
    found = [value for key, value in meta.items() if key.rpartition("/")[2] == "version" and isinstance(value, str)]
    return found[0] if len(found) == 1 else None


class _Reader(Struct):
    """Collects tools and problems of one file."""

    file: str
    positions: JsonPositions
    tools: dict[str, ToolDefinition] = field(default_factory=dict)
    unnamed: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def tool(self, entry: JsonValue, path: _Path) -> None:
        """Take one entry of the list as a tool, or note what is wrong with it."""
        if not isinstance(entry, dict):
            self.problem(path, f"expected a tool, got {kind_of(entry)}")
            return
        if entry.get("type") == "function" and "function" in entry:
            self.tool(entry["function"], (*path, "function"))
            return
        if "name" not in entry and isinstance(entry.get("type"), str) and entry["type"] != "function":
            self.unnamed.append(f"the built-in tool {str(entry['type'])[:80]} (tool {len(self.unnamed) + 1})")
            return
        known = len(self.problems)
        name = self._text(entry, "name", path)
        definition = ToolDefinition(
            name=name or "",
            description=self._text(entry, "description", path),
            version=self._text(entry, "version", path) or meta_version(entry.get("_meta")),
            status=self._text(entry, "status", path),
            parameters=self._parameters(entry, path),
        )
        if entry.get("name") is None or name == "":
            self.problem((*path, "name"), "is missing" if name is None else "must not be empty")
        elif name in self.tools:
            self.problem((*path, "name"), f'"{definition.name[:80]}" is the name of an earlier tool too')
        elif len(self.problems) == known:
            self.tools[definition.name] = definition

    def problem(self, path: _Path, message: str) -> None:
        """Note what is wrong at a place."""
        if len(self.problems) >= FINDINGS:
            raise _invalid(
                self.file, [*self.problems, Problem("here reading stopped: there may be more", file=self.file)]
            )
        where = field_path(path) or None
        self.problems.append(Problem(message, file=self.file, line=self.positions.line(path), field=where))

    def _text(self, entry: dict[str, JsonValue], key: str, path: _Path) -> str | None:
        value = entry.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            self.problem((*path, key), f"expected text, got {kind_of(value)}")
            return None
        if any("\ud800" <= character <= "\udfff" for character in value):
            self.problem((*path, key), "holds half of a surrogate pair, which is no character")
            return None
        return value

    def _parameters(self, entry: dict[str, JsonValue], path: _Path) -> dict[str, JsonValue] | None:
        key = next((key for key in SCHEMA_KEYS if entry.get(key) is not None), None)
        if key is None:
            return None
        if not isinstance(entry[key], dict):
            self.problem((*path, key), f"expected a mapping, got {kind_of(entry[key])}")
        return parameters_schema(entry[key])
