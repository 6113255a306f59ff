"""Names in the package: one class for one name, and functions that say what they do."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from benchmarks.names import is_one_word, iter_functions, iter_modules

PACKAGE = Path(__file__).resolve().parents[3] / "runner" / "eval_gate"
_WORDS = """
after again alike apart around asked before below beside brought called carried done ended found given gone heard here
hidden kept known later left made mended met missing named noted now others out over said seen shown so spared taken
then there told together wanted within without written
"""
NO_NAMES = frozenset(_WORDS.split())
"""Participles, adverbs and prepositions that say nothing by themselves: a function is a verb with an object."""
MOST_ONE_WORD = 0.15
"""Of functions. Comparable projects have 0.16 to 0.21."""


def test_classes__public_names__stand_in_one_module_only() -> None:
    places = defaultdict(list)
    for path in iter_modules(PACKAGE):
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert not twice, "give each class a name of its own, by what it is about"


def test_functions__bare_participles_and_adverbs__are_no_names() -> None:
    bare = [
        f"{path.relative_to(PACKAGE)}: {node.name}"
        for path in iter_modules(PACKAGE)
        for node in ast.parse(path.read_bytes()).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.strip("_") in NO_NAMES
    ]
    assert not bare, "name a function by a verb and its object, such as find_baseline or format_duration"


def test_modules__bare_participles_and_adverbs__are_no_names() -> None:
    bare = [str(path.relative_to(PACKAGE)) for path in iter_modules(PACKAGE) if path.stem in NO_NAMES]
    assert not bare, "name a module by the noun that it is about, such as case_history"


def test_functions__of_one_word__are_few() -> None:
    names = [node.name for path in iter_modules(PACKAGE) for node in iter_functions(ast.parse(path.read_bytes()))]
    assert len(names) > 4000
    assert sum(map(is_one_word, names)) <= MOST_ONE_WORD * len(names)
