"""docs/errors.md explains every code that a person can meet, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from eval_gate.model.comparison import ReasonCode, RuleCode
from eval_gate.reports.wording.advice_table import NO_ADVICE

ROOT = Path(__file__).parents[2]
RAISED = ("GateError", "NameTakenError")
"""Constructors whose first argument is a code."""
PASSING = NO_ADVICE - {ReasonCode.NO_COMPARABLE_CASES, ReasonCode.NO_VERDICT}
"""Codes of what is no error: a passing gate, and the absence of a baseline, of which the message says all."""


def codes() -> Iterator[str]:
    yield from (code.value for code in (*RuleCode, *ReasonCode))
    for file in (ROOT / "runner").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                values = [keyword.value for keyword in node.keywords if keyword.arg == "code"]
                if node.func.id in RAISED and file.name != "staleness_checks.py":
                    values += node.args[:1]
                yield from (
                    value.value
                    for value in values
                    if isinstance(value, ast.Constant) and re.fullmatch(r"[a-z-]+", str(value.value))
                )


def test_page__explains_every_code_and_no_other() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    explained = re.findall(r"^### (.+)$", page, re.MULTILINE)
    assert sorted(set(codes()) - {code.value for code in PASSING}) == sorted(explained)
    assert len(explained) == len(set(explained))
