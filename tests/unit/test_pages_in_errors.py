"""Pages that errors and the help of commands name: by an address, since an installed package has no folder `docs`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from eval_gate.errors import PAGES

ROOT = Path(__file__).parents[2]
ERRORS = {"GateError", "unreadable", "Problem"}
PLAIN = re.compile(r"\bdocs/[\w/-]+\.md")
NAMED = re.compile(r"\{PAGES\}/([\w/-]+\.md)(?:#([\w-]+))?")


def _sources() -> dict[Path, str]:
    return {file: file.read_text() for file in (ROOT / "runner" / "eval_gate").rglob("*.py")}


def _hints(text: str) -> list[str]:
    """All texts within calls that make an error, and those that are kept in a variable called hint."""
    found = []
    for node in ast.walk(ast.parse(text)):
        made = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS
        kept = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and "hint" in node.targets[0].id
        if made or kept:
            found += [
                one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ]
    return found


def _shown(file: Path, text: str) -> list[str]:
    """All texts of a file that people may see: what commands say of themselves, and no other docstring."""
    tree = ast.parse(text)
    hidden = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    helps = [
        ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.FunctionDef) and node.name[0] != "_"
    ]
    texts = [one.value for one in ast.walk(tree) if _is_text(one) and id(one) not in hidden]
    return texts + (helps if "cli" in file.parts else [])


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_texts__pages_that_they_name__are_addresses() -> None:
    # action.yml names pages beside itself, and the README of GitHub's marketplace is that of the repository
    files = {file: text for file, text in _sources().items() if file.parts[-2:] != ("action", "inputs.py")}
    found = {
        file.name: [one for one in _shown(file, text) if re.search(r"(?<!/)\bdocs/[\w/-]+\.md", one)]
        for file, text in files.items()
    }
    assert {name: texts for name, texts in found.items() if texts} == {}


def test_errors__pages_that_they_name__are_addresses() -> None:
    hints = {file.name: [hint for hint in _hints(text) if PLAIN.search(hint)] for file, text in _sources().items()}
    assert {name: found for name, found in hints.items() if found} == {}
    assert PAGES.startswith("https://")


def test_errors__pages_that_they_name__are_there() -> None:
    named = [page for text in _sources().values() for page, _ in NAMED.findall(text)]
    assert len(named) > 5
    assert [page for page in named if not (ROOT / "docs" / page).is_file()] == []
