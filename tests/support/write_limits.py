"""Writes docs/limits.md from the table of bounds: `python -m tests.support.write_limits`."""

from __future__ import annotations

from pathlib import Path

from eval_gate.model.limits import TABLE, LimitRow

PAGE = Path(__file__).parents[2] / "docs" / "limits.md"
BEGIN = """# Limits

Whatever is read has a bound, because eval files, answers, comments and artifacts may be written by strangers. What is
beyond it is refused by a sentence that says so, or cut where a person reads it, before it costs memory or time. This is
the one table of these bounds (`runner/eval_gate/model/limits.py`); the page is written from it by
`python -m tests.support.write_limits`. What people read is cut besides, to what a comment, a log or a page can hold.

`python benchmarks/hostile.py` measures what a megabyte of hostile input costs in each reader.

| what | at most |
|:--|--:|
"""


def page() -> str:
    """The page."""
    return BEGIN + "".join(f"| {row.what} | {_number(row)} {row.unit} |\n" for row in TABLE)


def _number(row: LimitRow) -> str:
    return f"{row.limit:,.0f}" if row.limit == int(row.limit) else f"{row.limit:,}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
