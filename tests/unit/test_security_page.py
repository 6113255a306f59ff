"""tests/contract/security.md names tests: all of them exist, and every finding's tests are named there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "tests" / "contract" / "security.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py)?(?:::(test_\w+))?`")


def functions(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_page__every_test_that_it_names__exists() -> None:
    missing, last, count = [], "", 0
    for file, function in NAMED.findall(PAGE):
        if not (file or function):
            continue
        count += 1
        last = file or last
        path = ROOT / last
        if not path.is_file() or (function and function not in functions(path)):
            missing.append(f"{last}::{function}")
    assert missing == []
    assert count > 30


def test_page__every_file_with_a_finding_of_a_hostile_world__is_named() -> None:
    files = {
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / "tests").rglob("test_*.py")
        if file.parent.name in {"hostile", "integration", "action"} and "def test_finding_" in file.read_text("utf-8")
    }
    assert files - {file for file, _ in NAMED.findall(PAGE)} == set()


def test_policy__is_where_github_looks_and_leads_to_the_page() -> None:
    assert "docs/security.md" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "docs/security.md" in (ROOT / "README.md").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    assert "../tests/contract/security.md" in page
    assert "../SECURITY.md" in page
