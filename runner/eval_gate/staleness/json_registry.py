"""Tool registry from a JSON file: a list, MCP tools/list, OpenAI or Anthropic tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from eval_gate.errors import GateError, Problem
from eval_gate.files.reading import read_limited
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import FINDINGS, REGISTRY_BYTES, REGISTRY_VALUES
from eval_gate.staleness.tool_registry import SCHEMA_KEYS, ToolDefinition, ToolRegistry, normalize_parameters
from eval_gate.struct import Struct, field
from eval_gate.text.sources.json import JsonPositions, parse_json
from eval_gate.text.sources.validation_errors import describe_value, format_field_path

_Path = tuple[str | int, ...]
_EXPECTED_SHAPES: Final = (
    "a list of tools, {tools: [...]}, or the result of an MCP tools/list; a tool is {name, description, version, "
    "parameters} or {type: function, function: {...}}"
)


def load_json(file: Path, shown_as: str, _root: Path) -> ToolRegistry:
    """Load the tools of a JSON file.

    `shown_as` is the path as the user wrote it. Raises GateError with every problem of the file: invalid JSON, an
    unexpected shape, a tool without a name, or a repeated name.
    """
    document, positions = parse_json(_read_file(file, shown_as), shown_as, halves=True, values=REGISTRY_VALUES)
    reader = _JsonToolReader(shown_as, positions)
    entries, path = _find_entries(document)
    if isinstance(entries, list):
        for index, entry in enumerate(entries):
            reader.add_tool(entry, (*path, index))
    else:
        reader.add_problem(path, f"expected {_EXPECTED_SHAPES}, got {describe_value(entries)}")
    if reader.problems:
        raise _build_invalid_error(shown_as, reader.problems)
    return ToolRegistry(
        source=shown_as,
        tools=tuple(reader.tools.values()),
        unresolved_tools=tuple(reader.builtin_tools),
        notices=tuple(
            f"{shown_as}: {name} has no definition in this file and is only counted" for name in reader.builtin_tools
        ),
    )


def _build_invalid_error(shown_as: str, problems: Sequence[Problem]) -> GateError:
    return GateError(
        "invalid-registry",
        f"{shown_as} is not a valid tool registry",
        "correct the file, or leave out --tool-registry to skip the staleness check",
        problems=problems,
    )


def _read_file(file: Path, shown_as: str) -> bytes:
    try:
        data = read_limited(file, REGISTRY_BYTES, is_generated=True)
    except OSError as error:
        raise GateError("registry-unreadable", f"{shown_as} cannot be read: {error.strerror}") from error
    if len(data) > REGISTRY_BYTES:
        message = f"{shown_as} is larger than {REGISTRY_BYTES:,} bytes"
        raise GateError("registry-unreadable", message, "keep only the definitions of the tools in it")
    return data


def _find_entries(document: JsonValue) -> tuple[JsonValue, _Path]:
    """Return the value that should be the list of tools, and its path in the document."""
    path: _Path = ()
    for key in ("result", "tools"):
        if isinstance(document, dict) and key in document:
            document, path = document[key], (*path, key)
    return document, path


def find_meta_version(meta: JsonValue) -> str | None:
    """Return the version in the `_meta` of a tool: `version`, or one key such as `example.com/version`."""
    if not isinstance(meta, dict):
        return None
    versions = [value for key, value in meta.items() if key.rpartition("/")[2] == "version" and isinstance(value, str)]
    return versions[0] if len(versions) == 1 else None


class _JsonToolReader(Struct):
    """Collector of the tools and problems of one file."""

    file: str
    positions: JsonPositions
    tools: dict[str, ToolDefinition] = field(default_factory=dict)
    builtin_tools: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def add_tool(self, entry: JsonValue, path: _Path) -> None:
        """Take one entry of the list as a tool, or note what is wrong with it."""
        if not isinstance(entry, dict):
            self.add_problem(path, f"expected a tool, got {describe_value(entry)}")
            return
        if entry.get("type") == "function" and "function" in entry:
            self.add_tool(entry["function"], (*path, "function"))
            return
        if "name" not in entry and isinstance(entry.get("type"), str) and entry["type"] != "function":
            self.builtin_tools.append(
                f"the built-in tool {str(entry['type'])[:80]} (tool {len(self.builtin_tools) + 1})"
            )
            return
        problem_count = len(self.problems)
        name = self._read_text(entry, "name", path)
        definition = ToolDefinition(
            name=name or "",
            description=self._read_text(entry, "description", path),
            version=self._read_text(entry, "version", path) or find_meta_version(entry.get("_meta")),
            status=self._read_text(entry, "status", path),
            parameters=self._read_parameters(entry, path),
        )
        if entry.get("name") is None or name == "":
            self.add_problem((*path, "name"), "is missing" if name is None else "must not be empty")
        elif name in self.tools:
            self.add_problem((*path, "name"), f'"{definition.name[:80]}" is also the name of an earlier tool')
        elif len(self.problems) == problem_count:
            self.tools[definition.name] = definition

    def add_problem(self, path: _Path, message: str) -> None:
        if len(self.problems) >= FINDINGS:
            raise _build_invalid_error(
                self.file, [*self.problems, Problem("reading stopped here: there may be more problems", file=self.file)]
            )
        where = format_field_path(path) or None
        self.problems.append(Problem(message, file=self.file, line=self.positions.find_line(path), field=where))

    def _read_text(self, entry: dict[str, JsonValue], key: str, path: _Path) -> str | None:
        value = entry.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            self.add_problem((*path, key), f"expected text, got {describe_value(value)}")
            return None
        if any("\ud800" <= character <= "\udfff" for character in value):
            self.add_problem((*path, key), "contains half of a surrogate pair, which is not a character")
            return None
        return value

    def _read_parameters(self, entry: dict[str, JsonValue], path: _Path) -> dict[str, JsonValue] | None:
        key = next((key for key in SCHEMA_KEYS if entry.get(key) is not None), None)
        if key is None:
            return None
        if not isinstance(entry[key], dict):
            self.add_problem((*path, key), f"expected a mapping, got {describe_value(entry[key])}")
        return normalize_parameters(entry[key])
