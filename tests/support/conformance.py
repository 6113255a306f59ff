"""Makes tests/contract/conformance.md: every rule of a specification, beside the tests that hold it.

Rules stand in tests/contract/rules/*.toml; a test names the rule it holds with `@pytest.mark.contract("rule.id")`.
"""

from __future__ import annotations

import ast
import functools
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parents[1]
RULES = TESTS / "contract" / "rules"
PAGE = TESTS / "contract" / "conformance.md"

OPENING = """# Conformance

What the specifications of the eval formats demand, rule by rule, and the tests that hold each rule. The page is
made from `tests/contract/rules/` and the tests' own marks; a test fails when it is not true. Write it anew with
`make conformance`.
"""


@dataclass(frozen=True)
class Rule:
    """One rule: a stable id, where it comes from, and what it says in our words."""

    id: str
    source: str
    says: str
    part: str


def rules() -> list[Rule]:
    """All rules, by part, in the order they are written."""
    found = []
    for file in sorted(RULES.glob("*.toml")):
        document = tomllib.loads(file.read_text(encoding="utf-8"))
        found += [Rule(rule["id"], rule["source"], rule["says"], file.stem) for rule in document["rule"]]
    return found


@functools.cache
def marks() -> dict[str, list[str]]:
    """Test names by the id of the rule they hold."""
    found: dict[str, list[str]] = defaultdict(list)
    for file in sorted(TESTS.rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        for rule_id, test in _marks_in(ast.parse(text)) if "mark.contract" in text else ():
            name = f"{file.relative_to(TESTS.parent).as_posix()}::{test}" if test else file.name
            if name not in found[rule_id]:
                found[rule_id].append(name)
    return found


def _marks_in(tree: ast.Module) -> Iterator[tuple[str, str | None]]:
    """Rule ids with the test function that is marked; None for a mark in a table beside the tests."""
    for statement in tree.body:
        test = statement.name if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) else None
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "contract":
                for argument in node.args:
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        yield argument.value, test


def page() -> str:
    """The whole page."""
    held = marks()
    lines = [OPENING]
    part = None
    for rule in rules():
        if rule.part != part:
            part = rule.part
            title = part.replace("_", " ").capitalize()
            lines.append(f"\n## {title}\n\n| Rule | Source | Says | Held by |\n|:--|:--|:--|:--|\n")
        tests = "<br>".join(f"`{name.rsplit('::', 1)[-1]}`" for name in held.get(rule.id, [])) or "**no test**"
        says = rule.says.strip().replace("\n", " ").replace("|", "\\|")
        lines.append(f"| `{rule.id}` | {rule.source} | {says} | {tests} |\n")
    return "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
