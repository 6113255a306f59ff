"""What one JavaScript or TypeScript module exports, read from its syntax tree without running it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from eval_gate.registry.typescript.literal import text_of
from eval_gate.struct import FrozenStruct, Struct, field

if TYPE_CHECKING:
    from tree_sitter import Language, Node

_JSX_SUFFIXES: Final = frozenset({".tsx", ".jsx", ".js", ".mjs", ".cjs"})
_DECLARATIONS: Final = frozenset({"lexical_declaration", "variable_declaration"})
_CODE: Final = frozenset({"function_declaration", "generator_function_declaration", "class_declaration"})


class ExportedValue(FrozenStruct):
    """An export that this module defines. `node` is its expression, None when it is no constant (a function, say)."""

    node: Node | None
    line: int


class ReExport(FrozenStruct):
    """An export that another module defines. `name` None is that module as a whole."""

    module: str
    name: str | None
    line: int


class UndefinedExport(FrozenStruct):
    """An export of a name that the module does not define."""

    line: int


Export: TypeAlias = ExportedValue | ReExport | UndefinedExport


class Module(Struct):
    """One parsed module. `stars` are the modules of `export * from`, with their lines.

    `error_line` is set when the source is not valid: then nothing in it is to be believed.
    """

    exports: dict[str, Export] = field(default_factory=dict)
    stars: list[ReExport] = field(default_factory=list)
    error_line: int | None = None


def parse_module(source: bytes, suffix: str) -> Module:
    """The exports of a module in the order they are written; types are left out. `suffix` chooses the grammar."""
    from tree_sitter import Parser

    root = Parser(_language(suffix)).parse(source).root_node
    reader = _Reader()
    for statement in root.named_children:
        reader.declare(statement)
    for statement in root.named_children:
        if statement.type == "export_statement":
            reader.export(statement)
    reader.module.error_line = _first_error(root) if root.has_error else None
    return reader.module


def _language(suffix: str) -> Language:
    import tree_sitter_typescript
    from tree_sitter import Language

    jsx = suffix in _JSX_SUFFIXES
    return Language(tree_sitter_typescript.language_tsx() if jsx else tree_sitter_typescript.language_typescript())


def line_of(node: Node) -> int:
    """The line a node begins in, from 1."""
    return node.start_point[0] + 1


def _first_error(root: Node) -> int:
    """The line of the first place the grammar does not understand."""
    node = root
    while not (node.is_error or node.is_missing):
        broken = next((child for child in node.children if child.has_error or child.is_missing), None)
        if broken is None:
            break
        node = broken
    return line_of(node)


class _Reader:
    """One walk over the statements of a module."""

    def __init__(self) -> None:
        self.module = Module()
        self._names: dict[str, Export] = {}

    def declare(self, statement: Node) -> None:
        """Remember what the statement gives a name to, exported or not."""
        if statement.type == "import_statement":
            self._names.update(_imports(statement))
            return
        declaration = statement.child_by_field_name("declaration") if statement.type == "export_statement" else None
        self._names.update(_declared(declaration or statement))

    def export(self, statement: Node) -> None:
        """Add what one export statement exports."""
        if _has(statement, "type"):
            return
        source = _module_name(statement)
        declaration, value = (statement.child_by_field_name(name) for name in ("declaration", "value"))
        if _has(statement, "default"):
            self._default(value, line_of(statement))
        elif declaration is not None:
            self.module.exports.update(_declared(declaration))
        elif source is not None and _has(statement, "*"):
            self.module.stars.append(ReExport(source, None, line_of(statement)))
        else:
            self._clause(statement, source)

    def _default(self, value: Node | None, line: int) -> None:
        local = self._names.get(text_of(value)) if value is not None and value.type == "identifier" else None
        self.module.exports["default"] = local or ExportedValue(value, line)

    def _clause(self, statement: Node, source: str | None) -> None:
        """`export { a, b as c }`, with or without `from`, and `export * as ns from`."""
        for clause in statement.named_children:
            if clause.type == "namespace_export" and source is not None:
                self.module.exports[_identifier(clause.named_children[-1])] = ReExport(source, None, line_of(clause))
            if clause.type == "export_clause":
                for name, alias, line in _specifiers(clause):
                    here = self._names.get(name, UndefinedExport(line))
                    self.module.exports[alias] = ReExport(source, name, line) if source is not None else here


def _declared(statement: Node) -> Iterator[tuple[str, Export]]:
    """The names a declaration gives, with their values."""
    if statement.type in _DECLARATIONS:
        for declarator in statement.named_children:
            name = declarator.child_by_field_name("name")
            if name is not None and name.type == "identifier":
                yield text_of(name), ExportedValue(declarator.child_by_field_name("value"), line_of(declarator))
    elif statement.type in _CODE:
        name = statement.child_by_field_name("name")
        if name is not None:
            yield text_of(name), ExportedValue(None, line_of(statement))


def _imports(statement: Node) -> Iterator[tuple[str, Export]]:
    """The local names an import gives, with what they stand for."""
    source = _module_name(statement)
    if source is None or _has(statement, "type"):
        return
    line = line_of(statement)
    for clause in (child for child in statement.named_children if child.type == "import_clause"):
        for part in clause.named_children:
            if part.type == "identifier":
                yield text_of(part), ReExport(source, "default", line)
            elif part.type == "namespace_import":
                yield text_of(part.named_children[-1]), ReExport(source, None, line)
            elif part.type == "named_imports":
                for name, alias, specifier_line in _specifiers(part):
                    yield alias, ReExport(source, name, specifier_line)


def _specifiers(clause: Node) -> Iterator[tuple[str, str, int]]:
    """Name, alias and line of every `a` and `a as b` of a clause, types left out."""
    for specifier in clause.named_children:
        name, alias = (specifier.child_by_field_name(field_name) for field_name in ("name", "alias"))
        if name is not None and not _has(specifier, "type"):
            yield _identifier(name), _identifier(alias or name), line_of(specifier)


def _module_name(statement: Node) -> str | None:
    source = statement.child_by_field_name("source")
    return None if source is None else text_of(source)[1:-1]


def _identifier(node: Node) -> str:
    """A name, which may also be written as a string."""
    return text_of(node).strip("\"'")


def _has(node: Node, keyword: str) -> bool:
    return any(child.type == keyword for child in node.children)
