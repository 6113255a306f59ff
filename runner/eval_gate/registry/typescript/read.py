"""Tool definitions written in TypeScript or JavaScript: a barrel file or a folder, read without running anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from eval_gate.errors import GateError
from eval_gate.registry.base import SCHEMA_KEYS, Registry, ToolDefinition, parameters_schema
from eval_gate.registry.typescript.files import SourceError, SourceFiles
from eval_gate.registry.typescript.literal import ObjectLiteral, UnknownValue, object_literal, unwrapped
from eval_gate.registry.typescript.module import Export, ExportedValue, ReExport, UndefinedExport
from eval_gate.struct import FrozenStruct

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_NOTICES: Final = 50
_MAX_NOTICE: Final = 400
_NO_TOOLS: Final = frozenset(
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


def load_barrel(file: Path, _shown: str, root: Path) -> Registry:
    """The tools a barrel such as `tools.exports.ts` exports (tool-forge behaviour 1.9).

    An export that cannot be resolved is counted, with a notice. Raises GateError when there is no text to read.
    """
    scan = _Scan(SourceFiles(file, root))
    try:
        scan.barrel(file.resolve())
    except SourceError as error:
        raise GateError("registry-unreadable", str(error), "name the file that exports the tools") from error
    return scan.registry(scan.files.shown(file.resolve()))


def load_folder(folder: Path, root: Path) -> Registry | None:
    """All tool objects that the `*.tool.ts` (or .js, .mjs, …) files below a folder export; None without such a file."""
    scan = _Scan(SourceFiles(folder, root))
    files = scan.files.tool_files(folder)
    for file in files:
        scan.tool_file(file)
    return scan.registry(scan.files.shown(folder.resolve())) if files else None


class _Definition(FrozenStruct):
    """The expression an export leads to, and where it stands.

    `node` is None for what is certainly no tool; `members` is None for what is no object literal.
    `tool_name` is None for an object without a name, UNKNOWN when only running the code would tell.
    """

    file: Path
    line: int
    node: Node | None
    members: ObjectLiteral | None = None
    tool_name: str | UnknownValue | None = None

    @property
    def is_described(self) -> bool:
        """Whether this has, or may have, a description: an object with a name alone is often no tool."""
        return self.members is None or self.members.open or "description" in self.members.members

    @classmethod
    def of(cls, file: Path, value: ExportedValue) -> _Definition:
        node = None if value.node is None else unwrapped(value.node)
        if node is None or node.type in _NO_TOOLS:
            return cls(file, value.line, None)
        members = object_literal(node)
        if members is None:
            return cls(file, value.line, node, None, UnknownValue.VALUE)
        name = members.value("name")
        if name is None or (isinstance(name, str) and name):
            return cls(file, value.line, node, members, name)
        return cls(file, value.line, node, members, UnknownValue.VALUE)


class _Scan:
    """One walk over the modules of a registry, collecting tools and what could not be read."""

    def __init__(self, files: SourceFiles) -> None:
        self.files = files
        self._tools: dict[str, ToolDefinition] = {}
        self._unresolved: dict[str, None] = {}
        self._notices: list[str] = []
        self._seen: set[tuple[Path, int]] = set()
        self._hits = 0

    def registry(self, source: str) -> Registry:
        """The registry of all tools that were found, with a notice for each definition that could not be read."""
        notices = self._notices[:MAX_NOTICES]
        if len(self._notices) > MAX_NOTICES:
            notices.append(f"{source}: {len(self._notices) - MAX_NOTICES} more notices about tool definitions")
        return Registry(
            source=source, tools=tuple(self._tools.values()), unresolved=tuple(self._unresolved), notices=tuple(notices)
        )

    def barrel(self, file: Path) -> None:
        """Every export of the barrel is a tool unless it is certainly something else. Raises SourceError."""
        module = self.files.parsed(file)
        if module.error_line is not None:
            place = self.files.shown(file, module.error_line)
            for name in module.exports or ["its tools"]:
                self._give_up(name, place, "syntax error")
            return
        for name, export in module.exports.items():
            self._export(name, file, export, listed=True)
        self._stars(module.stars, file)

    def tool_file(self, file: Path) -> None:
        """Every exported tool object; a file without one is counted as a tool that could not be read."""
        before = self._hits
        try:
            module = self.files.module(file)
            file = file.resolve()
            for name, export in module.exports.items():
                self._export(name, file, export, listed=False)
            self._stars(module.stars, file)
        except SourceError as error:
            self._count_unread(self.files.shown(file.absolute()), str(error))
        if self._hits == before:
            place = self.files.shown(file)
            self._count_unread(place, f"{place} exports no tool definition")

    def _stars(self, stars: Sequence[ReExport], importer: Path) -> None:
        """`export * from`: the tool objects of those modules; default exports are not among them."""
        seen = {importer}
        pending = [(star, importer) for star in reversed(stars)]
        while pending:
            star, importer = pending.pop()
            try:
                file = self.files.find(star.module, importer)
                module = self.files.module(file)
            except SourceError as error:
                self._give_up(f"* from {star.module[:80]}", self.files.shown(importer, star.line), str(error))
                continue
            if file in seen:
                continue
            seen.add(file)
            for name, export in module.exports.items():
                if name != "default":
                    self._export(name, file, export, listed=False)
            pending += [(further, file) for further in reversed(module.stars)]

    def _export(self, name: str, file: Path, export: Export, *, listed: bool) -> None:
        """Add one export. `listed`: the barrel names it; otherwise only what looks like a tool is one."""
        place = self.files.shown(file, export.line)
        looks_like_tool = listed or name == "default" or name.endswith("Tool")
        try:
            found = self._trace(file, export)
        except SourceError as error:
            if looks_like_tool:
                self._give_up(name, place, str(error))
            return
        if found.node is None or found.tool_name is None:
            if listed:
                self._notices.append(f"{place}: {name} is not a tool definition and is not counted")
            return
        if not listed and not found.is_described:
            return
        key = (found.file, found.node.start_byte)
        if key in self._seen:
            self._hits += 1
            return
        place = self.files.shown(found.file, found.line)
        if found.members is not None and isinstance(found.tool_name, str):
            self._seen.add(key)
            self._tool(found.tool_name, found.members, place)
        elif looks_like_tool:
            self._seen.add(key)
            why = "it is not an object literal" if found.members is None else "its name is not a plain string"
            self._give_up(name, place, why)

    def _trace(self, file: Path, export: Export) -> _Definition:
        """Follow an export to the module that defines it. Raises SourceError."""
        visited: set[tuple[Path, str]] = set()
        while not isinstance(export, ExportedValue):
            if isinstance(export, UndefinedExport):
                raise SourceError(f"it is not defined in {self.files.shown(file)}")
            if export.name is None:
                raise SourceError("it is a whole module")
            file, export = self._lookup(self.files.find(export.module, file), export.name, visited)
        return _Definition.of(file, export)

    def _lookup(self, target: Path, name: str, visited: set[tuple[Path, str]]) -> tuple[Path, Export]:
        """Where a module has an export from, its `export * from` included. Raises SourceError."""
        failure: SourceError | None = None
        pending = [target]
        while pending:
            file = pending.pop()
            if (file, name) in visited:
                continue
            visited.add((file, name))
            try:
                module = self.files.module(file)
                if name in module.exports:
                    return file, module.exports[name]
                if name != "default":
                    pending += [self.files.find(star.module, file) for star in reversed(module.stars)]
            except SourceError as error:
                failure = failure or error
        raise failure or SourceError(f"{self.files.shown(target)} does not export {name}")

    def _tool(self, name: str, members: ObjectLiteral, place: str) -> None:
        self._hits += 1
        if name in self._tools:
            self._give_up(name, place, "an earlier tool has the same name")
            return
        written = next((members.value(key) for key in SCHEMA_KEYS if key in members.members), None)
        self._tools[name] = ToolDefinition(
            name=name,
            description=self._text("description", name, members, place),
            version=self._text("version", name, members, place),
            status=self._text("status", name, members, place),
            parameters=None if isinstance(written, UnknownValue) else parameters_schema(written),
        )

    def _text(self, key: str, name: str, members: ObjectLiteral, place: str) -> str | None:
        value = members.value(key)
        if value is None or isinstance(value, str):
            return value
        self._notices.append(f"{place}: the {key} of {name} is not a plain string and is not checked")
        return None

    def _give_up(self, name: str, place: str, why: str) -> None:
        """Count an export that cannot be read. Two of the same name are two."""
        label = name if name not in self._unresolved else f"{name} ({place})"
        self._count_unread(label, f"{place}: {name} cannot be read: {why}")

    def _count_unread(self, label: str, notice: str) -> None:
        self._hits += 1
        self._unresolved[label] = None
        self._notices.append(notice[:_MAX_NOTICE])
