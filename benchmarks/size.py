"""How much there is to carry: lines, modules, classes, settings, options, inputs, errors, dependencies of a checkout.

    python -m benchmarks.size                 # this checkout
    python -m benchmarks.size OTHER CHECKOUT  # several, a column each

Everything is read from the text of the files, so that a checkout need not be installed. Lines of code are those that
are neither empty, nor a comment, nor part of a docstring.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from tabulate import tabulate

HERE = Path(__file__).parents[1]
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def sizes(checkout: Path) -> Mapping[str, int]:
    """Count what a checkout holds, such as lines, modules and settings, by what is counted."""
    package = sorted((checkout / "runner" / "eval_gate").rglob("*.py"))
    tests = sorted((checkout / "tests").rglob("*.py"))
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in package]
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pages = [*(checkout / "docs").rglob("*.md"), checkout / "README.md"]
    return {
        "lines of the package": sum(map(_lines, package)),
        "lines of code in it": sum(map(_lines_of_code, package)),
        "modules": len(package),
        "classes": sum(isinstance(node, ast.ClassDef) for tree in trees for node in ast.walk(tree)),
        "functions": sum(
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for tree in trees for node in ast.walk(tree)
        ),
        "modules with one importer": sum(len(names) == 1 for names in _importers(package, trees).values()),
        "lines of tests": sum(map(_lines, tests)),
        "words of documentation": sum(len(page.read_text(encoding="utf-8").split()) for page in pages),
        "settings": sum(_calls(tree, "define_setting") for tree in trees),
        "options of the command line": sum(_calls(tree, "Option") for tree in trees),
        "inputs of the action": _entries(checkout / "host" / "action.yml", "inputs"),
        "outputs of the action": _entries(checkout / "host" / "action.yml", "outputs"),
        "error codes": len(re.findall(r"(?m)^### ", (checkout / "docs" / "errors.md").read_text(encoding="utf-8"))),
        "dependencies of every installation": len(project["dependencies"]),
        "locked packages of the image": len(
            re.findall(r"(?m)^[a-z0-9].*==", (checkout / "requirements" / "runtime.txt").read_text(encoding="utf-8"))
        ),
    }


def _lines(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def _lines_of_code(file: Path) -> int:
    text = file.read_text(encoding="utf-8")
    said = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    written = {line for one in tokens if one.type not in _NO_CODE for line in range(one.start[0], one.end[0] + 1)}
    return len(written - said)


def _calls(tree: ast.Module, name: str) -> int:
    called = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return sum(getattr(one, "id", None) == name or getattr(one, "attr", None) == name for one in called)


def _importers(package: list[Path], trees: list[ast.Module]) -> Mapping[str, set[Path]]:
    """Which files import each module of the package."""
    known = {_module(file): set[Path]() for file in package if file.name not in {"__init__.py", "__main__.py"}}
    for file, tree in zip(package, trees, strict=True):
        for name in _imported(tree):
            if name in known:
                known[name].add(file)
    return known


def _module(file: Path) -> str:
    parts = file.with_suffix("").parts
    return ".".join(parts[parts.index("eval_gate") :])


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names)


def _entries(file: Path, block: str) -> int:
    """How many names stand in this block of an action.yml."""
    _, _, rest = file.read_text(encoding="utf-8").partition(f"\n{block}:\n")
    return len(re.findall(r"(?m)^  [a-z-]+:$", re.split(r"(?m)^[a-z]", rest, maxsplit=1)[0]))


def main() -> None:
    """Print the table."""
    checkouts = [Path(name) for name in sys.argv[1:]] or [HERE]
    columns = [sizes(one) for one in checkouts]
    rows = [[name, *(f"{column[name]:,}" for column in columns)] for name in columns[0]]
    print(tabulate(rows, ["", *(one.resolve().name for one in checkouts)], tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
