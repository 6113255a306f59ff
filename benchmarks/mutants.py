"""Makes mutants of a Python file: the same file with one small mistake in it, as a person might make one.

What is changed: comparisons and their limits, `and`/`or`/`not`, arithmetic, numbers, words in quotation marks, min and
max, any and all, conditions (always, never), results (None), a named argument or a statement that is left out. What is
not: annotations, docstrings, sentences for people (golden files hold those), assertions, imports.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
OPPOSITES = {
    "min": "max", "max": "min", "any": "all", "all": "any", "startswith": "endswith", "endswith": "startswith",
    "isascii": "isprintable", "lstrip": "rstrip", "rstrip": "lstrip",
    "partition": "rpartition", "rpartition": "partition",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: the bytes from `begin` to `end` of the file become `text`."""

    file: Path
    line: int
    last_line: int
    begin: int
    end: int
    text: str
    was: str

    def of(self, source: bytes) -> bytes:
        """Apply the change to the source of the file, and return the result."""
        return source[: self.begin] + self.text.encode() + source[self.end :]

    def __str__(self) -> str:
        if left_out := _arguments(self.was) - _arguments(self.text):
            return f"{self.file}:{self.line}  {_around(self.was, '')}  without {', '.join(sorted(left_out))}"
        was, text = (" ".join(one.split()) for one in (self.was, self.text))
        return f"{self.file}:{self.line}  {_around(was, text)}  ->  {_around(text, was)}"


def _arguments(text: str) -> set[str]:
    """Return the names of the keyword arguments of a call, given its source.

    `**` stands for an unpacked mapping. The set is empty if `text` is not an expression, or not a call.
    """
    try:
        call = ast.parse(f"({text})", mode="eval").body
    except SyntaxError:
        return set()
    return {one.arg or "**" for one in call.keywords} if isinstance(call, ast.Call) else set()


def _around(text: str, other: str) -> str:
    """Shorten a text to the place where it begins to differ from another text.

    A text of up to 100 characters is returned whole.
    """
    same = next((at for at, (one, two) in enumerate(zip(text, other, strict=False)) if one != two), 0)
    return text if len(text) <= 100 else f"…{text[max(same - 40, 0) : same + 60]}…"


