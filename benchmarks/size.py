"""How much there is to carry: lines, modules, classes, settings, options, inputs, errors, dependencies of a checkout.

    python -m benchmarks.size                 # this checkout
    python -m benchmarks.size OTHER CHECKOUT  # several, a column each
    python -m benchmarks.size --check         # fails above the budget of lines in size.json
    python -m benchmarks.size --note          # write the lines of size.json anew, as after a release

Everything is read from the text of the files, so that a checkout need not be installed. Lines of code are those that
are neither empty, nor a comment, nor part of a docstring.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from tabulate import tabulate

HERE = Path(__file__).parents[1]
KEPT = Path(__file__).with_name("size.json")
"""The most lines that the package and the tests may have, and the lines of each package when they were noted."""
ROOT = "modules of no package"
_OPTION = re.compile(r'"(--[a-z][a-z-]+)"')
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def sizes(checkout: Path) -> Mapping[str, int]:
    """Count what a checkout holds, such as lines, modules and settings, by what is counted."""
    package = sorted((checkout / "runner" / "eval_gate").rglob("*.py"))
    tests = sorted((checkout / "tests").rglob("*.py"))
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in package]
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    schema = checkout / "schemas" / "config.schema.json"
    commands = [file.read_text(encoding="utf-8") for file in package if "cli" in file.parts]
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
        "settings": len(json.loads(schema.read_text(encoding="utf-8"))["properties"]),
        "options that are no settings": len({name for text in commands for name in _OPTION.findall(text)}),
        "inputs of the action": _entries(checkout / "host" / "action.yml", "inputs"),
        "outputs of the action": _entries(checkout / "host" / "action.yml", "outputs"),
        "error codes": len(re.findall(r"(?m)^### ", (checkout / "docs" / "errors.md").read_text(encoding="utf-8"))),
        "dependencies of every installation": len(project["dependencies"]),
        "locked packages of the image": len(
            re.findall(r"(?m)^[a-z0-9].*==", (checkout / "requirements" / "runtime.txt").read_text(encoding="utf-8"))
        ),
    }


def count_package_lines(checkout: Path) -> Counter[str]:
    """Count the lines of each package of the program."""
    root = checkout / "runner" / "eval_gate"
    lines = Counter[str]()
    for file in sorted(root.rglob("*.py")):
        folders = file.relative_to(root).parts[:-1]
        lines[folders[0] if folders else ROOT] += _lines(file)
    return lines


def list_excess(lines: Mapping[str, int], budget: Mapping[str, int]) -> list[str]:
    """List what weighs more than its budget, a sentence each."""
    return [
        f"{name}: {lines[name]:,}, {lines[name] - most:,} more than the budget of {most:,} in benchmarks/{KEPT.name}"
        for name, most in budget.items()
        if lines[name] > most
    ]


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
    """Print the tables."""
    options = [word for word in sys.argv[1:] if word.startswith("--")]
    checkouts = [Path(name) for name in sys.argv[1:] if name not in options] or [HERE]
    names = [one.resolve().name for one in checkouts]
    columns = [sizes(one) for one in checkouts]
    packages = [count_package_lines(one) for one in checkouts]
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    if "--note" in options:
        kept["noted"] = dict(sorted(packages[0].items()))
        KEPT.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    _print_table(names, columns)
    _print_table(["noted", *names], [kept["noted"], *packages])
    excess = list_excess(columns[0], kept["budget"]) if "--check" in options else []
    if excess:
        sys.exit("\n".join(excess))


def _print_table(names: list[str], columns: list[Mapping[str, int]]) -> None:
    rows = [[name, *(f"{column.get(name, 0):,}" for column in columns)] for name in dict.fromkeys(chain(*columns))]
    print(tabulate(rows, ["", *names], tablefmt="github", disable_numparse=True), end="\n\n")


if __name__ == "__main__":
    main()
