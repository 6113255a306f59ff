"""Measure how a code base names things: the shares of the table in the notes on names.

    python -m benchmarks.names runner/eval_gate FOLDER…

For each folder of Python files: functions whose name is one word, public class names that stand in more than one
module, and docstrings of functions that ruff's D401 calls no imperative.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate


@dataclass(frozen=True)
class NameShares:
    """Counts over one folder of Python files, tests left out."""

    functions: int
    one_word: int
    classes: int
    repeated_classes: int
    documented: int
    no_imperative: int


def measure_names(folder: Path) -> NameShares:
    """Count the names in all modules below a folder."""
    trees = {path: ast.parse(path.read_bytes()) for path in iter_modules(folder)}
    functions = [node for tree in trees.values() for node in iter_functions(tree)]
    places: dict[str, set[Path]] = defaultdict(set)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(path)
    return NameShares(
        functions=len(functions),
        one_word=sum(is_one_word(node.name) for node in functions),
        classes=sum(map(len, places.values())),
        repeated_classes=sum(len(paths) for paths in places.values() if len(paths) > 1),
        documented=sum(ast.get_docstring(node) is not None for node in functions),
        no_imperative=count_no_imperative(folder),
    )


def iter_modules(folder: Path) -> Iterator[Path]:
    """Yield the Python files below a folder, without those of tests."""
    for path in sorted(folder.rglob("*.py")):
        if not any(part in {"test", "tests"} or part.startswith("test_") for part in path.relative_to(folder).parts):
            yield path


def iter_functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield functions and methods, nested ones too, but for those that Python calls by their name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):
            yield node


def is_one_word(name: str) -> bool:
    """Whether a name has one word, underscores at its ends left out."""
    return "_" not in name.strip("_")


def count_no_imperative(folder: Path) -> int:
    """Count the docstrings that break ruff's D401, settings of the project left out."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "D401", "--exit-zero"]
    done = subprocess.run([*command, "--output-format", "json", folder], capture_output=True, check=True)
    modules = {str(path.resolve()) for path in iter_modules(folder)}
    return sum(found["filename"] in modules for found in json.loads(done.stdout))


def main() -> None:
    """Print a column for each folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    folders: list[Path] = parser.parse_args().folders
    measured = [measure_names(folder) for folder in folders]
    rows = [
        ["functions", *(one.functions for one in measured)],
        ["functions whose name is one word", *(format_share(one.one_word, one.functions) for one in measured)],
        ["public classes", *(one.classes for one in measured)],
        ["their names in several modules", *(format_share(one.repeated_classes, one.classes) for one in measured)],
        ["docstrings without an imperative", *(format_share(one.no_imperative, one.documented) for one in measured)],
    ]
    print(tabulate(rows, headers=["", *(folder.name for folder in folders)], tablefmt="github"))


def format_share(part: int, whole: int) -> str:
    """Format a share in per cent: `21 %`."""
    return f"{100 * part / whole:.0f} %" if whole else "–"


if __name__ == "__main__":
    main()
