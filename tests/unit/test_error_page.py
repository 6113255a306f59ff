"""docs/errors.md explains every code that a person can meet, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
RAISED = {"GateError": 0, "TakenError": 0, "Finding": 1}
"""Constructors with the place of their code."""
PASSING = {"passed", "no-baseline", "never-fails", "not-asked-for", "none-yet", "no-artifact"}
"""Codes of what is no error: a passing gate, and the absence of a baseline."""


def codes() -> Iterator[str]:
    for file in (ROOT / "runner").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                values = [keyword.value for keyword in node.keywords if keyword.arg == "code"]
                if node.func.id in {*RAISED, "Reason", "NoBaseline"} and file.name != "staleness.py":
                    values += node.args[RAISED.get(node.func.id, 0) :][:1]
                yield from (
                    value.value
                    for value in values
                    if isinstance(value, ast.Constant) and re.fullmatch(r"[a-z-]+", str(value.value))
                )


def test_page__explains_every_code_and_no_other() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    explained = re.findall(r"^### (.+)$", page, re.MULTILINE)
    by_rule = {"failures", "stale", "flaky", "could-not-measure", "must-pass", "min-coverage"}
    by_rule |= {"regressions", "removed", "changed", "loosened", "new-failures"}
    by_rule |= {f"max-{what}-increase" for what in ("latency", "cost", "token")}
    assert sorted(set(codes()) - PASSING | by_rule) == sorted(explained)
    assert len(explained) == len(set(explained))
