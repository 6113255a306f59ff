"""Tool registry from TypeScript or JavaScript: a barrel file or a folder, without running code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from eval_gate.errors import GateError
from eval_gate.staleness.tool_registry import SCHEMA_KEYS, ToolDefinition, ToolRegistry, normalize_parameters
from eval_gate.staleness.typescript.literals import ObjectLiteral, UnknownValue, parse_object, unwrap_expression
from eval_gate.staleness.typescript.source_files import (
    Export,
    ExportedValue,
    ReExport,
    SourceError,
    SourceFiles,
    UndefinedExport,
)
from eval_gate.struct import FrozenStruct

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_NOTICES: Final = 50
_MAX_NOTICE: Final = 400
_NON_TOOL_NODES: Final = frozenset(
    {
        "arrow_function",
        "function_expression",
        "generator_function",
        "class",
        "array",
        "string",
        "template_string",
        "number",
        "true",
        "false",
        "null",
        "regex",
    }
)
"""Expressions that are certainly no tool definition. A call or a reference may be one."""


def load_barrel(file: Path, _shown_as: str, root: Path) -> ToolRegistry:
    """Load the tools that a barrel such as `tools.exports.ts` exports (tool-forge behaviour 1.9).

    An export that cannot be resolved is counted, with a notice. Raises GateError if the source cannot be read.
    """
    scan = _RegistryScan(SourceFiles(file, root))
    try:
        scan.scan_barrel(file.resolve())
    except SourceError as error:
        raise GateError("registry-unreadable", str(error), "name the file that exports the tools") from error
    return scan.build_registry(scan.files.format_location(file.resolve()))


def load_folder(folder: Path, root: Path) -> ToolRegistry | None:
    """Load all tools that the `*.tool.ts` (or .js, .mjs, …) files below a folder export; None without such a file."""
    scan = _RegistryScan(SourceFiles(folder, root))
    files = scan.files.find_tool_files(folder)
    for file in files:
        scan.scan_tool_file(file)
    return scan.build_registry(scan.files.format_location(folder.resolve())) if files else None


class _TracedDefinition(FrozenStruct):
    """Expression that an export resolves to, and its location."""

    file: Path
    line: int
    node: Node | None  # None if it is certainly not a tool
    members: ObjectLiteral | None = None  # None if it is not an object literal
    tool_name: str | UnknownValue | None = None  # None without a name, UNKNOWN if only running the code would tell

    @property
    def is_described(self) -> bool:
        """Whether this has, or may have, a description: an object with a name alone is often no tool."""
        return self.members is None or self.members.is_open or "description" in self.members.members

    @classmethod
    def from_export(cls, file: Path, value: ExportedValue) -> _TracedDefinition:
        node = None if value.node is None else unwrap_expression(value.node)
        if node is None or node.type in _NON_TOOL_NODES:
            return cls(file, value.line, None)
        members = parse_object(node)
        if members is None:
            return cls(file, value.line, node, None, UnknownValue.VALUE)
        name = members.get_value("name")
        if name is None or (isinstance(name, str) and name):
            return cls(file, value.line, node, members, name)
        return cls(file, value.line, node, members, UnknownValue.VALUE)


class _RegistryScan:
    """Scan of a registry's modules that collects tools and unreadable parts."""

    def __init__(self, files: SourceFiles) -> None:
        self.files = files
        self._tools: dict[str, ToolDefinition] = {}
        self._unresolved: dict[str, None] = {}
        self._notices: list[str] = []
        self._seen: set[tuple[Path, int]] = set()
        self._hits = 0

    def build_registry(self, source: str) -> ToolRegistry:
        """Build the registry, with a notice for each definition that could not be read; too many are only counted."""
        notices = self._notices[:MAX_NOTICES]
        if len(self._notices) > MAX_NOTICES:
            notices.append(f"{source}: {len(self._notices) - MAX_NOTICES} more notices about tool definitions")
        return ToolRegistry(
            source=source,
            tools=tuple(self._tools.values()),
            unresolved_tools=tuple(self._unresolved),
            notices=tuple(notices),
        )

    def scan_barrel(self, file: Path) -> None:
        """Read each export of the barrel as a tool unless it is certainly something else. Raises SourceError."""
        module = self.files.parse_file(file)
        if module.error_line is not None:
            place = self.files.format_location(file, module.error_line)
            for name in module.exports or ["its tools"]:
                self._add_unreadable(name, place, "syntax error")
            return
        for name, export in module.exports.items():
            self._add_export(name, file, export, listed=True)
        self._scan_star_exports(module.star_exports, file)

    def scan_tool_file(self, file: Path) -> None:
        """Read each exported tool object; a file without one counts as a tool that could not be read."""
        earlier_hits = self._hits
        try:
            module = self.files.load_module(file)
            file = file.resolve()
            for name, export in module.exports.items():
                self._add_export(name, file, export, listed=False)
            self._scan_star_exports(module.star_exports, file)
        except SourceError as error:
            self._count_unreadable(self.files.format_location(file.absolute()), str(error))
        if self._hits == earlier_hits:
            place = self.files.format_location(file)
            self._count_unreadable(place, f"{place} exports no tool definition")

    def _scan_star_exports(self, stars: Sequence[ReExport], importer: Path) -> None:
        """`export * from`: the tool objects of those modules; default exports are not among them."""
        seen_files = {importer}
        pending = [(star, importer) for star in reversed(stars)]
        while pending:
            star, importer = pending.pop()
            try:
                file = self.files.resolve_import(star.module, importer)
                module = self.files.load_module(file)
            except SourceError as error:
                self._add_unreadable(
                    f"* from {star.module[:80]}", self.files.format_location(importer, star.line), str(error)
                )
                continue
            if file in seen_files:
                continue
            seen_files.add(file)
            for name, export in module.exports.items():
                if name != "default":
                    self._add_export(name, file, export, listed=False)
            pending += [(further, file) for further in reversed(module.star_exports)]

    def _add_export(self, name: str, file: Path, export: Export, *, listed: bool) -> None:
        """Add one export. `listed`: the barrel names it; otherwise only what looks like a tool is one."""
        place = self.files.format_location(file, export.line)
        looks_like_tool = listed or name == "default" or name.endswith("Tool")
        try:
            trace = self._trace_export(file, export)
        except SourceError as error:
            if looks_like_tool:
                self._add_unreadable(name, place, str(error))
            return
        if trace.node is None or trace.tool_name is None:
            if listed:
                self._notices.append(f"{place}: {name} is not a tool definition and is not counted")
            return
        if not listed and not trace.is_described:
            return
        key = (trace.file, trace.node.start_byte)
        if key in self._seen:
            self._hits += 1
            return
        place = self.files.format_location(trace.file, trace.line)
        if trace.members is not None and isinstance(trace.tool_name, str):
            self._seen.add(key)
            self._add_tool(trace.tool_name, trace.members, place)
        elif looks_like_tool:
            self._seen.add(key)
            why = "it is not an object literal" if trace.members is None else "its name is not a plain string"
            self._add_unreadable(name, place, why)

    def _trace_export(self, file: Path, export: Export) -> _TracedDefinition:
        """Follow an export to the module that defines it. Raises SourceError."""
        visited: set[tuple[Path, str]] = set()
        while not isinstance(export, ExportedValue):
            if isinstance(export, UndefinedExport):
                raise SourceError(f"it is not defined in {self.files.format_location(file)}")
            if export.name is None:
                raise SourceError("it is a whole module")
            file, export = self._find_export(self.files.resolve_import(export.module, file), export.name, visited)
        return _TracedDefinition.from_export(file, export)

    def _find_export(self, target: Path, name: str, visited: set[tuple[Path, str]]) -> tuple[Path, Export]:
        """Find the source of a module's export, also through `export * from`. Raises SourceError."""
        failure: SourceError | None = None
        pending = [target]
        while pending:
            file = pending.pop()
            if (file, name) in visited:
                continue
            visited.add((file, name))
            try:
                module = self.files.load_module(file)
                if name in module.exports:
                    return file, module.exports[name]
                if name != "default":
                    pending += [self.files.resolve_import(star.module, file) for star in reversed(module.star_exports)]
            except SourceError as error:
                failure = failure or error
        raise failure or SourceError(f"{self.files.format_location(target)} does not export {name}")

    def _add_tool(self, name: str, members: ObjectLiteral, place: str) -> None:
        self._hits += 1
        if name in self._tools:
            self._add_unreadable(name, place, "an earlier tool has the same name")
            return
        schema = next((members.get_value(key) for key in SCHEMA_KEYS if key in members.members), None)
        self._tools[name] = ToolDefinition(
            name=name,
            description=self._read_text("description", name, members, place),
            version=self._read_text("version", name, members, place),
            status=self._read_text("status", name, members, place),
            parameters=None if isinstance(schema, UnknownValue) else normalize_parameters(schema),
        )

    def _read_text(self, key: str, name: str, members: ObjectLiteral, place: str) -> str | None:
        value = members.get_value(key)
        if value is None or isinstance(value, str):
            return value
        self._notices.append(f"{place}: the {key} of {name} is not a plain string and is not checked")
        return None

    def _add_unreadable(self, name: str, place: str, why: str) -> None:
        """Count an export that cannot be read. Two of the same name are two."""
        label = name if name not in self._unresolved else f"{name} ({place})"
        self._count_unreadable(label, f"{place}: {name} cannot be read: {why}")

    def _count_unreadable(self, label: str, notice: str) -> None:
        self._hits += 1
        self._unresolved[label] = None
        self._notices.append(notice[:_MAX_NOTICE])
