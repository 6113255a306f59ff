"""Pages that errors name: by an address, since an installed package has no folder `docs`."""

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
    # the action names pages of the repository that it is run from
    folder = ROOT / "runner" / "eval_gate"
    return {file: file.read_text() for file in folder.rglob("*.py") if "action" not in file.relative_to(folder).parts}


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


def test_errors__pages_that_they_name__are_addresses() -> None:
    hints = {file.name: [hint for hint in _hints(text) if PLAIN.search(hint)] for file, text in _sources().items()}
    assert {name: found for name, found in hints.items() if found} == {}
    assert PAGES.startswith("https://")


def test_errors__pages_that_they_name__are_there() -> None:
    named = [page for text in _sources().values() for page, _ in NAMED.findall(text)]
    assert len(named) > 5
    assert [page for page in named if not (ROOT / "docs" / page).is_file()] == []