def mutants_of(file: Path, source: bytes) -> list[Mutant]:
    """Every mutant of a file, in its order."""
    offsets = [0]
    for line in source.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    found = []
    for node, text in _Finder().changes(ast.parse(source)):
        begin = offsets[node.lineno - 1] + node.col_offset
        end = offsets[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        was = source[begin:end].decode()
        found.append(Mutant(file, node.lineno, node.end_lineno or node.lineno, begin, end, text, was))
    return sorted(set(found), key=lambda one: (one.begin, one.end, one.text))


class _Finder:
    """Walks the tree, past everything that is not to be changed."""

    def changes(self, tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
        yield from self._statements(tree.body)

    def _statements(self, body: list[ast.stmt]) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
        for statement in body:
            if isinstance(statement, ast.Import | ast.ImportFrom | ast.Assert):
                continue
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue  # a docstring, of a module or of a value
            yield from self._statement(statement)

    def _statement(self, node: ast.stmt) -> Iterator[tuple[ast.expr | ast.stmt, str]]:  # noqa: C901, PLR0912 (a table)
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for default in (*node.args.defaults, *node.args.kw_defaults):
                    yield from self._expression(default)
                yield from self._statements(node.body)
                return
            case ast.ClassDef():
                yield from self._statements(node.body)
                return
            case ast.AnnAssign():
                yield from self._expression(node.value)
                return
            case ast.Return() if node.value is not None and not _is_none(node.value):
                yield node, "return None"
            case ast.Expr() | ast.Raise() | ast.AugAssign() | ast.Delete():
                yield node, "pass"
                if isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
                    turned = ast.AugAssign(node.target, ARITHMETIC[type(node.op)](), node.value)
                    yield node, ast.unparse(turned)
            case ast.Continue():
                yield node, "break"
            case ast.Break():
                yield node, "continue"
            case ast.If() | ast.While() if "TYPE_CHECKING" in ast.unparse(node.test):
                return
            case ast.If():
                yield node.test, "True"
                yield node.test, "False"
            case ast.While():
                yield node.test, "False"
        for _, value in ast.iter_fields(node):
            yield from self._field(value)

    def _field(self, value: object) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
        match value:
            case ast.expr():
                yield from self._expression(value)
            case [ast.stmt(), *_]:
                yield from self._statements([one for one in value if isinstance(one, ast.stmt)])
            case list():
                for one in value:
                    yield from self._field(one)
            case ast.match_case() | ast.ExceptHandler() | ast.withitem() | ast.keyword() | ast.comprehension():
                for name, inner in ast.iter_fields(value):
                    if not (isinstance(value, ast.ExceptHandler) and name == "type"):
                        yield from self._field(inner)
            case _:
                pass

    def _expression(self, node: ast.expr | None) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
        if node is None or isinstance(node, ast.JoinedStr):
            return  # of the places within an f-string Python 3.11 knows nothing
        for changed in _changed(node):
            yield node, f"({ast.unparse(ast.fix_missing_locations(changed))})"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"cast", "TypeVar"}:
            return
        for _, value in ast.iter_fields(node):
            yield from self._field(value)


def _changed(node: ast.expr) -> Iterator[ast.expr]:
    """Yield each expression that can replace this one in a mutant."""
    for change in _CHANGES:
        yield from change(node)


def _comparison(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            for other in COMPARISONS[type(operator)]:
                yield ast.Compare(node.left, [*node.ops[:at], other(), *node.ops[at + 1 :]], node.comparators)


def _boolean(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        for at in range(len(node.values)):
            left = [*node.values[:at], *node.values[at + 1 :]]
            yield left[0] if len(left) == 1 else ast.BoolOp(node.op, left)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand
    if isinstance(node, ast.IfExp):
        yield node.body
        yield node.orelse


def _arithmetic(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _is_text(node.left):
        yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)


def _constant(node: ast.expr) -> Iterator[ast.expr]:
    if not isinstance(node, ast.Constant):
        return
    match node.value:
        case bool():
            yield ast.Constant(not node.value)
        case int():
            yield ast.Constant(node.value + 1)
        case float():
            yield ast.Constant(node.value * 2 or 1.0)
        case str() if node.value and not any(sign.isspace() for sign in node.value):
            yield ast.Constant(f"{node.value}X")


def _call(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in OPPOSITES:
            yield ast.Call(ast.Name(OPPOSITES[name]), node.args, node.keywords)
        case ast.Call(func=ast.Attribute(attr=name)) if name in OPPOSITES:
            assert isinstance(node.func, ast.Attribute)
            yield ast.Call(ast.Attribute(node.func.value, OPPOSITES[name]), node.args, node.keywords)
    if isinstance(node, ast.Call):
        for at in range(len(node.keywords)):
            yield ast.Call(node.func, node.args, [*node.keywords[:at], *node.keywords[at + 1 :]])


def _filter(node: ast.expr) -> Iterator[ast.expr]:
    """Yield copies of a comprehension that each lack the conditions of one `for`."""
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        for at, one in enumerate(node.generators):
            if one.ifs:
                open_ = ast.comprehension(one.target, one.iter, [], one.is_async)
                fields = dict(ast.iter_fields(node)) | {
                    "generators": [*node.generators[:at], open_, *node.generators[at + 1 :]]
                }
                yield type(node)(**fields)


_CHANGES: tuple[Callable[[ast.expr], Iterator[ast.expr]], ...] = (
    _comparison, _boolean, _arithmetic, _constant, _call, _filter,
)  # fmt: skip


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
