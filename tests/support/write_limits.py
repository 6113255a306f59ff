"""Writes docs/limits.md from the table of bounds: `python -m tests.support.write_limits`."""

from __future__ import annotations

from pathlib import Path

from eval_gate.model.limits import TABLE, LimitRow

PAGE = Path(__file__).parents[2] / "docs" / "limits.md"
BEGIN = """# Limits

This page lists how much Eval Gate reads of a file, a response or an artifact, and how much of it a run result keeps.

Larger input is refused with an error that names the limit; stored texts are truncated. `python -m
tests.support.write_limits` writes this page from `runner/eval_gate/model/limits.py`.
"""


def page() -> str:
    """The page: a list for each section."""
    return BEGIN + "".join(_section(title, rows) for title, rows in TABLE.items())


def _section(title: str, rows: list[LimitRow]) -> str:
    head = f"\n## {title}\n\n"
    return head + "".join(f"- {row.what}: {_number(row)} {row.unit}\n" for row in rows)


def _number(row: LimitRow) -> str:
    return f"{row.limit:,.0f}" if row.limit == int(row.limit) else f"{row.limit:,}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
