"""Source files of a tool registry: resolved like module imports within the repository, with what each exports."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from eval_gate.errors import GateError
from eval_gate.files.reading import read_limited
from eval_gate.model import limits
from eval_gate.staleness.typescript import SUFFIXES
from eval_gate.staleness.typescript.literals import get_text
from eval_gate.struct import FrozenStruct, Struct, field

if TYPE_CHECKING:
    from tree_sitter import Language, Node

MAX_FILE_BYTES: Final = limits.SOURCE_BYTES
MAX_FILES: Final = limits.SOURCE_FILES

_COMPILED: Final = {".js": (".ts", ".tsx"), ".mjs": (".mts",), ".cjs": (".cts",), ".jsx": (".tsx",)}
_SKIPPED_FOLDERS: Final = frozenset({"node_modules", "dist", "build", "coverage"})
_JSX_SUFFIXES: Final = frozenset({".tsx", ".jsx", ".js", ".mjs", ".cjs"})
_DECLARATIONS: Final = frozenset({"lexical_declaration", "variable_declaration"})
_CODE_DECLARATIONS: Final = frozenset({"function_declaration", "generator_function_declaration", "class_declaration"})


class ExportedValue(FrozenStruct):
    """An export defined in this module. `node` is None when it is not a constant, such as a function."""

    node: Node | None
    line: int


class ReExport(FrozenStruct):
    """An export of another module. `name` is None for the whole module."""

    module: str
    name: str | None
    line: int


class UndefinedExport(FrozenStruct):
    """An export of a name that the module does not define."""

    line: int


Export: TypeAlias = ExportedValue | ReExport | UndefinedExport


class ParsedModule(Struct):
    """One parsed module. `star_exports` are the modules of `export * from`, with their lines.

    `error_line` is set if the source is not valid; its content is then unreliable.
    """

    exports: dict[str, Export] = field(default_factory=dict)
    star_exports: list[ReExport] = field(default_factory=list)
    error_line: int | None = None


def parse_module(source: bytes, suffix: str) -> ParsedModule:
    """Parse the exports of a module as they are written, without types. `suffix` selects the grammar."""
    from tree_sitter import Parser

    root = Parser(_get_language(suffix)).parse(source).root_node
    reader = _ExportReader()
    for statement in root.named_children:
        reader.add_declaration(statement)
    for statement in root.named_children:
        if statement.type == "export_statement":
            reader.add_export(statement)
    reader.module.error_line = _find_first_error(root) if root.has_error else None
    return reader.module


def _get_language(suffix: str) -> Language:
    import tree_sitter_typescript
    from tree_sitter import Language

    jsx = suffix in _JSX_SUFFIXES
    return Language(tree_sitter_typescript.language_tsx() if jsx else tree_sitter_typescript.language_typescript())


def get_line(node: Node) -> int:
    """Return the line in which a node begins, counted from 1."""
    return node.start_point[0] + 1


def _find_first_error(root: Node) -> int:
    """Return the line of the first syntax error, counted from 1."""
    node = root
    while not (node.is_error or node.is_missing):
        broken = next((child for child in node.children if child.has_error or child.is_missing), None)
        if broken is None:
            break
        node = broken
    return get_line(node)


class _ExportReader:
    """Visitor of the statements of a module."""

    def __init__(self) -> None:
        self.module = ParsedModule()
        self._names: dict[str, Export] = {}

    def add_declaration(self, statement: Node) -> None:
        """Remember what the statement gives a name to, exported or not."""
        if statement.type == "import_statement":
            self._names.update(_iter_imports(statement))
            return
        declaration = statement.child_by_field_name("declaration") if statement.type == "export_statement" else None
        self._names.update(_iter_declared(declaration or statement))

    def add_export(self, statement: Node) -> None:
        if _has_keyword(statement, "type"):
            return
        source = _find_module_name(statement)
        declaration, value = (statement.child_by_field_name(name) for name in ("declaration", "value"))
        if _has_keyword(statement, "default"):
            self._add_default(value, get_line(statement))
        elif declaration is not None:
            self.module.exports.update(_iter_declared(declaration))
        elif source is not None and _has_keyword(statement, "*"):
            self.module.star_exports.append(ReExport(source, None, get_line(statement)))
        else:
            self._add_clause(statement, source)

    def _add_default(self, value: Node | None, line: int) -> None:
        local = self._names.get(get_text(value)) if value is not None and value.type == "identifier" else None
        self.module.exports["default"] = local or ExportedValue(value, line)

    def _add_clause(self, statement: Node, source: str | None) -> None:
        """`export { a, b as c }`, with or without `from`, and `export * as ns from`."""
        for clause in statement.named_children:
            if clause.type == "namespace_export" and source is not None:
                self.module.exports[_get_identifier(clause.named_children[-1])] = ReExport(
                    source, None, get_line(clause)
                )
            if clause.type == "export_clause":
                for name, alias, line in _iter_specifiers(clause):
                    export = self._names.get(name, UndefinedExport(line))
                    self.module.exports[alias] = ReExport(source, name, line) if source is not None else export


def _iter_declared(statement: Node) -> Iterator[tuple[str, Export]]:
    """Yield the names that a statement declares, with their values."""
    if statement.type in _DECLARATIONS:
        for declarator in statement.named_children:
            name = declarator.child_by_field_name("name")
            if name is not None and name.type == "identifier":
                yield get_text(name), ExportedValue(declarator.child_by_field_name("value"), get_line(declarator))
    elif statement.type in _CODE_DECLARATIONS:
        name = statement.child_by_field_name("name")
        if name is not None:
            yield get_text(name), ExportedValue(None, get_line(statement))


def _iter_imports(statement: Node) -> Iterator[tuple[str, Export]]:
    """Yield the local names that an import statement defines, with the exports that they refer to."""
    source = _find_module_name(statement)
    if source is None or _has_keyword(statement, "type"):
        return
    line = get_line(statement)
    for clause in (child for child in statement.named_children if child.type == "import_clause"):
        for part in clause.named_children:
            if part.type == "identifier":
                yield get_text(part), ReExport(source, "default", line)
            elif part.type == "namespace_import":
                yield get_text(part.named_children[-1]), ReExport(source, None, line)
            elif part.type == "named_imports":
                for name, alias, specifier_line in _iter_specifiers(part):
                    yield alias, ReExport(source, name, specifier_line)


def _iter_specifiers(clause: Node) -> Iterator[tuple[str, str, int]]:
    """Name, alias and line of every `a` and `a as b` of a clause, types left out."""
    for specifier in clause.named_children:
        name, alias = (specifier.child_by_field_name(field_name) for field_name in ("name", "alias"))
        if name is not None and not _has_keyword(specifier, "type"):
            yield _get_identifier(name), _get_identifier(alias or name), get_line(specifier)


def _find_module_name(statement: Node) -> str | None:
    source = statement.child_by_field_name("source")
    return None if source is None else get_text(source)[1:-1]


def _get_identifier(node: Node) -> str:
    return get_text(node).strip("\"'")


def _has_keyword(node: Node, keyword: str) -> bool:
    return any(child.type == keyword for child in node.children)


class SourceError(Exception):
    """A source file cannot be read or parsed; the message names the file and the reason."""


class SourceFiles:
    """Cache of parsed source files. Paths are displayed relative to `root`, the working directory.

    Files outside `root` are not read, neither through `../..` nor through a link. A registry that the configuration
    names outside `root` is confined to its own folder.
    """

    def __init__(self, start: Path, root: Path) -> None:
        folder = start if start.is_dir() else start.parent
        self._root = root.resolve()
        self._boundary = self._root if folder.resolve().is_relative_to(self._root) else folder.resolve()
        self._modules: dict[Path, ParsedModule] = {}

    def format_location(self, file: Path, line: int | None = None) -> str:
        """Format a file, and the line in it, as a path relative to the root if it is in it."""
        name = (file.relative_to(self._root) if file.is_relative_to(self._root) else file).as_posix()
        return name if line is None else f"{name}:{line}"

    def find_tool_files(self, folder: Path) -> list[Path]:
        """Find each `*.tool.ts` (or .js, .mjs, …) below a folder, sorted by name; links to folders are not followed."""
        tool_files: list[Path] = []
        for parent, folders, files in os.walk(folder):
            folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS and not name.startswith("."))
            tool_files += [
                Path(parent, name) for name in sorted(files) if name.endswith(tuple(f".tool{end}" for end in SUFFIXES))
            ]
            if len(tool_files) > MAX_FILES:
                raise _build_too_many_error(self.format_location(folder.resolve()))
        return tool_files

    def resolve_import(self, specifier: str, importer: Path) -> Path:
        """Return the file that `from 'specifier'` refers to in `importer`. Raises SourceError."""
        if not specifier.startswith("."):
            raise SourceError(f'"{specifier[:80]}" is not a relative path')
        outside = False
        for candidate in _list_candidates(importer.parent / specifier, importer.suffix):
            try:
                real = candidate.resolve()
                outside = outside or not real.is_relative_to(self._boundary)
                if real.is_relative_to(self._boundary) and real.is_file():
                    return real
            except (OSError, ValueError, RuntimeError):  # a name too long, a null byte, a loop of links
                continue
        if outside:
            raise SourceError(f'"{specifier[:80]}" is outside of the repository')
        raise SourceError(f'"{specifier[:80]}" does not exist')

    def load_module(self, file: Path) -> ParsedModule:
        """Parse a file. Raises SourceError if it cannot be read or has a syntax error: then nothing is reliable."""
        module = self.parse_file(file)
        if module.error_line is not None:
            raise SourceError(f"syntax error in {self.format_location(file.resolve(), module.error_line)}")
        return module

    def parse_file(self, file: Path) -> ParsedModule:
        """Parse a file, even if it has syntax errors. Raises SourceError if the source cannot be read."""
        file = file.resolve()
        if file not in self._modules:
            if len(self._modules) >= MAX_FILES:
                raise _build_too_many_error(self.format_location(file.parent))
            self._modules[file] = parse_module(self._read_source(file), file.suffix)
        return self._modules[file]

    def _read_source(self, file: Path) -> bytes:
        name = self.format_location(file)
        if not file.is_relative_to(self._boundary):
            raise SourceError(f"{name} is outside of the repository")
        try:
            if not file.is_file():
                raise SourceError(f"{name} is not a file")
            source = read_limited(file, MAX_FILE_BYTES, is_generated=True)
            source.decode("utf-8")
        except OSError as error:
            raise SourceError(f"{name}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise SourceError(f"{name} is not UTF-8 text") from error
        if len(source) > MAX_FILE_BYTES:
            raise SourceError(f"{name} is larger than {MAX_FILE_BYTES:,} bytes")
        return source.removeprefix(b"\xef\xbb\xbf")


def _list_candidates(target: Path, importer_suffix: str) -> list[Path]:
    """List the files a specifier may mean, likeliest first: TypeScript writes `./x.js` for `x.ts`."""
    if not target.name:
        return [target / f"index{suffix}" for suffix in SUFFIXES]
    exact = [target] if target.suffix in SUFFIXES else []
    sources = [target.with_suffix(suffix) for suffix in _COMPILED.get(target.suffix, ())]
    direct = [*sources, *exact] if importer_suffix in {".ts", ".tsx", ".mts", ".cts"} else [*exact, *sources]
    appended = [target.with_name(target.name + suffix) for suffix in SUFFIXES]
    return [*direct, *appended, *(target / f"index{suffix}" for suffix in SUFFIXES)]


def _build_too_many_error(place: str) -> GateError:
    return GateError(
        "registry-too-large",
        f"the tool registry at {place} has more than {MAX_FILES:,} files",
        "name the barrel file, or a folder with only the tool definitions",
    )
